"""The contact law: forces at points from depth, slip and spin, in the surface frames."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from lgsim._compile.spatial import Vec
from lgsim.dynamics.contacts.touching_points import ContactState


class PointForces(NamedTuple):
    """Contact forces at points (p, m, *batch) in the surface frame: normal, tangential and total; the couple."""

    normal: Array
    tangential: Vec
    total: Vec
    couple: Vec | None


def point_forces(t: ContactState) -> PointForces:
    """The contact law of ``contact_forces`` at points."""
    law, slip = t.law, t.slip
    assert slip is not None
    power = depth_power(t.gap, law["exponent"])
    rate = slip.dot(t.normal)  # rate of the gap, d' = -rate
    # f_n = stiffness d^exponent (1 + dissipation d')_+
    normal = law["stiffness"] * power * jnp.maximum(1 - law["dissipation"] * rate, 0)
    u = slip - t.normal * rate
    # f_t = -(friction f_n / sqrt(u.u + slip_speed^2) + viscous d^exponent) u
    speed = jnp.sqrt(u.dot(u) + law["slip_speed"] * law["slip_speed"])
    friction = law["friction"]
    if "stribeck" in law:
        friction = friction + law["stribeck"] * jnp.exp(-u.dot(u) / (law["stribeck_speed"] * law["stribeck_speed"]))
    tangential = u * -(friction * normal / speed + law["viscous"] * power)
    couple = None
    if t.spin is not None:
        # n = -f_n (torsion w_n + rolling w_t) / sqrt(w.w + spin_speed^2)
        size = normal / jnp.sqrt(t.spin.dot(t.spin) + law["spin_speed"] * law["spin_speed"])
        about = t.spin.dot(t.normal)
        couple = (t.spin * law["rolling"] + t.normal * (about * (law["torsion"] - law["rolling"]))) * -size
    return PointForces(normal, tangential, t.normal * normal + tangential, couple)


def depth_power(gap: Array, exponent: Array) -> Array:
    """``(-gap)_+^exponent``, with derivatives of any order that are zero where the gap is positive."""
    deep = gap < 0
    return jnp.where(deep, jnp.where(deep, -gap, 1) ** exponent, 0)
