"""Advice for a study whose step is too large, from the differences between steps and the fastest rate."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Shaped

from lgsim.integrators.methods import METHODS
from lgsim.montecarlo.accuracy.step_error import CONFIDENCE, DIGITS, Statistics, StudyStepError
from lgsim.montecarlo.intervals import normal_quantile
from lgsim.montecarlo.moments import Moments
from lgsim.montecarlo.outputs import Subsampled, final_q, final_v
from lgsim.montecarlo.rollout import Rollout
from lgsim.montecarlo.study import Study
from lgsim.simulation.accuracy.advice import other_method, whole_factor
from lgsim.simulation.accuracy.stiffness import UnstableMode, unstable_mode
from lgsim.simulation.equations_of_motion import torque_segments
from lgsim.simulation.fixed_steps import Steps
from lgsim.simulation.methods import method_name

Columns = dict[str, Shaped[np.ndarray, "samples ..."]]
"""Columns of some samples by name."""

FACTOR = 1.2
"""Safety factor of the recommended step."""


def needed_factor(
    found: Statistics, few: list[Float[np.ndarray, "q m"]], order: int, m: Moments, floor: float
) -> tuple[float, bool]:
    """The factor by which the step must be reduced for an output to converge, and True if dt is unstable.

    The factor is 1 for a converged output, and NaN if no step can be computed. dt counts as unstable if its error
    exceeds what the order explains, and that of dt/2 does not.
    """
    factor, unstable = 1.0, False
    z = normal_quantile(CONFIDENCE)
    for each in found.values():
        error, limit, orders = each.value.ravel(), each.tolerance.ravel(), np.ravel(each.order)
        for k in np.flatnonzero(~each.within.ravel()):
            seen = orders[k]
            if seen > order + 1.5:
                # beyond the stability limit at dt: from the errors and the spread at dt/2
                b, c = few[1][:, k], few[2][:, k]
                rest = float(np.sqrt(np.mean((b - c) ** 2))) * 2**order / (2**order - 1)
                own = max(z * float(np.std(b)) / math.sqrt(m.effective), DIGITS * abs(float(np.mean(b))), floor)
                need = 2 * max(1.0, rest / own if own > 0 else 1.0) ** (1 / order)
                unstable = True
            elif seen >= order / 2 and np.isfinite(error[k]) and limit[k] > 0:
                need = (error[k] / limit[k]) ** (1 / min(order, seen))
            else:
                need = np.nan
            factor = max(factor, need) if np.isfinite(factor) and np.isfinite(need) else np.nan
    return factor, unstable


def advised(
    found: StudyStepError, needs: list[tuple[float, bool]], stepped: Rollout, mode: UnstableMode | None
) -> StudyStepError:
    """Add advice: from the differences between steps, and from a rate beyond the stability limit."""
    factors = [factor for factor, _ in needs if factor != 1] or [2.0]
    factor = FACTOR * max(factors) if np.all(np.isfinite(factors)) else math.nan
    stiff = mode is not None or any(unstable for _, unstable in needs)
    if mode is not None and mode.largest_step > 0:
        factor = float(np.nanmax([factor, 2 * found.dt / mode.largest_step]))
    whole = whole_factor(factor)
    other = other_method(found.method, stiff or whole is None, "a method of higher order")
    if whole is not None:
        what = f"use dt = {found.dt / whole:.4g} s ({stepped.steps * whole:,} steps) or {other}."
    else:
        why = "the differences do not converge at the expected order, so that no step can be computed from them"
        what = (
            f"{why}: use dt = {found.dt / 10:.3g} s, or {other}, and check again; if the differences do not decrease"
            " then, the motion is chaotic."
        )
    if mode is not None:
        what = f"{mode}, beyond the stability limit of {found.method}: {what}"
    elif stiff:
        what = f"the step exceeds the stability limit of {found.method} for the fastest rates of the model: {what}"
    return replace(found, advice=what[0].upper() + what[1:])


def fastest_mode(study: Study, run: Rollout, columns: Columns, i: int) -> UnstableMode | None:
    """The fastest mode of a sample beyond the stability limit of the method; None if all are stable.

    It is evaluated at the states that the study keeps of sample i: the initial one, and outputs that are states.
    """
    if method_name(run.method) not in METHODS:
        return None
    model, nq, nv = run.model, run.model.nq, run.model.nv
    start, end = np.concatenate([run.q0, run.v0]), np.full(nq + nv, np.nan)
    end[nq:] = 0
    rows = [start[None]]
    for name, f in study.outputs.items():
        if f is final_q:
            end[:nq] = columns[name][i]
        elif f is final_v:
            end[nq:] = columns[name][i]
        elif isinstance(f, Subsampled):
            rows.append(columns[name][i])
    states = np.concatenate([*rows, end[None]])
    states = states[np.isfinite(states).all(axis=1)]
    if run.actuators is not None and run.actuators.states:
        q, v = (jnp.asarray(x, model.dtype) for x in (states[:, :nq], states[:, nq : nq + nv]))
        states = np.concatenate([states, jax.vmap(partial(run.actuators.start, model))(q, v)], axis=1)
    given = run.torques if run.actuators is None else run.commands
    segment = torque_segments(model, given, run.steps, run.t0, run.dt, run.drive)
    steps = Steps(model, run.drive, run.wrenches, segment, run.method, float(run.dt))
    return unstable_mode(steps, np.full(len(states), float(run.t0)), states.astype(model.dtype))
