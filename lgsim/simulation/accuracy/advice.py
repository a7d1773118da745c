"""Advice where steps are too long: the rate that makes them unstable, and the step that the error requires."""

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
"""The error to aim for with a smaller step, as a fraction of the motion."""

_LOOKED = 64
"""Number of states from which those are chosen whose rates are computed."""

_LARGEST_FACTOR = 1000
"""No advice is given where the step would have to be shorter by more than this factor."""


def shorter_step(fixed: FixedSteps, states: Float[np.ndarray, "nodes state"], error: StepError) -> str:
    """The advice for a motion that has not converged in the step size, as text.

    Args:
        fixed: The model, the method and the steps of the motion.
        states: The states at the nodes, starting with the initial state.
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
    """The factor by which a step should be shorter, at least 2; None where no such step is advised."""
    return max(2, math.ceil(factor)) if factor <= _LARGEST_FACTOR else None


def other_method(method: str, stiff: bool, otherwise: str) -> str:
    """The method to use instead, as text.

    Args:
        method: Name of the current method.
        stiff: True if fast rates may be the cause.
        otherwise: The text to return where they are not.
    """
    return "Rodas4, which is stable for fast rates" if method in METHODS and stiff else otherwise


def order_text(seen: float, order: int) -> str:
    """The observed order with that of the method, such as ", order 3.9 of 4"; empty if no order was observed."""
    return f", order {seen:.2g} of {order}" if np.isfinite(seen) else ""


def _one_digit(step: float) -> float:
    """The largest number with one significant digit that does not exceed ``step``."""
    digit = 10.0 ** np.floor(np.log10(step))
    return float(f"{np.floor(step / digit) * digit:.1g}")
