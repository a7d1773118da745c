"""The log density of a posterior against closed forms, quadrature and other packages' densities."""

import chex
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from lgsim.identify import PosteriorDraws, PosteriorProblem, fit, laplace_approximation, log_density
from lgsim.identify.estimators.linear_fit import LinearFit
from lgsim.identify.estimators.loss import Cauchy, Huber
from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.estimators.torque_fit import TorqueFit
from lgsim.identify.posterior import HalfNormalNoise, InverseGammaNoise, KnownNoise, PhysicalPrior, SerialCorrelation
from lgsim.identify.posterior.interval_chart import IntervalChart
from lgsim.identify.posterior.record_residuals import CompressedTorqueResiduals, TorqueResiduals
from lgsim.identify.unknowns.body_blocks import Inertias, Masses
from lgsim.identify.unknowns.joint_blocks import JointParameter, SignalScale, TorqueOffset
from lgsim.identify.unknowns.parameters import Parameters, TotalMass
from lgsim.identify.unknowns.plant import Plant
from tests.identify import arms

DEVIATION = 0.3


def linear(prior_deviation=0.5, lower=-np.inf):
    """Damping and offset of both joints: what a joint force is linear in, by v and 1."""
    blocks = [
        JointParameter("damping", prior_deviation=prior_deviation, lower=lower),
        TorqueOffset(prior_deviation=prior_deviation),
    ]
    return Parameters(arms.planar(damping=0.1), blocks)


def records(count=20, seed=0, **model):
    plant = Plant(arms.planar(damping=0.25, **model), offset=[0.2, -0.1])
    return arms.samples(plant, count, seed, noise=DEVIATION)


def regression(parameters, samples):
    """(signals less those of the prior plant (n, 2), regressor of each joint (2, n, 2)) of the linear problem."""
    left = np.asarray(samples.signals - arms.signals(parameters.plant, samples.q, samples.v, samples.a))
    v = np.asarray(samples.v)
    return left, np.stack([np.stack([v[:, j], np.ones(len(v))], axis=1) for j in range(2)])


def values_at(density, points):
    return np.asarray(eqx.filter_jit(density)(jnp.asarray(points)))


@eqx.filter_jit
def slope(density, z):
    """The gradient by reverse mode."""
    return jax.grad(density.__call__)(z)


def up_to_a_constant(found, expected, tolerance=1e-9):
    scale = max(1.0, np.max(np.abs(expected - expected[0])))
    np.testing.assert_allclose(found - found[0], expected - expected[0], rtol=0, atol=tolerance * scale)


@pytest.mark.slow
def test_posterior_of_a_linear_problem_is_the_normal_distribution_in_closed_form():
    parameters, samples = linear(), records()
    density = log_density(PosteriorProblem(parameters, samples, TorqueFit(noise=DEVIATION)))
    left, Y = regression(parameters, samples)
    mean, covariance = np.zeros(4), np.zeros((4, 4))
    for j in range(2):
        at = [j, 2 + j]
        C = np.linalg.inv(Y[j].T @ Y[j] / DEVIATION**2 + np.eye(2) / 0.5**2)
        covariance[np.ix_(at, at)], mean[at] = C, C @ Y[j].T @ left[:, j] / DEVIATION**2
    z = np.random.default_rng(0).multivariate_normal(mean, 9 * covariance, 20)
    up_to_a_constant(values_at(density, z), stats.multivariate_normal(mean, covariance).logpdf(z))
    found = laplace_approximation(density)
    # what is left to gain is below 1e-8, by so many deviations
    np.testing.assert_allclose((found.mean - mean) / np.sqrt(np.diag(covariance)), 0, atol=np.sqrt(2e-8))
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-8, atol=1e-12)
    assert found.converged


def test_noise_integrated_out_gives_student_s_distribution():
    parameters, samples = linear(None), records()
    density = log_density(PosteriorProblem(parameters, samples))  # Jeffreys's prior, by default
    left, Y = regression(parameters, samples)
    z = np.random.default_rng(1).normal(size=(20, 4))
    expected = np.zeros(20)
    for j in range(2):
        best, squares, *_ = np.linalg.lstsq(Y[j], left[:, j])
        freedom = 20 - 2
        shape = squares[0] / freedom * np.linalg.inv(Y[j].T @ Y[j])
        expected += stats.multivariate_t(best, shape, df=freedom).logpdf(z[:, [j, 2 + j]])
    up_to_a_constant(values_at(density, z), expected)


@pytest.mark.slow
def test_inverse_gamma_noise_is_the_integral_over_the_variance():
    parameters, samples = linear(), records()
    shape, scale = 2.5, 0.4
    density = log_density(PosteriorProblem(parameters, samples, noise=InverseGammaNoise(shape, scale)))
    left, Y = regression(parameters, samples)
    z = 0.5 * np.random.default_rng(2).normal(size=(6, 4))
    expected = np.sum(stats.norm(0, 0.5).logpdf(z), axis=1)
    for i, point in enumerate(z):
        for j in range(2):
            r = left[:, j] - Y[j] @ point[[j, 2 + j]]

            def integrand(v, r=r):
                return np.exp(np.sum(stats.norm(0, np.sqrt(v)).logpdf(r))) * stats.invgamma(shape, scale=scale).pdf(v)

            expected[i] += np.log(integrate.quad(integrand, 0, np.inf, epsabs=0, epsrel=1e-10, limit=200)[0])
    up_to_a_constant(values_at(density, z), expected, 1e-7)
    deviations = density.noise_deviations(jnp.asarray(z[0]))
    r = left - np.stack([Y[j] @ z[0][[j, 2 + j]] for j in range(2)], axis=1)
    modes = [stats.invgamma(shape + 10, scale=scale + np.sum(r[:, j] ** 2) / 2) for j in range(2)]
    np.testing.assert_allclose(deviations**2, [m.kwds["scale"] / (m.args[0] + 1) for m in modes])
    draws = jax.vmap(lambda k: density.noise_deviations(jnp.asarray(z[0]), k))(jax.random.split(jax.random.key(0), 500))
    for j in range(2):
        # false alarms: 1 in 1000 of random keys, and the key is fixed
        assert stats.kstest(np.asarray(draws[:, j]) ** 2, modes[j].cdf).pvalue > 1e-3


@pytest.mark.repeats("squares", "Cauchy")
@pytest.mark.parametrize("loss", [None, Huber(1.2), Cauchy(2.0)], ids=["squares", "Huber", "Cauchy"])
def test_sampled_noise_has_its_prior_and_its_jacobian(loss):
    parameters, samples = linear(), records()
    estimator = TorqueFit() if loss is None else TorqueFit(loss)
    density = log_density(PosteriorProblem(parameters, samples, estimator, HalfNormalNoise([0.5, 0.7])))
    left, Y = regression(parameters, samples)
    z = 0.4 * np.random.default_rng(3).normal(size=(8, 6)) - np.array([0, 0, 0, 0, 1, 1])
    expected = np.sum(stats.norm(0, 0.5).logpdf(z[:, :4]), axis=1)
    for i, point in enumerate(z):
        for j in range(2):
            s = np.exp(point[4 + j])
            r = (left[:, j] - Y[j] @ point[[j, 2 + j]]) / s
            rho = {
                "SquaredLoss": r**2, "Huber": np.where(np.abs(r) > 1.2, 2.4 * np.abs(r) - 1.44, r**2),
                "Cauchy": 4 * np.log1p(r**2 / 4),
            }[type(estimator.loss).__name__]  # fmt: skip
            expected[i] += np.sum(-np.log(s) - rho / 2)
            expected[i] += stats.halfnorm(scale=[0.5, 0.7][j]).logpdf(s) + point[4 + j]
    up_to_a_constant(values_at(density, z), expected)
    assert density.names[-2:] == ["log noise of shoulder", "log noise of elbow"]
    assert float(density.values(jnp.asarray(z[0]))["noise of elbow"]) == pytest.approx(np.exp(z[0, 5]))


@pytest.mark.repeats("lower", "both")
@pytest.mark.parametrize("bounds", [(-0.2, np.inf), (-np.inf, 0.3), (-0.2, 0.3)], ids=["lower", "upper", "both"])
def test_a_bounded_number_keeps_its_prior(bounds):
    """The integral over z of the density times a function is that over x, which has a flat prior."""
    # too little data to tell a flat prior from one that is not
    samples = eqx.tree_at(lambda s: s.weight, records(4), jnp.tile(jnp.array([[1.0, 0.0]]), (4, 1)))
    block = JointParameter("damping", ["shoulder"], lower=0.5 + bounds[0], upper=0.5 + bounds[1])
    parameters = Parameters(arms.planar(damping=0.5), [block])
    density = log_density(PosteriorProblem(parameters, samples, noise=KnownNoise(0.8)))
    left, Y = regression(parameters, samples)
    z = np.linspace(-30, 12, 20001)[:, None]
    log_p = values_at(density, z)
    weight = np.exp(log_p - np.max(log_p))
    x, _ = jax.vmap(density.chart.point)(jnp.asarray(z))
    mean = np.trapezoid(weight * np.asarray(x)[:, 0], z[:, 0]) / np.trapezoid(weight, z[:, 0])

    def likelihood(x):
        return np.exp(-np.sum((left[:, 0] - Y[0][:, 0] * x) ** 2) / (2 * 0.8**2))

    low, high = max(bounds[0], -20), min(bounds[1], 20)
    total = integrate.quad(likelihood, low, high, points=[-1, 0, 1] if low < -1 or high > 1 else None, epsrel=1e-11)[0]
    first = integrate.quad(lambda x: x * likelihood(x), low, high, epsrel=1e-11, limit=200)[0]
    assert mean == pytest.approx(first / total, rel=1e-6)


@pytest.mark.slow
def test_the_chart_of_bounds_is_one_to_one_with_its_jacobian():
    chart = IntervalChart(jnp.array([-jnp.inf, -1.0, -jnp.inf, -1.0]), jnp.array([jnp.inf, jnp.inf, 2.0, 2.0]))
    for scale in (0.1, 1.0, 5.0):
        z = scale * jax.random.normal(jax.random.key(0), (4,))
        x, log_jacobian = chart.point(z)
        np.testing.assert_allclose(chart.coordinates(x), z, rtol=1e-9, atol=1e-12)
        J = jax.jacfwd(lambda z: chart.point(z)[0])(z)
        np.testing.assert_allclose(log_jacobian, np.log(np.abs(np.linalg.det(J))), rtol=1e-12)
        assert np.all(np.isfinite(jax.hessian(lambda z: chart.point(z)[1])(z)))
    far = jnp.array([0.0, -800.0, 800.0, 800.0])
    assert np.all(np.isfinite(jax.grad(lambda z: chart.point(z)[1])(far)))
    inside = chart.interior(jnp.array([-5.0, -1.0, 2.0, -1.0]), jnp.full(4, 0.1))
    np.testing.assert_allclose(inside, [-5.0, -0.9, 1.9, -0.9])


@pytest.mark.slow
def test_a_physical_prior_of_masses_is_a_density_of_kilograms():
    samples = records(3)
    parameters = Parameters(arms.planar(damping=0.25), [Masses(["fore"])])
    normal = stats.norm(1.0, 0.2)
    prior = PhysicalPrior(lambda m: -(((m[0] - 1.0) / 0.2) ** 2) / 2)
    density = log_density(PosteriorProblem(parameters, samples, noise=KnownNoise(2.0), physical_priors=[prior]))
    bare = log_density(PosteriorProblem(parameters, samples, noise=KnownNoise(2.0)))
    m = np.linspace(0.4, 2.0, 30)
    z = np.log(m / 1.2)[:, None]
    up_to_a_constant(values_at(density, z), values_at(bare, z) + normal.logpdf(m) + np.log(m))


def test_a_physical_prior_of_inertias_has_the_jacobian_of_log_cholesky_coordinates():
    parameters = Parameters(arms.planar(), [Inertias(["upper"], prior_deviation=None), Masses(["fore"])])
    flat = PhysicalPrior(lambda numbers: jnp.zeros(()))
    x = 0.4 * np.random.default_rng(0).normal(size=(5, 11))
    x[0] = 0
    found = jax.jit(jax.vmap(lambda x: flat.log_density(parameters, x)))(jnp.asarray(x))
    # of J = U U^T: the determinants of the Cholesky factorization and of its entries by alpha, d, s, t
    expected = 20 * x[:, 0] + x[:, 1:4] @ np.array([2.0, 3.0, 4.0])
    up_to_a_constant(np.asarray(found), expected, 1e-10)


def test_serial_correlation_is_the_normal_density_of_all_readings_together():
    parameters, samples = linear(), records(12)
    weight = np.ones((12, 2))
    weight[[3, 4], 0] = 0
    weight[0, 1] = 0
    samples = TorqueSamples(samples.q, samples.v, samples.a, samples.signals, weight)
    correlation = SerialCorrelation(starts=(7,))
    density = log_density(PosteriorProblem(parameters, samples, noise=HalfNormalNoise(0.5), correlation=correlation))
    left, Y = regression(parameters, samples)
    z = 0.5 * np.random.default_rng(4).normal(size=(8, 8))
    expected = np.sum(stats.norm(0, 0.5).logpdf(z[:, :4]), axis=1)
    run, t = np.repeat([0, 1], [7, 5]), np.arange(12)
    for i, point in enumerate(z):
        for j in range(2):
            s, a = np.exp(point[4 + j]), np.tanh(point[6 + j] / 2)
            seen = weight[:, j] > 0
            lag = np.abs(t[:, None] - t)
            C = s**2 * np.where(run[:, None] == run, np.sign(a) ** lag * np.abs(a) ** lag, 0)
            r = left[:, j] - Y[j] @ point[[j, 2 + j]]
            expected[i] += stats.multivariate_normal(cov=C[np.ix_(seen, seen)]).logpdf(r[seen])
            expected[i] += stats.halfnorm(scale=0.5).logpdf(s) + point[4 + j]
            expected[i] += np.log((1 - a**2) / 4)  # uniform a in -1 .. 1, da/dc = (1 - a^2) / 2
    up_to_a_constant(values_at(density, z), expected)
    known = SerialCorrelation([0.3, -0.6], starts=(7,))
    same = log_density(PosteriorProblem(parameters, samples, noise=HalfNormalNoise(0.5), correlation=known))
    at = np.concatenate([z[:, :6], np.tile(2 * np.arctanh([[0.3, -0.6]]), (8, 1))], axis=1)
    up_to_a_constant(values_at(same, z[:, :6]), values_at(density, at))


def test_noise_that_is_drawn_has_its_correlation_and_starts_anew_with_a_recording():
    correlation = SerialCorrelation([0.8, -0.5], starts=(50,))
    draws = correlation.draw(jax.random.key(0), jnp.zeros(0), (4000, 60, 2), jnp.float64)
    r = np.asarray(draws)
    bound = 4.5 / np.sqrt(4000)  # of a correlation in 4000 draws: false alarm below 1e-4
    for j, a in enumerate((0.8, -0.5)):
        C = np.corrcoef(r[:, :, j].T)
        assert abs(C[10, 11] - a) < bound and abs(C[10, 13] - a**3) < bound
        assert abs(C[49, 50]) < bound and abs(np.std(r[:, -1, j]) - 1) < bound


@pytest.mark.slow
def test_compressed_records_give_what_the_samples_give():
    model = arms.planar(damping=0.1)
    blocks = [Inertias(["fore"]), Masses(["upper"], prior_deviation=0.5), JointParameter("damping")]
    parameters = Parameters(model, blocks, [TotalMass(3.1, 0.05)])
    samples = records(700, seed=2)
    samples = eqx.tree_at(lambda s: s.weight, samples, jnp.asarray(np.random.default_rng(0).uniform(0, 2, (700, 2))))
    density = log_density(PosteriorProblem(parameters, samples, noise=HalfNormalNoise(1.0)))
    assert isinstance(density.records, CompressedTorqueResiduals)
    plain = TorqueResiduals(parameters, density.records.loss, None, density.records.weights, samples)
    streamed = eqx.tree_at(lambda d: d.records, density, plain, is_leaf=lambda x: x is density.records)
    z = 0.2 * np.random.default_rng(5).normal(size=(4, density.size))
    np.testing.assert_allclose(values_at(density, z), values_at(streamed, z), rtol=1e-10)
    slopes = [slope(d, jnp.asarray(z[0])) for d in (density, streamed)]
    np.testing.assert_allclose(*slopes, rtol=1e-8, atol=1e-6)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_weights_count_readings():
    parameters, samples = linear(), records()
    twice = jax.tree.map(lambda a: jnp.concatenate([a, a]), samples)
    heavy = eqx.tree_at(lambda s: s.weight, samples, 2 * samples.weight)
    z = 0.3 * np.random.default_rng(6).normal(size=(3, 6))
    found = [
        values_at(log_density(PosteriorProblem(parameters, s, noise=HalfNormalNoise(0.5))), z) for s in (twice, heavy)
    ]
    np.testing.assert_allclose(*found, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    "noise",
    [
        pytest.param(KnownNoise(0.3), marks=pytest.mark.exhaustive),
        pytest.param(HalfNormalNoise(0.5), marks=pytest.mark.exhaustive),
        InverseGammaNoise(1.0, 0.1),
    ],
    ids=repr,
)
def test_gradients_are_those_of_finite_differences(noise):
    model = arms.planar(damping=0.1, friction=0.2, friction_speed=0.1)
    blocks = [Inertias(["fore"]), JointParameter("damping", upper=1.0), SignalScale(prior_deviation=0.1),
              JointParameter("stribeck_speed", ["elbow"], lower=0.01)]  # fmt: skip
    parameters = Parameters(Plant(model, stribeck=0.3), blocks)
    problem = PosteriorProblem(parameters, records(40), noise=noise, correlation=SerialCorrelation())
    density = log_density(problem)
    assert type(density.records) is TorqueResiduals  # scales and speeds are not affine
    z = np.asarray(density.start) + 0.1 * np.random.default_rng(7).normal(size=density.size)
    gradient = slope(density, jnp.asarray(z))
    h = 1e-5
    steps = h * np.eye(density.size)
    plus, minus = values_at(density, z + steps), values_at(density, z - steps)
    np.testing.assert_allclose(gradient, (plus - minus) / (2 * h), rtol=1e-6, atol=1e-5)
    forward = eqx.filter_jit(lambda density, z: jax.jacfwd(density.__call__)(z))(density, jnp.asarray(z))
    np.testing.assert_allclose(forward, gradient, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.float32
def test_density_in_its_own_precision(dtype):
    model = arms.planar(dtype, damping=0.1)
    parameters = Parameters(model, [Inertias(["fore"]), JointParameter("damping")])
    samples = arms.samples(Plant(arms.planar(dtype, damping=0.2)), 500, noise=0.05)
    density = log_density(PosteriorProblem(parameters, samples, noise=HalfNormalNoise(0.5)))
    found = laplace_approximation(density)
    assert found.mean.dtype == found.covariance.dtype == density.start.dtype == dtype
    values = eqx.filter_jit(density)(found.draw(jax.random.key(0), (5,)))
    gradient = slope(density, found.mean)
    assert values.dtype == gradient.dtype == dtype and np.all(np.isfinite(values))
    # in deviations: how far rounding moves the mode
    assert float(gradient @ found.covariance @ gradient) < (0.1 if dtype == np.float32 else 1e-7)
    assert np.all(np.asarray(found.log_density - values) > -1) and found.converged


@pytest.mark.slow
def test_chains_and_data_sets_are_batches():
    parameters, samples = linear(), records(30)
    others = jnp.stack([samples.signals, samples.signals + 0.1, -samples.signals])
    estimator, noise = TorqueFit(), HalfNormalNoise(0.5)

    def one(signals, z):
        own = TorqueSamples(samples.q, samples.v, samples.a, signals)
        density = log_density(PosteriorProblem(parameters, own, estimator, noise))
        return density(z), laplace_approximation(density).mean

    z = 0.3 * jax.random.normal(jax.random.key(0), (3, 6))
    both, means = jax.jit(jax.vmap(one))(others, z)
    for i in range(3):
        own = TorqueSamples(samples.q, samples.v, samples.a, others[i])
        density = log_density(PosteriorProblem(parameters, own, estimator, noise))
        assert float(density(z[i])) == pytest.approx(float(both[i]), rel=1e-10)
        np.testing.assert_allclose(laplace_approximation(density).mean, means[i], atol=1e-4)
    assert density(jnp.stack([z, z])).shape == (2, 3)


@pytest.mark.slow
def test_other_numbers_do_not_compile_again():
    parameters = linear()

    @eqx.filter_jit
    @chex.assert_max_traces(n=1)
    def value(density, z):
        return density(z)

    z = jnp.zeros(6)
    for seed, scale in ((0, 0.5), (1, 0.8)):
        problem = PosteriorProblem(parameters, records(20, seed), noise=HalfNormalNoise(scale))
        assert np.isfinite(value(log_density(problem), z))


@pytest.mark.slow
def test_a_fit_is_where_the_search_starts_also_on_a_bound():
    model = arms.planar(damping=0.0)
    samples = arms.samples(Plant(model), 200, noise=0.3)
    found = fit(Parameters(model, [Masses(prior_deviation=1.0), JointParameter("damping")]), samples)
    density = log_density(PosteriorProblem.from_fit(found))
    assert np.all(np.isfinite(density.start))
    near = laplace_approximation(density)
    assert near.converged
    values = density.values(near.mean)
    assert 0 < float(values["damping of elbow, N m s/rad"]) < 0.1
    assert abs(float(values["m of fore, kg"]) - found.values["m of fore, kg"]) < 2 * found.deviations["m of fore, kg"]


@pytest.mark.slow
def test_draws_are_numbers_machines_and_predictions():
    parameters, samples = linear(lower=0.0), records(40)
    density = log_density(PosteriorProblem(parameters, samples, noise=HalfNormalNoise(0.5)))
    found = laplace_approximation(density)
    draws = PosteriorDraws(density, found.draw(jax.random.key(0), (2, 300)))
    assert list(draws.values)[:2] == ["damping of shoulder, N m s/rad", "damping of elbow, N m s/rad"]
    assert list(draws.values)[-1] == "noise of elbow" and draws.values["noise of elbow"].shape == (2, 300)
    np.testing.assert_allclose(draws.models.damping[:, 1], draws.values["damping of elbow, N m s/rad"].reshape(-1))
    machines = draws.models
    swings = jax.jit(jax.vmap(lambda m: Plant(m).signals(samples.q[0], samples.v[0], samples.a[0])))(machines)
    assert swings.shape == (600, 2) and float(jnp.std(swings[:, 0])) > 0
    new = np.asarray(draws.predictive(jax.random.key(1)))
    low, high = np.quantile(new, [0.05, 0.95], axis=0)
    inside = np.sum((low < 0) & (high > 0))
    # 80 readings of which nine in ten lie inside: outside of these counts once in 1000 records
    assert stats.binom(80, 0.9).ppf(0.0005) <= inside <= stats.binom(80, 0.9).ppf(0.9995)
    prior = draws.prior_values(jax.random.key(2), 4000)
    drawn = np.asarray(prior["damping of elbow, N m s/rad"])
    # the prior plant has 0.1 with deviation 0.5, and 0 is the bound
    assert stats.kstest(drawn, stats.truncnorm(-0.2, np.inf, 0.1, 0.5).cdf).pvalue > 1e-3
    text = draws.summary()
    assert "noise of elbow" in text and "95%" in text and len(text.splitlines()) == 7


@pytest.mark.slow
def test_numbers_without_a_proper_prior_have_none_to_draw():
    blocks = [Masses(["fore"]), JointParameter("damping", upper=1.0), TorqueOffset(["elbow"])]
    parameters = Parameters(arms.planar(damping=0.25), blocks)
    prior = PhysicalPrior(lambda m: -m[0])
    density = log_density(PosteriorProblem(parameters, records(), noise=KnownNoise(0.3), physical_priors=[prior]))
    drawn = PosteriorDraws(density, density.start[None]).prior_values(jax.random.key(0), 50)
    assert np.all(np.isnan(drawn["m of fore, kg"])) and np.all(np.isnan(drawn["offset of elbow, N m"]))
    assert 0 <= np.min(drawn["damping of elbow, N m s/rad"]) and np.max(drawn["damping of elbow, N m s/rad"]) <= 1


@pytest.mark.slow
def test_what_does_not_fit_is_named(without_import_hook):
    parameters, samples = linear(), records()
    with pytest.raises(TypeError, match=r"problem: expected a PosteriorProblem, got Parameters"):
        log_density(parameters)
    with pytest.raises(TypeError, match=r"estimator: expected TorqueFit\(\) or SimulationFit\(\), got LinearFit"):
        PosteriorProblem(parameters, samples, LinearFit(None))
    with pytest.raises(TypeError, match="samples: expected TorqueSamples for TorqueFit, got dict"):
        PosteriorProblem(parameters, {})
    with pytest.raises(TypeError, match="noise: expected a model such as KnownNoise"):
        PosteriorProblem(parameters, samples, noise=0.3)
    with pytest.raises(ValueError, match="noise: InverseGammaNoise requires a quadratic loss, got Hub"):
        PosteriorProblem(parameters, samples, TorqueFit(Huber()))
    with pytest.raises(ValueError, match="coefficient: expected numbers between -1 and 1"):
        SerialCorrelation(1.0)
    with pytest.raises(ValueError, match="JointParameter has a prior_deviation; set"):
        PosteriorProblem(parameters, samples, physical_priors=[PhysicalPrior(jnp.sum)])
    with pytest.raises(ValueError, match="expected a block between 0 and 1, got 2"):
        PosteriorProblem(parameters, samples, physical_priors=[PhysicalPrior(jnp.sum, 2)])
    tight = Parameters(arms.planar(damping=0.1), [JointParameter("damping", ["elbow"], lower=0.1, upper=0.1)])
    with pytest.raises(ValueError, match="those of damping of elbow coincide"):
        log_density(PosteriorProblem(tight, samples))
    blind = Parameters(arms.planar(), [Inertias(["fore"], prior_deviation=None)])
    with pytest.raises(ValueError, match=r"neither records nor priors determine combinations of z of .* of fore"):
        laplace_approximation(log_density(PosteriorProblem(blind, samples, noise=KnownNoise(0.3))))
    with pytest.raises(ValueError, match=r"z: expected shape \(..., draws, 4\), got \(4,\)"):
        PosteriorDraws(log_density(PosteriorProblem(parameters, samples)), jnp.zeros(4))
