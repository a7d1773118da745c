"""Systems of discrete mechanics with numbers, and references that know no discrete mechanics."""

import json
from functools import cache
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import lgsim
from lgsim import actions
from tests.integrators import cotangent
from tests.integrators.problems import Problem

DATA = json.loads((Path(__file__).parents[1] / "data" / "variational.json").read_text())
INERTIA = jnp.array([1.0, 2.0, 3.0])


def floats(strings):
    return np.array(strings, float)


def body(g, v, inertia):
    """A free body."""
    return 0.5 * jnp.sum(inertia * v * v)


def top(R, v, numbers):
    """The heavy top of ``cotangent.top``."""
    inertia, weight_moment, up, arm = numbers
    return 0.5 * jnp.sum(inertia * v * v) - weight_moment * (up @ (R @ arm))


FREE_BODY = lgsim.DiscreteMechanics(lgsim.SO3, body)
TOP = lgsim.DiscreteMechanics(lgsim.SO3, top)


@cache
def heavy_top() -> Problem:
    """The asymmetric heavy top with its final state from ``rigid_body.json``."""
    made = cotangent.top()
    return Problem(made.action, TOP, made.initial, made.args, made.t0, made.time, made.final)


def on(group):
    """The action of a cotangent bundle."""
    return actions.LeftTranslation(lgsim.Cotangent(group))


def pendulum(run=None, dtype=None, **more):
    """The double spherical pendulum with the numbers of a run of the references."""
    run = DATA["double_spherical_pendulum"][0] if run is None else run
    numbers = {"masses": floats(run["m"]), "lengths": floats(run["l"]), "gravity": float(run["g"])}
    places = {"positions": floats(run["x0"]).reshape(2, 3), "velocities": floats(run["v0"]).reshape(2, 3)}
    return lgsim.systems.double_spherical_pendulum_constrained(dtype, **{**numbers, **places, **more})


@cache
def pendulum_end(time):
    """Positions and momenta of its double pendulum after a time, by angular velocities on (TS^2)^2."""
    run = DATA["double_spherical_pendulum"][0]
    x, v = (floats(run[name]).reshape(2, 3) for name in ("x0", "v0"))
    q, rates = np.diff(x, axis=0, prepend=0), np.diff(v, axis=0, prepend=0)
    other = lgsim.systems.spherical_pendulum(directions=q, angular_velocities=np.cross(q, rates))
    steps = 1000
    made = lgsim.integrate(
        lgsim.MK8,
        other.action,
        other.field,
        other.initial,
        dt=time / steps,
        steps=steps,
        save_every=steps,
        args=other.args,
    )
    q, omega = np.split(np.asarray(made.ys[-1]), 2, axis=1)
    return np.cumsum(q, axis=0).ravel(), np.cumsum(np.cross(omega, q), axis=0).ravel()


def spring(x, v, args):
    """A mass on a spring of some length in space, without gravity: rotations are a symmetry."""
    return 0.5 * jnp.sum(v * v) - spring_energy(jnp.sum(x * x)[None], args)


def spring_energy(w, args):
    """Of the distance squared."""
    return 50.0 * (jnp.sqrt(w[0]) - 1.0) ** 2 + 3.0 * w[0] ** 2


def distance_squared(x, args):
    return jnp.sum(x * x)[None]


SPRING = lgsim.DiscreteMechanics(lgsim.Euclidean(3), spring)
SPRING_START = (jnp.array([1.1, 0.2, 0.0]), jnp.array([0.3, 1.5, -0.7]))
