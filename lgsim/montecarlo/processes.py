"""Noise in time: processes as samples, and the forces of wind that takes them."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.dynamics.kinematics import forward_kinematics, frame_index, frame_twists
from lgsim.lie.group import norm
from lgsim.montecarlo.distributions import Distribution
from lgsim.multibody.model import Model
from lgsim.simulation.controls import FrameWrench


class OrnsteinUhlenbeck(Distribution):
    """Paths of the stationary process ``dx = -x dt/T + std sqrt(2/T) dW`` at equal times, exact at these.

    ``x_{k+1} = a x_k + std sqrt(1 - a^2) z_k`` with ``a = exp(-dt/T)``: Gaussian, of zero mean, with the covariance
    ``std^2 exp(-|t - s|/T)``. Source: Gillespie, Exact numerical simulation of the Ornstein-Uhlenbeck process and its
    integral, Physical Review E 54(2), 1996, eq. (3.1).

    Attributes:
        std: Standard deviation of each component, (components,).
        time: Correlation time T of each, s.
        dt: Time between two nodes, s.
        nodes: How many nodes a path has.
    """

    std: Array
    time: Array
    dt: Array
    nodes: int = eqx.field(static=True)

    def __init__(self, std: Any, time: Any, dt: float, nodes: int) -> None:
        self.std = jnp.atleast_1d(jnp.asarray(std, float))
        self.time = jnp.broadcast_to(jnp.asarray(time, self.std.dtype), self.std.shape)
        self.dt, self.nodes = jnp.asarray(dt, self.std.dtype), nodes
        for name, value, least in (("std", std, 0.0), ("time", time, None), ("dt", dt, None)):
            found = np.asarray(value, float)
            if not np.all(np.isfinite(found) & ((found > 0) if least is None else (found >= 0))):
                raise ValueError(f"{name}: expected finite numbers above zero, got {value}")
        if nodes < 1:
            raise ValueError(f"nodes: expected at least 1, got {nodes}")

    @property
    def dim(self) -> int:
        return self.nodes * self.std.size

    @property
    def process(self) -> bool:
        """Always."""
        return True

    @property
    def dtype(self) -> jnp.dtype:
        return self.std.dtype

    def __call__(self, z: Array) -> Array:
        """A path (nodes, components)."""
        shocks = z.reshape(self.nodes, self.std.size)
        keep = jnp.exp(-self.dt / self.time)
        fresh = jnp.sqrt(-jnp.expm1(-2 * self.dt / self.time))

        def step(x: Array, shock: Array) -> tuple[Array, Array]:
            moved = keep * x + fresh * shock
            return moved, moved

        _, rest = jax.lax.scan(step, shocks[0], shocks[1:])
        return self.std[None, :] * jnp.concatenate([shocks[:1], rest])


class Wind(eqx.Module):
    """The drag of moving air on a frame at its origin, for ``wrenches``: ``f = c |u| u + d u`` in world axes.

    u is the velocity of the air, ``mean + gusts(t)``, less that of the frame's origin. The gusts are straight lines
    between nodes at ``t0, t0 + dt, ...`` and stay at the last one; with the moving air they are a leaf that a study can
    vary, e.g. ``"wrenches.gusts": OrnsteinUhlenbeck(...)``.

    Attributes:
        frame: Name of a frame of the model.
        mean: Velocity of the air in world axes, (3,), m/s.
        gusts: What is added at the nodes, (nodes, 3), m/s.
        dt: Time between two nodes, s.
        quadratic: c, kg/m: half of density, area and drag coefficient.
        linear: d, kg/s.
        t0: Time of the first node, s.
    """

    frame: str = eqx.field(static=True)
    mean: Array = eqx.field(converter=jnp.asarray)
    gusts: Array = eqx.field(converter=jnp.asarray)
    dt: Any
    quadratic: Any = 0.0
    linear: Any = 0.0
    t0: Any = 0.0

    def air(self, t: Any) -> Array:
        """The velocity of the air at a time, (3,)."""
        last = len(self.gusts) - 1
        place = jnp.clip((t - self.t0) / self.dt, 0, last)
        # one-hot weights in place of an index: a batch of paths stays vector code
        weight = jnp.maximum(1 - jnp.abs(jnp.arange(last + 1, dtype=place.dtype) - place), 0)
        return self.mean + jnp.sum(weight[:, None] * self.gusts, axis=0)

    def __call__(self, t: Any, q: Array, v: Array, model: Model) -> Array:
        """Wrenches (bodies, 6) in the bodies' frames."""
        index = frame_index(model.topology, self.frame)
        R = forward_kinematics(model, q)[index, :3, :3]
        moving = frame_twists(model, q, v)[index, :3]
        speed = self.air(t) - jnp.sum(R * moving[None, :], axis=1)
        force = (self.quadratic * norm(speed) + self.linear) * speed
        wrench = jnp.concatenate([force, jnp.zeros_like(force)])
        return FrameWrench(self.frame, wrench, world=True)(t, q, v, model)
