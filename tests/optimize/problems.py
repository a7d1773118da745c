"""Small problems of optimal control that several tests share."""

import jax.numpy as jnp

import lgsim
from lgsim.actions import Product, RightTranslation, Translation
from lgsim.optimize.dynamics import FieldDynamics
from lgsim.optimize.problem import Problem
from lgsim.optimize.standard_costs import ControlEffort, StateDistance

ATTITUDE = Product(RightTranslation(lgsim.SO3), Translation(3))
INERTIA = (1.0, 2.0, 3.0)
ROTATION = RightTranslation(lgsim.SO3)
PLANE = Translation(2)
CART = Translation(4)


def spacecraft(t, y, torque, args):
    """A rigid body with body torques."""
    _, w = y
    J = jnp.array(INERTIA, w.dtype)
    return jnp.concatenate([w, (torque - jnp.cross(w, J * w)) / J])


def pendulum(t, y, u, args):
    """A rod of 1 m with a motor, hanging at zero."""
    return jnp.stack([y[1], -9.81 * jnp.sin(y[0]) - 0.1 * y[1] + u[0]])


def cart_pole(t, y, u, args):
    """A cart of 1 kg that is pushed, and a pole of 0.3 kg and 0.5 m, hanging at zero."""
    _, angle, speed, rate = y
    s, c = jnp.sin(angle), jnp.cos(angle)
    push = (u[0] + 0.3 * s * (0.5 * rate**2 + 9.81 * c)) / (1.0 + 0.3 * s * s)
    return jnp.stack([speed, rate, push, -(push * c + 9.81 * s) / 0.5])


def rates(t, y, u, inertia):
    """The angular velocity of a body by its angular momentum in body axes."""
    return u / (jnp.array(INERTIA, u.dtype) if inertia is None else inertia)


def turn(horizon=6, weight=1e5):
    """The attitude alone, from rest by 1.9 rad about a skew axis in 3 s."""
    goal = lgsim.so3.exp(jnp.array([0.3, -1.9, 0.5]))
    return Problem(
        FieldDynamics(ROTATION, rates, 3, 3.0 / horizon, lgsim.LieEuler),
        jnp.eye(3),
        horizon=horizon,
        running=ControlEffort(0.1),
        terminal=StateDistance(ROTATION, goal, weight),
    )


def slew(horizon=30, weight=1e5, dtype=float, method=lgsim.MK2):
    """From rest to rest by almost half a turn about a skew axis."""
    goal = (lgsim.so3.exp(jnp.array([0.3, -2.9, 0.5], dtype)), jnp.zeros(3, dtype))
    return Problem(
        FieldDynamics(ATTITUDE, spacecraft, 3, 3.0 / horizon, method),
        (jnp.eye(3, dtype=dtype), jnp.zeros(3, dtype)),
        horizon=horizon,
        running=ControlEffort(0.1),
        terminal=StateDistance(ATTITUDE, goal, weight),
    )


def swing(horizon=60, lower=None, upper=None, dtype=float):
    """The pendulum to its top in 3 s."""
    goal = jnp.array([jnp.pi, 0.0], dtype)
    return Problem(
        FieldDynamics(PLANE, pendulum, 1, 3.0 / horizon),
        jnp.zeros(2, dtype),
        horizon=horizon,
        running=ControlEffort(0.01),
        terminal=StateDistance(PLANE, goal, jnp.array([100.0, 10.0], dtype)),
        lower=lower,
        upper=upper,
    )


def cart_swing(horizon=50):
    """The pole to its top in 2.5 s."""
    goal = jnp.array([0.0, jnp.pi, 0.0, 0.0])
    return Problem(
        FieldDynamics(CART, cart_pole, 1, 0.05),
        jnp.zeros(4),
        horizon=horizon,
        running=ControlEffort(0.01) + StateDistance(CART, goal, 0.01),
        terminal=StateDistance(CART, goal, 1000.0),
        lower=-20.0,
        upper=20.0,
    )
