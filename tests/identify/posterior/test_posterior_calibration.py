"""Posteriors are calibrated: ranks of the truth in 200 data sets; NUTS against a posterior in closed form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from lgsim.identify import PosteriorProblem, laplace_approximation, log_density
from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.estimators.torque_fit import TorqueFit
from lgsim.identify.posterior import HalfNormalNoise, KnownNoise
from lgsim.identify.unknowns.body_blocks import Masses
from lgsim.identify.unknowns.joint_blocks import JointParameter, TorqueOffset
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import Plant
from tests.identify import arms

blackjax = pytest.importorskip("blackjax", reason="the package blackjax is missing: pip install 'lgsim[posterior]'")

SETS, READINGS, DRAWS, THIN, BURN_IN = 200, 12, 99, 10, 60
BINS = 10
FALSE_ALARM = 1e-3
"""Probability that ranks which are uniform fail, for all quantities and both statistics together."""
MASS, DAMPING, NOISE = 0.3, 0.6, 0.5
"""Deviation of the logarithm of the mass, upper bound of the damping, scale of the half normal noise."""


@pytest.fixture
def samplers_settings():
    """Samplers of other packages promote as JAX does by itself."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def nuts(density, step_size, inverse_mass_matrix, key, z, draws, thin=1, burn_in=0):
    """Draws (draws, size) of one chain of blackjax, each the last of ``thin`` steps."""
    # short trees at most: data sets side by side wait for the longest one
    kernel = blackjax.nuts(density, step_size, inverse_mass_matrix, max_num_doublings=4)

    def once(state, keys):
        state = jax.lax.fori_loop(0, len(keys), lambda i, s: kernel.step(keys[i], s)[0], state)
        return state, state.position

    first, second = jax.random.split(key)
    state, _ = once(kernel.init(z), jax.random.split(first, burn_in))
    return jax.lax.scan(once, state, jax.random.split(second, (draws, thin)))[1]


def unknowns():
    """The mass of one link and the damping of one joint, with proper priors."""
    blocks = [Masses(["fore"], prior_deviation=MASS), JointParameter("damping", ["elbow"], upper=DAMPING)]
    return Parameters(arms.planar(damping=0.25), blocks)


def ranks(jacobian, thin, seed=7):
    """Ranks (SETS, quantities) of the truth among posterior draws, for truths that are drawn from the prior.

    Args:
        jacobian: Whether the density has the Jacobian of its coordinates, as it must.
        thin: Number of steps between draws.
        seed: Seed of the truths, their noise and the chains.
    """
    parameters = unknowns()
    model = parameters.plant.model
    rng = np.random.default_rng(seed)
    log_mass = MASS * rng.normal(size=SETS)
    damping = rng.uniform(0, DAMPING, SETS)
    noise = np.abs(NOISE * rng.normal(size=(SETS, 2)))
    x = jnp.asarray(np.stack([log_mass, damping - 0.25], axis=1))
    states = [arms.states(model, READINGS, seed, speed=0.5) for seed in range(SETS)]
    q, v, a = (jnp.stack(part) for part in zip(*states, strict=True))
    white = jnp.asarray(rng.normal(size=v.shape))
    estimator, prior = TorqueFit(), HalfNormalNoise(NOISE)

    def one(x, noise, q, v, a, white, key):
        signals = parameters.plant_at(x).signals(q, v, a) + noise * white
        density = log_density(PosteriorProblem(parameters, TorqueSamples(q, v, a, signals), estimator, prior))
        found = laplace_approximation(density)
        first, second = jax.random.split(key)
        target = density if jacobian else lambda z: density(z) - density.unknowns(z).log_jacobian
        z = nuts(target, 0.5, found.covariance, first, found.draw(second), DRAWS, thin, BURN_IN)
        true = density.coordinates(x, deviations=noise)

        def quantities(z):
            # the density is a quantity of its own: it sees what numbers one by one do not
            return jnp.append(z, density(z))

        return jnp.sum(jax.vmap(quantities)(z) < quantities(true)[None], axis=0)

    keys = jax.random.split(jax.random.key(seed), SETS)
    return np.asarray(jax.jit(jax.vmap(one))(x, jnp.asarray(noise), q, v, a, white, keys))


def misfits(ranks):
    """By quantity the least probability, of chi-square and Kolmogorov-Smirnov, of ranks that far from uniform."""
    out = []
    for column in ranks.T:
        counts = np.bincount(column * BINS // (DRAWS + 1), minlength=BINS)
        bins = stats.chisquare(counts).pvalue
        # the distribution of ranks has steps, for which the test is a little too kind
        curve = stats.kstest((column + 0.5) / (DRAWS + 1), "uniform").pvalue
        out.append(min(bins, curve))
    return np.array(out)


@pytest.mark.slow
def test_ranks_of_the_truth_are_uniform(samplers_settings):
    found = misfits(ranks(jacobian=True, thin=THIN))
    assert np.all(found > FALSE_ALARM / (2 * len(found))), found


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_calibration_sees_a_density_without_its_jacobian(samplers_settings):
    found = misfits(ranks(jacobian=False, thin=1))
    assert np.min(found) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("package", ["blackjax", pytest.param("numpyro", marks=pytest.mark.exhaustive)])
def test_samplers_find_the_posterior_of_a_linear_problem(package, samplers_settings):
    """Damping and offset of two joints with normal priors: the posterior is normal, in closed form."""
    blocks = [
        JointParameter("damping", prior_deviation=0.5, lower=-np.inf),
        TorqueOffset(prior_deviation=0.5),
    ]
    parameters = Parameters(arms.planar(damping=0.1), blocks)
    samples = arms.samples(Plant(arms.planar(damping=0.25), offset=[0.2, -0.1]), 12, noise=0.6)
    left = np.asarray(samples.signals - arms.signals(parameters.plant, samples.q, samples.v, samples.a))
    density = log_density(PosteriorProblem(parameters, samples, noise=KnownNoise(0.6)))
    found = laplace_approximation(density)
    starts = found.draw(jax.random.key(0), (4,), dispersion=2.0)
    draws = 1000
    if package == "numpyro":
        infer = pytest.importorskip("numpyro.infer", reason="pip install 'lgsim[posterior]'")
        kernel = infer.NUTS(potential_fn=lambda z: -density(z))
        chains = infer.MCMC(
            kernel, num_warmup=300, num_samples=draws, num_chains=4, chain_method="vectorized", progress_bar=False
        )
        chains.run(jax.random.key(1), init_params=starts)
        z = np.asarray(chains.get_samples(group_by_chain=True))
    else:
        run = jax.jit(jax.vmap(lambda key, z: nuts(density, 0.7, found.covariance, key, z, draws, burn_in=50)))
        z = np.asarray(run(jax.random.split(jax.random.key(1), 4), starts))
    for j in range(2):
        Y = np.stack([samples.v[:, j], np.ones(12)], axis=1)
        C = np.linalg.inv(Y.T @ Y / 0.6**2 + np.eye(2) / 0.5**2)
        mean = C @ Y.T @ left[:, j] / 0.6**2
        for own, k in ((j, 0), (2 + j, 1)):
            # chains are independent: Student's t of their means with 3 degrees of freedom, false alarms 1e-3 in all
            off = np.mean(z[:, :, own], axis=1) - mean[k]
            spread = np.mean((z[:, :, own] - mean[k]) ** 2, axis=1) - C[k, k]
            for error in (off, spread):
                assert abs(stats.ttest_1samp(error, 0).statistic) < stats.t.isf(1e-3 / 16, 3)
        assert np.std(z[:, :, j]) == pytest.approx(np.sqrt(C[0, 0]), rel=0.08)
