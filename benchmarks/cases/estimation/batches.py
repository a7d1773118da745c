"""Batches of filters: lgsim, NumPy, and GTSAM's C++."""

import harness

import time

import jax
import jax.numpy as jnp
import numpy as np

from cases.estimation.flights import EVERY, NOISE, PROCESS, RUNS, STEP, flown
from lgsim import estimate
from lgsim.actions import RightTranslation
from lgsim.lie.extended_pose import SE23, ExtendedPoses

try:
    import gtsam
except ImportError:
    gtsam = None

OURS = np.array([6, 7, 8, 3, 4, 5, 0, 1, 2])
"""The components velocity, position, rotation among those of GTSAM, which has them in the opposite order."""


def batches(report):
    """Microseconds of a step of a run; a reading is there in every tenth step."""
    flights = flown(100 if report.quick else 1000)
    steps = len(flights.ts)
    batch = flights.batch()
    one = {"lgsim, 15 components": batch, "NumPy, 15 components": lambda: flights.by_numpy(0)}
    counts = {"lgsim, 15 components": RUNS, "NumPy, 15 components": 1}
    differences = [_difference(batch(), flights, run) for run in (0, RUNS - 1)]
    report.bound("difference of the estimate from NumPy's, deviations", max(differences), at_most=1e-6)
    if gtsam is None:
        print("note: without GTSAM (pip install gtsam) its rows are left out")
    else:
        ours, theirs, gap = _beside_gtsam(flights)
        one |= {"lgsim, 9 components": ours, "GTSAM, 9 components": theirs}
        counts |= {"lgsim, 9 components": RUNS, "GTSAM, 9 components": 1}
        report.bound("difference of the estimate from GTSAM's, deviations", gap, at_most=0.05)
    seconds = harness.interleave(one, repeats=3 if report.quick else 9, clock=time.process_time)
    each = {name: 1e6 * s / counts[name] / steps for name, s in seconds.items()}
    report.table(f"{RUNS} quadrotors, IMU 200 Hz, poses 20 Hz: a step of a run", ["filter", "µs"], list(each.items()))
    report.figure("batch", each["lgsim, 15 components"], "µs")
    gain = each["NumPy, 15 components"] / each["lgsim, 15 components"]
    report.figure("NumPy / lgsim", gain)
    report.bound("NumPy / lgsim", gain, at_least=20)
    if gtsam is not None:
        gain = each["GTSAM, 9 components"] / each["lgsim, 9 components"]
        report.figure("GTSAM / lgsim", gain)
        report.bound("GTSAM / lgsim", gain, at_least=3)


def _difference(found, flights, run):
    """The largest difference of means and deviations from those of NumPy, in deviations."""
    (pose, bias), factor = jax.tree.map(lambda a: np.asarray(a[run]), found)
    theirs = flights.by_numpy(run)
    deviations = np.sqrt(np.diag(theirs.P))
    error = PROCESS.space.difference(
        ((jnp.asarray(theirs.R), jnp.concatenate([theirs.v, theirs.p])), jnp.asarray(theirs.bias)), (pose, bias)
    )
    spread = np.sqrt(np.sum(factor**2, axis=1)) - deviations
    return float(np.max(np.abs([error, spread]) / deviations))


def _beside_gtsam(flights):
    """Batches of lgsim, one flight by GTSAM, and the largest difference of their estimates of the first flight."""
    R, P0 = np.diag(np.concatenate([NOISE[3:], NOISE[:3]]) ** 2), 0.01 * np.eye(9)
    H = np.eye(6, 9)
    params = gtsam.PreintegrationParams.MakeSharedU(9.81)
    params.setAccelerometerCovariance(np.eye(3) * 0.03**2)
    params.setGyroscopeCovariance(np.eye(3) * 0.01**2)
    params.setIntegrationCovariance(np.eye(3) * 1e-8)
    turns, places = (np.asarray(part[0]) for part in flights.poses)
    poses = [gtsam.Pose3(gtsam.Rot3(turn), place) for turn, place in zip(turns, places, strict=True)]

    def theirs():
        f = gtsam.NavStateImuEKF(gtsam.NavState(), P0, params)
        for i, u in enumerate(flights.inputs[0], start=1):
            f.predict(u[3:], u[:3], STEP)
            if i % EVERY == 0:
                r = f.state().pose().localCoordinates(poses[i // EVERY - 1])
                f.updateWithVector(np.zeros(6), H, r, R, False)
        return f

    alone = gtsam.NavStateImuEKF(gtsam.NavState(), np.zeros((9, 9)), params)
    alone.predict(np.zeros(3), np.zeros(3), STEP)
    Q = alone.covariance()[np.ix_(OURS, OURS)]
    error = RightTranslation(SE23)
    process = estimate.DiscreteProcess(
        error, lambda y, u, dt: PROCESS.step((y, jnp.zeros(6)), u, dt)[0], np.linalg.cholesky(Q)
    )
    pose = estimate.Measurement(lambda y: (y[0], y[1][3:]), NOISE, group=ExtendedPoses(count=1), name="pose")
    start = estimate.Gaussian.from_deviations(SE23.identity(), 0.1, error)
    ours = flights.batch(process, pose, start)
    mean, factor = jax.tree.map(lambda a: a[0], ours())
    end = theirs()
    state = (
        jnp.asarray(end.state().attitude().matrix()),
        jnp.concatenate([end.state().velocity(), end.state().position()]),
    )
    deviations = np.sqrt(np.diag(end.covariance()))[OURS]
    gaps = [error.difference(state, mean), np.sqrt(np.sum(np.asarray(factor) ** 2, axis=1)) - deviations]
    return ours, theirs, float(np.max(np.abs(gaps) / deviations))
