"""Stochastic processes as samples, and wind forces that use them."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim._compile.xla import control_flow
from lgsim.dynamics.kinematics import forward_kinematics, frame_index, frame_twists
from lgsim.integrators.method import Number
from lgsim.lie.group import norm
from lgsim.montecarlo.distributions import Distribution, Numbers
from lgsim.multibody.model import Model
from lgsim.simulation.controls import FrameWrench
from lgsim.support import check


class OrnsteinUhlenbeck(Distribution):
    """Sample paths of the Ornstein-Uhlenbeck process ``dx = -x dt/T + std sqrt(2/T) dW``.

    They are stationary, at uniform times, and exact at these times.

    ``x_{k+1} = a x_k + std sqrt(1 - a^2) z_k`` with ``a = exp(-dt/T)``: normal, with zero mean and the covariance
    ``std^2 exp(-|t - s|/T)``. Source: Gillespie, Exact numerical simulation of the Ornstein-Uhlenbeck process and its
    integral, Physical Review E 54(2), 1996, eq. (3.1).

    Attributes:
        std: Standard deviation of each component, (components,).
        correlation_time: T of each component, (components,), s.
        dt: Time between two nodes, s.
        nodes: Number of nodes of a path.
    """

    std: Float[Array, " components"]
    correlation_time: Float[Array, " components"]
    dt: Float[Array, ""]
    nodes: int = eqx.field(static=True)

    def __init__(self, std: Numbers, correlation_time: Numbers, dt: Numbers, nodes: int) -> None:
        self.std = jnp.atleast_1d(jnp.asarray(std, float))
        self.correlation_time = jnp.broadcast_to(jnp.asarray(correlation_time, self.std.dtype), self.std.shape)
        self.dt, self.nodes = jnp.asarray(dt, self.std.dtype), nodes
        for name, value in (("std", std), ("correlation_time", correlation_time), ("dt", dt)):
            found = np.asarray(value, float)
            if not np.all(np.isfinite(found) & ((found >= 0) if name == "std" else (found > 0))):
                least = "of at least" if name == "std" else "above"
                raise ValueError(f"{name}: expected finite numbers {least} zero, got {value}")
        check.count("nodes", nodes)

    @property
    def dim(self) -> int:
        return self.nodes * self.std.size

    @property
    def is_process(self) -> bool:
        """True."""
        return True

    @property
    def dtype(self) -> jnp.dtype:
        return self.std.dtype

    def __call__(self, z: Float[Array, " dim"]) -> Float[Array, "nodes components"]:
        """The path at the nodes."""
        shocks = z.reshape(self.nodes, self.std.size)
        keep = jnp.exp(-self.dt / self.correlation_time)
        fresh = jnp.sqrt(-jnp.expm1(-2 * self.dt / self.correlation_time))

        def step(x: Array, shock: Array) -> tuple[Array, Array]:
            moved = keep * x + fresh * shock
            return moved, moved

        _, rest = control_flow.scan(step, shocks[0], shocks[1:])
        return self.std[None, :] * jnp.concatenate([shocks[:1], rest])


class Wind(eqx.Module):
    """Aerodynamic drag on a frame at its origin, for ``wrenches``: ``f = c |u| u + d u`` in world axes.

    u is the velocity of the air, ``mean + gusts(t)``, minus the velocity of the frame's origin. The gusts are
    interpolated linearly between nodes at ``t0, t0 + dt, ...`` and constant after the last one. A study can vary them,
    e.g. ``"wrenches.gusts": OrnsteinUhlenbeck(...)``.

    Attributes:
        frame: Name of a frame of the model.
        mean: Mean velocity of the air in world axes, (3,), m/s.
        gusts: Gust velocities at the nodes, (nodes, 3), m/s.
        dt: Time between two nodes, s.
        quadratic: c, kg/m: half the product of density, area and drag coefficient.
        linear: d, kg/s.
        t0: Time of the first node, s.
    """

    frame: str = eqx.field(static=True)
    mean: Float[Array, " 3"] = eqx.field(converter=jnp.asarray)
    gusts: Float[Array, "nodes 3"] = eqx.field(converter=jnp.asarray)
    dt: float | int | Array
    quadratic: float | int | Array = 0.0
    linear: float | int | Array = 0.0
    t0: float | int | Array = 0.0

    def air_velocity(self, t: Number) -> Float[Array, " 3"]:
        """The velocity of the air at the time t, in world axes, m/s."""
        last = len(self.gusts) - 1
        place = jnp.clip((t - self.t0) / self.dt, 0, last)
        # one-hot weights instead of an index: a batch of paths stays vector code
        weight = jnp.maximum(1 - jnp.abs(jnp.arange(last + 1, dtype=place.dtype) - place), 0)
        return self.mean + jnp.sum(weight[:, None] * self.gusts, axis=0)

    def __call__(
        self, t: Number, q: Float[Array, " nq"], v: Float[Array, " nv"], model: Model
    ) -> Float[Array, "bodies 6"]:
        """The wrenches on the bodies in the body frames, N and N m."""
        index = frame_index(model.topology, self.frame)
        R = forward_kinematics(model, q)[index, :3, :3]
        moving = frame_twists(model, q, v)[index, :3]
        speed = self.air_velocity(t) - jnp.sum(R * moving[None, :], axis=1)
        force = (self.quadratic * norm(speed) + self.linear) * speed
        wrench = jnp.concatenate([force, jnp.zeros_like(force)])
        return FrameWrench(self.frame, wrench, world=True)(t, q, v, model)
