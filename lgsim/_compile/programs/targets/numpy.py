"""NumPy: a Python function on numpy arrays, for one state or a batch."""

from __future__ import annotations

import math
from typing import Any

from lgsim._compile.programs.program import FUNCTIONS, Port
from lgsim._compile.programs.targets.source import Code, Interface, comment, expression, kinds, place

_NAMES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "asinh": "arcsinh",
          "acosh": "arccosh", "atanh": "arctanh", "pow": "power"}  # fmt: skip

OPERATORS: dict[str, Any] = {
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "div": ("{0} / {1}", "{0} // {1}"), "neg": "-{0}",
    "rem": "np.fmod({0}, {1})", "abs": "np.abs({0})", "sign": "np.sign({0})", "sqrt": "np.sqrt({0})",
    "floor": "np.floor({0})", "ceil": "np.ceil({0})", "round": "np.rint({0})", "max": "np.maximum({0}, {1})",
    "min": "np.minimum({0}, {1})", "eq": "{0} == {1}", "ne": "{0} != {1}", "lt": "{0} < {1}", "le": "{0} <= {1}",
    "gt": "{0} > {1}", "ge": "{0} >= {1}", "and": "{0} & {1}", "or": "{0} | {1}", "xor": "{0} ^ {1}",
    "not": "np.invert({0})", "shift_left": "{0} << {1}", "shift_right_arithmetic": "{0} >> {1}",
    "select": "np.where({0}, {1}, {2})", "signbit": "np.signbit({0})",
    "convert": "np.asarray({0}).astype(np.{type})[()]",
    **{f: f"np.{_NAMES.get(f, f)}" + ("({0}, {1})" if f in ("atan2", "pow") else "({0})") for f in FUNCTIONS},
}  # fmt: skip
"""Text by operation, or one text for floats and one for integers."""

RESERVED = frozenset(("np", "batch", "None", "True", "False"))


class NumPy:
    """NumPy as a target: a module with one function, whose arguments may have leading batch axes."""

    def __call__(self, interface: Interface) -> Code:
        """Generate the code of a program.

        Args:
            interface: The program and the names of its arguments and results.

        Raises:
            NotImplementedError: the program has an operation that numpy lacks.
            ValueError: a name is reserved in the generated code.
        """
        interface.checked(RESERVED)
        program, entries, kind = interface.program, interface.program.entries, kinds(interface.program)
        names = [each.name for each in interface.arguments]
        given = [
            f"{name}[{', '.join(['...', *map(str, place(port, i))])}]"
            for name, port in zip(names, program.inputs, strict=True)
            for i in range(len(port.values))
        ]

        def text(value: int) -> str:
            if value < 0:
                return _constant(*program.constants[-1 - value])
            return given[value] if value < entries else f"t{value}"

        # arguments as arrays of the program's dtypes, and the common batch shape
        lines = [f"{x} = np.asarray({x}, np.{p.kind})" for x, p in zip(names, program.inputs, strict=True)]
        shapes = (f"{x}.shape[: {x}.ndim - {len(p.shape)}]" for x, p in zip(names, program.inputs, strict=True))
        lines.append(f"batch = np.broadcast_shapes({', '.join(shapes)})")
        # one line per statement
        for i, statement in enumerate(program.statements):
            first = statement.operands[0]
            of = kind[first] if first >= 0 else program.constants[-1 - first][0]
            pattern = OPERATORS.get(statement.op)
            if isinstance(pattern, str):
                pattern = pattern.replace("{type}", "bool_" if statement.kind == "bool" else statement.kind)
            operands = list(map(text, statement.operands))
            lines.append(f"t{entries + i} = {expression(statement, of, operands, {statement.op: pattern}, 'NumPy')}")
        # collect the results
        for each, port in zip(interface.results, program.outputs, strict=True):
            lines.append(f"{each.name} = np.empty((*batch, {''.join(f'{n}, ' for n in port.shape)}), np.{port.kind})")
            for i, value in enumerate(port.values):
                lines.append(f"{each.name}[{', '.join(['...', *map(str, place(port, i))])}] = {text(value)}")
        lines.append(f"return {', '.join(each.name for each in interface.results)}")
        body = "".join(f"    {line}\n" for line in lines)
        source = f"import numpy as np\n\n\ndef {interface.name}({', '.join(names)}):\n{_docstring(interface)}{body}"
        return Code(interface.name, source, "", ".py", interface)


def _docstring(interface: Interface) -> str:
    def section(title: str, described: Any, ports: tuple[Port, ...]) -> list[str]:
        lines = [f"{title}, each after the axes of a batch:"]
        for each, port in zip(described, ports, strict=True):
            lines += [f"  {each.name} {port.shape} {port.kind}", *(f"    {line}" for line in each.about)]
        return [*lines, ""]

    lines = [*interface.about, ""]
    lines += section("Arguments", interface.arguments, interface.program.inputs)
    lines += section("Results", interface.results, interface.program.outputs)
    lines.append(f"Operations: {interface.counts()}.")
    return f'    """\n{comment(lines, "    ")}\n    """\n'


def _constant(kind: str, number: Any) -> str:
    if kind == "float64" and math.isfinite(number):
        return f"({number!r})" if number < 0 or str(number).startswith("-") else repr(number)
    if kind == "bool":
        return str(bool(number))
    if kind.startswith("float") and not math.isfinite(number):
        return f"np.{kind}('{number}')"
    return f"np.{kind}({number!r})"
