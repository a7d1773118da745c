"""Filters against closed forms, a dense solution, values of others, and their own consistency."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

import lgsim
from lgsim.actions import LeftTranslation, RightTranslation, Translation
from lgsim.estimate import (
    EKF,
    UKF,
    Cubature,
    DiscreteProcess,
    FieldProcess,
    Gaussian,
    Inputs,
    InvariantEKF,
    IteratedEKF,
    Julier,
    LinearProcess,
    Measurement,
    Scaled,
    Stream,
    maximum_a_posteriori,
    nees,
    record,
    run,
    smooth,
    step,
)  # fmt: skip

METHODS = {
    "EKF": EKF(),
    "reset": EKF(reset=True),
    "InvariantEKF": InvariantEKF(error=Translation(2)),
    "IteratedEKF": IteratedEKF(),
    "cubature": UKF(Cubature()),
    "Julier": UKF(Julier(1.0)),
    "scaled": UKF(Scaled()),
}
FIRST = Measurement(lambda y: y[:1], 1.0, name="first")
SE2_BODY = RightTranslation(lgsim.SE2)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_one_step_of_a_linear_problem(method):
    """F = [1 1; 0 1], P = I, Q = .01 [1/4 1/2; 1/2 1], z = 1, R = 1 in rational numbers."""
    F = jnp.array([[1.0, 1], [0, 1]])
    process = DiscreteProcess(Translation(2), lambda y, u, dt: F @ y, jnp.sqrt(0.01) * jnp.array([[0.5], [1]]))
    start = Gaussian.from_deviations(jnp.zeros(2), 1.0, Translation(2))
    after, (nis,) = step(method, process, start, 1.0, [(FIRST, jnp.ones(1))])
    P = np.array([[2.0025, 1.005], [1.005, 1.01]])
    S = P[0, 0] + 1
    np.testing.assert_allclose(after.mean, P[:, 0] / S, rtol=1e-14)
    np.testing.assert_allclose(after.mean, [0.66694421, 0.33472107], atol=1e-8)
    np.testing.assert_allclose(after.covariance, P - np.outer(P[0], P[0]) / S, rtol=1e-13)
    np.testing.assert_allclose(after.covariance[1, 1], 0.67360533, atol=1e-8)
    np.testing.assert_allclose(nis, 1 / S, rtol=1e-14)


A, G, DT, COUNT = np.array([[0, 1], [-1, -0.1]]), np.array([[0], [0.3]]), 0.2, 30
PROCESS = LinearProcess(A, G)
PRIOR = np.array([[0.5, 0.1], [0.1, 0.3]])
ORIGIN = np.array([1.0, 0.0])


@pytest.fixture(scope="module")
def oscillator():
    """Readings, and the mean and covariance of all states given the first m, and their density, by dense algebra."""
    position = Measurement(lambda y: y[:1], 0.1, name="position")
    times = np.arange(1, COUNT) * DT
    made = record(PROCESS, jnp.array([1.2, 0.3]), [(position, times)], jax.random.key(1), start_time=0.0)
    F, noise = expm(A * DT), np.asarray(PROCESS.noise(jnp.zeros(2), None, DT))
    blocks = [[None] * COUNT for _ in range(COUNT)]
    own, mean = PRIOR, [ORIGIN]
    for i in range(COUNT):
        if i:
            own, _ = F @ own @ F.T + noise @ noise.T, mean.append(F @ mean[-1])
        for j in range(i, COUNT):
            blocks[j][i] = np.linalg.matrix_power(F, j - i) @ own
            blocks[i][j] = blocks[j][i].T
    P, H = np.block(blocks), np.zeros((COUNT - 1, 2 * COUNT))
    H[np.arange(COUNT - 1), 2 * np.arange(1, COUNT)] = 1
    mean, z = np.concatenate(mean), np.asarray(made.streams[0].values)[:, 0]

    def given(m):
        S = H[:m] @ P @ H[:m].T + 0.01 * np.eye(m)
        gain, r = P @ H[:m].T @ np.linalg.inv(S), (z - H @ mean)[:m]
        density = -(r @ np.linalg.solve(S, r) + np.linalg.slogdet(2 * np.pi * S)[1]) / 2
        return (mean + gain @ r).reshape(COUNT, 2), P - gain @ H[:m] @ P, density

    return made.streams, given


def start():
    return Gaussian.from_covariance(jnp.asarray(ORIGIN), PRIOR, Translation(2))


@pytest.mark.parametrize("method", [METHODS["EKF"], METHODS["scaled"]], ids=["EKF", "UKF"])
def test_a_record_is_the_dense_solution(oscillator, method):
    streams, given = oscillator
    means, P, density = given(COUNT - 1)
    estimate = run(method, PROCESS, start(), streams, start_time=0.0)
    np.testing.assert_allclose(estimate.last.mean, means[-1], atol=1e-12)
    np.testing.assert_allclose(estimate.last.covariance, P[-2:, -2:], atol=1e-12)
    np.testing.assert_allclose(estimate.loglikelihood, density, rtol=1e-12)
    smoothed = smooth(estimate)
    np.testing.assert_allclose(smoothed.means, means, atol=1e-12)
    for i in (0, COUNT // 2, COUNT - 1):
        np.testing.assert_allclose(smoothed.at(i).covariance, P[2 * i : 2 * i + 2, 2 * i : 2 * i + 2], atol=1e-12)


@pytest.mark.parametrize("steps", [0, 4, COUNT])
@pytest.mark.repeats("4")
def test_a_fixed_lag_is_the_dense_solution_of_what_was_known(oscillator, steps):
    streams, given = oscillator
    found = maximum_a_posteriori(PROCESS, start(), streams, start_time=0.0, lag=(steps + 0.5) * DT, iterations=2)
    assert found.converged
    for i in (0, 1, COUNT // 2, COUNT - 1):
        means, P, _ = given(min(i + steps, COUNT - 1))
        np.testing.assert_allclose(found.means[i], means[i], atol=1e-12)
        np.testing.assert_allclose(found.at(i).covariance, P[2 * i : 2 * i + 2, 2 * i : 2 * i + 2], atol=1e-12)


FORMULA = DiscreteProcess(
    Translation(2), lambda y, u, dt: jnp.asarray(expm(A * DT)) @ y, PROCESS.noise(jnp.zeros(2), None, DT)
)


@pytest.mark.parametrize("process", [PROCESS, FORMULA], ids=["linear", "formula"])
def test_the_slope_of_the_likelihood(oscillator, process):
    """In both modes, against the dense formula's central difference."""
    (stream,), _ = oscillator

    def likelihood(deviation):
        measurement = Measurement(lambda y: y[:1], deviation, name="position")
        return run(EKF(), process, start(), Stream(measurement, stream.ts, stream.values), start_time=0.0).loglikelihood

    h = 1e-4
    central = (likelihood(0.1 + h) - likelihood(0.1 - h)) / (2 * h)
    np.testing.assert_allclose(jax.grad(likelihood)(0.1), central, rtol=1e-5)
    np.testing.assert_allclose(jax.jacfwd(likelihood)(0.1), jax.grad(likelihood)(0.1), rtol=1e-11)


def test_values_of_the_invariant_filter_of_gtsam():
    """Two steps on SE(2); the values are those of its test of the invariant filter, to all printed digits."""

    def turned(y, u, dt):
        c, s = jnp.cos(u[2]), jnp.sin(u[2])
        return lgsim.SE2.compose(y, jnp.array([[c, -s, u[0]], [s, c, u[1]], [0.0, 0, 1]]))

    process = DiscreteProcess(SE2_BODY, turned, jnp.diag(jnp.sqrt(jnp.array([0.05, 0.05, 0.001]))))
    position = Measurement(lambda y: y[:2, 2], 0.1, name="position")
    state = Gaussian.from_covariance(lgsim.SE2.identity(), 0.1 * jnp.eye(3), SE2_BODY)
    found = []
    for u, z in (((1.0, 1, 0.5), (1.0, 0)), ((1.0, 1, 0), (1.0, 1))):
        state, _ = step(InvariantEKF(error=SE2_BODY), process, state, 1.0, [(position, jnp.array(z))], jnp.array(u))
        found.append([jnp.arctan2(state.mean[1, 0], state.mean[0, 0]), *state.mean[:2, 2]])
    expected = [[0.22222222, 0.88536967, 0.05497539], [0.37812189, 1.08206672, 1.01080477]]
    np.testing.assert_allclose(found, expected, atol=6e-9)


def test_the_mean_of_an_angle_that_is_hardly_known():
    """Angle 0 with a deviation of nearly half a turn: the points are symmetric, and so is their mean."""
    action = RightTranslation(lgsim.SO2)
    process = DiscreteProcess(action, lambda y, u, dt: y, jnp.zeros((1, 1)))
    start = Gaussian.from_deviations(lgsim.SO2.identity(), np.pi / 1.999, action)
    for points in (Cubature(), Julier(2.0), Scaled()):
        after, _ = step(UKF(points), process, start, 1.0)
        np.testing.assert_allclose(after.mean, np.eye(2), atol=1e-15)


def test_a_nonlinear_reading_is_iterated_to_the_most_probable_state():
    """``z = x^2``: the minimum of ``(x - 1)^2 / s^2 + (4 - x^2)^2 / r^2`` is a root of its derivative."""
    s, r = 2.0, 0.1
    process = DiscreteProcess(Translation(1), lambda y, u, dt: y, jnp.zeros((1, 1)))
    square = Measurement(lambda y: y**2, r, name="square")
    prior = Gaussian.from_deviations(jnp.ones(1), s, Translation(1))
    after, _ = step(IteratedEKF(iterations=20), process, prior, 1.0, [(square, jnp.array([4.0]))])
    roots = np.roots([2 / r**2, 0, 1 / s**2 - 8 / r**2, -1 / s**2])
    best = min(roots[np.isreal(roots)].real, key=lambda x: (x - 1) ** 2 / s**2 + (4 - x**2) ** 2 / r**2)
    np.testing.assert_allclose(after.mean, [best], rtol=1e-10)


def test_points_of_the_unscented_filter_reproduce_a_square():
    """Julier's points with kappa = 3 - n have the fourth moment: ``x^2`` has variance ``4 m^2 s^2 + 2 s^4``."""
    m, s = 0.7, 0.3
    process = DiscreteProcess(Translation(1), lambda y, u, dt: y**2, jnp.zeros((1, 1)))
    prior = Gaussian.from_deviations(jnp.array([m]), s, Translation(1))
    after, _ = step(UKF(Julier(2.0)), process, prior, 1.0)
    np.testing.assert_allclose(after.mean, [m**2 + s**2], rtol=1e-14)
    np.testing.assert_allclose(after.covariance, [[4 * m**2 * s**2 + 2 * s**4]], rtol=1e-13)


def attitude():
    """A gyroscope turns a body; two streams measure directions of the world at their own times, one with gaps."""
    process = FieldProcess(RightTranslation(lgsim.SO3), lambda t, y, u: u, 0.05)
    inputs = Inputs(np.arange(40) * 0.05, 0.5 * jnp.ones((40, 3)))
    down = Measurement(lambda R: R.T @ jnp.array([0.0, 0, -1]), 0.05, name="down")
    north = Measurement(lambda R: R.T @ jnp.array([1.0, 0, 0]), 0.1, name="north")
    return process, inputs, ((down, np.arange(1, 18) * 0.11), (north, np.arange(1, 5) * 0.4))


def consistency(method, side, key):
    process, inputs, readings = attitude()
    # errors whose squares are small compared with the noise of readings, for which a linear filter is right
    start = Gaussian.from_deviations(lgsim.SO3.identity(), 0.05, side(lgsim.SO3))

    def one(key):
        keys = jax.random.split(key)
        truth = start.sample(keys[0])
        made = record(process, truth, readings, keys[1], inputs=inputs, start_time=0.0)
        estimate = run(method, process, start, made.streams, inputs=inputs, start_time=0.0)
        return nees(estimate, made.states), jnp.stack([jnp.nanmean(nis) for nis in estimate.nis.values()])

    return jax.jit(jax.vmap(one))(jax.random.split(key, 1000))


@pytest.mark.parametrize(
    ("method", "side"),
    [(EKF(), RightTranslation), (EKF(), LeftTranslation), (IteratedEKF(), RightTranslation), (UKF(), RightTranslation)],
    ids=["EKF body", "EKF world", "IteratedEKF", "UKF"],
)  # fmt: skip
@pytest.mark.repeats("EKF body")
def test_errors_and_residuals_are_as_large_as_stated(method, side, key):
    """Over 1000 runs the mean squared, normalized error and residual are within five deviations of one."""
    squares, nis = consistency(method, side, key)
    band = 5 * np.sqrt(2 / (3 * 1000))
    np.testing.assert_allclose(np.mean(squares, axis=0) / 3, 1, atol=band)
    np.testing.assert_allclose(np.mean(nis, axis=0) / 3, 1, atol=5 * np.sqrt(2 / (3 * 17 * 1000)) * 3)


def test_gaps_gates_and_delays():
    """NaN is left out; a reading that is far off is gated, named, and changes nothing; a delay moves times."""
    process, inputs, readings = attitude()
    start = Gaussian.from_deviations(lgsim.SO3.identity(), 0.2, RightTranslation(lgsim.SO3))
    made = record(process, start.mean, readings, jax.random.key(0), inputs=inputs, start_time=0.0)
    down, north = made.streams
    gone = Stream(down.measurement, down.ts, down.values.at[3].set(np.nan))
    fewer = Stream(down.measurement, np.delete(down.ts, 3), jnp.delete(down.values, 3, axis=0))
    with_gap = run(EKF(), process, start, [gone, north], inputs=inputs, start_time=0.0)
    without = run(EKF(), process, start, [fewer, north], inputs=inputs, start_time=0.0)
    np.testing.assert_allclose(with_gap.last.mean, without.last.mean, atol=1e-6)
    assert np.isnan(with_gap.nis["down"]).sum() == len(with_gap.ts) - 16
    wrong = Stream(down.measurement, down.ts, down.values.at[3].set(5.0), gate=0.999)
    gated = run(EKF(), process, start, [wrong, north], inputs=inputs, start_time=0.0)
    assert np.flatnonzero(gated.gated["down"]).tolist() == np.flatnonzero(np.isclose(gated.ts, down.ts[3])).tolist()
    np.testing.assert_array_equal(gated.last.mean, with_gap.last.mean)
    late = Stream(down.measurement, down.ts + 0.03, down.values, delay=0.03)
    shifted = run(EKF(), process, start, [late, north], inputs=inputs, start_time=0.0)
    assert np.allclose(
        shifted.last.mean, run(EKF(), process, start, [down, north], inputs=inputs, start_time=0.0).last.mean
    )


def test_verdicts():
    process, inputs, readings = attitude()
    start = Gaussian.from_deviations(lgsim.SO3.identity(), 0.2, RightTranslation(lgsim.SO3))
    made = record(process, start.sample(jax.random.key(5)), readings, jax.random.key(0), inputs=inputs, start_time=0.0)
    good = run(EKF(), process, start, made.streams, inputs=inputs, start_time=0.0).verdict
    assert good.is_consistent and good.unobserved == () and good.text.startswith("consistent")
    down = made.streams[0]
    alone = run(EKF(), process, start, down, inputs=inputs, start_time=0.0).verdict
    assert alone.is_consistent and len(alone.unobserved) == 0  # it turns about an axis that moves in the body
    small = Stream(Measurement(down.measurement.h, 0.005, name="down"), down.ts, down.values)
    bad = run(EKF(), process, start, [small, made.streams[1]], inputs=inputs, start_time=0.0).verdict
    assert not bad.is_consistent and "deviations are too small" in bad.text
    large = Stream(Measurement(down.measurement.h, 0.5, name="down"), down.ts, down.values)
    bad = run(EKF(), process, start, [large, made.streams[1]], inputs=inputs, start_time=0.0).verdict
    assert not bad.is_consistent and "deviations are too large" in bad.text


def test_directions_that_no_reading_shows():
    """Two positions of which only the sum is measured: their difference is named."""
    process = DiscreteProcess(Translation(2), lambda y, u, dt: y, 0.1 * jnp.eye(2))
    total = Measurement(lambda y: y[:1] + y[1:], 0.1, name="sum")
    start = Gaussian.from_deviations(jnp.zeros(2), 1.0, Translation(2))
    verdict = run(EKF(), process, start, Stream(total, np.arange(1.0, 9), jnp.zeros((8, 1)))).verdict
    assert verdict.unobserved in (("[0] -1 [1]",), ("[1] -1 [0]",))


def test_a_reading_at_the_start_comes_before_the_first_step():
    """``y' = 2 y``, unit variances, readings 1 and 2 at the start and after one step, by hand."""
    process = DiscreteProcess(Translation(1), lambda y, u, dt: 2 * y, jnp.ones((1, 1)))
    prior = Gaussian.from_deviations(jnp.zeros(1), 1.0, Translation(1))
    whole = Measurement(lambda y: y, 1.0, name="whole")
    found = run(EKF(), process, prior, Stream(whole, [0.0, 1.0], jnp.array([[1.0], [2.0]])))
    # mean 1/2, variance 1/2; then 1 and 3, gain 3/4
    np.testing.assert_allclose(found.means[:, 0], [0.5, 1.75], rtol=1e-14)
    np.testing.assert_allclose(found.factors[:, 0, 0] ** 2, [0.5, 0.75], rtol=1e-14)
    made = record(process, jnp.ones(1), [(whole, [0.0, 1.0])], jax.random.key(0))
    assert made.states[0, 0] == 1 and made.states[1, 0] != 2


def test_a_filter_that_diverges_says_so():
    process = DiscreteProcess(Translation(1), lambda y, u, dt: y**3, jnp.ones((1, 1)))
    start = Gaussian.from_deviations(10 * jnp.ones(1), 1.0, Translation(1))
    useless = Measurement(lambda y: 0 * y, 1.0, name="useless")
    verdict = run(EKF(), process, start, Stream(useless, np.arange(12.0), jnp.zeros((12, 1)))).verdict
    assert not verdict.finite and not verdict.is_consistent and verdict.text.startswith("diverged")


def test_a_mean_that_diverges_under_a_finite_covariance():
    """A linear process whose input is infinite: the covariance does not know, the verdict does."""
    process = LinearProcess(np.zeros((1, 1)), np.ones((1, 1)), np.ones((1, 1)))
    start = Gaussian.from_deviations(jnp.zeros(1), 1.0, Translation(1))
    inputs = Inputs(np.arange(3.0), jnp.array([[0.0], [jnp.inf], [0.0]]))
    whole = Measurement(lambda y: y, 1.0, name="whole")
    found = run(EKF(), process, start, Stream(whole, [1.0, 2.0], jnp.zeros((2, 1))), inputs=inputs)
    assert np.isfinite(found.factors).all()
    assert found.verdict.text.startswith("diverged")


def test_single_precision_stays_positive():
    """A reading of 1e-4 after a start of 10, where a covariance by subtraction loses its sign in float32."""
    process = DiscreteProcess(Translation(2), lambda y, u, dt: y, jnp.zeros((2, 1), jnp.float32))
    start = Gaussian.from_deviations(jnp.zeros(2, jnp.float32), 10.0, Translation(2))
    sum_ = Measurement(lambda y: y[:1] + y[1:], jnp.float32(1e-4), name="sum")
    first = Measurement(lambda y: y[:1], jnp.float32(1e-4), name="first")
    for measurement in (sum_, first, sum_):
        start, _ = step(EKF(), process, start, 1.0, [(measurement, jnp.ones(1, jnp.float32))])
    assert start.factor.dtype == jnp.float32
    np.testing.assert_allclose(start.deviations, np.array([1e-4, np.sqrt(1.5) * 1e-4]), rtol=2e-2)


def test_changed_numbers_compile_nothing(lowered):
    """Deviations, densities, steps of time, weights of points and times of a record are operands."""

    def f(t, y, u):
        return -y

    def h(y):
        return y[:1]

    def go(x, kappa):
        process, measurement = FieldProcess(Translation(2), f, x), Measurement(h, x, name="first")
        prior = Gaussian.from_deviations(jnp.zeros(2), x, Translation(2))
        step(UKF(Julier(kappa)), process, prior, x, [(measurement, jnp.ones(1))])
        stream = Stream(measurement, np.arange(5) * x, jnp.ones((5, 1)), gate=0.9 + x / 100)
        smooth(run(UKF(Scaled(0.3 + x)), process, prior, stream))

    go(0.1, 1.0)
    assert lowered
    go(0.1, 1.0)
    lowered.clear()
    go(0.2, 2.5)
    assert lowered == []


@pytest.mark.parametrize("points", [Cubature(), Julier(), Scaled()], ids=["cubature", "Julier", "scaled"])
def test_unscented_points_keep_the_dtype(points):
    process = DiscreteProcess(Translation(3), lambda y, u, dt: jnp.sin(y), 0.1 * jnp.eye(3, dtype=jnp.float32))
    prior = Gaussian.from_deviations(jnp.ones(3, jnp.float32), 0.5, Translation(3))
    reading = Measurement(lambda y: y[:1], jnp.float32(0.1), name="first")
    after, _ = step(UKF(points), process, prior, 1.0, [(reading, jnp.ones(1, jnp.float32))])
    assert after.factor.dtype == after.mean.dtype == jnp.float32
    assert np.isfinite(after.factor).all() and (np.diagonal(after.factor) > 0).all()


def test_a_list_is_an_array_of_readings_and_a_factor_has_any_sign():
    stream = Stream(FIRST, [0, 1, 2], [[0.5], [0.25], [0.125]])
    np.testing.assert_array_equal(stream.values, [[0.5], [0.25], [0.125]])
    np.testing.assert_array_equal(Measurement(lambda y: y, [[1.0, -0.5], [0.0, 1.0]]).noise, [[1, -0.5], [0, 1]])


STREAM = Stream(FIRST, np.arange(3.0), jnp.zeros((3, 1)))
STATE = Gaussian.from_deviations(jnp.zeros(2), 1.0, Translation(2))


@pytest.mark.parametrize(
    ("make", "kind", "says"),
    [
        (lambda: Stream(FIRST, [0.0, 1, 1], jnp.zeros((3, 1))), ValueError, "got 1 after 1 at index 2"),
        (lambda: Stream(FIRST, [0.0, np.nan], jnp.zeros((2, 1))), ValueError, "finite numbers"),
        (lambda: Stream(FIRST, [], jnp.zeros((0, 1))), ValueError, "one or more times"),
        (lambda: Stream(FIRST, [0.0, 1], jnp.zeros((3, 1))), ValueError, "one for each of 2 times"),
        (lambda: Stream(FIRST, [0.0, 1], jnp.full((2, 1), np.nan)), ValueError, "all are NaN"),
        (lambda: Stream(FIRST, [0.0], jnp.zeros((1, 1)), gate=1.5), ValueError, "gate of 'first'"),
        (lambda: Stream(3, [0.0], jnp.zeros((1, 1))), TypeError, "expected a Measurement"),
        (lambda: run(EKF(), PROCESS, STATE, []), ValueError, "at least one"),
        (lambda: run(EKF, PROCESS, STATE, STREAM), TypeError, "method: expected a Filter"),
        (lambda: run(EKF(), PROCESS, STATE, [STREAM, STREAM]), ValueError, "'first' twice"),
        (lambda: run(EKF(), PROCESS, STATE, STREAM, start_time=1.0), ValueError, "from the start at 1 s on"),
        (lambda: run(EKF(), PROCESS, STATE, STREAM, inputs=Inputs([0.5], jnp.zeros((1, 1)))), ValueError, "an input"),
        (lambda: run(EKF(), PROCESS, STATE, Stream(FIRST, [0.0], jnp.zeros((1, 2)))), ValueError, "as h has"),
        (lambda: run(EKF(), PROCESS, Gaussian.from_deviations(jnp.zeros(3), 1.0, Translation(3)), STREAM), ValueError,
         "of 2 components"),
        (lambda: Julier(-1.0), ValueError, "not negative"),
        (lambda: Scaled(0.0), ValueError, "above 0"),
        (lambda: Scaled(1.0, 0.5), ValueError, "at least alpha"),
        (lambda: IteratedEKF(iterations=0), ValueError, "at least 1"),
        (lambda: Measurement(lambda y: y, -1.0, name="first"), ValueError, "noise of 'first': .* got -1.0"),
        (lambda: Measurement(lambda y: y, [1.0, np.nan]), ValueError, "finite numbers that are not negative, got nan"),
        (lambda: Measurement(lambda y: y, [[1.0, -np.inf], [0.0, 1.0]]), ValueError, "got -inf"),
        (lambda: FieldProcess(Translation(2), lambda t, y, u: y, -0.1), ValueError, "noise_density: .* got -0.1"),
        (lambda: lgsim.estimate.ImuNavigation(0.1, 0.1, -1.0), ValueError, "force_walk: expected"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("without_import_hook")
def test_what_is_refused(make, kind, says):
    with pytest.raises(kind, match=says):
        make()
