"""What helps a motion whose steps are too long: the rate that they do not bear, and the step that it asks for."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from lgsim.integrators.linearly_implicit import LinearlyImplicit
from lgsim.integrators.method import ImplicitMethod, Method
from lgsim.integrators.step_error import StepError
from lgsim.multibody.model import Model
from lgsim.simulation.equations_of_motion import Control, TorqueSegment, Wrenches
from lgsim.simulation.stiffness import unstable_mode

_WANTED = 0.01
"""The error that a smaller step should leave, as a share of the motion."""

_LOOKED = 64
"""Number of states of the motion of which those are chosen whose rates are computed."""


def advice(
    model: Model, method: Method, dt: float, every: int, states: Float[np.ndarray, "nodes state"], error: StepError,
    control: Control | None, wrenches: Wrenches | None, segment: TorqueSegment | None,
) -> str:  # fmt: skip
    """What to do about a motion that is not resolved, in words.

    Args:
        dt: Its step, s.
        segment: Joint forces that are the same all the time, or None.
    """
    worst = (error.error / error.size).max(axis=1)
    node = np.unique(np.linspace(0, len(states) - 1, _LOOKED).astype(int))
    mode = unstable_mode(
        method, model, node * every * dt, states[node], dt, control=control, wrenches=wrenches, segments=segment
    )
    if mode is not None and mode.largest_step > 0:
        stiff = "" if isinstance(method, ImplicitMethod | LinearlyImplicit) else ", or a method such as Rodas4"
        return f"{mode}, take a dt of {_one_digit(0.5 * mode.largest_step):g} s{stiff}"
    order = min(error.order if error.order > 1 else 2.0, method.order)
    known = np.isfinite(worst).all()
    smaller = (_WANTED / max(float(worst.max()), _WANTED)) ** (1 / order) if known else 0.1
    return f"take a dt of {_one_digit(dt * min(smaller, 0.5)):g} s"


def _one_digit(step: float) -> float:
    """The next number of one digit that is not above."""
    digit = 10.0 ** np.floor(np.log10(step))
    return float(f"{np.floor(step / digit) * digit:.1g}")
