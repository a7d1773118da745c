"""Panda from ten seconds of motion simulated by MuJoCo: only masses, and all ten parameters per link."""

import time

import jax
import numpy as np
from scipy.stats import binom

from cases.sysid import panda
from cases.sysid import panda_data as data
from cases.sysid.seeds import over_seeds
from lgsim.identify.estimators.torque_fit import TorqueFit
from lgsim.identify.fit import fit
from lgsim.identify.unknowns.base_parameters import base_parameters
from lgsim.identify.unknowns.body_blocks import Inertias, Masses
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.multibody.inertia import pseudo_inertia

SEEDS, FEW = 100, 4
"""Of the torques' noise; few in a quick run."""
NORMAL = 0.9973
"""Share of a normal distribution within three standard deviations."""


def masses(report, samples):
    """(a) Only masses unknown."""
    true = data.true_model()
    start = time.perf_counter()
    found = fit(Parameters(panda.wrong(true), Masses()), samples)
    seconds = time.perf_counter() - start
    errors = np.asarray(found.model.inertias[:, 0] / true.inertias[:, 0] - 1)
    deviations = np.sqrt(np.diag(found.estimate.covariance))
    report.table(
        "Panda, only masses unknown, %", ["body", "mass, kg", "error", "reported standard deviation"],
        list(zip(true.body_names, true.inertias[:, 0], 100 * errors, 100 * deviations, strict=True)),
    )  # fmt: skip
    report.bound("masses: mean error, %", 100 * np.mean(np.abs(errors)), at_most=1.2)
    report.figure("mean mass error", 100 * np.mean(np.abs(errors)), "%")
    report.figure("masses, with compilation", seconds, "s")


def bodies(report, raw, samples, held_out, floor):
    """(b) All ten parameters of each link, friction, damping, armature and offsets, for many seeds of the noise.

    With calibrated standard errors, one of 69 parameters is in error by more than three of them in every sixth record.
    The share of all parameters of all seeds within three standard errors is therefore compared with 99.73 %, the value
    of the normal distribution, minus the deficit that occurs once in a thousand times. Their mean square is compared
    with 1: 1.2 would mean standard errors that are 10 % too small.
    """
    true = data.true_model()
    prior = panda.wrong(true).replace(damping=0.5, friction=0.3, armature=0.1)
    parameters = Parameters(prior, [Inertias(), *panda.DRIVES])
    base = base_parameters(parameters)
    truth = base.values(Parameters(true, Masses()).plant)
    signals = data.torques(raw, FEW if report.quick else SEEDS)
    found = over_seeds(TorqueFit(), parameters, base, samples, signals, truth, held_out, twice=not report.quick)
    far, rank = np.abs(found.scores), base.rank
    within = {k: 100 * np.mean(far <= k) for k in (2, 3)}
    worst = np.max(far, axis=1)
    at = np.argsort(-np.max(far, axis=0))[:5]
    ratio = found.rmse / floor
    report.table(
        f"Panda, all unknown: {rank} base parameters of {len(far)} seeds of noise, in reported standard deviations",
        ["quantity", "found", "if calibrated"],
        [["within three standard deviations, %", within[3], 100 * NORMAL], ["within two, %", within[2], 95.45],
         ["mean square", np.mean(far**2), 1.0], ["farthest, median of the seeds", np.median(worst), 2.58],
         ["farthest, worst seed", np.max(worst), "-"],
         ["seeds with all within three, %", 100 * np.mean(worst <= 3), 83.0],
         ["squared distance of all together, mean", np.mean(found.distances), float(rank)],
         ["coverage on MuJoCo data: seeds inside the 95 % ellipsoid, %", 100 * np.mean(found.inside), 95.0]],
    )  # fmt: skip
    report.table(
        "Panda, all unknown: the largest errors of base parameters in any seed, in reported standard deviations",
        ["base parameter", "largest error", "mean over the seeds"],
        [[base.names[i], np.max(far[:, i]), np.mean(found.scores[:, i])] for i in at],
    )  # fmt: skip
    report.table(
        "Panda, all unknown: torques of a held-out motion", ["joint", "RMSE / noise", "worst seed"],
        list(zip(true.joint_names, np.mean(ratio, axis=0), np.max(ratio, axis=0), strict=True)),
    )  # fmt: skip
    least = 100 * binom.ppf(1e-3, far.size, NORMAL) / far.size
    report.bound("bodies: base parameters within three reported deviations, %", within[3], at_least=least)
    report.bound("bodies: mean square of the base parameters' errors in deviations", np.mean(far**2), at_most=1.2)
    report.bound("bodies: held-out RMSE / noise, worst joint and seed", np.max(ratio), at_most=1.1)
    least = least_eigenvalue(parameters, found.path)
    report.bound("bodies: least eigenvalue of a pseudo-inertia at any iterate", least, at_least=0.0)
    report.figure("base parameters within three standard deviations", within[3], "%")
    report.figure("of a mean square of", np.mean(far**2))
    report.figure(f"98 unknowns from 10 s, {len(far)} seeds, with compilation", found.first, "s")
    if not report.quick:
        report.figure("again", found.again, "s")
        alone = base_parameters(Parameters(prior, Inertias()))
        report.bound("bodies: rank of the inertias, at most", alone.rank, at_most=43)
        report.bound("bodies: rank of the inertias, at least", alone.rank, at_least=43)


def least_eigenvalue(parameters, path):
    """Smallest eigenvalue of all bodies' pseudo-inertias at all iterates (seeds, iterations, p)."""

    @jax.jit
    def all_bodies(parameters, rows):
        return jax.lax.map(jax.vmap(lambda x: pseudo_inertia(parameters.plant_at(x).model.inertias)), rows)

    return float(np.min(np.linalg.eigvalsh(np.asarray(all_bodies(parameters, path)))))


def one(report, samples):
    """Seconds of a fit of a single record."""
    true = data.true_model()
    prior = panda.wrong(true).replace(damping=0.5, friction=0.3, armature=0.1)
    parameters, seconds = Parameters(prior, [Inertias(), *panda.DRIVES]), []
    for _ in range(2):
        start = time.perf_counter()
        jax.block_until_ready(fit(parameters, samples).estimate.x)
        seconds.append(time.perf_counter() - start)
    report.figure("one of them, with compilation", seconds[0], "s")
    report.figure("again alone", seconds[1], "s")


def run(report):
    """Both tasks, on designed motions."""
    design = panda.stored if report.quick else lambda name: panda.designed(report, name)
    moves = {name: design(name) for name in panda.HARMONICS}
    (first, of_masses), (second, of_bodies) = panda.recorded(moves["masses"]), panda.recorded(moves["bodies"])
    masses(report, of_masses)
    bodies(report, second, of_bodies, of_masses, first.noise)
    if not report.quick:
        one(report, of_bodies)
