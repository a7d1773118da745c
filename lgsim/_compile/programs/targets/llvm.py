"""A program as LLVM IR: several states per vector, and the function that XLA calls.

Inputs are shared by all states of a batch, or have the states as their last axis, in row-major order. The module has
three functions. ``shared`` computes scalars that depend only on shared inputs, once per call. ``states`` computes one
vector of states. ``handler`` takes XLA's call frame and runs them. If the number of states is not a multiple of the
vector length, the last vector begins earlier; fewer states than a vector are copied to a padded one.

``states`` has no loop, so that no optimization pass hoists shared values, a load with a broadcast, to registers that do
not exist.
"""

from __future__ import annotations

from collections.abc import Sequence

from lgsim._compile.programs.program import Port, Program
from lgsim._compile.programs.targets.llvm_statements import TYPES, Writer, size_of

VERSION = 3
"""Part of the name of every compiled program; increase it when the text of this file changes its meaning."""


def llvm_text(program: Program, shared: Sequence[bool], lanes: int, api: tuple[int, int]) -> str:
    """The text of a module whose function ``handler`` is a handler of XLA's foreign function interface.

    Its operands are the inputs of the program in order and its results the outputs, each with a last axis for the
    states. With ``shared`` all true there is no such axis, and the program is run once on scalars.

    Args:
        program: The program; all inputs and outputs have entries.
        shared: Flags of the inputs that all states share.
        lanes: Number of states per vector.
        api: Major and minor version of XLA's interface.

    Raises:
        NotImplementedError: an operation is not supported.
    """
    return _Module(program, shared, lanes).text(api)


class _Module:
    def __init__(self, program: Program, shared: Sequence[bool], lanes: int) -> None:
        self.program, self.shared = program, tuple(shared)
        self.alone = all(shared)
        self.lanes = lanes
        self.rank = len(program.outputs[0].shape)
        self.kinds: list[str] = []
        self.places: list[tuple[int, int]] = []  # of each entry of an input: (input, index in it)
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
        # values that `shared` computes and `states` needs, with their indices in units of eight bytes
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
        """The name of a function of one argument, whose text is added to the module."""
        name = f"@{op}_{kind}_{lanes}"
        if name not in self.functions:
            inner = _Module(program, (False,), lanes)
            writer = Writer(inner, lanes)
            t = writer.type(kind)
            writer.given = {0: "%x"}
            for i, statement in enumerate(program.statements):
                writer.statement(inner.entries + i, statement)
            body = "\n".join([*writer.lines, f"ret {t} {writer.operand(program.outputs[0].values[0])}"])
            self.functions[name] = f"define internal {t} {name}({t} %x) noinline {{\n{body}\n}}"
            self.declared |= inner.declared
        return name

    def _shared(self) -> str:
        writer = Writer(self, 1)
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
                    writer.lines.append(f"store {TYPES[kind]} {name}, ptr {at}")
        if self.alone:
            for i, port in enumerate(self.program.outputs):
                for place, value in enumerate(port.values):
                    writer.store(i, port, place, value)
        body = "\n".join(writer.lines)
        return f"define internal void @shared(ptr %args, ptr %rets, ptr %kept) {{\n{body}\nret void\n}}"

    def _states(self) -> str:
        writer = Writer(self, self.lanes)
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
        """Pad fewer states than a vector has by copies of the last one, and copy the results back."""
        lanes, lines, args, rets = self.lanes, [], [], []
        # copies of the inputs with a full vector of states, and memory for the results
        for i, (port, shared) in enumerate(zip(self.program.inputs, self.shared, strict=True)):
            size = size_of(port.kind)
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
            lines.append(f"%r{i} = alloca [{len(port.values) * lanes} x i{8 * size_of(port.kind)}], align 64")
        # tables of pointers to them
        for name, pointers in (("args", args), ("rets", rets)):
            lines.append(f"%{name}2 = alloca [{max(len(pointers), 1)} x ptr]")
            for i, pointer in enumerate(pointers):
                lines.append(f"%p{name}{i} = getelementptr ptr, ptr %{name}2, i64 {i}")
                lines.append(f"store ptr {pointer}, ptr %p{name}{i}")
        lines.append(f"call void @states(ptr %args2, ptr %rets2, ptr %kept, i64 {lanes}, i64 0)")
        # copy the results back
        for i, port in enumerate(self.program.outputs):
            size = size_of(port.kind)
            lines.append(f"%gr{i} = getelementptr ptr, ptr %rets, i64 {i}\n%o{i} = load ptr, ptr %gr{i}")
            lines.append(f"call void @narrowed{size}(ptr %r{i}, ptr %o{i}, i64 {len(port.values)}, i64 %n)")
        body = "\n".join(lines)
        sizes = {size_of(port.kind) for port in (*self.program.inputs, *self.program.outputs)}
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
"""The handler's loop over vectors of states; the last vector ends at the last state."""

# XLA_FFI_CallFrame and its members: xla/ffi/api/c_api.h, version 0
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
