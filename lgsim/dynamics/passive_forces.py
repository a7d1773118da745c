"""Passive joint forces: dampers, springs, dry friction and joint limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim._compile.xla import native_with_derivatives
from lgsim.dynamics import validation
from lgsim.multibody import block_diagonal, configuration
from lgsim.multibody.joint import GroupJoint, Joint
from lgsim.multibody.model import DRIVES, Model
from lgsim.multibody.topology import Topology

FRICTION = ("damping", "friction", "friction_speed", "stribeck", "stribeck_speed")
"""The parameters of ``DRIVES`` on which damping and dry friction depend."""
SPEED = 1.0
"""The impact speed for which the restitution of a stop is 1/2 without a velocity limit, rad/s or m/s."""
_LOSS = 1.4327505332713757
"""``a v`` for an impact at the speed v that leaves with v/2: ``log((1 + x)/(1 - x/2)) = 1.5 x``."""


def passive_forces(
    model: Model, q: Float[Array, "*#batch nq"], v: Float[Array, "*#batch nv"]
) -> Float[Array, "*batch nv"]:
    """Passive joint forces from dampers, springs, dry friction and joint limits, to be added to tau.

    Each degree of freedom has the damping and friction
    ``- damping v - (friction + stribeck exp(-(v / stribeck_speed)^2)) tanh(v / friction_speed)``. Let x be the
    coordinate of a joint with one coordinate per degree of freedom, e its distance beyond a limit, and ``dq/dt = E v``.
    Springs and limits then add ``- E^T (stiffness (x - rest) + limit_stiffness e + limit_damping |e| x')``. E is the
    identity except for two joints: the springs of a planar joint act along the parent's axes, and those of a ball joint
    by angles about the axes of its angles. Spherical and free joints have no springs. The limits of a
    spherical joint bound its swing, angle and twist, see ``Model.upper``; a free joint has none.

    Args:
        q: Configuration.
        v: Velocity, rad/s or m/s; for group joints and a floating base in the child's frame.

    Returns:
        Joint forces on the model, N m or N: ``M(q) a + h(q, v) = tau + passive_forces``.

    Raises:
        ValueError: an array has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.

    Source: Andersson, Soderberg, Bjorklund, Friction models for sliding dry, boundary and mixed lubricated contacts,
    Tribology International 40, 2007, for the smooth friction; Bittencourt and Gunnarsson, Static friction in a robot
    joint, J. Dyn. Sys. Meas. Control 134(5), 2012, eq. (3), for its Stribeck part; Hunt and Crossley, Coefficient of
    restitution interpreted as damping in vibroimpact, 1975, for limit damping that grows with depth.
    """
    return validation.call(_passive, model, q=(q, "q"), v=(v, "v"))


def passive_derivatives(model: Model, q: Array, v: Array) -> tuple[Array, Array]:
    """The derivatives (nv, nv) of the passive forces of one state, along the tangent at q and with respect to v."""
    tree = model.topology
    # a free joint has only dampers and friction
    mixed = any(joint.stopped or (joint.nq == joint.nv and isinstance(joint, GroupJoint)) for joint in tree.joints)

    def by_q(x: Array) -> Array:
        return _passive(model, configuration.retract(tree, q, x), v)

    def by_v(x: Array) -> Array:
        return _passive(model, q, v + x)

    return block_diagonal.derivative(tree, by_q, q.dtype, mixed), block_diagonal.derivative(tree, by_v, q.dtype, mixed)


def coordinates(model: Model, q: Array) -> tuple[Array, np.ndarray]:
    """(x, held): the coordinate of each degree of freedom (nv,) if it has one (held is 1), else 0."""
    return _numbers(model.topology, q)


def beyond(model: Model, x: Array) -> Array:
    """Distance of coordinates x (nv,) beyond their limits: positive above, negative below."""
    return _beyond(x, model.lower, model.upper)


def stop_coefficients(inertia: np.ndarray, contact_time: float, speed: ArrayLike = SPEED) -> tuple[Any, Any]:
    """(stiffness k, damping d) of stops ``-k e - d |e| e'`` for a bounce of a time, see ``lgsim.with_stops``."""
    k = inertia * (np.pi / contact_time) ** 2
    return k, k * _LOSS / speed


def stop_energy(model: Model, q: Array) -> Array:
    """``limit_stiffness e^2/2`` of the joints whose limits are not limits of their coordinates."""
    tree = model.topology
    if not any(joint.stopped for joint in tree.joints):
        return jnp.zeros((), q.dtype)
    limits = {"lower": (model.lower, "v"), "upper": (model.upper, "v")}
    return 0.5 * jnp.sum(model.limit_stiffness * configuration.by_joint(tree, _squares, q=(q, "q"), **limits))


def _passive(model: Model, q: Array, v: Array) -> Array:
    return _native(model.topology)(model.drives, q, v)


@cache
def _native(tree: Topology) -> Callable[..., Array]:
    return native_with_derivatives(partial(batch_forces, tree))


def batch_forces(tree: Topology, drives: Array, q: Array, v: Array) -> Array:
    """``passive_forces`` with coordinates first and a batch last; ``drives`` as in the model, (nv, 15, *batch)."""
    drive = {name: drives[:, i] for i, name in enumerate(DRIVES)}
    x, held = _numbers(tree, q)
    speed = configuration.by_joint(tree, _speed, q=(q, "q"), v=(v, "v"))
    e = _beyond(x, drive["lower"], drive["upper"])
    pull = drive["stiffness"] * (x - drive["rest"])
    pull = pull + drive["limit_stiffness"] * e + drive["limit_damping"] * jnp.abs(e) * speed
    pull = jnp.where(held.reshape(-1, *[1] * (q.ndim - 1)), pull, 0)
    back = configuration.by_joint(tree, _turned, q=(q, "q"), pull=(pull, "v"))
    if any(joint.stopped for joint in tree.joints):
        numbers = {name: (drive[name], "v") for name in ("lower", "upper", "limit_stiffness", "limit_damping")}
        back = back + configuration.by_joint(tree, _stopped, q=(q, "q"), v=(v, "v"), **numbers)
    return -(back + friction_forces(drive, v, tree.stribeck))


def friction_forces(drive: Mapping[str, Array], v: Array, stribeck: bool) -> Array:
    """Damping and dry friction against v, N m or N; see ``passive_forces``.

    Args:
        drive: The parameters ``FRICTION`` by name, of shapes that broadcast to v.
        stribeck: False leaves out the Stribeck part.
    """
    dry = drive["friction"]
    if stribeck:
        dry = dry + drive["stribeck"] * jnp.exp(-((v / drive["stribeck_speed"]) ** 2))
    return drive["damping"] * v + dry * jnp.tanh(v / drive["friction_speed"])


def _numbers(tree: Topology, q: Array) -> tuple[Array, np.ndarray]:
    held = np.ones(tree.nv, bool)
    for joint, _, places in configuration.kinds(tree):
        held[places] = joint.nq == joint.nv
    return configuration.by_joint(tree, _number, q=(q, "q")), held


def _number(joint: Joint, q: list[Array]) -> list[Array]:
    return q if joint.nq == joint.nv else [jnp.zeros_like(q[0])] * joint.nv


def _beyond(x: Array, lower: Array, upper: Array) -> Array:
    return jnp.maximum(x - upper, 0) - jnp.maximum(lower - x, 0)


def _speed(joint: Joint, q: list[Array], v: list[Array]) -> list[Array]:
    return joint.rate(q, v) if joint.nq == joint.nv else v


def _turned(joint: Joint, q: list[Array], pull: list[Array]) -> list[Array]:
    return joint.force(q, pull) if joint.nq == joint.nv else pull


def _squares(joint: Joint, q: list[Array], lower: list[Array], upper: list[Array]) -> list[Array]:
    stops = joint.stops(q, lower, upper)
    return [stop.square for stop in stops] if stops else [jnp.zeros_like(x) for x in lower]


def _stopped(
    joint: Joint, q: list[Array], v: list[Array], lower: list[Array], upper: list[Array], stiffness: list[Array],
    damping: list[Array],
) -> list[Array]:  # fmt: skip
    force = [jnp.zeros_like(x) for x in v]
    for stop, k, d in zip(joint.stops(q, lower, upper), stiffness, damping, strict=False):
        rate = sum(n * x for n, x in zip(stop.normal, v, strict=True))
        force = [f + (k + d * rate) * n for f, n in zip(force, stop.slope, strict=True)]
    return force
