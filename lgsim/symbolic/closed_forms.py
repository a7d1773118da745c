"""Closed-form expressions as JAX functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy
from sympy import Symbol

LIMIT = 500
"""Maximum number of operations; XLA takes seconds to compile longer straight-line code."""


def to_jax(expression: Any, symbols: Sequence[Symbol | str], limit: int = LIMIT) -> Callable[..., Any]:
    """A JAX function of a small closed-form expression: a controller, an energy, the entries of a linear model.

    It can be differentiated, mapped and compiled as usual. For equations of motion use the functions themselves, such
    as ``lgsim.forward_dynamics``, which are much faster.

    Args:
        expression: An expression or a matrix of them.
        symbols: The symbols of the function's arguments, in order, or their names. The values are scalars or arrays of
            one shape.
        limit: The maximum number of operations, counted after common subexpressions are taken out.

    Returns:
        ``function(*values)``: an array of the shape of the expression, or a scalar.

    Raises:
        ValueError: a symbol of the expression is not among the arguments, an argument occurs twice, or there are more
            operations than the limit.
    """
    form = sympy.sympify(expression)
    named = {s.name: s for s in form.free_symbols}
    names = [named.get(s, Symbol(s)) if isinstance(s, str) else s for s in symbols]
    if len(set(names)) != len(names):
        raise ValueError(f"symbols: expected each once, got {names}")
    missing = sorted(str(s) for s in form.free_symbols - set(names))
    if missing:
        raise ValueError(f"symbols: expected all symbols of the expression, {', '.join(missing)} missing in {names}")
    shared, reduced = sympy.cse([form])
    count = sum(sympy.count_ops(y) for _, y in shared) + sum(sympy.count_ops(y) for y in reduced)
    if count > limit:
        raise ValueError(
            f"expression: {count} operations, more than {limit}: use the JAX function that the formula came from, or"
            " pass a higher limit"
        )
    return sympy.lambdify(names, form, modules="jax", cse=True)
