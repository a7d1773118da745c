"""Exact forms of the named calls: sine, cosine, and the coefficients of ``lie/series.py`` without their branches."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, no_type_check

import numpy as np

from lgsim._compile.programs.read import SINE_AND_COSINE
from lgsim.lie.series import closed_form, dexpinv_terms, stumpff_terms


@no_type_check
def _entrywise(f: Callable[[int], int], x: Any) -> Any:
    if np.ndim(x) == 0:
        return f(int(x))
    return np.array([f(v) for v in np.asarray(x).ravel().tolist()], int).reshape(np.shape(x))


@no_type_check
def _root(b: Any, x: int) -> int:
    """The t with t^2 = x; the functions are even in t, so that its sign is arbitrary."""
    statement = b.statement(x)
    if statement is not None and statement.op == "mul" and statement.operands[0] == statement.operands[1]:
        return statement.operands[0]
    return b("sqrt", x)


@no_type_check
def _power(b: Any, x: int, n: int) -> int:
    out = b.constant(b.kind(x), 1)
    for _ in range(n):
        out = b("mul", out, x)
    return out


@no_type_check
def _stumpff(b: Any, k: int, order: int, x: int) -> int:
    kind = b.kind(x)
    if x < 0 and b.number(x) == 0:
        return b.constant(kind, stumpff_terms(k, order)[0])
    t = _root(b, x)
    factors = (
        b.constant(kind, 1), b("sub", b.constant(kind, 1), b("cos", t)), b("div", b("sin", t), t)
    )  # fmt: skip
    total = b.constant(kind, 0)
    for part, factor in zip(closed_form(k, order), factors, strict=True):
        for power, number in part.items():
            term = b("mul", b.constant(kind, number), factor)
            scale = _power(b, x, abs(power))
            total = b("add", total, b("mul", term, scale) if power >= 0 else b("div", term, scale))
    return total


@no_type_check
def _stumpffs(b: Any, *rest: Any) -> list[Any]:
    *kinds, (x,) = rest
    return [_entrywise(lambda v, kind=kind: _stumpff(b, *kind, v), x) for kind in kinds]


@no_type_check
def _dexpinv(b: Any, order: int, values: list[Any]) -> list[Any]:
    return [_entrywise(lambda x: _dexpinv_derivative(b, order, x), values[0])]


@no_type_check
def _dexpinv_derivative(b: Any, order: int, x: int) -> int:
    kind = b.kind(x)
    if x < 0 and b.number(x) == 0:
        return b.constant(kind, dexpinv_terms(order))

    def number(value: Any) -> int:
        return b.constant(kind, Fraction(value))

    half = b("mul", number(Fraction(1, 2)), _root(b, x))
    quotient = b("div", b("mul", half, b("cos", half)), b("sin", half))
    d = [b("div", b("sub", number(1), quotient), x)]
    for m in range(order):  # from 2 x d' = 1/4 - 3 d + x d^2, differentiated m times
        total = b("add", b("mul", number(-(3 + 2 * m)), d[m]), number(Fraction(1, 4) if m == 0 else 0))
        for j in range(m + 1):
            product = b("mul", b("mul", number(math.comb(m, j)), x), b("mul", d[j], d[m - j]))
            total = b("add", total, product)
        for j in range(m):
            total = b("add", total, b("mul", number(m * math.comb(m - 1, j)), b("mul", d[j], d[m - 1 - j])))
        d.append(b("div", total, b("mul", number(2), x)))
    return d[order]


CALLS: dict[str, Callable[..., list[Any]]] = {
    **SINE_AND_COSINE, "stumpffs": _stumpffs, "dexpinv_coefficient": _dexpinv,
}  # fmt: skip
"""Rules ``rule(builder, *which, values)`` by the name of the call."""
