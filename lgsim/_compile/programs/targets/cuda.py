"""CUDA C++: one kernel without includes, one thread per state, all numbers in registers, for nvcc and NVRTC."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lgsim._compile.programs.program import Port
from lgsim._compile.programs.targets import c
from lgsim._compile.programs.targets.source import Code, Interface, comment, expression, kinds, used_inputs

TYPES = {
    "bool": "bool", "int8": "signed char", "uint8": "unsigned char", "int32": "int", "uint32": "unsigned int",
    "int64": "long long", "uint64": "unsigned long long", "float32": "float", "float64": "double",
}  # fmt: skip
"""NVRTC has no ``stdint.h``."""

_UNSIGNED = {"int8": "unsigned char", "int32": "unsigned int", "int64": "unsigned long long"}
_BITS = {
    ("float32", "int32"): "__float_as_int({0})", ("float32", "uint32"): "__float_as_uint({0})",
    ("int32", "float32"): "__int_as_float({0})", ("uint32", "float32"): "__uint_as_float({0})",
    ("float64", "int64"): "__double_as_longlong({0})", ("int64", "float64"): "__longlong_as_double({0})",
    ("float64", "uint64"): "(unsigned long long) __double_as_longlong({0})",
    ("uint64", "float64"): "__longlong_as_double((long long) {0})",
}  # fmt: skip

OPERATORS: dict[str, Any] = {
    **c.OPERATORS, "shift_right_logical": (None, "({type}) (({unsigned}) {0} >> {1})"), "bitcast": "{bits}",
}  # fmt: skip
"""The operators of C, and bit operations."""

RESERVED = c.RESERVED | frozenset(
    "n i step steps threadIdx blockIdx blockDim gridDim warpSize asm bitand bitor catch class compl constexpr decltype"
    " delete dynamic_cast explicit export friend mutable namespace new noexcept nullptr operator private protected"
    " public reinterpret_cast static_assert static_cast template this throw try typeid typename using virtual wchar_t"
    " norm rnorm rsqrt".split()
)
"""The keywords of C++, names of CUDA, and names used in the text."""

BLOCK = 128
"""Threads per block: each can then have 512 registers, more than the maximum of 255."""


class Cuda:
    """CUDA C++ as a target: one kernel whose thread i computes the state i of a batch.

    The states are the last axis of an array in row-major order: the entry k of the state i is ``x[k * n + i]``, so that
    neighboring threads read neighboring numbers. Arrays of at most ``rows`` entries have the states as first axis: a
    state is a row, ``x[i * size + k]``, and the rows of a block are loaded into the cache once. An array that all
    states share has no such axis. The last argument of the kernel is ``n``, the number of states, below 2^31. Launch
    ``ceil(n / block)`` blocks of ``block`` threads. The compiler may contract products and sums (fma); nothing else is
    reordered.

    Args:
        shared: Flags of the arguments that all states share; by default none.
        carried: With k > 0 the program is a step whose k results are the new values of its first k arguments. The
            kernel runs ``steps`` of them, an argument before ``n``, and keeps the state in registers in between.
        block: Threads per block.
        rows: Arrays of at most this many entries have the states as first axis; by default only those with one entry.
    """

    def __init__(self, shared: Sequence[bool] = (), carried: int = 0, block: int = BLOCK, rows: int = 1) -> None:
        self.shared, self.carried, self.block, self.rows = tuple(shared), carried, block, rows

    def __call__(self, interface: Interface) -> Code:
        """Generate the code of a program.

        Args:
            interface: The program and the names of its arguments and results.

        Raises:
            NotImplementedError: the program has an operation that CUDA lacks.
            ValueError: a name is reserved in CUDA C++, ``shared`` has another length than the arguments, or the carry
                of a step has other shapes or kinds than its results.
        """
        interface.checked(RESERVED)
        count = len(interface.arguments)
        shared = self.shared or (False,) * count
        if len(shared) != count:
            raise ValueError(f"shared: expected {count} entries, one for each argument, got {len(shared)}")
        self._check_carried(interface, shared)
        bounds = f"__launch_bounds__({self.block})"
        head = f'extern "C" __global__ void {bounds}\n{interface.name}({self._arguments(interface)})'
        lines = _Lines(interface, shared, self.carried, self.rows).lines
        body = "".join(f"    {line}\n" for line in lines)
        return Code(interface.name, f"{self._comment(interface, shared)}\n{head}\n{{\n{body}}}\n", "", ".cu", interface)

    def _check_carried(self, interface: Interface, shared: Sequence[bool]) -> None:
        if not self.carried:
            return
        program = interface.program
        given = [(x.kind, x.shape) for x in program.inputs[: self.carried]]
        made = [(x.kind, x.shape) for x in program.outputs]
        if given != made:
            raise ValueError(f"carried: expected results like the first {self.carried} arguments {given}, got {made}")
        if any(shared[: self.carried]):
            raise ValueError("shared: expected False for what a step carries on, got True; each state has its own")

    def _arguments(self, interface: Interface) -> str:
        program = interface.program
        given = zip(interface.arguments, program.inputs, strict=True)
        made = zip(interface.results, program.outputs, strict=True)
        parts = [f"const {TYPES[port.kind]} *__restrict__ {each.name}" for each, port in given]
        parts += [f"{TYPES[port.kind]} *__restrict__ {each.name}" for each, port in made]
        return ", ".join([*parts, *(["const int steps"] if self.carried else []), "const int n"])

    def _comment(self, interface: Interface, shared: Sequence[bool]) -> str:
        lines = [*interface.about, ""]
        sections = (
            ("Arguments", interface.arguments, interface.program.inputs, shared),
            ("Results", interface.results, interface.program.outputs, (False,) * len(interface.results)),
        )
        for title, described, ports, alone in sections:
            lines.append(f"{title}, arrays in row-major order, n states:")
            for each, port, once in zip(described, ports, alone, strict=True):
                sizes = [f"[{n}]" for n in port.shape]
                if not once:
                    sizes.insert(0 if is_row(port, self.rows) else len(sizes), "[n]")
                lines.append(f"  {TYPES[port.kind]} {each.name}{''.join(sizes)}")
                lines += [f"    {line}" for line in each.about]
            lines.append("")
        lines.append(f"A state a thread, {self.block} threads a block. Operations of a state: {interface.counts()}.")
        return f"/*\n{comment(lines, ' * ')}\n */"


class _Lines:
    """The lines of a kernel."""

    def __init__(self, interface: Interface, shared: Sequence[bool], carried: int, rows: int) -> None:
        self.interface, self.program = interface, interface.program
        self.kind, self.entries = kinds(self.program), self.program.entries
        # load the used input entries; in a step the carry is not constant
        used = used_inputs(self.program)
        self.lines = ["const int i = blockIdx.x * blockDim.x + threadIdx.x;", "if (i >= n) return;"]
        first = 0
        for place, (each, port, once) in enumerate(zip(interface.arguments, self.program.inputs, shared, strict=True)):
            kept = "" if place < carried else "const "
            for k in range(len(port.values)):
                if first + k in used or place < carried:
                    at = str(k) if once else _place(k, port, rows)
                    self.lines.append(f"{kept}{TYPES[port.kind]} t{first + k} = {each.name}[{at}];")
            first += len(port.values)
        if carried:
            self.lines.append("for (int step = 0; step < steps; ++step) {")
        # one constant per statement
        for value, statement in enumerate(self.program.statements, start=self.entries):
            self.lines.append(f"const {TYPES[statement.kind]} t{value} = {self._right(statement)};")
        results = list(zip(interface.results, self.program.outputs, strict=True))
        if not carried:
            for each, port in results:
                self.lines += [f"{each.name}[{_place(k, port, rows)}] = {self._text(x)};" for k, x in _of(port)]
            return
        moved = [x for _, port in results for _, x in _of(port)]
        # read all results before the first assignment: they may permute the carry
        kept_kinds = [port.kind for _, port in results for _ in port.values]
        for j, (kept, x) in enumerate(zip(kept_kinds, moved, strict=True)):
            self.lines.append(f"const {TYPES[kept]} next{j} = {self._text(x)};")
        self.lines += [f"t{j} = next{j};" for j in range(len(moved))]
        self.lines.append("}")
        # after the loop, store the carry
        j = 0
        for each, port in results:
            for k, _ in _of(port):
                self.lines.append(f"{each.name}[{_place(k, port, rows)}] = t{j};")
                j += 1

    def _right(self, statement: Any) -> str:
        of = self._kind(statement.operands[0])
        pattern = OPERATORS.get(statement.op)
        if statement.op == "bitcast":
            pattern = _BITS.get((of, statement.kind))
        filled = c.filled(pattern, "f" if of == "float32" else "", TYPES[statement.kind])
        if statement.op == "shift_right_logical":
            filled = (None, filled[1].replace("{unsigned}", _UNSIGNED.get(of, TYPES[of])))
        operands = list(map(self._text, statement.operands))
        return expression(statement, of, operands, {statement.op: filled}, "CUDA")

    def _kind(self, value: int) -> str:
        return self.kind[value] if value >= 0 else self.program.constants[-1 - value][0]

    def _text(self, value: int) -> str:
        return f"t{value}" if value >= 0 else _constant(*self.program.constants[-1 - value])


def _of(port: Port) -> list[tuple[int, int]]:
    return list(enumerate(port.values))


def is_row(port: Port, rows: int) -> bool:
    """True if an array has the states as first axis, for arrays of at most ``rows`` entries."""
    return 1 < len(port.values) <= rows


def _place(entry: int, port: Port, rows: int) -> str:
    # beyond 2^31 entries an int is too short
    if is_row(port, rows):
        return f"{entry} + {len(port.values)} * (long long) i"
    return f"{entry} * (long long) n + i" if entry > 1 else "n + (long long) i" if entry else "i"


def _constant(kind: str, number: Any) -> str:
    """A constant as in C; NVRTC has no names for non-finite numbers."""
    if kind.startswith("float") and not math.isfinite(number):
        bits = {"nan": ("0x7fc00000", "0x7ff8000000000000LL"), "inf": ("0x7f800000", "0x7ff0000000000000LL")}
        single, double = bits["nan" if math.isnan(number) else "inf"]
        text = f"__int_as_float({single})" if kind == "float32" else f"__longlong_as_double({double})"
        return f"(-{text})" if number < 0 else text
    return c.constant(kind, number)
