"""A check for loops whose end depends on the state: such functions have no straight-line program.

Finding this out by reading takes as long as reading everything before the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lgsim._compile.programs.program import UnsupportedProgramError
from lgsim._compile.xla.jax_internals import called_program, calls_program, loop_counts, parameter


def refuse_state_loops(closed: Any) -> None:
    """Raise UnsupportedProgramError if a loop's end depends on an argument of a ``ClosedJaxpr``.

    Dependence is followed through operands only, and lgsim's own primitives are not expanded.

    Args:
        closed: The traced function.
    """
    _depends(closed, [True] * len(closed.jaxpr.invars))


def _depends(closed: Any, given: Sequence[bool]) -> list[bool]:
    """Flags of the results of a jaxpr that depend on the given arguments."""
    jaxpr = getattr(closed, "jaxpr", closed)
    moving = {v for v, moves in zip(jaxpr.invars, given, strict=True) if moves}

    def flags(variables: Sequence[Any]) -> list[bool]:
        return [not hasattr(v, "val") and v in moving for v in variables]

    for equation in jaxpr.eqns:
        name, operands = equation.primitive.name, flags(equation.invars)
        if calls_program(name):
            found = _depends(called_program(equation), operands)
        elif name == "scan":
            consts, carried = loop_counts(equation)
            found = _loop(parameter(equation, "jaxpr"), operands[:consts], operands[consts:], carried)
        elif name == "while":
            first = parameter(equation, "cond_nconsts")
            second = first + parameter(equation, "body_nconsts")
            carry = operands[second:]
            found = _loop(parameter(equation, "body_jaxpr"), operands[first:second], carry, len(carry))
            if _depends(parameter(equation, "cond_jaxpr"), [*operands[:first], *found])[0]:
                raise UnsupportedProgramError("a loop whose end depends on the state")
        else:
            found = [any(operands)] * len(equation.outvars)
        moving.update(v for v, moves in zip(equation.outvars, found, strict=True) if moves)
    return flags(jaxpr.outvars)


def _loop(body: Any, consts: list[bool], args: list[bool], carried: int) -> list[bool]:
    """Flags of the results of a loop, carry and outputs, that depend on the arguments."""
    carry, rest = args[:carried], args[carried:]
    while True:
        found = _depends(body, [*consts, *carry, *rest])
        more = [a or b for a, b in zip(carry, found[:carried], strict=True)]
        if more == carry:
            return [*more, *found[carried:]]
        carry = more
