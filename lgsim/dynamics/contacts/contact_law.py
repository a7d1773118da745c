"""The law of contacts: forces at points from depths, slips and spins, in the frames of the surfaces."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from lgsim._compile.spatial import Vec
from lgsim.dynamics.contacts.touching_points import ContactState


class PointForces(NamedTuple):
    """Of points (p, m, *batch), in the surface's frame: forces along the normal, the surface and both; the couple."""

    normal: Array
    tangential: Vec
    total: Vec
    couple: Vec | None


def point_forces(t: ContactState) -> PointForces:
    """What the law of ``contact_forces`` gives at points."""
    law, slip = t.law, t.slip
    assert slip is not None
    power = depth_power(t.gap, law["exponent"])
    rate = slip.dot(t.normal)  # of the gap; that of the depth is the opposite
    normal = law["stiffness"] * power * jnp.maximum(1 - law["dissipation"] * rate, 0)
    u = slip - t.normal * rate
    speed = jnp.sqrt(u.dot(u) + law["slip_speed"] * law["slip_speed"])
    friction = law["friction"]
    if "stribeck" in law:
        friction = friction + law["stribeck"] * jnp.exp(-u.dot(u) / (law["stribeck_speed"] * law["stribeck_speed"]))
    tangential = u * -(friction * normal / speed + law["viscous"] * power)
    couple = None
    if t.spin is not None:
        size = normal / jnp.sqrt(t.spin.dot(t.spin) + law["spin_speed"] * law["spin_speed"])
        about = t.spin.dot(t.normal)
        couple = (t.spin * law["rolling"] + t.normal * (about * (law["torsion"] - law["rolling"]))) * -size
    return PointForces(normal, tangential, t.normal * normal + tangential, couple)


def depth_power(gap: Array, exponent: Array) -> Array:
    """``(-gap)_+^exponent``, with derivatives of any order that are zero where there is no depth."""
    deep = gap < 0
    return jnp.where(deep, jnp.where(deep, -gap, 1) ** exponent, 0)
