"""Rules of primitives for ``jax.experimental.jet``, which supports only JAX's own primitives."""

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
        warnings.simplefilter("ignore")  # the deprecation of an experimental module concerns its direct users
        from jax.experimental.jet import jet_rules
except Exception:
    jet_rules = {}


def register_taylor_rule(primitive: Any) -> None:
    """Let ``jet`` differentiate a primitive by its forward-mode rules, with a cost that doubles per order."""
    jet_rules[primitive] = lambda primals, series, **params: _propagated(primitive, primals, series, params)


def _propagated(
    primitive: Any, primals: Sequence[Any], series: Sequence[Sequence[Any]], params: dict[str, Any]
) -> tuple[Any, Any]:
    """The values of a primitive and their terms, by differentiation along the polynomial of a time."""
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
    """A term of a result; integers have none."""
    return factor * change if jnp.issubdtype(value.dtype, jnp.inexact) else jnp.zeros_like(value)


def _derivatives(f: Callable[[Any], Any], order: int) -> Callable[[Any], tuple[Any, ...]]:
    """The function of a time that returns ``f`` and its derivatives."""
    if order == 0:
        return lambda t: (f(t),)
    lower = _derivatives(f, order - 1)

    def all_of(t: Any) -> tuple[Any, ...]:
        found, changes = jax.jvp(lower, (t,), (jnp.ones_like(t),))
        return (*found, changes[-1])

    return all_of


@cache
def _derivative_terms() -> bool:
    """True if rules receive derivatives, as in JAX 0.6.2, and not Taylor coefficients; tested on ``t * t``."""
    with jax.ensure_compile_time_eval():
        t = jnp.zeros(()), [jnp.ones(()), jnp.zeros(())]
        _, terms = jet_rules[lax.mul_p]((t[0], t[0]), (t[1], t[1]))
        return float(terms[1]) > 1.5
