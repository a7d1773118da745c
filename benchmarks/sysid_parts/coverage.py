"""How often the truth lies inside the 95 % ellipsoid, on data that follow the noise model: 100 seeds in one call."""

import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import chi2

from lgsim.identify.base_parameters import base_parameters
from lgsim.identify.blocks import Inertias, StandardParameters
from lgsim.identify.linear import LinearFit
from lgsim.identify.parameters import Parameters
from lgsim.identify.samples import Samples
from lgsim.identify.torque import TorqueFit
from sysid_parts import panda
from sysid_parts import panda_data as data

SEEDS, NOISE = 100, 0.05


def inside(estimator, parameters, base, samples, signals, truth):
    """(for each seed whether the true base parameters lie inside, seconds of the call after compilation)."""

    @eqx.filter_jit
    def distances(estimator, parameters, samples, signals):
        def one(recorded):
            estimate = estimator.run(parameters, eqx.tree_at(lambda s: s.signals, samples, recorded))
            gap = base.of(parameters.put(estimate.x)) - truth
            return gap @ jnp.linalg.solve(base.covariance(parameters, estimate), gap)

        return eqx.filter_vmap(one)(signals)

    jax.block_until_ready(distances(estimator, parameters, samples, signals))
    start = time.perf_counter()
    found = np.asarray(distances(estimator, parameters, samples, signals))
    return found < chi2.ppf(0.95, base.rank), time.perf_counter() - start


def run(report):
    """LinearFit, and in a full run TorqueFit with consistent bodies."""
    true = data.true_model().replace(friction_speed=0.02)
    q, v, a = panda.stored("bodies")(jnp.arange(1000) * 0.01)
    linear = Parameters(panda.wrong(true), [StandardParameters(), *panda.DRIVES])
    plant = Parameters(true, StandardParameters()).plant
    clean = plant.signals(q, v, a)
    noise = NOISE * jnp.sqrt(jnp.mean(clean**2, axis=0))
    signals = clean[None] + noise[None, None] * jax.random.normal(jax.random.key(0), (SEEDS, *clean.shape))
    samples, base = Samples(q, v, a, clean), base_parameters(linear)
    tasks = {"linear": (LinearFit(base), linear)}
    if not report.quick:
        tasks["consistent"] = (TorqueFit(), Parameters(panda.wrong(true), [Inertias(), *panda.DRIVES]))
    rows = []
    for name, (estimator, parameters) in tasks.items():
        hits, seconds = inside(estimator, parameters, base, samples, signals, base.of(plant))
        rows.append([name, int(np.sum(hits)), seconds])
        report.bound(f"coverage, {name}: seeds of 100 inside the 95 % ellipsoid", int(np.sum(hits)), at_least=88)
    report.table(
        f"True base parameters ({base.rank}) inside the 95 % ellipsoid, 100 seeds in one call",
        ["estimator", "seeds inside", "seconds"], rows,
    )  # fmt: skip
