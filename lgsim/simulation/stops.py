"""Stops at the position limits of a machine, as stiff as its own masses ask for."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from lgsim.dynamics.joint_inertia import describe_missing_inertia
from lgsim.dynamics.mass_matrix import mass_matrix
from lgsim.multibody.model import Model, check_model
from lgsim.simulation.limits import limited_joints
from lgsim.support import check

CONTACT_TIME = 0.02
"""Seconds that a joint is beyond its limit when it bounces."""
STEPS = 10
"""Steps of a contact: a method of order 4 then bears inertias down to 1/80 of those at the neutral configuration."""
SPEED = 1.0
"""The speed of impact for which ``RESTITUTION`` holds where the joint has no velocity limit, rad/s or m/s."""
RESTITUTION = 0.5
"""The share of its speed with which a joint that hits a stop at its velocity limit leaves it."""
_LOSS = 1.4327505332713757
"""``a v`` of an impact at the speed v that leaves with ``RESTITUTION v``: ``log((1 + x)/(1 - x/2)) = 1.5 x``."""


def with_stops(model: Model, contact_time: float = CONTACT_TIME) -> Model:
    """The machine with stops that act beyond its position limits, see ``passive_forces``.

    Where a degree of freedom has a limit and no ``limit_stiffness`` yet, a spring and a damper beyond the limit,

        k = m (pi / contact_time)^2,    d = a k,    force = -k e - d |e| e',    a = 1.43275/v,

    with the inertia m that the joint feels at the neutral configuration, all others being free to move,
    ``1/(M^-1)_ii``; of a ball the smallest one about any axis. v is the velocity limit, or 1 rad/s or m/s without one.

    Alone, and hit slowly, a joint is beyond its limit for the contact time; with n stops at once the fastest rate is at
    most ``sqrt(n) pi/contact_time``. A joint that arrives at the speed v passes its limit by at most ``v
    contact_time/pi``, and a force tau presses it ``tau/k`` beyond. At the velocity limit it leaves with half of its
    speed; slower impacts lose less. Where the joint feels another inertia m' than m, because the machine is bent or
    others cannot give way, contact time and depth are ``sqrt(m'/m)`` times those.

    A range of length zero is no limit, a joint that mimics has none of its own, a floating base neither.

    Args:
        contact_time: Time of a bounce, s; at least some ten steps of an explicit method.

    Raises:
        ValueError: the time is not positive, or the mass matrix is singular; the joint is named.

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
    k = _felt_inertia(model) * (np.pi / contact_time) ** 2
    stiffness, damping = np.where(new, k, stiffness), np.where(new, k * _LOSS / speed, damping)
    return model.replace(limit_stiffness=jnp.asarray(stiffness), limit_damping=jnp.asarray(damping))


def resolved_contact_time(dt: float) -> float:
    """The contact time that steps resolve: ``CONTACT_TIME``, s, but at least ``STEPS`` steps of the length dt, s."""
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
