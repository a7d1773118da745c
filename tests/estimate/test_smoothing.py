"""Smoothing: the most probable motion against a general least-squares solver, and bands that hold the truth."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import least_squares

import lgsim
from lgsim.actions import LeftTranslation, RightTranslation
from lgsim.estimate import (
    EKF,
    UKF,
    FieldProcess,
    Gaussian,
    Inputs,
    Measurement,
    maximum_a_posteriori,
    nees,
    record,
    run,
    smooth,
)  # fmt: skip
from lgsim.estimate.linear_smoother import LinearProblem, parallel, sequential

COUNT, DT, NOISE, DEVIATION, SPREAD = 6, 0.3, 0.4, 0.1, 0.5
SIDES = {"body": RightTranslation(lgsim.SO3), "world": LeftTranslation(lgsim.SO3)}
PROCESS = FieldProcess(SIDES["body"], lambda t, y, u: u, NOISE)
TURNS = Inputs(np.arange(COUNT) * DT, 0.8 * jnp.ones((COUNT, 3)))
DOWN = Measurement(lambda R: R.T @ jnp.array([0.0, 0, -1]), DEVIATION, name="down")


@pytest.fixture(scope="module")
def made():
    return record(
        PROCESS, lgsim.SO3.exp(jnp.array([0.4, -0.3, 0.2])), [(DOWN, np.arange(1, COUNT) * DT)], jax.random.key(2),
        inputs=TURNS, start_time=0.0,
    )  # fmt: skip


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.repeats("body")
def test_the_most_probable_motion_is_the_least_squares_solution(made, side):
    """The same sum of squares, written out for SciPy: start, turns between times, residuals."""
    error = SIDES[side]
    start = Gaussian.from_deviations(lgsim.SO3.identity(), SPREAD, error)
    found = maximum_a_posteriori(PROCESS, start, made.streams, inputs=TURNS, start_time=0.0, iterations=60)
    assert found.converged
    # the noise of a constant turn, in the body's axes, by the integral of its rotations over a step
    transition = PROCESS.transition(SIDES["body"], lgsim.SO3.identity(), TURNS.values[0], DT)
    weight = np.linalg.inv(np.linalg.cholesky(np.asarray(transition.noise @ transition.noise.T)))
    z = np.asarray(made.streams[0].values)
    turn = lgsim.SO3.exp(TURNS.values[0] * DT)

    @jax.jit
    def residuals(x):
        R = jax.vmap(lambda u, base: base @ lgsim.SO3.exp(u))(x.reshape(COUNT, 3), found.means)
        first = lgsim.SO3.log(R[0]) / SPREAD
        between = jax.vmap(lambda a, b: weight @ lgsim.SO3.log((a @ turn).T @ b))(R[:-1], R[1:])
        seen = (z - jax.vmap(DOWN.h)(R[1:])) / DEVIATION
        return jnp.concatenate([first, between.ravel(), seen.ravel()])

    solution = least_squares(residuals, np.zeros(3 * COUNT), jax.jit(jax.jacfwd(residuals)), xtol=1e-14, gtol=1e-12)
    again = maximum_a_posteriori(
        PROCESS, start, made.streams, inputs=TURNS, start_time=0.0, iterations=2, guess=found.means, in_parallel=True
    )
    np.testing.assert_allclose(again.means, found.means, atol=1e-9)
    np.testing.assert_allclose(again.factors, found.factors, atol=1e-9)
    assert float(np.sum(residuals(np.zeros(3 * COUNT)) ** 2)) > 1
    np.testing.assert_allclose(solution.x, 0, atol=1e-8)
    if side == "body":
        J = np.asarray(jax.jacfwd(residuals)(jnp.zeros(3 * COUNT)))
        P = np.linalg.inv(J.T @ J)
        for i in (0, COUNT - 1):
            np.testing.assert_allclose(found.at(i).covariance, P[3 * i : 3 * i + 3, 3 * i : 3 * i + 3], rtol=1e-6)


@pytest.mark.parametrize("method", [EKF(), UKF()], ids=["EKF", "UKF"])
@pytest.mark.repeats("EKF")
def test_smoothed_errors_are_as_large_as_stated(method):
    process = FieldProcess(SIDES["body"], lambda t, y, u: u, 0.05)
    start = Gaussian.from_deviations(lgsim.SO3.identity(), 0.05, SIDES["body"])

    def one(key):
        keys = jax.random.split(key)
        made = record(process, start.sample(keys[0]), [(DOWN, np.arange(1, 12) * 0.2)], keys[1], inputs=TURNS)
        estimate = run(method, process, start, made.streams, inputs=TURNS, start_time=0.0)
        smoothed = smooth(estimate)
        return nees(smoothed, made.states), estimate.deviations, smoothed.deviations

    squares, before, after = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(0), 1000))
    np.testing.assert_allclose(np.mean(squares, axis=0) / 3, 1, atol=5 * np.sqrt(2 / 3000))
    assert (np.asarray(after) <= np.asarray(before) * (1 + 1e-9)).all()
    # about the vertical nothing is seen
    assert np.mean(after[:, 0, :2]) < 0.75 * np.mean(before[:, 0, :2])


def test_a_linear_problem_in_sequence_and_in_parallel():
    """Both against dense least squares, with readings at a third of the times, and their derivatives along a change."""
    k, n, m = 19, 3, 2
    rng = np.random.default_rng(3)
    read = (np.arange(k) % 3 == 1)[:, None, None]
    given = (
        rng.normal(size=n), 0.5 * np.eye(n) + np.tri(n, k=-1).T,
        0.6 * rng.normal(size=(k, n, n)), rng.normal(size=(k, n)),
        rng.normal(size=(k, n, n + 1)), rng.normal(size=(k, m)), rng.normal(size=(k, m, n)) * read,
        np.tile(np.diag([0.1, 0.2]), (k, 1, 1)),
    )  # fmt: skip
    problem = LinearProblem(*map(jnp.asarray, given))
    mean, L, F, c, G, r, H, N = given
    rows, sides = [], []

    def row(places, side, factor):
        whole = np.zeros((len(side), k * n))
        for i, block in places.items():
            whole[:, i * n : (i + 1) * n] = block
        rows.append(np.linalg.solve(factor, whole))
        sides.append(np.linalg.solve(factor, side))

    row({0: np.eye(n)}, mean, L)
    for i in range(k):
        if i:
            row({i: np.eye(n), i - 1: -F[i]}, c[i], np.linalg.cholesky(G[i] @ G[i].T))
        row({i: H[i]}, r[i], N[i])
    J = np.concatenate(rows)
    x = np.linalg.lstsq(J, np.concatenate(sides))[0].reshape(k, n)
    P = np.linalg.inv(J.T @ J).reshape(k, n, k, n)
    change = jax.tree.map(lambda a: 0.1 * jnp.ones_like(a), problem)
    slopes = []
    for solve in (sequential, parallel):
        (means, factors), slope = jax.jit(lambda p, solve=solve: jax.jvp(solve, (p,), (change,)))(problem)
        np.testing.assert_allclose(means, x, atol=1e-11)
        np.testing.assert_allclose(factors @ np.swapaxes(factors, 1, 2), P[np.arange(k), :, np.arange(k)], atol=1e-11)
        slopes.append(slope[0])
    np.testing.assert_allclose(*slopes, atol=1e-11)
    h = 1e-5
    moved = [sequential(jax.tree.map(lambda a, d, s=s: a + s * d, problem, change))[0] for s in (h, -h)]
    np.testing.assert_allclose(slopes[0], (moved[0] - moved[1]) / (2 * h), atol=1e-7)
