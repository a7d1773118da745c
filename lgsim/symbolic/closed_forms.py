"""Closed forms as functions of JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy
from sympy import Symbol

LIMIT = 500
"""Operations above which straight-line code is no closed form: XLA compiles it for seconds."""


def to_jax(expression: Any, symbols: Sequence[Symbol | str], limit: int = LIMIT) -> Callable[..., Any]:
    """A function of JAX for a small closed form: a law of control, an energy, a linear model's entries.

    It can be differentiated, mapped and compiled as any other. Of a machine's equations of motion the function itself,
    such as ``lgsim.forward_dynamics``, is the code, and much faster.

    Args:
        expression: An expression or a matrix of them.
        symbols: What the function's arguments stand for, in order, scalars or arrays of one shape; a name is that of a
            symbol of the expression.
        limit: The largest number of operations, counted after common parts are taken out.

    Returns:
        ``function(*values)``: an array of the shape of the expression, or a scalar.

    Raises:
        ValueError: a symbol of the expression is not among the arguments, an argument is there twice, or there are more
            operations than the limit.
    """
    form = sympy.sympify(expression)
    named = {s.name: s for s in form.free_symbols}
    names = [named.get(s, Symbol(s)) if isinstance(s, str) else s for s in symbols]
    if len(set(names)) != len(names):
        raise ValueError(f"symbols: expected each once, got {names}")
    missing = sorted(str(s) for s in form.free_symbols - set(names))
    if missing:
        raise ValueError(f"symbols: {', '.join(missing)} of the expression is none of the arguments {names}")
    shared, reduced = sympy.cse([form])
    count = sum(sympy.count_ops(y) for _, y in shared) + sum(sympy.count_ops(y) for y in reduced)
    if count > limit:
        raise ValueError(
            f"expression: {count} operations, more than {limit}: for JAX the function that the formula came from is"
            " the code; pass a higher limit to insist"
        )
    return sympy.lambdify(names, form, modules="jax", cse=True)
