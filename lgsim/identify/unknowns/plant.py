"""What is identified: a machine and the numbers of its drives that a model does not have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.dynamics.inverse_dynamics import inverse_dynamics
from lgsim.dynamics.passive_forces import passive_forces
from lgsim.multibody import inertia
from lgsim.multibody.model import DRIVES, Model

AFFINE = ("armature", "damping", "friction", "stiffness")
"""The numbers of the drives in which joint forces are affine."""


class Plant(eqx.Module):
    """A machine whose joint forces are recorded as signals: ``scale signal = tau + offset``.

    ``tau`` is what the joint gives: inverse dynamics less passive forces plus ``stribeck tanh(v / friction_speed)
    exp(-(v / stribeck_speed)^2)``, the part of dry friction that a moving joint loses.

    Attributes:
        model: The machine.
        scale: N m or N for each unit of the signal (nv,): gear ratio times motor constant; 1 for torques.
        offset: (nv,), N m or N.
        stribeck: Breakaway friction less dry friction (nv,), N m or N.
        stribeck_speed: (nv,), rad/s or m/s.

    Source: Bittencourt and Gunnarsson 2012, Static friction in a robot joint, J. Dyn. Sys. Meas. Control 134(5),
    eq. (3), for the friction.
    """

    model: Model
    scale: Array
    offset: Array
    stribeck: Array
    stribeck_speed: Array

    def __init__(
        self, model: Model, scale: Any = 1.0, offset: Any = 0.0, stribeck: Any = 0.0, stribeck_speed: Any = 0.1
    ):
        if not isinstance(model, Model):
            raise TypeError(f"model: expected an lgsim.Model, got {type(model).__name__}; lgsim.load_urdf makes one")
        self.model = model
        given = {"scale": scale, "offset": offset, "stribeck": stribeck, "stribeck_speed": stribeck_speed}
        self.scale, self.offset, self.stribeck, self.stribeck_speed = (
            _numbers(name, value, model) for name, value in given.items()
        )

    def friction(self, v: Array) -> Array:
        """The Stribeck part of the joint forces (..., nv) at speeds v (..., nv)."""
        wide = jnp.tanh(v / _rows(self.model.friction_speed, v))
        return _rows(self.stribeck, v) * wide * jnp.exp(-((v / _rows(self.stribeck_speed, v)) ** 2))

    def forces(self, q: Array, v: Array, a: Array, wrenches: Array | None = None) -> Array:
        """The joint forces tau (..., nv) behind an acceleration, N m or N."""
        return inverse_dynamics(self.model, q, v, a, wrenches) - passive_forces(self.model, q, v) + self.friction(v)

    def signals(self, q: Array, v: Array, a: Array, wrenches: Array | None = None) -> Array:
        """What is recorded (..., nv) of such joint forces."""
        tau = self.forces(q, v, a, wrenches)
        return (tau + _rows(self.offset, tau)) / _rows(self.scale, tau)

    @property
    def numbers(self) -> Array:
        """All numbers in which the signals are affine while the others stay, as one vector; ``number_names`` in order.

        Inertias body by body, then the drives' armature, damping, dry friction, stiffness, then stribeck, offset.
        """
        drives = self.model.drives[:, np.array([DRIVES.index(name) for name in AFFINE])]
        return jnp.concatenate([self.model.inertias.reshape(-1), drives.T.reshape(-1), self.stribeck, self.offset])

    @property
    def number_names(self) -> list[str]:
        """A name for each of ``numbers``."""
        names = [f"{symbol} of {body}" for body in self.model.body_names for symbol in inertia.PARAMETERS]
        joints = freedoms(self.model)
        return names + [f"{what} of {joint}" for what in (*AFFINE, "stribeck", "offset") for joint in joints]

    def with_numbers(self, numbers: Array) -> Plant:
        """The plant with other ``numbers``."""
        bodies, nv = self.model.inertias.size, self.model.nv
        columns = numbers[bodies:].reshape(-1, nv)
        drives = self.model.drives
        for name, column in zip(AFFINE, columns, strict=False):
            drives = drives.at[:, DRIVES.index(name)].set(column)
        new = (numbers[:bodies].reshape(-1, 10), drives, columns[-2], columns[-1])
        return eqx.tree_at(lambda p: (p.model.inertias, p.model.drives, p.stribeck, p.offset), self, new)


def place(model: Model, what: str) -> int:
    """Where the first of a kind of number of the joints stands in ``Plant.numbers``."""
    return model.inertias.size + (*AFFINE, "stribeck", "offset").index(what) * model.nv


def freedoms(model: Model, joints: Sequence[str] | None = None) -> list[str]:
    """A name for each degree of freedom of some joints, by default all."""
    out = []
    for name in model.joint_names if joints is None else joints:
        part = model.v_slices[name]
        count = part.stop - part.start
        out += [name] if count == 1 else [f"{name}[{i}]" for i in range(count)]
    return out


def _numbers(name: str, value: Any, model: Model) -> Array:
    array = jnp.asarray(value, model.dtype)
    if array.shape not in ((), (model.nv,)):
        raise ValueError(
            f"{name}: expected a number or shape ({model.nv},), one for each joint force, got {array.shape}"
        )
    return jnp.broadcast_to(array, (model.nv,))


def _rows(numbers: Array, like: Array) -> Array:
    return numbers.reshape((1,) * (like.ndim - 1) + numbers.shape)
