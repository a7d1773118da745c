"""A program as LLVM IR: several states to a vector, and the function by which XLA calls it.

Inputs are shared by all states of a batch, or have one more axis for them, the last one, in row-major order. Three
functions: ``shared`` computes scalars that depend on shared inputs alone, once a call; ``states`` computes one vector
of states; ``handler`` takes XLA's call frame and runs them. Where the number of states is no multiple of a vector's
length the last vector begins earlier, and fewer states than a vector has are copied to one.

``states`` is a function without a loop so that no pass moves what is shared, a load with a broadcast, to a register
that is not there. Products and sums may be contracted (fma), nothing else is reordered.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any, no_type_check

import numpy as np

from lgsim._compile.programs.program import FUNCTIONS, Port, Program, Statement
from lgsim._compile.programs.targets.functions import function_program

VERSION = 3
"""Part of the name of every compiled program: another number where the text of this file gives another meaning."""

_TYPES = {
    "bool": "i1", "int8": "i8", "uint8": "i8", "int32": "i32", "uint32": "i32", "int64": "i64", "uint64": "i64",
    "float32": "float", "float64": "double",
}  # fmt: skip
_ORDERED = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
_OPERATIONS = {  # of floats, of integers
    "add": ("fadd contract", "add"), "sub": ("fsub contract", "sub"), "mul": ("fmul contract", "mul"),
    "and": ("", "and"), "or": ("", "or"), "xor": ("", "xor"), "shift_left": ("", "shl"),
    "shift_right_arithmetic": ("", "ashr"), "shift_right_logical": ("", "lshr"),
}  # fmt: skip
_INTRINSICS = {"sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "round": "rint"}


def llvm_text(program: Program, shared: Sequence[bool], lanes: int, api: tuple[int, int]) -> str:
    """The text of a module whose function ``handler`` is a handler of XLA's foreign function interface.

    Its operands are the inputs of the program in their order and its results the outputs, each with one more axis for
    the states behind its own; with ``shared`` all true there is none, and the program is run once on scalars.

    Args:
        program: The program; no input or output is without entries.
        shared: Of each input, whether all states share it.
        lanes: Number of states in a vector.
        api: Major and minor version of XLA's interface.

    Raises:
        NotImplementedError: an operation has no text.
    """
    return _Module(program, shared, lanes).text(api)


class _Module:
    def __init__(self, program: Program, shared: Sequence[bool], lanes: int) -> None:
        self.program, self.shared = program, tuple(shared)
        self.alone = all(shared)
        self.lanes = lanes
        self.rank = len(program.outputs[0].shape)
        self.kinds: list[str] = []
        self.places: list[tuple[int, int]] = []  # of each entry of an input: (input, place in it)
        once: list[bool] = []
        for i, port in enumerate(program.inputs):
            self.kinds += [port.kind] * len(port.values)
            self.places += [(i, k) for k in range(len(port.values))]
            once += [self.shared[i]] * len(port.values)
        self.entries = len(once)
        for statement in program.statements:
            self.kinds.append(statement.kind)
            once.append(all(x < 0 or once[x] for x in statement.operands))
        self.once = once
        self.declared: set[str] = set()
        self.functions: dict[str, str] = {}
        # values that `shared` computes and `states` needs, each with its place among eight bytes
        self.kept: dict[int, int] = {}
        if not self.alone:
            needed = [x for i, s in enumerate(program.statements) if not once[self.entries + i] for x in s.operands]
            needed += [x for port in program.outputs for x in port.values]
            for x in needed:
                if x >= self.entries and once[x]:
                    self.kept.setdefault(x, len(self.kept))

    def text(self, api: tuple[int, int]) -> str:
        body = [self._shared()]
        if not self.alone:
            body.append(self._states())
            body.append(self._padded())
        body.append(self._handler(*api))
        return "\n".join([*sorted(self.declared), *self.functions.values(), *body])

    def function(self, op: str, kind: str, program: Program, lanes: int) -> str:
        """The name of a function of one argument, whose text becomes part of the module."""
        name = f"@{op}_{kind}_{lanes}"
        if name not in self.functions:
            inner = _Module(program, (False,), lanes)
            writer = _Writer(inner, lanes)
            t = writer.type(kind)
            writer.given = {0: "%x"}
            for i, statement in enumerate(program.statements):
                writer.statement(inner.entries + i, statement)
            body = "\n".join([*writer.lines, f"ret {t} {writer.operand(program.outputs[0].values[0])}"])
            self.functions[name] = f"define internal {t} {name}({t} %x) noinline {{\n{body}\n}}"
            self.declared |= inner.declared
        return name

    def _shared(self) -> str:
        writer = _Writer(self, 1)
        for i, statement in enumerate(self.program.statements):
            value = self.entries + i
            if self.once[value]:
                writer.statement(value, statement)
                if value in self.kept:
                    kind = statement.kind
                    at = writer.line(f"getelementptr i64, ptr %kept, i64 {self.kept[value]}")
                    name = writer.operand(value)
                    if kind == "bool":
                        name, kind = writer.line(f"zext i1 {name} to i8"), "int8"
                    writer.lines.append(f"store {_TYPES[kind]} {name}, ptr {at}")
        if self.alone:
            for i, port in enumerate(self.program.outputs):
                for place, value in enumerate(port.values):
                    writer.store(i, port, place, value)
        body = "\n".join(writer.lines)
        return f"define internal void @shared(ptr %args, ptr %rets, ptr %kept) {{\n{body}\nret void\n}}"

    def _states(self) -> str:
        writer = _Writer(self, self.lanes)
        wanted: dict[int, list[tuple[int, Port, int]]] = {}
        for i, port in enumerate(self.program.outputs):
            for place, value in enumerate(port.values):
                if value >= self.entries and not self.once[value]:
                    wanted.setdefault(value, []).append((i, port, place))
                else:
                    writer.store(i, port, place, value)
        for i, statement in enumerate(self.program.statements):
            value = self.entries + i
            if not self.once[value]:
                writer.statement(value, statement)
                for output, port, place in wanted.get(value, ()):
                    writer.store(output, port, place, value)
        body = "\n".join(writer.lines)
        return (
            "define internal void @states(ptr %args, ptr %rets, ptr %kept, i64 %n, i64 %i) noinline {\n"
            f"{body}\nret void\n}}"
        )

    def _padded(self) -> str:
        """Fewer states than a vector has: copied, the last one several times, and the results back."""
        lanes, lines, args, rets = self.lanes, [], [], []
        for i, (port, shared) in enumerate(zip(self.program.inputs, self.shared, strict=True)):
            size = _bytes(port.kind)
            lines.append(f"%ga{i} = getelementptr ptr, ptr %args, i64 {i}\n%a{i} = load ptr, ptr %ga{i}")
            if shared:
                args.append(f"%a{i}")
            else:
                count = len(port.values) * lanes
                lines.append(f"%b{i} = alloca [{count} x i{8 * size}], align 64")
                lines.append(f"call void @widened{size}(ptr %a{i}, ptr %b{i}, i64 {len(port.values)}, i64 %n)")
                args.append(f"%b{i}")
        for i, port in enumerate(self.program.outputs):
            rets.append(f"%r{i}")
            lines.append(f"%r{i} = alloca [{len(port.values) * lanes} x i{8 * _bytes(port.kind)}], align 64")
        for name, pointers in (("args", args), ("rets", rets)):
            lines.append(f"%{name}2 = alloca [{max(len(pointers), 1)} x ptr]")
            for i, pointer in enumerate(pointers):
                lines.append(f"%p{name}{i} = getelementptr ptr, ptr %{name}2, i64 {i}")
                lines.append(f"store ptr {pointer}, ptr %p{name}{i}")
        lines.append(f"call void @states(ptr %args2, ptr %rets2, ptr %kept, i64 {lanes}, i64 0)")
        for i, port in enumerate(self.program.outputs):
            size = _bytes(port.kind)
            lines.append(f"%gr{i} = getelementptr ptr, ptr %rets, i64 {i}\n%o{i} = load ptr, ptr %gr{i}")
            lines.append(f"call void @narrowed{size}(ptr %r{i}, ptr %o{i}, i64 {len(port.values)}, i64 %n)")
        body = "\n".join(lines)
        sizes = {_bytes(port.kind) for port in (*self.program.inputs, *self.program.outputs)}
        copies = "\n".join(_COPIES.replace("SIZE", str(s)).replace("WORD", f"i{8 * s}") for s in sorted(sizes))
        copies = copies.replace("LANES", str(lanes))
        return (
            f"{copies}\ndefine internal void @padded(ptr %args, ptr %rets, ptr %kept, i64 %n) noinline {{\n"
            f"{body}\nret void\n}}"
        )

    def _handler(self, major: int, minor: int) -> str:
        lines = []
        for name, ports in (("args", self.program.inputs), ("rets", self.program.outputs)):
            lines.append(f"%{name} = alloca [{max(len(ports), 1)} x ptr]")
            for i in range(len(ports)):
                x = f"{name}{i}"
                lines += [
                    f"%g{x} = getelementptr ptr, ptr %given_{name}, i64 {i}",
                    f"%b{x} = load ptr, ptr %g{x}",
                    f"%h{x} = getelementptr i8, ptr %b{x}, i64 24",
                    f"%d{x} = load ptr, ptr %h{x}",
                    f"%k{x} = getelementptr ptr, ptr %{name}, i64 {i}",
                    f"store ptr %d{x}, ptr %k{x}",
                ]
        lines.append(f"%kept = alloca [{max(len(self.kept), 1)} x i64], align 64")
        lines.append("call void @shared(ptr %args, ptr %rets, ptr %kept)")
        loop = "ret ptr null" if self.alone else _LOOP.replace("LANES", str(self.lanes)).replace("RANK", str(self.rank))
        text = _HANDLER.replace("MAJOR", str(major)).replace("MINOR", str(minor))
        return text.replace("RUN", "\n".join([*lines, loop]))


@no_type_check  # at run time: a check of a call takes ten times what the call does
class _Writer:
    """Lines of a function on vectors of a number of lanes, 1 for scalars."""

    def __init__(self, module: _Module, lanes: int) -> None:
        self.module, self.lanes = module, lanes
        self.lines: list[str] = []
        self._loaded: dict[int, str] = {}
        self._pointers: dict[str, str] = {}
        self._count = 0
        self._types = {k: t if lanes == 1 else f"<{lanes} x {t}>" for k, t in _TYPES.items()}
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
        """What stands for a value as an operand."""
        m = self.module
        if value in self.given:
            return self.given[value]
        if value < 0:
            kind, number = m.program.constants[-1 - value]
            text = _constant(kind, number)
            return text if self.lanes == 1 else f"splat ({_TYPES[kind]} {text})"
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
            at = self.line(f"getelementptr {_memory(kind)}, ptr {base}, i64 {place}")
        else:
            at = self.line(f"getelementptr i64, ptr %kept, i64 {m.kept[value]}")
        scalar = self._loaded_as(kind, at, 1)
        if self.lanes == 1:
            return scalar
        t, whole = _TYPES[kind], self._types[kind]
        one = self.line(f"insertelement {whole} poison, {t} {scalar}, i64 0")
        return self.line(f"shufflevector {whole} {one}, {whole} poison, <{self.lanes} x i32> zeroinitializer")

    def _loaded_as(self, kind: str, at: str, lanes: int) -> str:
        def vector(t: str) -> str:
            return t if lanes == 1 else f"<{lanes} x {t}>"

        if kind == "bool":
            found = self.line(f"load {vector('i8')}, ptr {at}, align 1")
            zero = "0" if lanes == 1 else "zeroinitializer"
            return self.line(f"icmp ne {vector('i8')} {found}, {zero}")
        return self.line(f"load {vector(_TYPES[kind])}, ptr {at}, align {_bytes(kind)}")

    def _pointer(self, table: str, i: int) -> str:
        key = f"{table}{i}"
        if key not in self._pointers:
            at = self.line(f"getelementptr ptr, ptr %{table}, i64 {i}")
            self._pointers[key] = self.line(f"load ptr, ptr {at}")
        return self._pointers[key]

    def _column(self, base: str, kind: str, place: int) -> str:
        start = self.line(f"mul i64 %n, {place}")
        at = self.line(f"add i64 {start}, %i")
        return self.line(f"getelementptr {_memory(kind)}, ptr {base}, i64 {at}")

    def store(self, output: int, port: Port, place: int, value: int) -> None:
        """Store a value as an entry of an output."""
        base, kind = self._pointer("rets", output), port.kind
        at = (
            self.line(f"getelementptr {_memory(kind)}, ptr {base}, i64 {place}")
            if self.lanes == 1
            else self._column(base, kind, place)
        )
        name, t = self.operand(value), self._types[kind]
        if kind == "bool":
            wide = self._types["int8"]
            name, t = self.line(f"zext {t} {name} to {wide}"), wide
        self.lines.append(f"store {t} {name}, ptr {at}, align {_bytes(kind)}")

    def statement(self, value: int, statement: Statement) -> None:
        """The lines of a statement, of which the last one defines its name."""
        op, kind, operands = statement
        given = self._kind(operands[0])
        t, of = self._types[kind], self._types[given]
        x = [self.operand(each) for each in operands]
        self.lines.append(f"%v{value} = {self._right(op, kind, given, t, of, x)}")

    def _right(self, op: str, kind: str, given: str, t: str, of: str, x: list[str]) -> str:
        is_float, signed = given.startswith("float"), given.startswith("int")
        if op in _OPERATIONS:
            return f"{_OPERATIONS[op][0 if is_float else 1]} {t} {x[0]}, {x[1]}"
        if op == "div":
            return f"{'fdiv' if is_float else 'sdiv' if signed else 'udiv'} {t} {x[0]}, {x[1]}"
        if op == "rem":
            return f"{'frem' if is_float else 'srem' if signed else 'urem'} {t} {x[0]}, {x[1]}"
        if op == "neg":
            return f"fneg {t} {x[0]}" if is_float else f"sub {t} zeroinitializer, {x[0]}"
        if op == "not":
            ones = self._whole("bool" if kind == "bool" else kind, True if kind == "bool" else -1)
            return f"xor {t} {x[0]}, {ones}"
        if op == "select":
            return f"select {self._types['bool']} {x[0]}, {t} {x[1]}, {t} {x[2]}"
        if op in _ORDERED:
            return self._comparison(op, given, of, x)
        if op == "signbit":
            bits = "int64" if given == "float64" else "int32"
            cast = self.line(f"bitcast {of} {x[0]} to {self._types[bits]}")
            return f"icmp slt {self._types[bits]} {cast}, {self._whole(bits, 0)}"
        if op == "abs":
            if is_float:
                return self._intrinsic("fabs", t, [x[0]])
            below = self.line(f"icmp slt {t} {x[0]}, {self._whole(kind, 0)}")
            minus = self.line(f"sub {t} zeroinitializer, {x[0]}")
            return f"select {self._types['bool']} {below}, {t} {minus}, {t} {x[0]}"
        if op in _INTRINSICS:
            return self._intrinsic(_INTRINSICS[op], t, [x[0]])
        if op in ("max", "min"):
            return self._extremum(op, kind, t, x)
        if op == "sign":
            return self._sign(kind, t, x[0])
        if op == "convert":
            return self._conversion(given, kind, of, t, x[0])
        if op == "bitcast":
            return f"bitcast {of} {x[0]} to {t}"
        if op in FUNCTIONS:
            return self._function(op, kind, t, x)
        raise NotImplementedError(op)

    def _whole(self, kind: str, number: Any) -> str:
        text = _constant(kind, number)
        return text if self.lanes == 1 else f"splat ({_TYPES[kind]} {text})"

    def _comparison(self, op: str, given: str, of: str, x: list[str]) -> str:
        if given.startswith("float"):
            return f"fcmp {_ORDERED[op]} {of} {x[0]}, {x[1]}"
        if op in ("eq", "ne"):
            return f"icmp {op} {of} {x[0]}, {x[1]}"
        return f"icmp {'s' if given.startswith('int') else 'u'}{op} {of} {x[0]}, {x[1]}"

    def _intrinsic(self, name: str, t: str, x: Iterable[str]) -> str:
        element = t if self.lanes == 1 else t.split(" x ")[1].rstrip(">")
        suffix = ("" if self.lanes == 1 else f"v{self.lanes}") + {"float": "f32", "double": "f64"}[element]
        x = list(x)
        self.module.declared.add(f"declare {t} @llvm.{name}.{suffix}({', '.join([t] * len(x))})")
        return f"call {t} @llvm.{name}.{suffix}({', '.join(f'{t} {each}' for each in x)})"

    def _extremum(self, op: str, kind: str, t: str, x: list[str]) -> str:
        mask = self._types["bool"]
        beyond = self.line(self._comparison("ge" if op == "max" else "le", kind, t, x))
        if kind.startswith("float"):  # NaN in either operand gives NaN
            unordered = self.line(f"fcmp uno {t} {x[0]}, {x[0]}")
            beyond = self.line(f"or {mask} {beyond}, {unordered}")
        return f"select {mask} {beyond}, {t} {x[0]}, {t} {x[1]}"

    def _sign(self, kind: str, t: str, x: str) -> str:
        mask, zero = self._types["bool"], self._whole(kind, 0)
        above = self.line(self._comparison("gt", kind, t, [x, zero]))
        below = self.line(self._comparison("lt", kind, t, [x, zero]))
        rest = self.line(f"select {mask} {below}, {t} {self._whole(kind, -1)}, {t} {x}")
        return f"select {mask} {above}, {t} {self._whole(kind, 1)}, {t} {rest}"

    def _conversion(self, given: str, kind: str, of: str, t: str, x: str) -> str:
        from_float, to_float = given.startswith("float"), kind.startswith("float")
        if from_float and to_float:
            return f"{'fpext' if kind == 'float64' else 'fptrunc'} {of} {x} to {t}"
        if from_float:
            name = f"llvm.fpto{'si' if kind.startswith('int') else 'ui'}.sat"
            return self._saturated(name, given, kind, of, t, x)
        if to_float:
            return f"{'sitofp' if given.startswith('int') else 'uitofp'} {of} {x} to {t}"
        size, wanted = (0 if k == "bool" else _bytes(k) for k in (given, kind))
        if size == wanted:
            return f"bitcast {of} {x} to {t}"
        if size > wanted:
            return f"trunc {of} {x} to {t}"
        return f"{'sext' if given.startswith('int') else 'zext'} {of} {x} to {t}"

    def _saturated(self, name: str, given: str, kind: str, of: str, t: str, x: str) -> str:
        def suffix(k: str) -> str:
            element = {"float": "f32", "double": "f64"}.get(_TYPES[k], _TYPES[k])
            return element if self.lanes == 1 else f"v{self.lanes}{element}"

        full = f"{name}.{suffix(kind)}.{suffix(given)}"
        self.module.declared.add(f"declare {t} @{full}({of})")
        return f"call {t} @{full}({of} {x})"

    def _function(self, op: str, kind: str, t: str, x: list[str]) -> str:
        """A call of the library of mathematics, lane by lane."""
        element = _TYPES[kind]
        own = function_program(op, kind)
        if own is not None:
            return f"call {t} {self.module.function(op, kind, own, self.lanes)}({t} {x[0]})"
        name = op + ("f" if kind == "float32" else "")
        self.module.declared.add(f"declare {element} @{name}({', '.join([element] * len(x))})")

        def call(given: Sequence[str]) -> str:
            return f"call {element} @{name}({', '.join(f'{element} {each}' for each in given)})"

        if self.lanes == 1:
            return call(x)
        out = "poison"
        for lane in range(self.lanes):
            given = [self.line(f"extractelement {t} {each}, i64 {lane}") for each in x]
            found = self.line(call(given))
            text = f"insertelement {t} {out}, {element} {found}, i64 {lane}"
            if lane == self.lanes - 1:
                return text
            out = self.line(text)
        raise AssertionError("no lanes")


@no_type_check
def _constant(kind: str, number: Any) -> str:
    if kind == "bool":
        return "true" if number else "false"
    if kind.startswith("float"):
        # LLVM writes a float32 by the bits of the float64 of the same value
        return "0x" + struct.pack(">d", float(np.dtype(kind).type(number))).hex().upper()
    return str(int(number))


@no_type_check
def _bytes(kind: str) -> int:
    return np.dtype(kind).itemsize


@no_type_check
def _memory(kind: str) -> str:
    return "i8" if kind == "bool" else _TYPES[kind]


_LOOP = """%ret0 = load ptr, ptr %given_rets
%dims_at = getelementptr i8, ptr %ret0, i64 40
%dims = load ptr, ptr %dims_at
%n_at = getelementptr i64, ptr %dims, i64 RANK
%n = load i64, ptr %n_at
%few = icmp ult i64 %n, LANES
br i1 %few, label %some, label %many
some:
%none = icmp eq i64 %n, 0
br i1 %none, label %done, label %copy
copy:
call void @padded(ptr %args, ptr %rets, ptr %kept, i64 %n)
ret ptr null
many:
%last = sub i64 %n, LANES
br label %block
block:
%i = phi i64 [0, %many], [%next, %block]
call void @states(ptr %args, ptr %rets, ptr %kept, i64 %n, i64 %i)
%step = add i64 %i, LANES
%over = icmp ugt i64 %step, %last
%next = select i1 %over, i64 %last, i64 %step
%end = icmp eq i64 %i, %last
br i1 %end, label %done, label %block
done:
ret ptr null"""
"""The handler's loop over vectors of states: the last one begins where n of them are left."""

# XLA_FFI_CallFrame and what hangs on it: xla/ffi/api/c_api.h, version 0
_HANDLER = """define ptr @handler(ptr %frame) {
entry:
%first_at = getelementptr i8, ptr %frame, i64 8
%first = load ptr, ptr %first_at
br label %walk
walk:
%extension = phi ptr [%first, %entry], [%following, %other]
%no_more = icmp eq ptr %extension, null
br i1 %no_more, label %execute, label %look
look:
%type_at = getelementptr i8, ptr %extension, i64 8
%type = load i32, ptr %type_at
%is_metadata = icmp eq i32 %type, 1
br i1 %is_metadata, label %metadata, label %other
other:
%following_at = getelementptr i8, ptr %extension, i64 16
%following = load ptr, ptr %following_at
br label %walk
metadata:
%metadata_at = getelementptr i8, ptr %extension, i64 24
%about = load ptr, ptr %metadata_at
%major_at = getelementptr i8, ptr %about, i64 24
store i32 MAJOR, ptr %major_at
%minor_at = getelementptr i8, ptr %about, i64 28
store i32 MINOR, ptr %minor_at
%traits_at = getelementptr i8, ptr %about, i64 32
store i32 0, ptr %traits_at
ret ptr null
execute:
%args_at = getelementptr i8, ptr %frame, i64 72
%given_args = load ptr, ptr %args_at
%rets_at = getelementptr i8, ptr %frame, i64 112
%given_rets = load ptr, ptr %rets_at
RUN
}"""

_COPIES = """define internal void @widenedSIZE(ptr %from, ptr %to, i64 %entries, i64 %n) noinline {
start:
br label %loop
loop:
%k = phi i64 [0, %start], [%next, %loop]
%entry = udiv i64 %k, LANES
%lane = urem i64 %k, LANES
%last = sub i64 %n, 1
%beyond = icmp ugt i64 %lane, %last
%state = select i1 %beyond, i64 %last, i64 %lane
%row = mul i64 %entry, %n
%place = add i64 %row, %state
%a = getelementptr WORD, ptr %from, i64 %place
%x = load WORD, ptr %a
%b = getelementptr WORD, ptr %to, i64 %k
store WORD %x, ptr %b
%next = add i64 %k, 1
%size = mul i64 %entries, LANES
%go = icmp ult i64 %next, %size
br i1 %go, label %loop, label %end
end:
ret void
}
define internal void @narrowedSIZE(ptr %from, ptr %to, i64 %entries, i64 %n) noinline {
start:
br label %loop
loop:
%k = phi i64 [0, %start], [%next, %loop]
%entry = udiv i64 %k, %n
%lane = urem i64 %k, %n
%row = mul i64 %entry, LANES
%place = add i64 %row, %lane
%a = getelementptr WORD, ptr %from, i64 %place
%x = load WORD, ptr %a
%b = getelementptr WORD, ptr %to, i64 %k
store WORD %x, ptr %b
%next = add i64 %k, 1
%size = mul i64 %entries, %n
%go = icmp ult i64 %next, %size
br i1 %go, label %loop, label %end
end:
ret void
}"""
