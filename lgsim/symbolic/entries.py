"""Direct execution of a program while it is read, on entries of an arithmetic."""

from __future__ import annotations

from typing import Any, NamedTuple, no_type_check

import numpy as np

from lgsim._compile.programs.program import Builder, fold
from lgsim.symbolic.arithmetic import AT_ZERO, EXACT, Arithmetic, root

_QUESTIONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "signbit"))
_CHOICES = frozenset(("select", "and", "or", "xor", "not", "max", "min", "sign", "floor", "ceil", "round", "rem"))


_BITS = frozenset(("bitcast", "shift_right_arithmetic", "shift_right_logical"))


class SymbolicError(TypeError):
    """A function cannot be evaluated on symbols, or not in this arithmetic."""


class Undecided(NamedTuple):
    """The result of a comparison with a symbol, an error only if it is used.

    Attributes:
        where: The function and line of lgsim that compares.
    """

    question: str
    where: str


@no_type_check
class Entries(Builder):
    """Executes statements: a value is an entry of the arithmetic, or negative for an ordinary number.

    The simplifications of the program reader, and the reuse of equal statements, apply here as well.
    """

    def __init__(self, arithmetic: Arithmetic) -> None:
        super().__init__()
        self.arithmetic, self._operations = arithmetic, arithmetic.operations()
        self._entries: list[Any] = []
        self.where = "lgsim"
        """The function and line being read, for messages."""

    def given(self, kind: str, entries: np.ndarray) -> np.ndarray:
        """The values of an argument, whose entries are those of the arithmetic or numbers."""
        found = [self._value(kind, self.arithmetic.entry(x)) for x in entries.ravel().tolist()]
        return np.array(found, int).reshape(entries.shape)

    def entry(self, value: int) -> Any:
        """The entry of a value.

        Raises:
            SymbolicError: it is the result of a comparison with a symbol.
        """
        if value < 0:
            kind, number = self.constants[-1 - value]
            return self.arithmetic.constant(number) if kind.startswith("float") else number
        found = self._entries[value]
        if isinstance(found, Undecided):
            raise SymbolicError(_branch(found))
        return found

    def constant(self, kind: str, value: Any) -> int:
        """A constant; a float is converted by the arithmetic."""
        if not kind.startswith("float"):
            return super().constant(kind, value)
        number = self.arithmetic.number(value)
        key = kind, number
        found = self._of_constants.get(key)
        if found is None:
            self.constants.append((kind, number))
            found = self._of_constants[key] = -len(self.constants)
        return found

    def fold(self, op: str, kind: str, numbers: Any) -> int:
        """The value of an operation on ordinary numbers."""
        values = [x for _, x in numbers]
        if op == "convert":
            given = numbers[0][0]
            if kind.startswith("float"):
                return self.constant(kind, int(values[0]) if not given.startswith("float") else values[0])
            return super().constant(kind, int(values[0]) if given.startswith("float") else values[0])
        if op == "bitcast":
            return super().constant(kind, fold(op, kind, [(k, float(x) if k[0] == "f" else x) for k, x in numbers]))
        if not any(k.startswith("float") for k, _ in numbers):
            return super().constant(kind, fold(op, kind, numbers))
        if op in EXACT:
            return self.constant(kind, EXACT[op](*values))
        if op in AT_ZERO and values[0] == 0:
            return self.constant(kind, AT_ZERO[op])
        exact = root(values[0]) if op == "sqrt" else None
        if exact is not None:
            return self.constant(kind, exact)
        return self._value(kind, self._carried_out(op, [self.arithmetic.constant(x) for x in values]))

    def append(self, op: str, operands: tuple[int, ...], kind: str) -> int:
        """The value of an operation with an entry as operand."""
        key = op, operands, kind
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = self._appended(op, operands, kind)
        return found

    def _appended(self, op: str, operands: tuple[int, ...], kind: str) -> int:
        if op in _QUESTIONS:
            return self._value("bool", Undecided(op, str(self.where)))
        if op in _BITS:  # JAX's test of a sign
            return self._value(kind, Undecided(op, str(self.where)), (op, kind, operands))
        for value in operands:
            if value >= 0 and isinstance(self._entries[value], Undecided):
                raise SymbolicError(_branch(self._entries[value]))
        if op == "convert" and kind.startswith("float"):
            return operands[0]
        made = self._carried_out(op, [self.entry(x) for x in operands])
        return self._value(kind, made, (op, kind, operands))

    def _carried_out(self, op: str, entries: list[Any]) -> Any:
        function = self._operations.get(op)
        if function is None:
            name = type(self.arithmetic).__name__
            if op in _CHOICES:
                raise SymbolicError(
                    f"{op} of a symbol in {self.where}: a branch depends on it; give a number in its place, or use a"
                    " function without joint limits and dry friction"
                )
            raise SymbolicError(f"{op} of a symbol in {self.where}: {name} has no rule for it, but for {self._known()}")
        try:
            return function(*entries)
        except SymbolicError as error:
            raise SymbolicError(f"{error}, in {self.where}") from error

    def _known(self) -> str:
        return ", ".join(sorted(self._operations))

    def _value(self, kind: str, entry: Any, statement: tuple | None = None) -> int:
        entry = entry if isinstance(entry, Undecided) else self.arithmetic.settled(entry)
        if self.arithmetic.is_number(entry):
            return self.constant(kind, entry)
        self.kinds.append(kind)
        self._entries.append(entry)
        self._statements.append(None if statement is None else _statement(*statement))
        return len(self.kinds) - 1


def _statement(op: str, kind: str, operands: tuple[int, ...]) -> Any:
    from lgsim._compile.programs.program import Statement

    return Statement(op, kind, operands)


def _branch(undecided: Undecided) -> str:
    return (
        f"a branch depends on a symbol: the primitive {undecided.question} in {undecided.where} compares it; give a "
        "number in its place, or use a function without joint limits, dry friction and series of small angles"
    )
