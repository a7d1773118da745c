"""Automatic choice of the integration method of a study, from the rates of some of its samples."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from lgsim.montecarlo.rollout import Rollout
from lgsim.montecarlo.study import Study
from lgsim.simulation.accuracy.stiffness import Automatic, fastest_rate
from lgsim.simulation.equations_of_motion import initial_state
from lgsim.simulation.fixed_steps import Steps
from lgsim.simulation.simulate import simulate

SAMPLES = 16
"""Number of samples whose initial rates are compared."""

_MOTIONS = 3
"""Number of the fastest of them whose motion is simulated."""

NEAR = 0.3
"""Product of rate and step above which motions are simulated; explicit methods are stable up to about three."""


def choose_method(study: Study, choice: Automatic) -> tuple[Study, str]:
    """The study with the explicit method of a choice, or with the stiff one if a sample is too fast for the explicit
    one.

    All samples share one program, hence one method. Of the first samples, those with the fastest initial rates are
    simulated by ``Automatic``, if the step is not far shorter than these rates require. Faster rates elsewhere are left
    to the check of the steps.

    Returns:
        The study, and the reason for the stiff method, or an empty string.
    """
    if not isinstance(study.rollout, Rollout):
        return study, ""
    runs = [
        study.rollout.with_values(jax.tree.map(jnp.asarray, study.sample(i).values))
        for i in range(min(SAMPLES, study.samples))
    ]
    rates = [_rate(run) for run in runs]
    near = [i for i in np.argsort(rates)[::-1][:_MOTIONS] if rates[i] * abs(float(runs[i].dt)) > NEAR]
    for i in near:
        run = runs[i]
        motion = simulate(
            run.model, run.q0, run.v0, duration=run.steps * abs(float(run.dt)), dt=abs(float(run.dt)), method=choice,
            torques=run.torques, control=run.control, wrenches=run.wrenches, actuators=run.actuators,
            commands=run.commands, actuator_state=run.actuator_state, step_check=False,
        )  # fmt: skip
        if motion.remark:
            return study.with_method(choice.stiff), motion.remark
    return study.with_method(choice.explicit), ""


def _rate(run: Rollout) -> float:
    """The fastest initial rate of a motion, 1/s; zero if the control is not differentiable."""
    state = np.asarray(initial_state(run.model, run.q0, run.v0, run.drive, run.actuator_state))
    try:
        steps = Steps(run.model, run.drive, run.wrenches, None, run.method, float(run.dt))
        return fastest_rate(steps, float(run.t0), state)
    except (TypeError, ValueError, NotImplementedError):
        return 0.0
