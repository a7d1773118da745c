"""Design of an arm's link lengths by the derivatives of inverse kinematics."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

import lgsim
from cases.control.task import Task, pose
from lgsim.optimize import inverse_kinematics

FIRST = np.array([0.5, 0.4])
ANGLES = np.deg2rad(np.linspace(-60, 60, 7))
STEP = 1e-5


def link_lengths(quick: bool = False) -> Task:
    """Two links that reach seven points with the elbow near a right angle, where the arm is most dexterous.

    The points lie on an arc of 0.6 m about a point next to the base. A design is the two lengths, m; its cost the mean
    of the squared gap of the elbow to a right angle at the solutions of inverse kinematics, and of the squared lengths.
    """
    model = (
        lgsim.ModelBuilder()
        .add_body("upper", "world", lgsim.joints.Revolute(), axis=[0, 1, 0], mass=2.0, inertia=0.02 * np.eye(3))
        .add_body("fore", "upper", lgsim.joints.Revolute(), axis=[0, 1, 0], placement=pose(p=[0, 0, FIRST[0]]),
                  mass=1.0, inertia=0.01 * np.eye(3))
        .add_frame("tip", "fore", pose(p=[0, 0, FIRST[1]]))
        .build()
    )  # fmt: skip
    points = jnp.asarray(np.stack([0.1 + 0.6 * np.sin(ANGLES), 0 * ANGLES, 0.6 * np.cos(ANGLES)], axis=1))

    def cost(lengths):
        found = inverse_kinematics(_with(model, lengths), "tip", points, jnp.array([-0.5, 1.0]))
        return jnp.mean((found.q[:, 1] - jnp.pi / 2) ** 2) + 0.1 * jnp.sum(lengths**2), found

    value_and_slope = jax.jit(jax.value_and_grad(cost, has_aux=True))

    def run():
        optimizer = optax.adam(0.02)
        lengths = jnp.asarray(FIRST)
        memory, values = optimizer.init(lengths), []
        for _ in range(60 if quick else 300):
            (value, found), slope = value_and_slope(lengths)
            with jax.numpy_dtype_promotion("standard"):  # optax mixes integer types
                update, memory = optimizer.update(slope, memory)
            values.append((float(value), np.asarray(lengths), np.asarray(found.q), np.asarray(found.error)))
            lengths = lengths + update
        return values

    def errors(values):
        first = np.asarray(value_and_slope(jnp.asarray(FIRST))[1])
        differences = [_difference(value_and_slope, FIRST, e) for e in np.eye(2)]
        best = min(values, key=lambda row: row[0])
        return {
            "gradient against differences": float(np.max(np.abs(first - differences))),
            "position [m]": float(np.max(best[3])),
            "cost to the first": best[0] / values[0][0],
        }

    def shown(values):
        best = min(values, key=lambda row: row[0])
        final = _with(model, jnp.asarray(best[1]))
        zero = np.zeros((len(points), 2))
        return lgsim.Trajectory(final, np.arange(float(len(points))), best[2], zero, zero)

    bounds = {"gradient against differences": 1e-6, "position [m]": 1e-4, "cost to the first": 0.95}
    return Task("link lengths", None, None, errors, bounds, other=run, shown=shown)


def _with(model: lgsim.Model, lengths) -> lgsim.Model:
    """The arm with other lengths of its two links."""
    placements = model.placements.at[1, 2, 3].set(lengths[0])
    return model.replace(placements=placements, frames=model.frames.at[-1, 2, 3].set(lengths[1]))


def _difference(value_and_slope, lengths, direction) -> float:
    up, down = (float(value_and_slope(jnp.asarray(lengths + s * STEP * direction))[0][0]) for s in (1, -1))
    return (up - down) / (2 * STEP)
