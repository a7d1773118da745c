"""Hermite interpolation between two points in the algebra: no point leaves the manifold.

The interpolant has the given velocities at both ends. The error is of fourth order in the time between the points for
the cubic, and of fifth order for the quartic, which needs one more value of the field.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.integrators.munthe_kaas import TruncatedDexpinv
from lgsim.lie.action import Action, Point

Vector = Float[Array, " algebra"]
Chain = Float[Array, "exponentials algebra"]


def hermite(
    action: Action,
    y0: Point,
    y1: Point,
    slope0: Vector,
    slope1: Vector,
    s: float | Float[Array, ""],
    sigma: Vector | None = None,
) -> Point:
    """The point at the fraction s of the cubic from y0 to y1 with given velocities at the ends.

        y(s) = exp(sigma(s)) . y0,   sigma(s) = s^2 (3 - 2 s) sigma + s (1 - s)^2 slope0 - s^2 (1 - s) dexpinv(slope1),

    with dexpinv at sigma. The error of a smooth motion is O(h^4) for points a time h apart.

    Args:
        y0: the point at s = 0.
        y1: the point at s = 1; not used if ``sigma`` is given.
        slope0: the field at y0 times the time between the points, shape (action.dim,).
        slope1: the field at y1 times that time, shape (action.dim,).
        s: the fraction of the time, in [0, 1].
        sigma: the algebra vector with ``action.move(sigma, y0) = y1``, shape (action.dim,); None for the smallest one,
            which is right if no rotation between the points exceeds half a turn.

    Returns:
        The point, of the structure of y0.

    Raises:
        TypeError: without sigma, if the action has no ``difference``.

    Source: the cubic in the algebra for sigma' = dexpinv_sigma(xi); Hairer, Norsett, Wanner, Solving ODEs I, (II.6.7).
    """
    if sigma is None and not action.provides("difference"):
        raise TypeError(f"sigma: expected an algebra vector, because {type(action).__name__} has no difference")
    between = action.difference(y0, y1) if sigma is None else sigma
    return chain_hermite(action, y0, between[None], slope0, slope1, s)


def chain_hermite(
    action: Action,
    y0: Point,
    exponentials: Chain,
    slope0: Vector,
    slope1: Vector,
    s: float | Float[Array, ""],
    bump: Vector | None = None,
) -> Point:
    """The point of ``hermite`` for an end ``y1 = exp(a_J) ... exp(a_1) . y0``, a chain of exponentials.

        y(s) = exp(b(s)) exp(s a_(J-1)) ... exp(s a_1) . y0,

    with the cubic b from 0 to a_J whose slopes give y the velocities slope0 and slope1, plus ``s^2 (1 - s)^2 bump``.
    If the action defines no dexpinv, brackets replace it; if J > 1 and it defines no bracket, the error is O(h^3).

    Args:
        y0: the point at s = 0.
        exponentials: a_1 ... a_J in the order in which they act, shape (J, action.dim).
        slope0: the field at y0 times the time between the points, shape (action.dim,).
        slope1: the field at the end times that time, shape (action.dim,).
        s: the fraction of the time, in [0, 1].
        bump: the vector of ``quartic_bump``, shape (action.dim,), for the quartic; None for the cubic.

    Returns:
        The point, of the structure of y0.
    """
    s = jnp.asarray(s, exponentials.dtype)
    start = y0
    for a in exponentials[:-1]:
        start = action.move(s * a, start)
    b = _cubic(action, exponentials, slope0, slope1)(s)
    return action.move(b if bump is None else b + (s * (1 - s)) ** 2 * bump, start)


def quartic_bump(
    action: Action,
    y0: Point,
    exponentials: Chain,
    slope0: Vector,
    slope1: Vector,
    slope_at: Callable[[float, Point], Vector],
) -> Vector:
    """The bump that raises the order of ``chain_hermite`` by one, to an error of O(h^5), by one more field value.

    The field at a quarter of the time, at the point of the cubic, is the velocity there up to O(h^5).

    Args:
        y0: the point at s = 0.
        exponentials: as for ``chain_hermite``, shape (J, action.dim).
        slope0: as for ``chain_hermite``, shape (action.dim,).
        slope1: as for ``chain_hermite``, shape (action.dim,).
        slope_at: ``slope_at(s, y)``, the field at the fraction s and the point y, times the time between the ends.

    Source: Shampine, Interpolation for Runge-Kutta methods, SIAM J. Numer. Anal. 22, 1985; Hairer, Norsett, Wanner,
    Solving ODEs I, section II.6.
    """
    s = 0.25  # not a half, where the bump has zero slope
    velocity = slope_at(s, chain_hermite(action, y0, exponentials, slope0, slope1, s))
    b, b_rate = jax.jvp(
        _cubic(action, exponentials, slope0, slope1), (jnp.asarray(s, slope0.dtype),), (jnp.ones((), slope0.dtype),)
    )
    return (_rate(action, s * exponentials[:-1], exponentials[:-1], b, velocity) - b_rate) / (
        2 * s * (1 - s) * (1 - 2 * s)
    )


def _cubic(action: Action, exponentials: Chain, slope0: Vector, slope1: Vector) -> Callable[[Float[Array, ""]], Vector]:
    """The function b(s), the algebra vector of the last exponential of the cubic."""
    before, last = exponentials[:-1], exponentials[-1]
    first = slope0 - jnp.sum(before, axis=0)
    final = _rate(action, before, before, last, slope1)
    return lambda s: s**2 * (3 - 2 * s) * last + s * (1 - s) ** 2 * first - s**2 * (1 - s) * final


def _rate(action: Action, before: Chain, rates: Chain, b: Vector, velocity: Vector) -> Vector:
    """The rate of b for which exp(b) exp(before_(J-1)) ... exp(before_1) moves with ``velocity``."""
    if before.shape[0]:
        transported = rates[0]
        for a, rate in zip(before[1:], rates[1:], strict=True):
            transported = rate + _adjoint(action, a, transported)
        velocity = velocity - _adjoint(action, b, transported)
    if action.provides("dexpinv"):
        return action.dexpinv(b, velocity)
    return TruncatedDexpinv(3 if action.provides("bracket") else 0)(action, b, velocity)


def _adjoint(action: Action, a: Vector, velocity: Vector) -> Vector:
    """``Ad_exp(a) velocity`` up to terms that do not lower the order: a and velocity are nearly parallel."""
    if not action.provides("bracket"):
        return velocity
    once = action.bracket(a, velocity)
    twice = action.bracket(a, once)
    return velocity + once + twice / 2 + action.bracket(a, twice) / 6
