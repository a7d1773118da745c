"""C99: one function without dependencies, heap memory or loops, for controllers and other languages."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lgsim._compile.programs.program import FUNCTIONS
from lgsim._compile.programs.targets.source import Code, Interface, comment, expression, kinds, place

TYPES = {
    "bool": "bool", "int8": "int8_t", "uint8": "uint8_t", "int32": "int32_t", "uint32": "uint32_t",
    "int64": "int64_t", "uint64": "uint64_t", "float32": "float", "float64": "double",
}  # fmt: skip

OPERATORS: dict[str, Any] = {
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "div": "{0} / {1}", "neg": "-{0}",
    "rem": ("fmod{s}({0}, {1})", "{0} % {1}"), "abs": ("fabs{s}({0})", "{0} < 0 ? -{0} : {0}"),
    "sign": "{0} > 0 ? 1 : ({0} < 0 ? -1 : {0})",
    "sqrt": "sqrt{s}({0})", "floor": "floor{s}({0})", "ceil": "ceil{s}({0})", "round": "rint{s}({0})",
    "max": ("{0} >= {1} || {0} != {0} ? {0} : {1}", "{0} >= {1} ? {0} : {1}"),
    "min": ("{0} <= {1} || {0} != {0} ? {0} : {1}", "{0} <= {1} ? {0} : {1}"),
    "eq": "{0} == {1}", "ne": "{0} != {1}", "lt": "{0} < {1}", "le": "{0} <= {1}", "gt": "{0} > {1}",
    "ge": "{0} >= {1}", "and": "{0} & {1}", "or": "{0} | {1}", "xor": "{0} ^ {1}", "not": (None, "~{0}", "!{0}"),
    "shift_left": "{0} << {1}", "shift_right_arithmetic": "{0} >> {1}",
    "select": "{0} ? {1} : {2}", "convert": "({type}) {0}", "signbit": "signbit({0}) != 0",
    **{f: f + ("{s}({0}, {1})" if f in ("atan2", "pow") else "{s}({0})") for f in FUNCTIONS},
}  # fmt: skip
"""Text by operation, or one text for floats and one for integers; ``{s}`` is ``f`` for single precision."""

RESERVED = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if inline int long register"
    " restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool true"
    " false main sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh exp exp2 expm1 log log1p pow cbrt"
    " sqrt floor ceil rint fabs fmod signbit y0 y1 yn j0 j1 jn gamma".split()
)
"""The keywords of C, and names of its math library."""


class C:
    """C99 as a target: a source file that needs only the standard math library, and its header.

    Arrays are pointers to their entries in row-major order. Floats are ``double`` for float64 and ``float`` for
    float32, as in the program.
    """

    def __call__(self, interface: Interface) -> Code:
        """Generate the code of a program.

        Args:
            interface: The program and the names of its arguments and results.

        Raises:
            NotImplementedError: the program has an operation that C99 lacks.
            ValueError: a name is reserved in C.
        """
        interface.checked(RESERVED)
        declared, body = _declaration(interface), _body(interface)
        about = _comment(interface)
        guard = f"{interface.name.upper()}_H"
        header = (
            f"{about}\n#ifndef {guard}\n#define {guard}\n\n{_INCLUDED}"
            f'#ifdef __cplusplus\nextern "C" {{\n#define {interface.name}_restrict\n#else\n'
            f"#define {interface.name}_restrict restrict\n#endif\n\n"
            f"{declared.replace('restrict', interface.name + '_restrict')};\n\n"
            f"#undef {interface.name}_restrict\n#ifdef __cplusplus\n}}\n#endif\n\n#endif\n"
        )
        source = f'{about}\n#include "{interface.name}.h"\n\n#include <math.h>\n\n{declared}\n{{\n{body}}}\n'
        return Code(interface.name, source, header, ".c", interface)


_INCLUDED = "#include <stdbool.h>\n#include <stdint.h>\n\n"


def _comment(interface: Interface) -> str:
    lines = [*interface.about, ""]
    sections = (
        ("Arguments", interface.arguments, interface.program.inputs),
        ("Results", interface.results, interface.program.outputs),
    )
    for title, described, ports in sections:
        lines.append(f"{title}, arrays in row-major order:")
        for each, port in zip(described, ports, strict=True):
            size = "".join(f"[{n}]" for n in port.shape) or ("[1]" if title == "Results" else "")
            lines.append(f"  {TYPES[port.kind]} {each.name}{size}")
            lines += [f"    {line}" for line in each.about]
        lines.append("")
    lines.append(f"Operations: {interface.counts()}.")
    return f"/*\n{comment(lines, ' * ')}\n */"


def _declaration(interface: Interface) -> str:
    parts = []
    for each, port in zip(interface.arguments, interface.program.inputs, strict=True):
        if port.shape:
            parts.append(f"const {TYPES[port.kind]} *restrict {each.name}")
        else:
            parts.append(f"{TYPES[port.kind]} {each.name}")
    for each, port in zip(interface.results, interface.program.outputs, strict=True):
        parts.append(f"{TYPES[port.kind]} *restrict {each.name}")
    return f"void {interface.name}({', '.join(parts) or 'void'})"


def _body(interface: Interface) -> str:
    program = interface.program
    kind, entries = kinds(program), program.entries
    given = [
        f"{each.name}[{i}]" if port.shape else each.name
        for each, port in zip(interface.arguments, program.inputs, strict=True)
        for i in range(len(port.values))
        # names of the input entries; one constant per statement
    ]

    def text(value: int) -> str:
        if value < 0:
            return constant(*program.constants[-1 - value])
        return given[value] if value < entries else f"t{value}"

    lines, read = [], set()
    for i, statement in enumerate(program.statements):
        read.update(x for x in statement.operands if 0 <= x < entries)
        first = statement.operands[0]
        of = kind[first] if first >= 0 else program.constants[-1 - first][0]
        pattern = filled(OPERATORS.get(statement.op), "f" if of == "float32" else "", TYPES[statement.kind])
        # unused inputs are marked, so that compilers do not warn
        right = expression(statement, of, list(map(text, statement.operands)), {statement.op: pattern}, "C")
        lines.append(f"const {TYPES[statement.kind]} t{entries + i} = {right};")
    # assign the results
    for each, port in zip(interface.results, program.outputs, strict=True):
        for i, value in enumerate(port.values):
            if 0 <= value < entries:
                read.add(value)
            at = "".join(f"[{n}]" for n in place(port, i))
            lines.append(f"{each.name}[{i}] = {text(value)};" + (f" /* {at} */" if len(port.shape) > 1 else ""))
    unused = []
    first = 0
    for each, port in zip(interface.arguments, program.inputs, strict=True):
        if not read & set(range(first, first + len(port.values))):
            unused.append(f"(void) {each.name};")
        first += len(port.values)
    return "".join(f"    {line}\n" for line in [*unused, *lines])


def filled(pattern: Any, single: str, of: str) -> Any:
    """A pattern of ``OPERATORS`` with the suffix ``single`` of a precision and the result type ``of``."""
    if isinstance(pattern, tuple):
        return tuple(filled(each, single, of) for each in pattern)
    return None if pattern is None else pattern.replace("{s}", single).replace("{type}", of)


def constant(kind: str, number: Any) -> str:
    """A number in C that reads back exactly; a negative one in parentheses."""
    if kind == "bool":
        return "true" if number else "false"
    if not kind.startswith("float"):
        unsigned = "U" if kind.startswith("uint") else ""
        long = "LL" if kind.endswith("64") else ""
        # the smallest integer has no literal: its magnitude is too large
        least = kind == "int64" and int(number) == -(2**63)
        text = "(-9223372036854775807LL - 1)" if least else f"{int(number)}{unsigned}{long}"
        return f"({text})" if number < 0 and not least else text
    if math.isnan(number):
        return "NAN"
    if math.isinf(number):
        return "INFINITY" if number > 0 else "(-INFINITY)"
    digits = str(np.dtype(kind).type(number))
    if "." not in digits and "e" not in digits:
        digits += ".0"
    text = digits + ("f" if kind == "float32" else "")
    return f"({text})" if digits.startswith("-") else text
