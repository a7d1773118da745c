"""Motions of ``lgsim demo``: a controlled motion within the limits of the robot, and a free swing."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.dynamics import mass_matrix, passive_forces
from lgsim.integrators.method import Number
from lgsim.multibody import Model
from lgsim.simulation import controls, simulate
from lgsim.simulation.limits import limited_joints

FREE = 1.0
"""Duration of the motion for the energy check, s."""
SHARE = 0.35
"""Fraction of half the range of a joint that the motion uses."""
REACH = 0.5
"""Amplitude of joints without limits, rad or m."""
FASTEST = 0.4
"""Fraction of a velocity limit that the motion uses."""
_PEAK = 1.875
"""Ratio of the largest to the mean rate of the quintic that starts and ends at rest."""
STIFFNESS, DAMPING = 100.0, 20.0
"""Gains of the joint errors, 1/s^2 and 1/s."""


class Tour(eqx.Module):
    """Rest-to-rest motion between postures along tangent vectors: the ``target(t)`` of a controller.

    Attributes:
        postures: Start of each segment, (legs, nq).
        ways: Tangent vector of each segment, (legs, nv), rad or m.
        time: Duration of each segment, s.
    """

    model: Model
    postures: Float[Array, "legs nq"]
    ways: Float[Array, "legs nv"]
    time: Number

    def __call__(self, t: Number) -> tuple[Float[Array, " nq"], Float[Array, " nv"], Float[Array, " nv"]]:
        """Configuration, velocity and acceleration at the time t, s."""
        legs = jnp.asarray(t, self.ways.dtype) / self.time
        whole = jnp.clip(jnp.floor(legs), 0, len(self.ways) - 1)
        leg, x = whole.astype(int), jnp.clip(legs - whole, 0, 1)
        s, way = x**3 * (10 - 15 * x + 6 * x**2), self.ways[leg]
        rate, slope = 30 * x**2 * (1 - x) ** 2 / self.time, 60 * x * (1 - 3 * x + 2 * x**2) / self.time**2
        return self.model.retract(self.postures[leg], s * way), rate * way, slope * way


class PassiveFeedforward(controls.ControlLaw):
    """Feedforward of damping and dry friction along a target motion.

    Attributes:
        target: ``target(t)`` returns configuration, velocity and acceleration.
    """

    target: Tour

    def __call__(self, t: Number, q: Array, v: Array, model: Model) -> Array:
        """Joint forces, (nv,), N m or N."""
        target_q, target_v, _ = self.target(t)
        return -passive_forces(model, target_q, target_v)


def tour(model: Model, duration: float) -> tuple[Float[Array, " nq"], controls.ControlLaw]:
    """The first posture, and a controller that moves the robot to two others and back within its limits.

    Joints start in the middle of their range. A robot with a floating base has PD control of its joints, since the base
    has no actuator; others have computed-torque control. Joint forces are clipped at the effort limits.
    """
    lower, upper = (np.asarray(x, float) for x in (model.lower, model.upper))
    limited = limited_joints(model)
    with np.errstate(invalid="ignore"):
        middle = np.where(limited, (lower + upper) / 2, 0.0)
        size = np.where(limited, SHARE * (upper - lower) / 2, REACH)
    middle[~limited], size = 0.0, np.minimum(size, 2 * REACH)
    fastest = np.asarray(model.velocity_limit, float)
    leg = duration / 3
    size = np.where(np.isfinite(fastest) & (fastest > 0), np.minimum(size, FASTEST * fastest * leg / _PEAK), size)
    if model.topology.floats:
        size[:6] = 0.0
    ways = np.where(np.arange(model.nv) % 2, -1.0, 1.0) * size
    home = model.retract(model.neutral(), jnp.asarray(middle, model.dtype))
    # all joints to one side, every second joint back, then the others
    odd = np.arange(model.nv) % 2 == 1
    legs = jnp.asarray(np.stack([ways, -ways * odd, -ways * ~odd]), model.dtype)
    postures = [home]
    for way in legs[:-1]:
        postures.append(model.retract(postures[-1], way))
    target = Tour(model, jnp.stack(postures), legs, leg)
    if model.topology.floats:
        inertia = jnp.asarray(_felt_inertia(model, home), model.dtype)
        return home, controls.PD(target, STIFFNESS * inertia, DAMPING * inertia)
    law = controls.ComputedTorque(target, STIFFNESS, DAMPING) + PassiveFeedforward(target)
    return home, controls.MotorLimits(law)


def _felt_inertia(model: Model, q: Float[Array, " nq"]) -> Float[np.ndarray, " nv"]:
    """Inertia of each degree of freedom while all others move freely, kg m^2 or kg."""
    return 1 / np.diag(np.linalg.inv(np.asarray(mass_matrix(model, q), float)))


def energy_drift(model: Model, q: Float[Array, " nq"]) -> float:
    """Largest energy change of a free motion from rest, as a fraction of its largest kinetic energy."""
    none = jnp.zeros(model.nv, model.dtype)
    free = model.replace(damping=none, friction=none, limit_stiffness=none, limit_damping=none)
    motion = simulate(free, q, duration=FREE, dt=1e-3, save_every=10, step_check=False)
    return float(np.abs(motion.energy - motion.energy[0]).max() / motion.kinetic_energy.max())
