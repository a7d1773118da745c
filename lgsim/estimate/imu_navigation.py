"""Inertial navigation: a process whose input are the readings of an accelerometer and a gyroscope."""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.estimate.factors import check_deviations
from lgsim.estimate.processes import ContinuousProcess, Transition, between
from lgsim.integrators.method import Number
from lgsim.lie import series, so3
from lgsim.lie.action import Action, Product, RightTranslation, Translation
from lgsim.lie.extended_pose import SE23
from lgsim.lie.group import Element

State = tuple[Element, Float[Array, " 6"]]
"""An extended pose (R, (v, p)), and the biases (accelerometer, gyroscope) in m/s^2 and rad/s."""


NAMES = tuple(
    f"{part} {axis}"
    for part in ("velocity", "position", "rotation", "accelerometer bias", "gyroscope bias")
    for axis in "xyz"
)
"""The components of the error."""


class ImuNavigation(ContinuousProcess):
    """The attitude R, velocity v and position p of a body from the specific force f and angular velocity w that an IMU
    measures in its own axes, with biases b that wander: ``R' = R hat(w - b_w)``, ``v' = R (f - b_f) + g``, ``p' = v``.

    The state is ``((R, (v, p)), (b_f, b_w))``, an extended pose of ``lgsim.SE23`` and a vector (6,); its error has the
    components velocity, position, rotation, bias of the accelerometer and of the gyroscope. The input is ``(f, w)``
    (6,), held over a step, for which the step is exact at every dt.

    Attributes:
        force_density: White noise of the accelerometer, m/s^2 per sqrt(Hz): a number or (3,).
        rate_density: White noise of the gyroscope, rad/s per sqrt(Hz).
        force_walk: Noise of the accelerometer's bias, m/s^3 per sqrt(Hz).
        rate_walk: Noise of the gyroscope's bias, rad/s^2 per sqrt(Hz).
        gravity: The acceleration of free fall in the world's axes (3,), m/s^2.

    Source: Barrau and Bonnabel 2017, The invariant extended Kalman filter as a stable observer, sec. V; Brossard,
    Barrau, Chauchat and Bonnabel 2021, Associating uncertainty to extended poses for on manifold IMU preintegration.
    """

    force_density: Array = eqx.field(converter=jnp.asarray)
    rate_density: Array = eqx.field(converter=jnp.asarray)
    force_walk: Array = eqx.field(converter=jnp.asarray, default=0.0)
    rate_walk: Array = eqx.field(converter=jnp.asarray, default=0.0)
    gravity: Float[Array, " 3"] = eqx.field(converter=jnp.asarray, default=(0.0, 0.0, -9.81))

    def __check_init__(self) -> None:
        for name in ("force_density", "rate_density", "force_walk", "rate_walk"):
            check_deviations(name, getattr(self, name))

    @property
    def space(self) -> Action:
        return Product(RightTranslation(SE23), Translation(6))

    @property
    def is_formula(self) -> bool:
        return True

    @property
    def names(self) -> tuple[str, ...]:
        return NAMES

    def step(self, y: State, u: Float[Array, " 6"], dt: Number) -> State:
        bias = y[1]
        f, w = u[:3] - bias[:3], (u[3:] - bias[3:]) * dt
        (once, _, _), (twice, _, _) = _held_force(w, f)
        return self._moved(y, w, dt, once, twice)

    def _moved(self, y: State, w: Array, dt: Number, once: Array, twice: Array) -> State:
        """The state after dt, turned by w, given the integrals of the force in the axes at the start."""
        (R, x), bias = y
        v, p = x[:3], x[3:]
        fall = self.gravity.astype(x.dtype) * dt
        velocity = v + fall + so3.Ad_action(R, once) * dt
        position = p + v * dt + fall * dt / 2 + so3.Ad_action(R, twice) * dt**2
        return (so3.compose(R, so3.exp(w)), jnp.concatenate([velocity, position])), bias

    def transition(self, error: Action, y: State, u: Float[Array, " 6"], dt: Number) -> Transition:
        """The step and its linearization in closed form, which depends on the state by the biases alone.

        The covariance of the noise is Gauss's rule of two points, exact where the integrand is a cubic.
        """
        density = self.density(y, u)
        shares = np.array([1, (1 + 1 / math.sqrt(3)) / 2, (1 - 1 / math.sqrt(3)) / 2])
        times = dt * jnp.asarray(shares, density.dtype)
        (slope, *rest), once, twice = jax.vmap(lambda dt: self._slope(y[1], u, dt))(times)
        end = self._moved(y, (u[3:] - y[1][3:]) * dt, dt, once[0], twice[0])
        noise = jnp.concatenate([each @ density for each in rest], axis=1) * jnp.sqrt(jnp.abs(dt) / 2)
        if error != self.space:
            outward = between(self.space, error, end)
            slope, noise = outward @ slope @ between(error, self.space, y), outward @ noise
        return Transition(end, slope, noise)

    def _slope(self, bias: Float[Array, " 6"], u: Float[Array, " 6"], dt: Number) -> tuple[Array, Array, Array]:
        """The derivative of the error after dt with respect to that before, and both integrals of the force."""
        f, w = u[:3] - bias[:3], (u[3:] - bias[3:]) * dt
        (once, once_f, once_w), (twice, twice_f, twice_w) = _held_force(w, f)
        zero, eye = jnp.zeros((3, 3), f.dtype), jnp.eye(3, dtype=f.dtype)
        # the axes of the body at the end, in which all errors there are
        velocity = [eye, zero, -so3.hat(once) * dt, -once_f * dt, -once_w * dt**2]
        position = [eye * dt, eye, -so3.hat(twice) * dt**2, -twice_f * dt**2, -twice_w * dt**3]
        rotation = [zero, zero, eye, zero, -once_f * dt]
        rows = so3.exp(-w) @ jnp.stack([jnp.concatenate(row, axis=1) for row in (velocity, position, rotation)])
        held = jnp.eye(6, 15, 9, dtype=f.dtype)
        return jnp.concatenate([rows.reshape(9, 15), held]), once, twice

    def density(self, y: State, u: Any) -> Float[Array, "15 12"]:
        dtype = y[1].dtype
        force, rate, force_walk, rate_walk = (
            jnp.diag(jnp.broadcast_to(density.astype(dtype), (3,)))
            for density in (self.force_density, self.rate_density, self.force_walk, self.rate_walk)
        )
        zero = jnp.zeros((3, 3), dtype)
        return jnp.block(
            [
                [force, zero, zero, zero],
                [zero, zero, zero, zero],
                [zero, rate, zero, zero],
                [zero, zero, force_walk, zero],
                [zero, zero, zero, rate_walk],
            ]
        )


def _held_force(w: Float[Array, " 3"], f: Float[Array, " 3"]) -> tuple[tuple[Array, Array, Array], ...]:
    """The velocity and position from a held force: ``int_0^1 exp(s w) f ds``, ``int_0^1 int_0^s exp(r w) f dr ds``.

    Each with its derivatives with respect to f and w, (3, 3). They are ``(1/m! + c_{m+1} W + c_{m+2} W^2) f`` for m = 1
    and 2 with W = hat(w) and the coefficients ``c_k = sum (-x)^j / (2j + k)!`` of ``series.stumpffs``, x = |w|^2, which
    follow from ``c_2''`` and ``c_3'`` by ``c_k' = (k c_{k+2} - c_{k+1}) / 2`` and ``c_k = 1 / k! - x c_{k+2}``.
    """
    x = w @ w
    c2_curve, c3_slope = series.stumpffs(x, ((2, 2), (3, 1)))
    c4_slope = c2_curve + c3_slope / 2
    c4 = (1 / 24 - x * (c4_slope / 2 + c3_slope / 6)) / (1 + x / 12)
    c2, c3 = 1 / 2 - x * c4, 1 / 6 - x * (2 * c3_slope + c4) / 3
    c2_slope = c4 - c3 / 2
    W, F, across = so3.hat(w), so3.hat(f), jnp.cross(w, f)
    square, twice, both = W @ W, jnp.cross(w, across), so3.hat(across) + W @ F
    eye = jnp.eye(3, dtype=f.dtype)
    found = []
    for one, a, b, a_slope, b_slope in ((1, c2, c3, c2_slope, c3_slope), (1 / 2, c3, c4, c3_slope, c4_slope)):
        of_w = 2 * jnp.outer(a_slope * across + b_slope * twice, w) - a * F - b * both
        found.append((one * f + a * across + b * twice, one * eye + a * W + b * square, of_w))
    return tuple(found)
