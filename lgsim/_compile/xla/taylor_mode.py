"""Rules of primitives for ``jax.experimental.jet``, which knows JAX's own primitives only."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

try:  # JAX 0.6.2 to 0.12.0; without it there is no Taylor mode
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that an experimental module will go concerns who uses it
        from jax.experimental.jet import jet_rules
except Exception:
    jet_rules = {}


def register_taylor_rule(primitive: Any) -> None:
    """Let ``jet`` differentiate a primitive by its rules of forward mode, the cost of which doubles with each order."""
    jet_rules[primitive] = lambda primals, series, **params: _propagated(primitive, primals, series, params)


def _propagated(
    primitive: Any, primals: Sequence[Any], series: Sequence[Sequence[Any]], params: dict[str, Any]
) -> tuple[Any, Any]:
    """The values of a primitive and the terms of each of them: it is differentiated along the polynomial of a time."""
    order = len(series[0])
    scales = [float(math.factorial(k)) if _derivative_terms() else 1.0 for k in range(1, order + 1)]

    def moved(x: Any, terms: Sequence[Any], t: Any) -> Any:
        kind = jnp.result_type(x)
        if not jnp.issubdtype(kind, jnp.inexact):
            return x
        offset = jnp.zeros_like(x)
        for scale, term in zip(reversed(scales), reversed(terms), strict=True):
            offset = t.astype(kind) * (jnp.asarray(term, kind) / scale + offset)
        return x + offset

    def along(t: Any) -> Any:
        return primitive.bind(*(moved(x, terms, t) for x, terms in zip(primals, series, strict=True)), **params)

    values, *derivatives = _derivatives(along, order)(jnp.zeros((), jnp.result_type(float)))
    factors = [scale / math.factorial(k) for k, scale in enumerate(scales, 1)]
    terms = [
        jax.tree.map(partial(_term, factor), change, values)
        for factor, change in zip(factors, derivatives, strict=True)
    ]
    return values, [[term[i] for term in terms] for i in range(len(values))] if primitive.multiple_results else terms


def _term(factor: float, change: Any, value: Any) -> Any:
    """A term of a result; one of integers has none."""
    return factor * change if jnp.issubdtype(value.dtype, jnp.inexact) else jnp.zeros_like(value)


def _derivatives(f: Callable[[Any], Any], order: int) -> Callable[[Any], tuple[Any, ...]]:
    """The function of a time that gives ``f`` and its derivatives."""
    if order == 0:
        return lambda t: (f(t),)
    lower = _derivatives(f, order - 1)

    def all_of(t: Any) -> tuple[Any, ...]:
        found, changes = jax.jvp(lower, (t,), (jnp.ones_like(t),))
        return (*found, changes[-1])

    return all_of


@cache
def _derivative_terms() -> bool:
    """Whether rules are given derivatives, as by JAX 0.6.2, or coefficients of a polynomial: those of ``t * t`` say."""
    with jax.ensure_compile_time_eval():
        t = jnp.zeros(()), [jnp.ones(()), jnp.zeros(())]
        _, terms = jet_rules[lax.mul_p]((t[0], t[0]), (t[1], t[1]))
        return float(terms[1]) > 1.5
