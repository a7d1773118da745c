"""Parameters from the error of simulation: data by closed-form equations and DOP853, slopes by finite differences."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.identify import RESULTS
from lgsim.identify.estimators.multiple_shooting import linearize, window_jacobian, window_residuals
from lgsim.identify.estimators.records import Channel, SensorRecords
from lgsim.identify.estimators.sensors import FramePoseSensor, ImuSensor, PositionSensor, VelocitySensor
from lgsim.identify.estimators.simulation_fit import SimulationFit
from lgsim.identify.estimators.structured_descent import eliminate, state_sensitivities, substitute
from lgsim.identify.fit import Fit, fit
from lgsim.identify.unknowns.body_blocks import Inertias, Masses
from lgsim.identify.unknowns.joint_blocks import JointParameter
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.sensor_plant import InputDelay, InstrumentedPlant, SensorBias, SensorDelay
from lgsim.simulation.equations_of_motion import state_space
from tests.identify.machines import BODY, body, body_motion, pendulum, pendulum_angles, poses

DT, STEPS, SEEDS = 2.5e-3, 400, 40
NOISE = 1e-3
TRUE = np.array([1.2, 0.05, 0.05])
FIT = SimulationFit(window_steps=80, tolerance=1e-13)


def unknowns(**damping):
    return Parameters(
        pendulum(second=1.9, damping=0.02), [Masses(bodies=("lower",)), JointParameter("damping", **damping)]
    )


def angles(noise=0.0, seed=0, weight=None):
    q = pendulum_angles(STEPS, DT)
    noisy = q + noise * np.random.default_rng(seed).standard_normal(q.shape)
    weight = np.ones(STEPS + 1) if weight is None else weight
    return SensorRecords(DT, {"encoders": Channel(PositionSensor(), noisy, NOISE, weight)})


@pytest.fixture(scope="module")
def many():
    """Estimates from 42 records in one mapped call: 40 seeds of noise, exact angles, and angles with gaps.

    In the gaps, two of three angles, is nonsense.
    """
    weight = (np.arange(STEPS + 1) % 3 == 0).astype(float)
    gaps = angles(weight=weight)
    q = np.where(weight[:, None] > 0, gaps.channels["encoders"].values, 17.0)
    gaps = eqx.tree_at(lambda r: r.channels["encoders"].values, gaps, jnp.asarray(q))
    records = [*(angles(NOISE, seed=s) for s in range(SEEDS)), angles(), gaps]
    stack = jax.tree.map(lambda *a: jnp.stack(a), *records)
    return eqx.filter_jit(eqx.filter_vmap(lambda r: FIT.run(unknowns(), r)))(stack)


def one_of(many, i):
    return jax.tree.map(lambda a: jnp.asarray(np.asarray(a)[i]), many)


@pytest.fixture(scope="module")
def noisy(many):
    return Fit(unknowns(), one_of(many, 0), angles(NOISE), angles(NOISE, seed=SEEDS), FIT)


def values(estimate):
    """Physical numbers of coordinates, in numpy: the mass is a logarithm about its prior."""
    x = np.asarray(estimate.x)
    return np.array([1.9 * np.exp(x[0]), *(0.02 + x[1:])])


@pytest.mark.slow
def test_a_double_pendulum_from_positions_alone(many):
    """Neither torques nor velocities: mass and damping of exact angles to 1e-6."""
    found = one_of(many, SEEDS)
    assert bool(found.result == RESULTS.successful)
    costs, done = np.asarray(found.costs), int(found.iterations)
    assert np.all(np.isfinite(costs[:done])) and np.all(np.isnan(costs[done:]))
    np.testing.assert_allclose(values(found), TRUE, rtol=1e-6, atol=2e-7)


@pytest.mark.slow
def test_noise_is_answered_by_deviations(noisy):
    """Within three deviations of the truth; residuals are as large as the noise, and white."""
    np.testing.assert_allclose(list(noisy.values.values()), values(noisy.estimate), rtol=1e-12)
    off = (np.array(list(noisy.values.values())) - TRUE) / np.array(list(noisy.deviations.values()))
    assert np.all(np.abs(off) < 3) and np.all(np.array(list(noisy.deviations.values())) < 0.02)
    np.testing.assert_allclose(noisy.rmse(), NOISE, rtol=0.15)
    np.testing.assert_allclose(noisy.rmse(noisy.validation), NOISE, rtol=0.15)
    assert 0.6 < noisy.whiteness()[1] < 1.5
    assert noisy.identifiability.rank == 3
    assert "position lower" in noisy.summary() and "held-out" in noisy.summary()


@pytest.mark.slow
def test_deviations_are_those_of_many_records(many):
    """The covariance against the spread over 40 seeds, which agree to the sampling error."""
    x = np.asarray(many.x)[:SEEDS]
    expected = np.sqrt(np.diag(np.asarray(many.covariance)[0]))
    np.testing.assert_allclose(x.std(axis=0, ddof=1), expected, rtol=0.35)


@pytest.mark.slow
def test_gaps_in_the_records_cost_little(many):
    np.testing.assert_allclose(values(one_of(many, SEEDS + 1)), TRUE, rtol=1e-5, atol=1e-6)


@pytest.fixture(scope="module")
def floating():
    """(records of the body's pose, its twist) with the wrenches on it."""
    q, v, F = body_motion(80, 0.01)
    states = np.concatenate([q, v], axis=1)
    channels = {"pose": Channel(FramePoseSensor("body"), poses(q), np.array([1e-3] * 6))}
    return SensorRecords(0.01, channels, wrenches=F[:, None], states=states)


@pytest.mark.exhaustive
def test_all_inertia_of_a_floating_body(floating):
    """Ten numbers on SE(3) from poses and known wrenches alone, data by Newton's and Euler's equations."""
    prior = body(mass=1.5, center=np.zeros(3), inertia=0.1 * np.eye(3))
    estimator = SimulationFit(window_steps=20, tolerance=1e-13)
    found = fit(Parameters(prior, Inertias(prior_deviation=None)), floating, estimator)
    m, c = BODY["mass"], BODY["center"]
    inertia = BODY["inertia"] + m * (c @ c * np.eye(3) - np.outer(c, c))
    true = [m, *(m * c), inertia[0, 0], inertia[0, 1], inertia[1, 1], inertia[0, 2], inertia[1, 2], inertia[2, 2]]
    np.testing.assert_allclose(list(found.values.values()), true, rtol=2e-6, atol=2e-7)


@pytest.mark.exhaustive
def test_slopes_are_those_of_finite_differences(floating):
    """Of pose and IMU with bias and delay, by inertia, instruments and the state at the start, on the group."""
    q, v, F = body_motion(80, 0.01)
    rng = np.random.default_rng(3)
    readings = {
        "pose": floating.channels["pose"],
        "imu": Channel(ImuSensor("body"), rng.normal(size=(81, 6)), np.full(6, 0.1)),
        "twist": Channel(VelocitySensor(), v, 0.01),
    }
    records = SensorRecords(0.01, readings, wrenches=F[:, None], states=np.concatenate([q, v], axis=1))
    plant = InstrumentedPlant(body(), biases={"imu": np.zeros(6)}, delays={"pose": 0.004})
    parameters = Parameters(plant, [Inertias(), SensorBias("imu"), SensorDelay("pose")])
    space = state_space(plant.model)
    x = 0.05 * rng.normal(size=parameters.size)
    z = np.concatenate([x, np.zeros(12)])
    chosen = [*rng.permutation(z.size)[:8].tolist(), parameters.size - 1]
    steps = 1e-6 * np.eye(z.size)[chosen]

    @jax.jit
    def derivatives_and_values(x, zs):
        rounds = SimulationFit(window_steps=20).in_rounds(parameters, records)
        cut, shooting = rounds.windows, rounds.shooting
        window = jax.tree.map(lambda a: a[1], cut)

        def off(z):
            y0 = space.move(z[x.size :], window.start)
            return window_residuals(shooting, parameters.plant_at(z[: x.size]), window, y0)[0]

        return window_jacobian(shooting, window, x, window.start, cut.start[2], 12)[0], jax.lax.map(off, zs)

    J, values = (np.asarray(a) for a in derivatives_and_values(x, np.concatenate([z + steps, z - steps])))
    after, before = np.split(values, 2)
    for i, numeric in zip(chosen, (after - before) / 2e-6, strict=True):
        np.testing.assert_allclose(J[..., i], numeric, atol=2e-6 * max(1, np.max(np.abs(numeric))))


def test_elimination_is_the_solution_of_the_whole_system():
    """Schur complement, gradient, steps and derivatives of states against a dense matrix of numpy."""
    parameters, records = unknowns(), angles(NOISE)

    @jax.jit
    def solved(records):
        rounds = FIT.in_rounds(parameters, records)
        shooting, cut = rounds.shooting._replace(gap_deviations=rounds.gaps[0]), rounds.windows
        at = linearize(shooting, cut, jnp.zeros(3), cut.start)
        schur, gradient, factors = eliminate(at, jnp.zeros_like(at.gs))
        dx = -jnp.linalg.solve(schur, gradient)
        return at, schur, dx, substitute(factors, dx), state_sensitivities(factors)

    at, schur, dx, ds, sensitivities = jax.tree.map(np.asarray, solved(records))
    count, n = at.gs.shape
    H = np.zeros((3 + count * n, 3 + count * n))
    H[:3, :3] = at.xx
    for w in range(count):
        own = slice(3 + w * n, 3 + (w + 1) * n)
        H[:3, own], H[own, :3], H[own, own] = at.xs[w], at.xs[w].T, at.ss[w]
        if w + 1 < count:
            after = slice(3 + (w + 1) * n, 3 + (w + 2) * n)
            H[own, after], H[after, own] = at.near[w], at.near[w].T
    g = np.concatenate([at.gx, np.ravel(at.gs)])
    d = np.linalg.solve(H, -g)
    np.testing.assert_allclose(np.linalg.inv(schur), np.linalg.inv(H)[:3, :3], rtol=1e-6)
    np.testing.assert_allclose(dx, d[:3], rtol=1e-6)
    np.testing.assert_allclose(np.ravel(ds), d[3:], rtol=1e-5, atol=1e-9)
    expected = -np.linalg.solve(H[3:, 3:], H[3:, :3])
    np.testing.assert_allclose(np.reshape(sensitivities, (-1, 3)), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.slow
def test_late_drives_are_found():
    """The delay of held inputs, not a whole number of steps, with damping; the delayed motion is exact for a wheel."""
    dt, steps, delay, inertia, damping = 0.01, 160, 0.033, 0.5, 0.3
    rng = np.random.default_rng(2)
    u = np.repeat(rng.normal(size=steps // 8), 8)
    times = dt * np.arange(steps + 1)
    # v' = (u(t - delay) - damping v) / inertia, piece by piece between all switching times
    knots = np.unique(np.concatenate([times, times[:-1] + delay]))
    knots = knots[knots <= times[-1] + 1e-12]
    angle, speed, q = 0.0, 0.0, [0.0]
    k = damping / inertia
    for a, b in itertools.pairwise(knots):
        place = int(np.floor(((a + b) / 2 - delay) / dt))
        push = u[max(place, 0)] / damping
        decay = np.exp(-k * (b - a))
        angle += push * (b - a) + (speed - push) * (1 - decay) / k
        speed = push + (speed - push) * decay
        if np.min(np.abs(times - b)) < 1e-12:
            q.append(angle)
    wheel = lgsim.ModelBuilder(gravity=[0, 0, 0]).add_body(
        "wheel", "world", lgsim.joints.Revolute(), mass=1.0, inertia=inertia * np.eye(3), damping=0.1
    ).build()  # fmt: skip
    plant = InstrumentedPlant(wheel, input_delay=0.02)
    parameters = Parameters(plant, [JointParameter("damping"), InputDelay(max_delay=0.1)])
    records = SensorRecords(dt, {"q": Channel(PositionSensor(), np.array(q)[:, None], 1e-3)}, signals=u[:, None])
    found = fit(parameters, records, SimulationFit(window_steps=40))
    values = list(found.values.values())
    # a mean over each step in place of a switch inside of it
    np.testing.assert_allclose(values, [damping, delay], rtol=2e-3)


def test_bad_records_are_named():
    """Shapes, numbers that are not finite, and what is missing."""
    q = pendulum_angles(STEPS, DT)
    with pytest.raises(ValueError, match=r"encoders: expected values of shape \(nodes, 2,\), got \(401, 1\)"):
        fit(unknowns(), SensorRecords(DT, {"encoders": Channel(PositionSensor(), q[:, :1], 1.0)}), FIT)
    bad = q.copy()
    bad[5, 1] = np.nan
    with pytest.raises(ValueError, match="encoders: row 5 is not finite and has a weight"):
        fit(unknowns(), SensorRecords(DT, {"encoders": Channel(PositionSensor(), bad, 1.0)}), FIT)
    with pytest.raises(
        ValueError, match="states: expected a guess of the states, since there is no channel of PositionSensor"
    ):
        fit(unknowns(), SensorRecords(DT, {"rates": Channel(VelocitySensor(), q, 1.0)}), FIT)
    with pytest.raises(TypeError, match="samples: expected SensorRecords, got int"):
        fit(unknowns(), 3, FIT)
    with pytest.raises(ValueError, match="deviations above zero"):
        fit(unknowns(), SensorRecords(DT, {"encoders": Channel(PositionSensor(), q, 0.0)}), FIT)
    with pytest.raises(ValueError, match=r"signals: expected shape \(400, 2\)"):
        fit(unknowns(), SensorRecords(DT, {"encoders": Channel(PositionSensor(), q, 1.0)}, signals=q), FIT)
    with pytest.raises(ValueError, match="the plant has no SensorBias of 'gyro'"):
        Parameters(pendulum(), SensorBias("gyro"))


def test_columns_keep_their_labels():
    """Channels are sorted by name, as JAX sorts a dict: the noise of each channel stands at its own label."""
    q = pendulum_angles(STEPS, DT)
    v = np.gradient(q, DT, axis=0)
    draw = np.random.default_rng(0).standard_normal
    channels = {
        "shaft": Channel(PositionSensor(), q + 1e-4 * draw(q.shape), 1e-4),
        "gyro": Channel(VelocitySensor(), v + 0.3 * draw(v.shape), 0.3),
    }
    parameters, records = unknowns(), SensorRecords(DT, channels)
    labels = FIT.columns(parameters, records)
    found = fit(parameters, records, SimulationFit(window_steps=80))
    sizes = dict(zip(labels, found.rmse(), strict=True))
    speeds = VelocitySensor().labels(pendulum())
    assert all((sizes[name] > 0.1) == (name in speeds) for name in labels)
    assert labels[: len(speeds)] == speeds
