"""The model of a machine: a static topology and all physical numbers as array leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from lgsim.multibody import configuration
from lgsim.multibody.topology import Topology


@dataclass(frozen=True)
class Model:
    """A tree of rigid bodies. ``jax.grad``, ``jax.vmap`` and ``jax.jit`` work over it as over any array.

    The numbers are stored by kind, stacked over bodies, degrees of freedom or frames; n bodies, k rows (degrees of
    freedom, those of joints that mimic included), nv degrees of freedom, f frames. SI units.

    Attributes:
        topology: How the bodies hang together; static.
        placements: Pose of the joint's frame in the parent's, (n, 4, 4).
        axes: Axis of each row in the joint's frame, of any length but zero, (k, 3).
        pitches: Advance of each turning row, (k,), m/rad; 0 but for screws.
        inertias: Ten parameters of each body in its own frame, (n, 10); ``lgsim.multibody.inertia`` has their order.
        armature: Inertia of the drive seen at the joint, (nv,), kg m^2 or kg.
        damping: Viscous friction, (nv,), N m s/rad or N s/m.
        friction: Dry friction, (nv,), N m or N.
        stiffness: Spring of a joint that has one number for each degree of freedom, (nv,), N m/rad or N/m.
        rest: Where those springs are slack, (nv,), rad or m.
        lower, upper: Limits of the coordinates, (nv,), infinite where there are none.
        velocity_limit, effort_limit: Limits of |v| and |tau|, (nv,).
        mimic: (k, b) of each joint that mimics, ``q_i = k q_j + b``, (n, 2); (1, 0) for the others.
        frames: Pose of each frame in its body's, (f, 4, 4).
        gravity: Acceleration of free fall in world axes, (3,), m/s^2.
    """

    topology: Topology
    placements: Any
    axes: Any
    pitches: Any
    inertias: Any
    armature: Any
    damping: Any
    friction: Any
    stiffness: Any
    rest: Any
    lower: Any
    upper: Any
    velocity_limit: Any
    effort_limit: Any
    mimic: Any
    frames: Any
    gravity: Any

    @property
    def nq(self) -> int:
        """Length of a configuration q."""
        return self.topology.nq

    @property
    def nv(self) -> int:
        """Degrees of freedom: length of a velocity v and of joint forces tau."""
        return self.topology.nv

    @property
    def dtype(self) -> jnp.dtype:
        """The type of the numbers."""
        return self.inertias.dtype

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints that move a body, in the order of q and v."""
        return self.topology.joint_names

    @property
    def body_names(self) -> tuple[str, ...]:
        """Names of the bodies that move."""
        return self.topology.body_names

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Names of the frames: the bodies' own, then those fixed to bodies or to the world."""
        return self.topology.body_names + self.topology.frame_names

    @cached_property
    def q_slices(self) -> Mapping[str, slice]:
        """The part of q that belongs to a joint, by its name."""
        return {name: self.topology.q_slice(i) for i, name in enumerate(self.joint_names)}

    @cached_property
    def v_slices(self) -> Mapping[str, slice]:
        """The part of v that belongs to a joint, by its name."""
        return {name: self.topology.v_slice(i) for i, name in enumerate(self.joint_names)}

    def replace(self, **numbers: Any) -> Model:
        """The same machine with other numbers, e.g. ``model.replace(gravity=...)``."""
        return replace(self, **numbers)

    def neutral(self) -> Array:
        """The configuration (nq,) in which every joint is at rest."""
        return configuration.neutral(self.topology, self.dtype)

    def random(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        """Configurations (*shape, nq): within the limits where both are finite, else as the joint's ``random`` says."""
        return configuration.random(self.topology, self.lower, self.upper, key, shape)

    def retract(self, q: Array, dv: Array) -> Array:
        """The configuration that the constant velocity ``dv`` (..., nv) reaches from ``q`` (..., nq) in unit time."""
        return configuration.retract(self.topology, q, dv)

    def difference(self, q0: Array, q1: Array) -> Array:
        """The smallest ``dv`` (..., nv) with ``retract(q0, dv) = q1``."""
        return configuration.difference(self.topology, q0, q1)

    def interpolate(self, q0: Array, q1: Array, s: Array | float) -> Array:
        """The configuration at s in [0, 1] on the shortest way: ``retract(q0, s difference(q0, q1))``."""
        return configuration.retract(self.topology, q0, configuration.difference(self.topology, q0, q1) * s)

    def rate(self, q: Array, v: Array) -> Array:
        """``dq/dt`` (..., nq) at velocity v (..., nv)."""
        return configuration.rate(self.topology, q, v)

    def velocity(self, q: Array, dq: Array) -> Array:
        """The velocity (..., nv) of a configuration that moves with ``dq`` (..., nq)."""
        return configuration.velocity(self.topology, q, dq)


_NUMBERS = [name for name in Model.__dataclass_fields__ if name != "topology"]
jax.tree_util.register_dataclass(Model, data_fields=_NUMBERS, meta_fields=["topology"])
