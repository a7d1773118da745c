"""Elastic stops at the joint limits of a model, with stiffness and damping from the inertia of each joint."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from lgsim.dynamics.joint_inertia import describe_missing_inertia
from lgsim.dynamics.mass_matrix import mass_matrix
from lgsim.dynamics.passive_forces import SPEED, stop_coefficients
from lgsim.multibody.model import Model, check_model
from lgsim.simulation.limits import limited_joints
from lgsim.support import check

CONTACT_TIME = 0.02
"""Time for which a bouncing joint is beyond its limit, s."""
STEPS = 10
"""Steps per contact: a method of order 4 is then stable for inertias down to 1/80 of those at neutral configuration."""
RESTITUTION = 0.5
"""The fraction of its speed that a joint keeps after an impact at its velocity limit."""


def with_stops(model: Model, contact_time: float = CONTACT_TIME) -> Model:
    """The model with stops that act beyond its joint limits, see ``passive_forces``.

    Each degree of freedom with a limit and no ``limit_stiffness`` gets a spring and a damper beyond the limit,

        k = m (pi / contact_time)^2,    d = a k,    force = -k e - d |e| e',    a = 1.43275/v,

    with the inertia m of the joint at the neutral configuration, all others being free to move, ``1/(M^-1)_ii``; for a
    ball joint the smallest one about any axis. v is the velocity limit, or 1 rad/s or m/s without one.

    A single joint that hits its stop slowly is beyond its limit for the contact time; with n stops at once the fastest
    rate is at most ``sqrt(n) pi/contact_time``. A joint that arrives at the speed v exceeds its limit by at most ``v
    contact_time/pi``, and a force tau deflects the stop by ``tau/k``. At the velocity limit the joint rebounds with
    half of its speed; slower impacts lose less. Where the inertia is m' instead of m, in another configuration or
    because other joints are blocked, contact time and depth are scaled by ``sqrt(m'/m)``.

    A range of length zero is no limit. Mimic joints and a floating base get no stops.

    Args:
        contact_time: Duration of a bounce, s; at least about ten steps of an explicit method.

    Raises:
        ValueError: the time is not positive, or the mass matrix is singular; the message names the joint.

    Source: Hunt and Crossley, Coefficient of restitution interpreted as damping in vibroimpact, Journal of Applied
    Mechanics 42, 1975: ``m e'' = -k e (1 + a e')`` has the integral ``k e^2/2 + m (e'/a - log(1 + a e')/a^2)``.
    """
    check_model(model)
    check.number("contact_time", contact_time)
    if not (np.isfinite(contact_time) and contact_time > 0):
        raise ValueError(f"contact_time: expected a positive number of seconds, got {contact_time}")
    stiffness, damping = (np.array(x, float) for x in (model.limit_stiffness, model.limit_damping))
    new = limited_joints(model) & (stiffness == 0)
    if not new.any():
        return model
    missing = describe_missing_inertia(model, model.neutral())
    if missing:
        raise ValueError(f"model: {missing}")
    speed = np.asarray(model.velocity_limit, float)
    speed = np.where(np.isfinite(speed) & (speed > 0), speed, SPEED)
    k, d = stop_coefficients(_felt_inertia(model), contact_time, speed)
    stiffness, damping = np.where(new, k, stiffness), np.where(new, d, damping)
    return model.replace(limit_stiffness=jnp.asarray(stiffness), limit_damping=jnp.asarray(damping))


def resolved_contact_time(dt: float) -> float:
    """The contact time that steps dt resolve, s: ``CONTACT_TIME``, but at least ``STEPS`` steps."""
    return max(CONTACT_TIME, STEPS * dt)


def _felt_inertia(model: Model) -> Float[np.ndarray, " nv"]:
    """The inertia of each degree of freedom at the neutral configuration, all others free to move, kg m^2 or kg."""
    mobility = np.linalg.inv(np.asarray(mass_matrix(model, model.neutral()), float))
    largest = np.diag(mobility).copy()
    for i, joint in enumerate(model.topology.joints):
        own = model.topology.v_slice(i)
        if joint.stopped and own.stop > own.start:
            largest[own] = np.linalg.eigvalsh(mobility[own, own])[-1]
    return 1 / largest
