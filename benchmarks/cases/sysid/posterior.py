"""Posteriors by blackjax: ranks of the truth in 200 simulated data sets, and all 91 parameters of a seven-joint arm."""

import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats
from scipy.integrate import solve_ivp

import lgsim
from lgsim.identify import PosteriorDraws, PosteriorProblem, laplace_approximation, log_density
from lgsim.identify.estimators.records import Channel, SensorRecords
from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.estimators.sensors import PositionSensor
from lgsim.identify.estimators.simulation_fit import SimulationFit
from lgsim.identify.posterior import HalfNormalNoise
from lgsim.identify.unknowns.base_parameters import base_parameters
from lgsim.identify.unknowns.body_blocks import Inertias, Masses
from lgsim.identify.unknowns.joint_blocks import JointParameter
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import Plant

try:
    import blackjax
except ImportError:
    blackjax = None

SETS, DRAWS, THIN, BURN_IN, BINS = 200, 99, 6, 60, 10
DT, STEPS = 0.08, 15
MASS, DAMPING, NOISE = 0.3, 0.6, 0.3
"""Deviation of the logarithm of the mass, upper bound of the damping, scale of the half normal noise."""
CHAINS, ARM_DRAWS = 4, 500
SAMPLES, CAD = 300, 0.1
"""Samples of the arm with 10 % noise, and the deviation of its log-Cholesky coordinates: bodies of a drawing."""


def chain(kernel, key, z, draws, thin, burn_in):
    """(draws (draws, size) of one chain, each the last of ``thin`` steps; how many of these steps diverged)."""

    def once(state, keys):
        def step(i, both):
            state, info = kernel.step(keys[i], both[0])
            return state, both[1] + info.is_divergent

        state, diverged = jax.lax.fori_loop(0, len(keys), step, (state, jnp.array(0)))
        return state, (state.position, diverged)

    first, second = jax.random.split(key)
    state, _ = once(kernel.init(z), jax.random.split(first, burn_in))
    _, (z, diverged) = jax.lax.scan(once, state, jax.random.split(second, (draws, thin)))
    return z, jnp.sum(diverged)


def rod(damping):
    """A rod of 1 kg and 1 m on a revolute joint."""
    numbers = {"mass": 1.0, "center": [0, 0, -0.5], "inertia": jnp.eye(3) / 12, "damping": damping}
    return lgsim.ModelBuilder().add_body("rod", "world", lgsim.joints.Revolute(), axis=[0, 1, 0], **numbers).build()


def swing(mass, damping):
    """Angles (STEPS + 1,) of a rod with a bob of (mass - 1) kg spread like itself, by its equation and DOP853."""
    t = DT * np.arange(STEPS + 1)

    def field(t, y):
        return [y[1], (-mass * 9.81 * 0.5 * np.sin(y[0]) - damping * y[1]) / (mass / 3)]

    return solve_ivp(field, (0, t[-1]), [2.0, 0.0], "DOP853", t, rtol=1e-10, atol=1e-12).y[0]


def ranks():
    """Ranks (SETS, quantities) of true parameters and of the log density among draws, for truths from the prior."""
    rng = np.random.default_rng(0)
    x = np.stack([MASS * rng.normal(size=SETS), rng.uniform(0, DAMPING, SETS) - 0.2], axis=1)
    noise = np.abs(NOISE * rng.normal(size=SETS))
    q = np.array([swing(np.exp(m), d + 0.2) for m, d in x])[..., None]
    q = q + noise[:, None, None] * rng.normal(size=q.shape)
    parameters = Parameters(rod(0.2), [Masses(prior_deviation=MASS), JointParameter("damping", upper=DAMPING)])
    states = np.tile([2.0, 0.0], (STEPS + 1, 1))

    def one(x, noise, q, key):
        records = SensorRecords(DT, {"q": Channel(PositionSensor(), q, 1.0)}, states=states)
        density = log_density(
            PosteriorProblem(parameters, records, SimulationFit(known_start=True), HalfNormalNoise(NOISE))
        )
        found = laplace_approximation(density)
        first, second = jax.random.split(key)
        # paths of one length, so that no data set waits for the longest one
        kernel = blackjax.hmc(density, 0.4, found.covariance, num_integration_steps=5)
        z, _ = chain(kernel, first, found.draw(second), DRAWS, THIN, BURN_IN)
        true = density.coordinates(x, deviations=noise[None])
        smaller = jnp.append(z, jax.vmap(density)(z)[:, None], axis=1) < jnp.append(true, density(true))[None]
        return jnp.sum(smaller, axis=0)

    keys = jax.random.split(jax.random.key(0), SETS)
    return np.asarray(jax.jit(jax.vmap(one))(jnp.asarray(x), jnp.asarray(noise), jnp.asarray(q), keys))


def arm():
    """(draws, base parameters, their true values, microseconds of a gradient, seconds of the chains, divergences)."""
    model = lgsim.load_urdf(lgsim.data.arm7())
    rng = np.random.default_rng(1)
    inertias = Inertias(prior_deviation=CAD)
    drives = [JointParameter(name, prior_deviation=0.5) for name in ("damping", "friction", "armature")]
    start = model.replace(damping=0.5, friction=0.5, armature=0.1, friction_speed=0.05)
    parameters = Parameters(start, [inertias, *drives])
    moves = np.concatenate([CAD * rng.normal(size=parameters.sizes[0]), rng.uniform(-0.05, 0.3, 3 * model.nv)])
    truth = parameters.plant_at(jnp.asarray(moves))
    q, v, a = (jnp.asarray(s * rng.normal(size=(SAMPLES, model.nv))) for s in (1.0, 1.0, 3.0))
    clean = eqx.filter_jit(Plant.signals)(truth, q, v, a)
    signals = clean + 0.1 * jnp.std(clean, axis=0) * rng.normal(size=clean.shape)
    density = log_density(PosteriorProblem(parameters, TorqueSamples(q, v, a, signals), noise=HalfNormalNoise(1.0)))
    found = laplace_approximation(density)
    starts = found.draw(jax.random.key(0), (CHAINS,))
    slope = eqx.filter_jit(lambda density, z: jax.value_and_grad(density.__call__)(z))
    jax.block_until_ready(slope(density, starts[0]))
    begin = time.perf_counter()
    for _ in range(200):
        jax.block_until_ready(slope(density, starts[0]))
    micro = 1e6 * (time.perf_counter() - begin) / 200
    run = eqx.filter_jit(
        lambda density, keys, starts: jax.vmap(
            lambda k, z: chain(
                blackjax.nuts(density, 0.2, found.covariance, max_num_doublings=6), k, z, ARM_DRAWS, 1, 200
            )
        )(keys, starts)
    )
    begin = time.perf_counter()
    z, diverged = jax.block_until_ready(run(density, jax.random.split(jax.random.key(1), CHAINS), starts))
    seconds = time.perf_counter() - begin
    base = base_parameters(parameters)
    return PosteriorDraws(density, z), base, base.values(truth), micro, seconds, int(jnp.sum(diverged))


def run(report):
    """In a full run, if blackjax is installed."""
    if report.quick:
        return
    if blackjax is None:
        print("posterior: blackjax is missing; pip install 'lgsim[posterior]'")
        return
    found = ranks()
    rows = []
    for name, column in zip(["mass", "damping", "noise", "log density"], found.T, strict=True):
        counts = np.bincount(column * BINS // (DRAWS + 1), minlength=BINS)
        rows.append([name, " ".join(map(str, counts)), stats.chisquare(counts).pvalue])
    report.table(f"Ranks of the truth, {SETS} simulated motions", ["quantity", "counts", "chi-square p"], rows)
    # four quantities: uniform ranks break it once in 1000 runs
    least = min(row[2] for row in rows)
    report.bound("posterior: least chi-square probability of the ranks", least, at_least=1e-3 / 4)
    draws, base, truth, micro, seconds, diverged = arm()
    values = np.asarray(jax.jit(jax.vmap(lambda z: base.values(draws.density.plant_at(z))))(draws.flat))
    low, high = np.quantile(values, [0.025, 0.975], axis=0)
    inside = 100 * np.mean((np.asarray(truth) > low) & (np.asarray(truth) < high))
    chains = values.reshape(CHAINS, ARM_DRAWS, -1)
    rhat = float(np.max(np.asarray(blackjax.diagnostics.potential_scale_reduction(chains))))
    size = float(np.min(np.asarray(blackjax.diagnostics.effective_sample_size(chains))))
    report.table(
        f"Seven axes, {SAMPLES} samples, {draws.density.size} coordinates, {CHAINS} chains", ["quantity", "value"],
        [["us of a value with gradient", micro], ["s of the chains, with compilation", seconds],
         ["divergent steps", diverged], [f"largest R-hat of {base.rank} base parameters", rhat],
         ["least effective sample size of these", size], ["true ones in their 95 % intervals, %", inside]],
    )  # fmt: skip
    report.bound("posterior of an arm: largest R-hat", rhat, at_most=1.05)
    report.bound("posterior of an arm: true base parameters in 95 % intervals, %", inside, at_least=85)
