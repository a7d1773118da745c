"""Excitation motions of ten seconds for Panda, and their records."""

import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from cases.sysid import panda_data as data
from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.experiment.criteria import AOptimal, DOptimal, SignalNoise
from lgsim.identify.experiment.design import ExcitationLimits, ExcitationProblem, design_excitation
from lgsim.identify.experiment.fourier import Fourier
from lgsim.identify.recording.filters import Spline
from lgsim.identify.recording.recording import Recording
from lgsim.identify.recording.smoothing import smooth
from lgsim.identify.unknowns.body_blocks import Masses, StandardParameters
from lgsim.identify.unknowns.joint_blocks import JointParameter, TorqueOffset
from lgsim.identify.unknowns.parameters import Parameters

FOLDER = Path(__file__).parent
HARMONICS = {"masses": 12, "bodies": 8}
GAIN = {"masses": 10.0, "bodies": 3.0}
ITERATIONS = {"masses": 100, "bodies": 40}
SPACING, SLOWEST, FLOOR = 0.06, 0.15, 0.1
DRIVES = (JointParameter("damping"), JointParameter("friction"), JointParameter("armature"), TorqueOffset())


def unknowns(name, model):
    """Purpose of a designed motion: criterion and unknowns."""
    if name == "masses":
        return AOptimal(), Parameters(model, Masses(prior_deviation=0.3))
    return DOptimal(), Parameters(model, [StandardParameters(), *DRIVES])


def problem(name):
    """The design of a motion of ten seconds within the limits of the manufacturer."""
    model = data.true_model().replace(friction_speed=0.02)
    limits = ExcitationLimits(
        lower=model.lower + 0.02, upper=model.upper - 0.02, velocity=0.97 * model.velocity_limit,
        acceleration=data.ACCELERATION,
    )  # fmt: skip
    criterion, parameters = unknowns(name, model)
    series = Fourier(10.0, HARMONICS[name])
    return ExcitationProblem(
        parameters, series, limits, criterion, SignalNoise(FLOOR, data.TORQUE_NOISE), 10 * series.harmonics
    )


def stored(name):
    """The motion that a full run designed and stored next to this file."""
    coefficients = jnp.asarray(np.loadtxt(FOLDER / f"motion_{name}.csv", delimiter=","))
    return lambda t: Fourier(10.0, HARMONICS[name]).motion(coefficients, t)


def designed(report, name):
    """A newly designed motion, with its figures."""
    task = problem(name)
    value = jax.jit(lambda x: task.criterion_value(x))
    random = [float(value(task.random_coefficients(jax.random.key(i), 0.5))) for i in range(20)]
    start = time.perf_counter()
    found = design_excitation(task, key=jax.random.key(1), iterations=ITERATIONS[name])
    seconds = time.perf_counter() - start
    better = float(np.exp(found.criterion - np.max(random)))
    report.table(
        f"Excitation of Panda for {name}, {type(task.criterion).__name__}",
        ["quantity", "value"],
        [["information per unknown / the best of 20 random motions", better], ["seconds", seconds],
         ["evaluations", found.history.evaluations],
         *([f"least room: {limit}", room] for limit, room in found.margins.items())],
    )  # fmt: skip
    report.bound(f"excitation for {name}: least room to a limit", min(found.margins.values()), at_least=0.0)
    report.bound(f"excitation for {name}: information / the best random motion's", better, at_least=GAIN[name])
    return found.motion


def recorded(move, seed=0):
    """The record of a motion, and its samples: smoothed states and raw torques."""
    raw = data.record(move, seed=seed)
    taken = Recording(data.true_model(), raw.time, raw.q, tau=raw.tau)
    return raw, TorqueSamples.from_recording(smooth(taken, Spline(SPACING)), taken).without_slow_samples(SLOWEST)


def wrong(model, seed=1):
    """A prior with errors of up to 30 % in all ten parameters of each body."""
    factors = np.random.default_rng(seed).uniform(0.7, 1.3, (len(model.body_names), 1))
    return model.replace(inertias=model.inertias * jnp.asarray(factors))
