"""Statements of a program as lines of LLVM IR, on vectors of states or on scalars.

Products and sums may be contracted (fma); nothing else is reordered. Each operation is a row of ``_RIGHT``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, no_type_check

import numpy as np

from lgsim._compile.programs.program import FUNCTIONS, Port, Program, Statement
from lgsim._compile.programs.targets.functions import function_program

TYPES = {
    "bool": "i1", "int8": "i8", "uint8": "i8", "int32": "i32", "uint32": "i32", "int64": "i64", "uint64": "i64",
    "float32": "float", "float64": "double",
}  # fmt: skip
"""The LLVM type of a scalar of each kind."""


class Module(Protocol):
    """The properties of a module that its functions use.

    Attributes:
        program: The program.
        kinds: Kind of each value: the entries of all inputs, then the results of the statements.
        places: For each entry of an input, the input and the index in it.
        entries: The number of entries of all inputs.
        shared: Flags of the inputs that all states share.
        once: Flags of the values that depend only on shared inputs.
        kept: Values that are computed once and used by each vector, with their indices in units of eight bytes.
        declared: Lines that declare external functions.
    """

    program: Program
    kinds: list[str]
    places: list[tuple[int, int]]
    entries: int
    shared: tuple[bool, ...]
    once: list[bool]
    kept: dict[int, int]
    declared: set[str]

    def function(self, op: str, kind: str, program: Program, lanes: int) -> str:
        """The name of a function of one argument, whose text is added to the module."""
        ...


@no_type_check  # at run time: checking a call takes ten times as much as the call
class Writer:
    """Lines of a function on vectors with a number of lanes, 1 for scalars."""

    def __init__(self, module: Module, lanes: int) -> None:
        self.module, self.lanes = module, lanes
        self.lines: list[str] = []
        self._loaded: dict[int, str] = {}
        self._pointers: dict[str, str] = {}
        self._count = 0
        self._types = {k: t if lanes == 1 else f"<{lanes} x {t}>" for k, t in TYPES.items()}
        self.given: dict[int, str] = {}

    def type(self, kind: str) -> str:
        """The type of a value of a kind."""
        return self._types[kind]

    def line(self, text: str) -> str:
        """A line that defines a new name, which is returned."""
        self._count += 1
        self.lines.append(f"%t{self._count} = {text}")
        return f"%t{self._count}"

    def _kind(self, value: int) -> str:
        return self.module.program.constants[-1 - value][0] if value < 0 else self.module.kinds[value]

    def operand(self, value: int) -> str:
        """The text of a value as an operand."""
        m = self.module
        if value in self.given:
            return self.given[value]
        if value < 0:
            return self.number(*m.program.constants[-1 - value])
        if value >= m.entries and (self.lanes == 1 or not m.once[value]):
            return f"%v{value}"
        found = self._loaded.get(value)
        if found is None:
            found = self._loaded[value] = self._load(value)
        return found

    def _load(self, value: int) -> str:
        m, kind = self.module, self.module.kinds[value]
        if value < m.entries:
            i, place = m.places[value]
            base = self._pointer("args", i)
            if self.lanes > 1 and not m.shared[i]:
                return self._loaded_as(kind, self._column(base, kind, place), self.lanes)
            at = self.line(f"getelementptr {memory_type(kind)}, ptr {base}, i64 {place}")
        else:
            at = self.line(f"getelementptr i64, ptr %kept, i64 {m.kept[value]}")
        scalar = self._loaded_as(kind, at, 1)
        if self.lanes == 1:
            return scalar
        t, whole = TYPES[kind], self._types[kind]
        one = self.line(f"insertelement {whole} poison, {t} {scalar}, i64 0")
        return self.line(f"shufflevector {whole} {one}, {whole} poison, <{self.lanes} x i32> zeroinitializer")

    def _loaded_as(self, kind: str, at: str, lanes: int) -> str:
        def vector(t: str) -> str:
            return t if lanes == 1 else f"<{lanes} x {t}>"

        if kind == "bool":
            found = self.line(f"load {vector('i8')}, ptr {at}, align 1")
            zero = "0" if lanes == 1 else "zeroinitializer"
            return self.line(f"icmp ne {vector('i8')} {found}, {zero}")
        return self.line(f"load {vector(TYPES[kind])}, ptr {at}, align {size_of(kind)}")

    def _pointer(self, table: str, i: int) -> str:
        key = f"{table}{i}"
        if key not in self._pointers:
            at = self.line(f"getelementptr ptr, ptr %{table}, i64 {i}")
            self._pointers[key] = self.line(f"load ptr, ptr {at}")
        return self._pointers[key]

    def _column(self, base: str, kind: str, place: int) -> str:
        start = self.line(f"mul i64 %n, {place}")
        at = self.line(f"add i64 {start}, %i")
        return self.line(f"getelementptr {memory_type(kind)}, ptr {base}, i64 {at}")

    def store(self, output: int, port: Port, place: int, value: int) -> None:
        """Store a value as an entry of an output."""
        base, kind = self._pointer("rets", output), port.kind
        at = (
            self.line(f"getelementptr {memory_type(kind)}, ptr {base}, i64 {place}")
            if self.lanes == 1
            else self._column(base, kind, place)
        )
        name, t = self.operand(value), self._types[kind]
        if kind == "bool":
            wide = self._types["int8"]
            name, t = self.line(f"zext {t} {name} to {wide}"), wide
        self.lines.append(f"store {t} {name}, ptr {at}, align {size_of(kind)}")

    def number(self, kind: str, value: Any) -> str:
        """A number in all lanes."""
        text = constant(kind, value)
        return text if self.lanes == 1 else f"splat ({TYPES[kind]} {text})"

    def statement(self, value: int, statement: Statement) -> None:
        """Write the lines of a statement; the last one defines its name.

        Raises:
            NotImplementedError: the operation is not supported.
        """
        op, kind, operands = statement
        if op not in _RIGHT:
            raise NotImplementedError(op)
        given = self._kind(operands[0])
        x = [self.operand(each) for each in operands]
        right = _RIGHT[op](self, _Operation(op, kind, given, self._types[kind], self._types[given], x))
        self.lines.append(f"%v{value} = {right}")

    def call(self, name: str, kinds: Sequence[str], op: _Operation) -> str:
        """A call of an LLVM intrinsic, which is declared."""
        suffix = ".".join(
            ("" if self.lanes == 1 else f"v{self.lanes}") + _SUFFIXES.get(TYPES[k], TYPES[k]) for k in kinds
        )
        name = f"@llvm.{name}.{suffix}"
        self.module.declared.add(f"declare {op.type} {name}({', '.join([op.of] * len(op.x))})")
        return f"call {op.type} {name}({', '.join(f'{op.of} {each}' for each in op.x)})"


_SUFFIXES = {"float": "f32", "double": "f64"}


class _Operation(NamedTuple):
    """The right-hand side of a statement.

    Attributes:
        name: The operation.
        kind: The kind of the result.
        given: The kind of the first operand.
        type: The type of the result.
        of: The type of the first operand.
        x: The texts of the operands.
    """

    name: str
    kind: str
    given: str
    type: str
    of: str
    x: list[str]

    @property
    def is_float(self) -> bool:
        """True if the first operand is a floating-point number."""
        return self.given.startswith("float")

    @property
    def is_signed(self) -> bool:
        """True if the first operand is a signed integer."""
        return self.given.startswith("int")


_Right = Callable[[Writer, _Operation], str]
"""The right-hand side of the last line of an operation; preceding lines are written."""


@no_type_check
def _binary(of_floats: str, of_signed: str, of_unsigned: str | None = None) -> _Right:
    unsigned = of_signed if of_unsigned is None else of_unsigned

    def right(w: Writer, s: _Operation) -> str:
        word = of_floats if s.is_float else of_signed if s.is_signed else unsigned
        return f"{word} {s.type} {s.x[0]}, {s.x[1]}"

    return right


@no_type_check
def _compared(op: str, given: str, of: str, x: Sequence[str]) -> str:
    if given.startswith("float"):  # unordered: a NaN differs from everything
        return f"fcmp {'une' if op == 'ne' else 'o' + op} {of} {x[0]}, {x[1]}"
    sign = "" if op in ("eq", "ne") else "s" if given.startswith("int") else "u"
    return f"icmp {sign}{op} {of} {x[0]}, {x[1]}"


@no_type_check
def _comparison(w: Writer, s: _Operation) -> str:
    return _compared(s.name, s.given, s.of, s.x)


@no_type_check
def _negation(w: Writer, s: _Operation) -> str:
    return f"fneg {s.type} {s.x[0]}" if s.is_float else f"sub {s.type} zeroinitializer, {s.x[0]}"


@no_type_check
def _complement(w: Writer, s: _Operation) -> str:
    return f"xor {s.type} {s.x[0]}, {w.number(s.kind, True if s.kind == 'bool' else -1)}"


@no_type_check
def _selection(w: Writer, s: _Operation) -> str:
    return f"select {w.type('bool')} {s.x[0]}, {s.type} {s.x[1]}, {s.type} {s.x[2]}"


@no_type_check
def _sign_bit(w: Writer, s: _Operation) -> str:
    bits = "int64" if s.given == "float64" else "int32"
    cast = w.line(f"bitcast {s.of} {s.x[0]} to {w.type(bits)}")
    return f"icmp slt {w.type(bits)} {cast}, {w.number(bits, 0)}"


@no_type_check
def _magnitude(w: Writer, s: _Operation) -> str:
    if s.is_float:
        return w.call("fabs", [s.kind], s)
    below = w.line(f"icmp slt {s.type} {s.x[0]}, {w.number(s.kind, 0)}")
    minus = w.line(f"sub {s.type} zeroinitializer, {s.x[0]}")
    return f"select {w.type('bool')} {below}, {s.type} {minus}, {s.type} {s.x[0]}"


@no_type_check
def _intrinsic(name: str) -> _Right:
    return lambda w, s: w.call(name, [s.kind], s)


@no_type_check
def _extremum(w: Writer, s: _Operation) -> str:
    mask = w.type("bool")
    beyond = w.line(_compared("ge" if s.name == "max" else "le", s.kind, s.type, s.x))
    if s.kind.startswith("float"):  # NaN in either operand gives NaN
        unordered = w.line(f"fcmp uno {s.type} {s.x[0]}, {s.x[0]}")
        beyond = w.line(f"or {mask} {beyond}, {unordered}")
    return f"select {mask} {beyond}, {s.type} {s.x[0]}, {s.type} {s.x[1]}"


@no_type_check
def _sign(w: Writer, s: _Operation) -> str:
    mask, zero = w.type("bool"), w.number(s.kind, 0)
    above = w.line(_compared("gt", s.kind, s.type, [s.x[0], zero]))
    below = w.line(_compared("lt", s.kind, s.type, [s.x[0], zero]))
    rest = w.line(f"select {mask} {below}, {s.type} {w.number(s.kind, -1)}, {s.type} {s.x[0]}")
    return f"select {mask} {above}, {s.type} {w.number(s.kind, 1)}, {s.type} {rest}"


@no_type_check
def _conversion(w: Writer, s: _Operation) -> str:
    to_float = s.kind.startswith("float")
    if s.is_float and not to_float:  # beyond the largest integer: saturate, as XLA does
        return w.call(f"fpto{'si' if s.kind.startswith('int') else 'ui'}.sat", [s.kind, s.given], s)
    size, wanted = (0 if k == "bool" else size_of(k) for k in (s.given, s.kind))
    if s.is_float:
        word = "fpext" if s.kind == "float64" else "fptrunc"
    elif to_float:
        word = "sitofp" if s.is_signed else "uitofp"
    elif size == wanted:
        word = "bitcast"
    else:
        word = "trunc" if size > wanted else "sext" if s.is_signed else "zext"
    return f"{word} {s.of} {s.x[0]} to {s.type}"


@no_type_check
def _bits(w: Writer, s: _Operation) -> str:
    return f"bitcast {s.of} {s.x[0]} to {s.type}"


@no_type_check
def _function(w: Writer, s: _Operation) -> str:
    """A math function: an lgsim program on all lanes, or the C library lane by lane."""
    own = function_program(s.name, s.kind)
    if own is not None:
        return f"call {s.type} {w.module.function(s.name, s.kind, own, w.lanes)}({s.type} {s.x[0]})"
    element, name = TYPES[s.kind], s.name + ("f" if s.kind == "float32" else "")
    w.module.declared.add(f"declare {element} @{name}({', '.join([element] * len(s.x))})")

    def call(given: Sequence[str]) -> str:
        return f"call {element} @{name}({', '.join(f'{element} {each}' for each in given)})"

    if w.lanes == 1:
        return call(s.x)
    out, text = "poison", ""
    for lane in range(w.lanes):
        given = [w.line(f"extractelement {s.type} {each}, i64 {lane}") for each in s.x]
        text = f"insertelement {s.type} {out}, {element} {w.line(call(given))}, i64 {lane}"
        if lane < w.lanes - 1:
            out = w.line(text)
    return text


_RIGHT: dict[str, _Right] = {
    "add": _binary("fadd contract", "add"),
    "sub": _binary("fsub contract", "sub"),
    "mul": _binary("fmul contract", "mul"),
    "div": _binary("fdiv", "sdiv", "udiv"),
    "rem": _binary("frem", "srem", "urem"),
    "and": _binary("", "and"),
    "or": _binary("", "or"),
    "xor": _binary("", "xor"),
    "shift_left": _binary("", "shl"),
    "shift_right_arithmetic": _binary("", "ashr"),
    "shift_right_logical": _binary("", "lshr"),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), _comparison),
    "neg": _negation,
    "not": _complement,
    "select": _selection,
    "signbit": _sign_bit,
    "abs": _magnitude,
    "sqrt": _intrinsic("sqrt"),
    "floor": _intrinsic("floor"),
    "ceil": _intrinsic("ceil"),
    "round": _intrinsic("rint"),
    "max": _extremum,
    "min": _extremum,
    "sign": _sign,
    "convert": _conversion,
    "bitcast": _bits,
    **dict.fromkeys(FUNCTIONS, _function),
}
"""Text by operation, for floats, signed and unsigned integers."""


@no_type_check
def constant(kind: str, number: Any) -> str:
    """A scalar."""
    if kind == "bool":
        return "true" if number else "false"
    if kind.startswith("float"):
        # LLVM writes a float32 as the bits of the float64 with the same value
        return "0x" + struct.pack(">d", float(np.dtype(kind).type(number))).hex().upper()
    return str(int(number))


@no_type_check
def size_of(kind: str) -> int:
    """Bytes of a scalar in memory."""
    return np.dtype(kind).itemsize


@no_type_check
def memory_type(kind: str) -> str:
    """The type of a scalar in memory; a boolean has a byte."""
    return "i8" if kind == "bool" else TYPES[kind]
