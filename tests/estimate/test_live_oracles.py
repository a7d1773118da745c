"""Filters against GTSAM's filter of an IMU and against filterpy, on the same numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.actions import RightTranslation, Translation
from lgsim.estimate import (
    EKF,
    UKF,
    DiscreteProcess,
    Gaussian,
    ImuNavigation,
    Julier,
    Measurement,
    Scaled,
    Stream,
    run,
    smooth,
    step,
)  # fmt: skip

BODY = RightTranslation(lgsim.SE23)
ORDER = np.array([6, 7, 8, 3, 4, 5, 0, 1, 2])
"""GTSAM's components, rotation, position, velocity, by their place among (velocity, position, rotation)."""
DT = 0.05


def test_a_filter_of_an_imu_is_that_of_gtsam():
    """Its noise is a matrix for a step, which is given to both. Its chart moves rotation, position and velocity one by
    one, so that the correction by a reading is compared, in the chart of each.
    """
    gtsam = pytest.importorskip("gtsam")
    params = gtsam.PreintegrationParams(np.array([0, 0, -9.81]))
    params.setAccelerometerCovariance(np.diag([0.03, 0.04, 0.05]) ** 2)
    params.setGyroscopeCovariance(np.diag([0.01, 0.015, 0.02]) ** 2)
    params.setIntegrationCovariance(1e-6 * np.eye(3))
    theirs = gtsam.NavStateImuEKF(gtsam.NavState(), 0.04 * np.eye(9), params)
    to_ours = np.argsort(ORDER)
    imu = ImuNavigation(0.0, 0.0)
    noise = np.linalg.cholesky(theirs.processNoise()[np.ix_(to_ours, to_ours)] * DT)
    process = DiscreteProcess(BODY, lambda y, u, dt: imu.step((y, jnp.zeros(6)), u, dt)[0], noise)
    position = Measurement(lambda y: y[1][3:], 0.1, name="position")
    before = Gaussian.from_deviations(lgsim.SE23.identity(), 0.2, BODY)
    random = np.random.default_rng(4)
    for _ in range(8):
        u = random.normal(size=6) + np.array([0, 0, 9.81, 0, 0, 0])
        theirs.predict(u[3:], u[:3], DT)
        before = process.propagate(before, jnp.asarray(u), DT)
    state = theirs.state()
    state = gtsam.NavState(state.attitude(), state.position(), state.velocity())  # no reference
    np.testing.assert_allclose(before.mean[0], state.attitude().matrix(), atol=1e-12)
    np.testing.assert_allclose(before.mean[1], np.concatenate([state.velocity(), state.position()]), atol=1e-12)
    np.testing.assert_allclose(before.covariance[np.ix_(ORDER, ORDER)], theirs.covariance(), atol=1e-13)
    z = np.array([0.3, -0.2, 0.1])
    H = np.hstack([np.zeros((3, 3)), state.attitude().matrix(), np.zeros((3, 3))])
    theirs.updateWithVector(state.position(), H, z, 0.01 * np.eye(3), False)
    after = jax.jit(lambda before, z: EKF().update(position, before, None, z).gaussian)(before, jnp.asarray(z))
    correction = state.localCoordinates(theirs.state())
    assert np.abs(correction).max() > 0.1
    np.testing.assert_allclose(BODY.difference(before.mean, after.mean)[ORDER], correction, atol=1e-12)
    np.testing.assert_allclose(after.covariance[np.ix_(ORDER, ORDER)], theirs.covariance(), atol=1e-13)


A = np.array([[1.0, 0.1, 0.005], [-0.02, 1, 0.1], [0.1, 0, 0.9]])
Q, R, PRIOR = np.diag([1e-3, 0.02, 0.3]), np.array([[0.04, 0.01], [0.01, 0.09]]), np.diag([1.0, 2.0, 0.5])
COUNT = 12


def test_a_linear_record_is_that_of_filterpy():
    """Means, covariances, likelihood and the smoother of Rauch, Tung and Striebel."""
    kalman = pytest.importorskip("filterpy.kalman")
    H = np.array([[1.0, 0, 0], [0, 0.5, 1]])
    theirs = kalman.KalmanFilter(3, 2)
    theirs.x, theirs.P, theirs.F, theirs.H, theirs.Q, theirs.R = np.ones(3), PRIOR, A, H, Q, R
    z = np.random.default_rng(5).normal(size=(COUNT, 2))
    density, means, covariances = 0.0, [], []
    for one in z:
        theirs.predict()
        theirs.update(one)
        density += theirs.log_likelihood
        means.append(theirs.x)
        covariances.append(theirs.P)
    smoothed, spread, _, _ = theirs.rts_smoother(np.array(means), np.array(covariances))
    process = DiscreteProcess(Translation(3), lambda y, u, dt: jnp.asarray(A) @ y, np.linalg.cholesky(Q))
    stream = Stream(Measurement(lambda y: jnp.asarray(H) @ y, np.linalg.cholesky(R)), np.arange(1.0, COUNT + 1), z)
    start = Gaussian.from_covariance(jnp.ones(3), PRIOR, Translation(3))
    ours = run(EKF(), process, start, stream, start_time=0.0)
    np.testing.assert_allclose(ours.means[1:], means, atol=1e-12)
    np.testing.assert_allclose(ours.loglikelihood, density, rtol=1e-12)
    ours = smooth(ours)
    np.testing.assert_allclose(ours.means[1:], smoothed, atol=1e-12)
    np.testing.assert_allclose(ours.factors[1:] @ jnp.swapaxes(ours.factors[1:], 1, 2), spread, atol=1e-12)


@pytest.mark.parametrize("rule", ["Julier", "Scaled"])
@pytest.mark.repeats("Scaled")
def test_an_unscented_filter_is_that_of_filterpy(rule):
    """Steps and readings that are not linear, over a few times."""
    kalman = pytest.importorskip("filterpy.kalman")
    root = lambda P: np.linalg.cholesky(P[::-1, ::-1])[::-1, ::-1].T  # noqa: E731  # its rows are the points
    points, theirs = {
        "Julier": (Julier(1.5), lambda: kalman.JulierSigmaPoints(3, 1.5, root)),
        "Scaled": (Scaled(0.6, 2.0), lambda: kalman.MerweScaledSigmaPoints(3, 0.6, 2.0, 0.0, root)),
    }[rule]
    turned = lambda x, xp: xp.stack([x[0] + 0.1 * xp.sin(x[1]), x[1] + 0.1 * x[2] * x[0], 0.9 * x[2] + 0.1 * x[1] ** 2])  # noqa: E731
    seen = lambda x, xp: xp.stack([xp.sqrt(4 + x[0] ** 2 + x[1] ** 2), x[1] * x[2]])  # noqa: E731
    theirs = kalman.UnscentedKalmanFilter(
        3, 2, 1.0, lambda x: seen(x, np), lambda x, dt: turned(x, np), theirs()
    )  # fmt: skip
    theirs.x, theirs.P, theirs.Q, theirs.R = np.ones(3), 0.1 * PRIOR, 0.1 * Q, R
    process = DiscreteProcess(Translation(3), lambda y, u, dt: turned(y, jnp), np.linalg.cholesky(0.1 * Q))
    measurement = Measurement(lambda y: seen(y, jnp), np.linalg.cholesky(R))
    ours = Gaussian.from_covariance(jnp.ones(3), 0.1 * PRIOR, Translation(3))
    advance = jax.jit(lambda state, z: step(UKF(points), process, state, 1.0, [(measurement, z)])[0])
    for z in np.random.default_rng(6).normal(size=(4, 2)) + np.array([2.5, 1]):
        theirs.predict()
        theirs.update(z)
        ours = advance(ours, jnp.asarray(z))
    np.testing.assert_allclose(ours.mean, theirs.x, atol=1e-12)
    np.testing.assert_allclose(ours.covariance, theirs.P, atol=1e-12)
