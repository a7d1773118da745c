"""Flights of quadrotors with an IMU at 200 Hz and poses at 20 Hz, and filters of them by lgsim, NumPy and GTSAM."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from cases.estimation.numpy_filter import Filter
from lgsim import estimate, tiled_vmap
from lgsim.lie.extended_pose import SE23, ExtendedPoses

STEP, EVERY, RUNS = 0.005, 10, 1024
DENSITIES = (0.03, 0.01, 1e-3, 1e-4)
NOISE = np.array([0.05, 0.05, 0.05, 0.02, 0.02, 0.02])
PROCESS = estimate.ImuNavigation(*DENSITIES)
POSE = estimate.Measurement(lambda y: (y[0][0], y[0][1][3:]), NOISE, group=ExtendedPoses(count=1), name="pose")
START = estimate.Gaussian.from_deviations((SE23.identity(), jnp.zeros(6)), [0.1] * 9 + [0.02] * 6, PROCESS.space)


def inputs_at(ts):
    """Readings of the IMU on a turn with a wobble, (k, 6)."""
    turn = np.stack([0.2 * np.sin(3 * ts), 0.2 * np.cos(2 * ts), 0.5 + 0 * ts], axis=1)
    force = np.stack([0.5 * np.cos(ts), 0.5 * np.sin(2 * ts), 9.81 + 0.3 * np.sin(4 * ts)], axis=1)
    return np.concatenate([force, turn], axis=1)


class Flights:
    """Recordings of several flights of some steps.

    Attributes:
        ts: The times of the IMU (k,), s.
        inputs: Its readings (runs, k, 6).
        times: The times of the poses.
        poses: The poses (runs, m, 3, 3) and (runs, m, 3).
    """

    def __init__(self, runs, steps):
        self.ts, self.times = np.arange(steps) * STEP, np.arange(1, steps // EVERY + 1) * EVERY * STEP
        self.inputs = inputs_at(self.ts) + 0.01 * np.random.default_rng(0).normal(size=(runs, 1, 6))

        def one(key, inputs):
            start, rest = jax.random.split(key)
            made = estimate.record(
                PROCESS, START.sample(start), [(POSE, self.times)], rest, inputs=estimate.Inputs(self.ts, inputs)
            )
            return made.streams[0].values

        self.poses = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(0), runs), self.inputs)

    def estimate(self, process, measurement, start, inputs, poses):
        """The filtered record of one flight."""
        stream = estimate.Stream(measurement, self.times, poses)
        return estimate.run(
            estimate.EKF(), process, start, stream, inputs=estimate.Inputs(self.ts, inputs), start_time=0.0
        )

    def batch(self, process=PROCESS, measurement=POSE, start=START):
        """All flights filtered by lgsim: a compiled function without arguments of the last means and factors."""

        def one(inputs, poses):
            found = self.estimate(process, measurement, start, inputs, poses)
            return found.last.mean, found.last.factor

        filtered = jax.jit(tiled_vmap(one, tile=128))
        given = jax.tree.map(jnp.asarray, (self.inputs, self.poses))
        return lambda: filtered(*given)

    def by_numpy(self, run):
        """One flight filtered by NumPy."""
        f = Filter(
            np.eye(3), np.zeros(3), np.zeros(3), np.zeros(6), np.diag(np.asarray(START.deviations) ** 2), DENSITIES,
            np.array([0, 0, -9.81]),
        )  # fmt: skip
        turns, places = (np.asarray(part[run]) for part in self.poses)
        # before the first time of the IMU nothing moves; the reading at a time comes after the step to it
        for i in range(1, len(self.ts) + 1):
            f.predict(self.inputs[run, i - 1], STEP)
            if i % EVERY == 0:
                f.correct(turns[i // EVERY - 1], places[i // EVERY - 1], NOISE)
        return f


@cache
def flown(steps):
    """1024 flights, recorded once."""
    return Flights(RUNS, steps)
