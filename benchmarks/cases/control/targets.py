"""Inverse kinematics of many reachable poses in one vmapped call."""

import jax
import jax.numpy as jnp
import numpy as np

import lgsim
from cases.control.task import POSE, Task
from lgsim.optimize import inverse_kinematics

FRAME = "flange"


def targets(quick: bool = False) -> Task:
    """1000 random poses of the seven-joint arm within its joint limits, from its middle and from random postures."""
    count, guesses = (30, 20) if quick else (1000, 60)
    model = lgsim.load_urdf(lgsim.data.arm7(), dtype=float)
    place = model.frame_names.index(FRAME)
    wanted = lgsim.forward_kinematics(model, model.random(jax.random.key(0), (count,)))[:, place]
    middle = (model.lower + model.upper) / 2
    starts = jnp.concatenate([middle[None], model.random(jax.random.key(1), (guesses - 1,))])

    def errors(found):
        there = lgsim.forward_kinematics(model, found.q)[:, place]
        gaps = np.asarray(lgsim.se3.log(lgsim.se3.inverse(wanted) @ there))
        q, low, high = (np.asarray(x) for x in (found.q, model.lower, model.upper))
        size = np.max(np.abs(gaps), axis=1)
        return {
            "position and attitude of the worst [m, rad]": float(np.max(size)),
            "not reached": float(np.sum(~(size <= POSE))),
            "outside of limits [rad]": float(np.max(np.maximum(low - q, q - high), initial=0.0)),
        }

    def shown(found):
        """One target after the other, five a second."""
        n = len(found.q)
        zero = np.zeros((n, model.nv))
        return lgsim.Trajectory(model, np.arange(n) / 5, np.asarray(found.q), zero, zero)

    return Task(
        f"{count} random poses", None, None, errors, {"not reached": 0.0, "outside of limits [rad]": 0.0},
        other=lambda: inverse_kinematics(model, FRAME, wanted, starts), shown=shown,
    )  # fmt: skip
