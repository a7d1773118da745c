"""A law that keeps a body with rotors in its place, for studies of what wind and unknown numbers do to it."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.lie import quaternion
from lgsim.lie.group import norm
from lgsim.multibody.inertia import rotational_inertia
from lgsim.multibody.model import Model
from lgsim.simulation.controls import Law


class Hover(Law):
    """Thrust along a floating base's z axis and moments that keep it at a place, with a heading.

    ``F = m (-stiffness (p - place) - damping p' - g)``, thrust ``F . R e3`` between 0 and its limit, and moments
    ``J (-attitude e_R - spin w) + w x J w`` with ``hat(e_R) = (R_d^T R - R^T R_d) / 2``, R_d e3 along F. Mass and
    inertia are what the law takes them for, those of the machine being others in each sample of a study. Not defined
    where F vanishes or lies along the heading.

    Source: Lee, Leok, McClamroch, Geometric tracking control of a quadrotor UAV on SE(3), IEEE Conference on Decision
    and Control, 2010, for a place that does not move; z up here.

    Attributes:
        place: Where, in the world, (3,), m.
        mass: m, kg.
        inertia: J about the body's origin in its axes, (3, 3), kg m^2.
        gravity: g, (3,), m/s^2.
        stiffness: 1/s^2.
        damping: 1/s.
        attitude: 1/s^2.
        spin: 1/s.
        thrust_limit: N.
        heading: Of the x axis about the vertical, rad.
    """

    place: Array = eqx.field(converter=jnp.asarray)
    mass: Any
    inertia: Any
    gravity: Any
    stiffness: Any = 4.0
    damping: Any = 4.0
    attitude: Any = 100.0
    spin: Any = 20.0
    thrust_limit: Any = np.inf
    heading: Any = 0.0

    @classmethod
    def of(cls, model: Model, place: Any, **gains: Any) -> Hover:
        """The law that takes the numbers of a machine of one body for what they are.

        Raises:
            ValueError: the machine is no single body that moves freely.
        """
        if not model.topology.floats:
            raise ValueError("model: expected a machine with a floating base")
        if len(model.inertias) != 1:
            raise ValueError(f"model: expected a single body, got {len(model.inertias)}")
        numbers = {name: jnp.asarray(x, model.dtype) for name, x in gains.items()}
        body, place = model.inertias[0], jnp.asarray(place, model.dtype)
        return cls(place, body[0], rotational_inertia(body), model.gravity, **numbers)

    def __call__(self, t: Any, q: Array, v: Array, model: Model) -> Array:
        """Forces on the floating base alone: a body wrench (f, n)."""
        del t, model
        R, w = quaternion.Ad(q[3:7]), v[3:6]
        speed = _turned(R, v[:3])
        F = self.mass * (-self.stiffness * (q[:3] - self.place) - self.damping * speed - self.gravity)
        third = F / norm(F)
        ahead = jnp.stack([jnp.cos(self.heading), jnp.sin(self.heading), jnp.zeros_like(self.heading)])
        second = jnp.cross(third, ahead.astype(F.dtype))
        second = second / norm(second)
        wanted = jnp.stack([jnp.cross(second, third), second, third], axis=1)
        # the columns of R_d and R crossed: the vector of the skew part of R_d^T R, in body axes
        error = 0.5 * _turned(R.T, jnp.sum(jnp.cross(wanted.T, R.T), axis=0))
        moments = _turned(self.inertia, -self.attitude * error - self.spin * w) + jnp.cross(w, _turned(self.inertia, w))
        thrust = jnp.clip(jnp.sum(F * R[:, 2]), 0, self.thrust_limit)
        base = jnp.concatenate([jnp.zeros_like(w[:2]), thrust[None], moments])
        return jnp.zeros_like(v).at[:6].set(base)


def _turned(M: Array, x: Array) -> Array:
    return jnp.sum(M * x[None, :], axis=1)
