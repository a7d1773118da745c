"""Canonical coordinates of the second kind on any action: one exponential for each direction of the algebra.

``phi(sigma) = exp(sigma_1 e_1) ... exp(sigma_d e_d)`` moves with
``xi = sum_k Ad_exp(sigma_1 e_1) ... Ad_exp(sigma_(k-1) e_(k-1)) e_k sigma_k'``, a linear system for the rates.
``Ad_exp(u) = dexpinv_u^-1 dexpinv_(-u)``, so the action needs nothing but dexpinv.

Source: Celledoni et al. 2021, sec. 2.3; Owren and Marthinsen 2001.
"""

from __future__ import annotations

from functools import singledispatch

import jax
import jax.numpy as jnp
from jax import Array

from lgsim.integrators.verbs import Verbs, repeated, side_by_side
from lgsim.lie.action import Action, Point, Product
from lgsim.lie.power import Power


@singledispatch
def second_kind_verbs(action: Action) -> Verbs:
    """Coordinates of the second kind on an action; those of a product or power are those of its parts."""

    def factor(point: Point, u: Array) -> tuple[Point, None]:
        return action.move(u, point), None

    def move(sigma: Array, y: Point) -> Point:
        return jax.lax.scan(factor, y, jnp.diag(sigma), reverse=True)[0]

    def adjoint(u: Array) -> Array:
        basis = jnp.eye(action.dim, dtype=u.dtype)
        forth, back = (jax.vmap(lambda e, s=s: action.dexpinv(s, e), out_axes=-1)(basis) for s in (u, -u))
        return jnp.linalg.solve(forth, back)

    def row(before: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
        factor, e = now
        return _times(before, factor), jnp.sum(before * e[None, :], axis=-1)

    def rate(sigma: Array, xi: Array) -> Array:
        basis = jnp.eye(action.dim, dtype=sigma.dtype)
        _, rows = jax.lax.scan(row, basis, (jax.vmap(adjoint)(jnp.diag(sigma)), basis))
        return jnp.linalg.solve(rows.T, xi)

    return Verbs(move, rate)


@second_kind_verbs.register
def _(action: Product) -> Verbs:
    return side_by_side([second_kind_verbs(each) for each in action.actions], action.dims)


@second_kind_verbs.register
def _(action: Power) -> Verbs:
    return repeated(second_kind_verbs(action.action), action)


def _times(a: Array, b: Array) -> Array:
    return jnp.sum(a[:, :, None] * b[None, :, :], axis=1)
