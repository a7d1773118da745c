"""What helps where steps are too long: the rate that they do not bear, and the step that the error asks for."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from lgsim.integrators.linearly_implicit import LinearlyImplicit
from lgsim.integrators.method import ImplicitMethod
from lgsim.integrators.methods import METHODS
from lgsim.simulation.accuracy.stiffness import unstable_mode
from lgsim.simulation.accuracy.trajectory_error import StepError
from lgsim.simulation.fixed_steps import FixedSteps

_WANTED = 0.01
"""The error that a smaller step should leave, as a share of the motion."""

_LOOKED = 64
"""Number of states of the motion of which those are chosen whose rates are computed."""

_LARGEST_FACTOR = 1000
"""A step that would have to be so many times shorter is none to advise."""


def shorter_step(fixed: FixedSteps, states: Float[np.ndarray, "nodes state"], error: StepError) -> str:
    """What to do about a motion that is not resolved, in words.

    Args:
        fixed: How the motion was computed.
        states: Its states at the nodes, the start first.
    """
    dt, method = fixed.dt, fixed.method
    worst = (error.value / error.size).max(axis=1)
    node = np.unique(np.linspace(0, len(states) - 1, _LOOKED).astype(int))
    mode = unstable_mode(fixed, node * fixed.every * dt, states[node])
    if mode is not None and mode.largest_step > 0:
        stiff = "" if isinstance(method, ImplicitMethod | LinearlyImplicit) else ", or a method such as Rodas4"
        return f"{mode}, take a dt of {_one_digit(0.5 * mode.largest_step):g} s{stiff}"
    order = min(error.order if error.order > 1 else 2.0, method.order)
    known = np.isfinite(worst).all()
    smaller = (_WANTED / max(float(worst.max()), _WANTED)) ** (1 / order) if known else 0.1
    return f"take a dt of {_one_digit(dt * min(smaller, 0.5)):g} s"


def whole_factor(factor: float) -> int | None:
    """By how many times a step should be shorter, 2 at least; None where no such step is to be advised."""
    return max(2, math.ceil(factor)) if factor <= _LARGEST_FACTOR else None


def other_method(method: str, stiff: bool, otherwise: str) -> str:
    """The method to take instead of one, in words.

    Args:
        method: Its name.
        stiff: Whether fast rates may be to blame.
        otherwise: The words where they are not.
    """
    return "Rodas4, which bears fast rates" if method in METHODS and stiff else otherwise


def order_text(seen: float, order: int) -> str:
    """The order that is seen beside that of the method: ", order 3.9 of 4", or empty where none is."""
    return f", order {seen:.2g} of {order}" if np.isfinite(seen) else ""


def _one_digit(step: float) -> float:
    """The next number of one digit that is not above."""
    digit = 10.0 ** np.floor(np.log10(step))
    return float(f"{np.floor(step / digit) * digit:.1g}")
