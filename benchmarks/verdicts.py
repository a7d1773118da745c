"""Calibration of the errors that ``simulate`` prints: random robots and steps against converged motions.

    python benchmarks/verdicts.py --quick     a few results of some topologies
    python benchmarks/verdicts.py             1000 results and more, and a record in benchmarks/results

Each topology is one program; masses, springs, dampers, friction, actuators, initial states, durations and step sizes
are random, from far too long steps to steps with only round-off. A result is a motion with its ``step_error`` in all
components of q and v at all times, relative to their magnitudes; the reference is MK8 at converged step sizes. The true
error of a result that is reported as converged must be at most three times the estimate, and a motion with an error
below 1 % must not be reported as not converged. The thresholds of ``lgsim.simulation.accuracy`` were chosen with seed
1; this benchmark uses other seeds.
"""

import harness  # first: it pins the core before JAX starts its threads

# isort: split
import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from cases.verdicts.machines import CHUNK, TOPOLOGIES, draw, field_rates
from cases.verdicts.truth import exact

import lgsim

jax.config.update("jax_enable_x64", True)

# short programs, so that the same one makes any number of steps
setattr(sys.modules["lgsim.simulation.simulate"], "CHUNK", CHUNK)  # noqa: B010

METHODS = {name: getattr(lgsim, name) for name in lgsim.__all__ if isinstance(getattr(lgsim, name), lgsim.Method)}
SEED = 2
INSIDE, FACTOR, NEVER, ALARMS, GOOD = 0.97, 3, 30, 0.05, 0.01
"""The share of the answers inside FACTOR times the estimate, what none may exceed, the share of false alarms among
motions with errors below GOOD."""


class Outcome(NamedTuple):
    """Result of a motion.

    Attributes:
        topology: Name of its topology.
        kind: "diverged", "unknown" where the reference does not converge, "resolved" or "not resolved".
        error: The true error relative to the motion.
        ratio: The true error relative to the estimate.
        place: The same for the printed line, which is about the configuration only.
    """

    topology: str
    kind: str
    error: float = np.nan
    ratio: float = np.nan
    place: float = np.nan


def answer(name, topology, rates, i):
    """Draw a random robot, simulate it, and compare with the reference."""
    rng = np.random.default_rng([SEED, sum(map(ord, name)), i])
    asked = draw(topology, rng, rates)
    model = asked.model
    q, v = (jnp.asarray(x, model.dtype) for x in (asked.q, asked.v))
    given = {"duration": asked.duration, "method": METHODS[topology.method], "control": asked.control}
    if topology.adaptive:
        motion = lgsim.simulate_adaptive(
            model, q, v, rtol=asked.tolerance, atol=1e-3 * asked.tolerance, dt_out=asked.duration / SAVED, **given
        )
        rate = asked.rate * asked.duration / asked.dt / SAVED
    else:
        # the step size of the simulation, in its dtype
        motion = lgsim.simulate(model, q, v, dt=float(np.asarray(asked.dt, model.dtype)), **given)
        rate = asked.rate
    if motion.result or motion.step_error is None:
        return Outcome(name, "diverged")
    error, known = exact(model, asked.control, motion, rate)
    said = motion.step_error
    if not said.resolved:
        # a motion whose reference ends early does not count as one with a small error at all times
        return Outcome(name, "not resolved", np.nanmax(error / said.size[: error.shape[1]]) if known else np.inf)
    if known < len(motion):
        return Outcome(name, "unknown")
    true, told = (x[:, : error.shape[1]] / said.size[: error.shape[1]] for x in (error, said.error))
    nv = model.nv
    return Outcome(name, "resolved", true.max(), true.max() / told.max(), true[:, :nv].max() / told[:, :nv].max())


SAVED = 100
"""States that are saved of a motion with adaptive steps."""


def run(report):
    """All topologies with an available method."""
    names = [name for name, topology in TOPOLOGIES.items() if topology.method in METHODS]
    names = names[:: len(names) // 4] if report.quick else names
    each, rows, found = 6 if report.quick else 45, [], []
    for name in names:
        topology = TOPOLOGIES[name]
        rates = field_rates(topology)
        mine = [answer(name, topology, rates, i) for i in range(each)]
        found += mine
        rows.append([name, topology.method + ("" if not topology.adaptive else ", adaptive"), *_row(mine)])
        print(f"  {name}: {sum(x.kind == 'resolved' for x in mine)} of {len(mine)} converged", flush=True)
        jax.clear_caches()
    rows.append(["all", "", *_row(found)])
    report.table(
        "Estimated and true integration errors",
        ["system", "method", "answers", "diverged", "not converged", "converged", "within 3x", "within 3x of q",
         "largest", "estimate / error", "false alarms", "of"], rows,
    )  # fmt: skip
    _judge(report, found)


def _row(outcomes):
    resolved = [x for x in outcomes if x.kind == "resolved"]
    ratio, place = np.array([x.ratio for x in resolved]), np.array([x.place for x in resolved])
    good = [x for x in outcomes if x.error < GOOD]
    kinds = [sum(x.kind == kind for x in outcomes) for kind in ("diverged", "not resolved", "resolved")]
    if not resolved:
        return [len(outcomes), *kinds, *["-"] * 4, sum(x.kind == "not resolved" for x in good), len(good)]
    return [
        len(outcomes), *kinds, float(np.mean(ratio <= FACTOR)), float(np.mean(place <= FACTOR)), float(ratio.max()),
        float(np.median(1 / np.maximum(ratio, 1e-9))), sum(x.kind == "not resolved" for x in good), len(good),
    ]  # fmt: skip


def _judge(report, outcomes):
    resolved = [x for x in outcomes if x.kind == "resolved"]
    good = [x for x in outcomes if x.error < GOOD]
    ratio, place = np.array([x.ratio for x in resolved]), np.array([x.place for x in resolved])
    alarms = sum(x.kind == "not resolved" for x in good) / len(good)
    report.figure("answers", len(outcomes))
    report.figure("converged", len(resolved))
    report.figure("within 3x", 100 * np.mean(ratio <= FACTOR), "%")
    report.figure("estimate / error, median", np.median(1 / np.maximum(ratio, 1e-9)))
    report.figure("false alarms", 100 * alarms, "%")
    report.bound("share of errors within 3 times the estimate", np.mean(ratio <= FACTOR), at_least=INSIDE)
    report.bound("the same for the printed line", np.mean(place <= FACTOR), at_least=INSIDE)
    report.bound("largest error / estimate", max(ratio.max(), place.max()), at_most=NEVER)
    report.bound("converged motions reported as not converged", alarms, at_most=ALARMS)


if __name__ == "__main__":
    harness.main(run, "verdicts")
