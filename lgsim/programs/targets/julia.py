"""Julia: a function without dependencies that fills arrays which its caller owns."""

from __future__ import annotations

import math
from typing import Any

from lgsim.programs.program import FUNCTIONS
from lgsim.programs.targets.source import Code, Interface, comment, expression, kinds, place

TYPES = {
    "bool": "Bool", "int8": "Int8", "uint8": "UInt8", "int32": "Int32", "uint32": "UInt32", "int64": "Int64",
    "uint64": "UInt64", "float32": "Float32", "float64": "Float64",
}  # fmt: skip

OPERATORS: dict[str, Any] = {
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "div": ("{0} / {1}", "div({0}, {1})"), "neg": "-{0}",
    "rem": "rem({0}, {1})", "abs": "abs({0})", "sign": "sign({0})", "sqrt": "sqrt({0})", "floor": "floor({0})",
    "ceil": "ceil({0})", "round": "round({0})", "max": "max({0}, {1})", "min": "min({0}, {1})", "eq": "{0} == {1}",
    "ne": "{0} != {1}", "lt": "{0} < {1}", "le": "{0} <= {1}", "gt": "{0} > {1}", "ge": "{0} >= {1}",
    "and": "{0} & {1}", "or": "{0} | {1}", "xor": "xor({0}, {1})", "not": (None, "~{0}", "!{0}"),
    "shift_left": "{0} << {1}", "shift_right_arithmetic": "{0} >> {1}", "shift_right_logical": "{0} >>> {1}",
    "select": "ifelse({0}, {1}, {2})", "signbit": "signbit({0})", "convert": ("trunc({type}, {0})", "{type}({0})"),
    **{f: f + "({0})" for f in FUNCTIONS}, "atan2": "atan({0}, {1})", "pow": "{0} ^ {1}",
}  # fmt: skip
"""By operation the text, or one for numbers with a point and one for others."""

RESERVED = frozenset(
    "baremodule begin break catch const continue do else elseif end export false finally for function global if import"
    " let local macro module quote return struct true try using while".split()
)


class Julia:
    """Julia as a target: a function ``name!(results..., arguments...)``, indices from 1."""

    def __call__(self, interface: Interface) -> Code:
        """The text of a program.

        Args:
            interface: The program and its names.

        Raises:
            NotImplementedError: the program has an operation that Julia lacks.
            ValueError: a name has a meaning in Julia.
        """
        interface.checked(RESERVED)
        program, entries, kind = interface.program, interface.program.entries, kinds(interface.program)

        def at(name: str, port: Any, i: int) -> str:
            return f"{name}[{', '.join(str(n + 1) for n in place(port, i))}]" if port.shape else name

        given = [
            at(each.name, port, i)
            for each, port in zip(interface.arguments, program.inputs, strict=True)
            for i in range(len(port.values))
        ]

        def text(value: int) -> str:
            if value < 0:
                return _constant(*program.constants[-1 - value])
            return given[value] if value < entries else f"t{value}"

        lines = []
        for i, statement in enumerate(program.statements):
            first = statement.operands[0]
            of = kind[first] if first >= 0 else program.constants[-1 - first][0]
            right = expression(
                statement, of, list(map(text, statement.operands)), {statement.op: _pattern(statement)}, "Julia"
            )
            lines.append(f"t{entries + i} = {right}")
        for each, port in zip(interface.results, program.outputs, strict=True):
            for i, value in enumerate(port.values):
                place_of = at(each.name, port, i) if port.shape else f"{each.name}[]"
                lines.append(f"{place_of} = {text(value)}")
        body = "".join(f"    {line}\n" for line in [*lines, "return nothing"])
        names = ", ".join(each.name for each in (*interface.results, *interface.arguments))
        source = f"{_comment(interface)}\nfunction {interface.name}!({names})\n{body}end\n"
        return Code(interface.name, source, "", ".jl", interface)


def _pattern(statement: Any) -> Any:
    if statement.op != "convert":
        return OPERATORS.get(statement.op)
    kind = TYPES[statement.kind]
    cut, plain = (each.replace("{type}", kind) for each in OPERATORS["convert"])
    return (cut if kind.startswith(("Int", "UInt")) else plain), plain


def _comment(interface: Interface) -> str:
    lines = [*interface.about, ""]
    sections = (
        ("Results, which are filled", interface.results, interface.program.outputs),
        ("Arguments", interface.arguments, interface.program.inputs),
    )
    for title, described, ports in sections:
        lines.append(f"{title}:")
        for each, port in zip(described, ports, strict=True):
            lines += [f"  {each.name} {port.shape} {TYPES[port.kind]}", *(f"    {line}" for line in each.about)]
        lines.append("")
    lines.append(f"Operations: {interface.counts()}.")
    return comment(lines, "# ")


def _constant(kind: str, number: Any) -> str:
    if kind == "bool":
        return "true" if number else "false"
    if not kind.startswith("float"):
        return f"{TYPES[kind]}({number})"
    if not math.isfinite(number):
        return f"{TYPES[kind]}({'NaN' if math.isnan(number) else 'Inf' if number > 0 else '-Inf'})"
    text = repr(float(number))
    if kind == "float32":
        return f"Float32({text})"
    return f"({text})" if text.startswith("-") else text
