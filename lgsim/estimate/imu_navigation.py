"""Inertial navigation: a process whose input are the readings of an accelerometer and a gyroscope."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.estimate.processes import ContinuousProcess
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

    @property
    def space(self) -> Action:
        return Product(RightTranslation(SE23), Translation(6))

    @property
    def names(self) -> tuple[str, ...]:
        return NAMES

    def step(self, y: State, u: Float[Array, " 6"], dt: Number) -> State:
        (R, x), bias = y
        f, w = u[:3] - bias[:3], (u[3:] - bias[3:]) * dt
        v, p = x[:3], x[3:]
        once, twice = held_force(w, f)
        fall = self.gravity.astype(f.dtype) * dt
        velocity = v + fall + so3.Ad_action(R, once) * dt
        position = p + v * dt + fall * dt / 2 + so3.Ad_action(R, twice) * dt**2
        return (so3.compose(R, so3.exp(w)), jnp.concatenate([velocity, position])), bias

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


def held_force(w: Float[Array, " 3"], f: Float[Array, " 3"]) -> tuple[Float[Array, " 3"], Float[Array, " 3"]]:
    """The velocity and position from a held force: ``int_0^1 exp(s w) f ds``, ``int_0^1 int_0^s exp(r w) f dr ds``.

    ``(1/m! + c_{m+1} W + c_{m+2} W^2) f`` for m = 1, 2 with W = hat(w) and the coefficients ``c_k = sum (-|w|^2)^j /
    (2j + k)!`` of ``series.stumpff``; ``c_4 = c_2' + c_3 / 2``.
    """
    c2, slope, c3 = series.stumpffs(w @ w, ((2, 0), (2, 1), (3, 0)))
    c4 = slope + c3 / 2
    across = jnp.cross(w, f)
    twice = jnp.cross(w, across)
    return f + c2 * across + c3 * twice, f / 2 + c3 * across + c4 * twice
