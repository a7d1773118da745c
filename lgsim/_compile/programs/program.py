"""Straight-line programs of scalars: the computation of a function of one state, as data.

A value is an integer: the entries of the inputs are 0, 1, ...; the statements follow, one value each; constants are
negative. Every value has a kind, the name of its numpy dtype.

Simplifications during building are exact for finite values, except for the sign of zero. ``x + 0`` and ``x * 1`` are
x; ``x * 0`` is +0 for any x, NaN and infinity included; ``x + (-y)`` is ``x - y``; signs are moved out of products and
quotients. ``x - x``, ``0 / x`` and the order of sums are not changed.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple, no_type_check

import numpy as np

from lgsim._compile.programs.operations import FUNCTIONS as FUNCTIONS
from lgsim._compile.programs.operations import KINDS
from lgsim._compile.programs.program_bytes import pack, unpack
from lgsim._compile.programs.simplification import SIMPLER

_COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "signbit"))


class UnsupportedProgramError(Exception):
    """A function has no straight-line program: a loop depends on the state, or a primitive has no rule."""


class TooLong(UnsupportedProgramError):
    """A program exceeds the limit of statements."""


class Port(NamedTuple):
    """An input or an output: an array whose entries are values in row-major order.

    Attributes:
        kind: Kind of the entries.
        shape: Shape of the array.
        values: The values of the entries.
    """

    kind: str
    shape: tuple[int, ...]
    values: tuple[int, ...]


class Statement(NamedTuple):
    """One operation of a program.

    Attributes:
        op: Name of the operation, one of ``lgsim._compile.programs.operations.OPS``.
        kind: Kind of the result.
        operands: Values of the operands.
    """

    op: str
    kind: str
    operands: tuple[int, ...]


class Program(NamedTuple):
    """A straight-line program.

    Attributes:
        inputs: The inputs, whose entries are the values 0, 1, ...
        statements: The statements in execution order; the i-th one is the value ``entries + i``.
        constants: Kind and number of each constant; the i-th one is the value ``-1 - i``.
    """

    inputs: tuple[Port, ...]
    statements: tuple[Statement, ...]
    constants: tuple[tuple[str, Any], ...]
    outputs: tuple[Port, ...]

    @property
    def entries(self) -> int:
        """The number of entries of all inputs."""
        return sum(len(port.values) for port in self.inputs)

    def kind(self, value: int) -> str:
        """The kind of a value."""
        if value < 0:
            return self.constants[-1 - value][0]
        entries = self.entries
        if value >= entries:
            return self.statements[value - entries].kind
        return next(port.kind for port in self.inputs if port.values and value <= port.values[-1])

    def counts(self) -> dict[str, int]:
        """The number of occurrences of each operation."""
        return dict(Counter(statement.op for statement in self.statements))

    def to_bytes(self) -> bytes:
        """The program as bytes, which ``from_bytes`` reads."""
        return pack(*self)

    @classmethod
    def from_bytes(cls, content: bytes) -> Program:
        """The program from the bytes of ``to_bytes``.

        Raises:
            ProgramFormatError: the bytes are truncated, changed, or in another format.
        """
        inputs, statements, constants, outputs = unpack(content)
        return cls(
            tuple(Port(*x) for x in inputs), tuple(Statement(*x) for x in statements), constants,
            tuple(Port(*x) for x in outputs),
        )  # fmt: skip

    def digest(self) -> str:
        """A hash of the program: equal for equal programs, in every process."""
        digest = hashlib.sha256()
        for ports in (self.inputs, self.outputs):
            digest.update(repr([(p.kind, p.shape) for p in ports]).encode())
            for port in ports:
                digest.update(np.asarray(port.values, np.int64).tobytes())
        digest.update(",".join(s.op for s in self.statements).encode())
        digest.update(",".join(s.kind for s in self.statements).encode())
        digest.update(repr([s.operands for s in self.statements]).encode())
        for kind, value in self.constants:
            digest.update(kind.encode() + np.asarray(value, kind).tobytes())
        return digest.hexdigest()


@no_type_check  # at run time: checking a call takes ten times as much as the call
class Builder:
    """A program under construction: each new statement is simplified and, if it exists already, reused.

    Args:
        limit: The number of statements above which ``UnsupportedProgramError`` is raised.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.kinds: list[str] = []
        """The kind of each value that is not a constant."""
        self.constants: list[tuple[str, Any]] = []
        self._inputs: list[Port] = []
        self._statements: list[Statement | None] = []
        self._numbers: dict[tuple, int] = {}
        self._of_constants: dict[tuple, int] = {}
        self._limit = limit

    def input(self, kind: str, shape: tuple[int, ...]) -> np.ndarray:
        """The entries of a new input, as an array of values.

        Raises:
            UnsupportedProgramError: the dtype is not supported.
        """
        if kind not in KINDS:
            raise UnsupportedProgramError(f"an input of dtype {kind}")
        first, size = len(self.kinds), int(np.prod(shape, dtype=int))
        self.kinds += [kind] * size
        self._statements += [None] * size
        self._inputs.append(Port(kind, tuple(shape), tuple(range(first, first + size))))
        return np.arange(first, first + size).reshape(shape)

    def constant(self, kind: str, value: Any) -> int:
        """A constant.

        Raises:
            UnsupportedProgramError: the dtype is not supported.
        """
        if kind not in KINDS:
            raise UnsupportedProgramError(f"a constant of dtype {kind}")
        number = np.dtype(kind).type(value)
        key = kind, number.tobytes()
        found = self._of_constants.get(key)
        if found is None:
            self.constants.append((kind, number.item()))
            found = self._of_constants[key] = -len(self.constants)
        return found

    def array(self, numbers: Any) -> np.ndarray:
        """An array of constants.

        Raises:
            UnsupportedProgramError: it has more entries than the statement limit, or its dtype is not supported.
        """
        numbers = np.asarray(numbers)
        if self._limit is not None and numbers.size > self._limit:
            raise TooLong(f"a constant of {numbers.size} entries")
        kind = numbers.dtype.name
        return np.array([self.constant(kind, x) for x in numbers.ravel().tolist()], int).reshape(numbers.shape)

    def number(self, value: int) -> Any:
        """The number of a constant value.

        Raises:
            UnsupportedProgramError: the value depends on an input.
        """
        if value >= 0:
            raise UnsupportedProgramError("an index or a choice that depends on an input")
        return self.constants[-1 - value][1]

    def kind(self, value: int) -> str:
        """The kind of a value."""
        return self.constants[-1 - value][0] if value < 0 else self.kinds[value]

    def negated(self, value: int) -> int | None:
        """The value whose negative this is, or None."""
        statement = self._statements[value] if value >= 0 else None
        return statement.operands[0] if statement is not None and statement.op == "neg" else None

    def statement(self, value: int) -> Statement | None:
        """The statement that computes a value, or None."""
        return self._statements[value] if value >= 0 else None

    def __call__(self, op: str, *operands: int, kind: str | None = None) -> int:
        """The value of an operation; ``kind`` is the result kind of a conversion.

        Raises:
            UnsupportedProgramError: the statement limit is exceeded.
        """
        simplified = SIMPLER.get(op)
        if simplified is not None:
            found = simplified(self, *operands) if kind is None else simplified(self, *operands, kind)
            if found is not None:
                return found
        if kind is None:
            kind = "bool" if op in _COMPARISONS else self.kind(operands[-1])
        if max(operands) < 0:
            numbers = [self.constants[-1 - x] for x in operands]
            return self.fold(op, kind, numbers)
        return self.append(op, operands, kind)

    def fold(self, op: str, kind: str, numbers: Sequence[tuple[str, Any]]) -> int:
        """The value of an operation on constants, each a kind and a number."""
        return self.constant(kind, fold(op, kind, numbers))

    def append(self, op: str, operands: tuple[int, ...], kind: str) -> int:
        """The value of a statement without simplification; an existing one is reused."""
        key = (op, operands, kind)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.kinds)
            if self._limit is not None and found > self._limit:
                raise TooLong(f"more than {self._limit} statements")
            self.kinds.append(kind)
            self._statements.append(Statement(op, kind, operands))
        return found

    def program(self, outputs: Sequence[tuple[str, np.ndarray]]) -> Program:
        """The program for these outputs, each a kind and an array of values, without unused statements.

        The statements keep the order of the function. A depth-first order, with each statement just before its use,
        gives smaller machine code but is up to half slower, since adjacent statements then wait for each other.
        """
        first = sum(len(port.values) for port in self._inputs)
        # mark the values that the outputs depend on, backward
        needed = bytearray(len(self.kinds))
        for _, values in outputs:
            for value in values.ravel().tolist():
                if value >= 0:
                    needed[value] = 1
        for value in range(len(self.kinds) - 1, first - 1, -1):
            if needed[value]:
                for operand in self._statements[value].operands:  # type: ignore[union-attr]
                    if operand >= 0:
                        needed[operand] = 1
        # renumber them in order, and collect the constants in use
        renamed: dict[int, int] = {i: i for i in range(first)}
        constants: list[tuple[str, Any]] = []

        def name(value: int) -> int:
            found = renamed.get(value)
            if found is None:  # first use of a constant
                constants.append(self.constants[-1 - value])
                found = renamed[value] = -len(constants)
            return found

        statements: list[Statement] = []
        for value in range(first, len(self.kinds)):
            if needed[value]:
                op, kind, operands = self._statements[value]  # type: ignore[misc]
                statements.append(Statement(op, kind, tuple(map(name, operands))))
                renamed[value] = first + len(statements) - 1
        ports = tuple(Port(k, x.shape, tuple(map(name, x.ravel().tolist()))) for k, x in outputs)
        return Program(tuple(self._inputs), tuple(statements), tuple(constants), ports)


def fold(op: str, kind: str, numbers: Sequence[tuple[str, Any]]) -> Any:
    """The result of an operation on constants, each a kind and a number, rounded to its kind.

    Raises:
        UnsupportedProgramError: numpy has no such operation.
    """
    given = [np.dtype(k).type(x) for k, x in numbers]
    if op == "convert":
        return given[0].astype(kind)
    if op == "bitcast":
        return given[0].view(kind)
    function = _FOLDED.get(op)
    if function is None:
        raise UnsupportedProgramError(f"{op} of constants")
    return function(*given)


def _quotient(x: Any, y: Any) -> Any:
    """Integer division toward zero, by a positive divisor."""
    size = abs(int(x)) // int(y)
    return x.dtype.type(-size if x < 0 else size)


def _shifted(x: Any, by: Any, signed: bool) -> Any:
    bits = x.dtype.itemsize * 8
    whole = int(x) if signed else int(x) % (1 << bits)
    return np.array(whole >> int(by) & ((1 << bits) - 1), f"uint{bits}").view(x.dtype)[()]


_FOLDED: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "neg": np.negative, "abs": np.abs, "sign": np.sign,
    "div": lambda x, y: x / y if x.dtype.kind == "f" else _quotient(x, y),
    "rem": np.fmod, "sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil, "round": np.rint,
    "max": np.maximum, "min": np.minimum,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert,
    "shift_left": np.left_shift,
    "shift_right_arithmetic": lambda x, by: _shifted(x, by, True),
    "shift_right_logical": lambda x, by: _shifted(x, by, False),
    "select": lambda c, x, y: x if c else y, "signbit": np.signbit,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log,
    "log1p": np.log1p, "pow": np.power, "cbrt": np.cbrt,
}  # fmt: skip
