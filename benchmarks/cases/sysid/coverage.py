"""Coverage of the 95 % confidence ellipsoid on data that follow the noise model: 100 seeds in one call."""

import jax
import jax.numpy as jnp
import numpy as np

from cases.sysid import panda
from cases.sysid import panda_data as data
from cases.sysid.seeds import over_seeds
from lgsim.identify.estimators.linear_fit import LinearFit
from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.estimators.torque_fit import TorqueFit
from lgsim.identify.unknowns.base_parameters import base_parameters
from lgsim.identify.unknowns.body_blocks import Inertias, StandardParameters
from lgsim.identify.unknowns.parameters import Parameters

SEEDS, NOISE = 100, 0.05


def run(report):
    """In a full run: LinearFit, and TorqueFit with consistent bodies."""
    if report.quick:
        return
    true = data.true_model().replace(friction_speed=0.02)
    q, v, a = panda.stored("bodies")(jnp.arange(1000) * 0.01)
    linear = Parameters(panda.wrong(true), [StandardParameters(), *panda.DRIVES])
    plant = Parameters(true, StandardParameters()).plant
    clean = plant.signals(q, v, a)
    noise = NOISE * jnp.sqrt(jnp.mean(clean**2, axis=0))
    signals = clean[None] + noise[None, None] * jax.random.normal(jax.random.key(0), (SEEDS, *clean.shape))
    samples, base = TorqueSamples(q, v, a, clean), base_parameters(linear)
    tasks = {
        "linear": (LinearFit(base), linear),
        "consistent": (TorqueFit(), Parameters(panda.wrong(true), [Inertias(), *panda.DRIVES])),
    }
    rows = []
    for name, (estimator, parameters) in tasks.items():
        found = over_seeds(estimator, parameters, base, samples, signals, base.values(plant))
        hits = int(np.sum(found.inside))
        rows.append([name, hits, found.again])
        report.bound(f"coverage, {name}: seeds of 100 inside the 95 % ellipsoid", hits, at_least=88)
    report.table(
        f"True base parameters ({base.rank}) inside the 95 % ellipsoid, 100 seeds in one call",
        ["estimator", "seeds inside", "seconds"], rows,
    )  # fmt: skip
