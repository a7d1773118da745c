"""Checks of the arguments of an adaptive integration, and the defaults of those that are None."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import diffrax
import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Float

from lgsim.integrators.adaptive.events import Event
from lgsim.integrators.method import Method, Number, scalar
from lgsim.integrators.methods import LINEARLY_IMPLICIT_METHODS, METHODS
from lgsim.lie.action import Action, Point
from lgsim.support.check import is_traced

UNITS = 4
"""Rounding units below which a step's error, a sum of several rounded terms, is meaningless."""


def check_method(method: Method, action: Action, between: bool) -> None:
    """Raise unless the method supports adaptive steps with the action, and states ``between`` them if requested.

    Raises:
        TypeError: an argument is of the wrong kind, or the action lacks an operation that the method needs.
        ValueError: the method has no error estimate, or its coordinates provide no states between the steps.
    """
    if not isinstance(method, Method):
        raise TypeError(f"method: expected a method such as lgsim.MK54, got {type(method).__name__}")
    if method.embedded_order is None:
        known = {**METHODS, **LINEARLY_IMPLICIT_METHODS}
        if method.fixed_step_reason is not None:
            raise ValueError(
                f"method: {method.name} takes no adaptive steps: {method.fixed_step_reason}. Take lgsim.integrate with "
                "a fixed dt, or a pair such as lgsim.MK54"
            )
        embedded = ", ".join(name for name, each in known.items() if each.embedded_order is not None)
        raise ValueError(f"method: {method.name} has no error estimate, which adaptive steps need; take {embedded}")
    if not isinstance(action, Action):
        raise TypeError(
            f"action: expected an action such as lgsim.actions.LeftTranslation(lgsim.SO3), got {type(action).__name__}"
        )
    method.check(action)
    if between and not method.by_exponentials:
        raise ValueError(
            f"save_at, dense: states between the steps need exponential coordinates, which {method.name} does not use; "
            "take save_steps=True"
        )


def saved_states(
    save_at: ArrayLike | Sequence[float] | None, save_steps: bool, t0: Float[Array, ""], t1: Float[Array, ""]
) -> dict[str, diffrax.SubSaveAt]:
    """``end``, and as ``saved`` the states at the times ``save_at`` (n,), in the dtype of t0, or after each step.

    Raises:
        ValueError: the times are not of shape (n,) with n > 0, not in order from t0 to t1, or come with ``save_steps``.
    """
    end = {"end": diffrax.SubSaveAt(t1=True)}
    if save_at is None:
        return end | ({"saved": diffrax.SubSaveAt(t0=True, steps=True)} if save_steps else {})
    if save_steps:
        raise ValueError("save_at: expected None together with save_steps=True; call evaluate for other times")
    times = jnp.asarray(save_at).astype(t0.dtype)
    if times.ndim != 1 or not times.size:
        raise ValueError(f"save_at: expected times of shape (n,), got shape {times.shape}")
    if not is_traced(times, t0, t1):
        gaps = np.diff([float(t0), *np.asarray(times, float), float(t1)])
        if not (np.all(gaps >= 0) or np.all(gaps <= 0)):
            raise ValueError(f"save_at: expected times in order from t0 = {t0} to t1 = {t1}, got {np.asarray(times)}")
    return end | {"saved": diffrax.SubSaveAt(ts=times)}


def check_events(events: Event | tuple[Event, ...], t0: Float[Array, ""], y0: Point, args: Any) -> tuple[Event, ...]:
    """The events as a tuple, with scalar conditions of the dtype of t0.

    Raises:
        TypeError: one is not an ``Event``.
        ValueError: a condition is not a scalar of that dtype.
    """
    events = (events,) if isinstance(events, Event) else tuple(events)
    for position, event in enumerate(events):
        if not isinstance(event, Event):
            raise TypeError(f"events[{position}]: expected adaptive.Event(condition), got {type(event).__name__}")
        value = eqx.filter_eval_shape(partial(event.condition), t0, y0, args)
        if getattr(value, "shape", None) != () or value.dtype != t0.dtype:
            raise ValueError(f"events[{position}]: expected a condition with a scalar of {t0.dtype}, got {value}")
    return events


def step_controller(
    controller: diffrax.AbstractStepSizeController | None,
    rtol: Number,
    atol: Number,
    dtype: jnp.dtype,
    max_step: Number | None = None,
    jump_times: ArrayLike | Sequence[float] | None = None,
) -> diffrax.AbstractStepSizeController:
    """The controller, by default ``diffrax.PIDController`` with the tolerances, the largest step and the jumps.

    Raises:
        TypeError: the controller is of the wrong kind.
        ValueError: a tolerance or the largest step is not a positive number, both tolerances are below rounding, the
            jumps are not an array (n,) of finite times, or there is a controller and a largest step or jumps.
    """
    if controller is not None and max_step is not None:
        raise ValueError("max_step: not available with a controller; give it to the controller, such as its dtmax")
    if controller is not None and jump_times is not None:
        raise ValueError("jump_times: not available with a controller; wrap it in diffrax.ClipStepSizeController")
    if controller is None:
        relative, absolute = _positive("rtol", rtol, dtype), _positive("atol", atol, dtype)
        if not is_traced(relative, absolute):
            least = smallest_tolerance(dtype)
            if float(relative) + float(absolute) < least:
                raise ValueError(
                    f"rtol, atol: expected a sum of at least {least:.2g}, {UNITS} rounding units of {dtype}, got"
                    f" {float(relative):g} and {float(absolute):g}; a number of size 1 has no smaller errors"
                )
        # diffrax selects between these: of Python numbers the result would be float64
        usual = diffrax.PIDController(rtol=relative, atol=absolute)
        names = ("safety", "factormin", "factormax")
        bounds: dict[str, Any] = {name: jnp.asarray(getattr(usual, name), dtype) for name in names}
        if max_step is not None:
            bounds["dtmax"] = _positive("max_step", max_step, dtype)
        control = diffrax.PIDController(rtol=relative, atol=absolute, **bounds)
        jumps = _jumps(() if jump_times is None else jump_times, dtype)
        return diffrax.ClipStepSizeController(control, jump_ts=jumps) if jumps.size else control
    if not isinstance(controller, diffrax.AbstractStepSizeController):
        raise TypeError(
            "controller: expected a step controller such as diffrax.PIDController(rtol, atol) or "
            f"ElementaryController(tolerance), got {type(controller).__name__}"
        )
    return controller


def _jumps(times: ArrayLike | Sequence[float], dtype: jnp.dtype) -> Float[Array, " n"]:
    jumps = jnp.asarray(times, dtype)
    if jumps.ndim != 1:
        raise ValueError(f"jump_times: expected shape (n,), got {jumps.shape}")
    if not is_traced(jumps) and not np.isfinite(jumps).all():
        raise ValueError("jump_times: expected finite times, got some that are not")
    return jumps


def smallest_tolerance(dtype: DTypeLike) -> float:
    """The smallest meaningful tolerance of a step for values of size 1: some rounding units of the dtype."""
    return UNITS * float(np.finfo(np.dtype(dtype)).eps)


def _positive(name: str, value: Number, dtype: jnp.dtype) -> Float[Array, ""]:
    """``value`` as a positive scalar of the dtype; ``name`` is the argument's name in errors."""
    number = scalar(name, value, dtype)
    if not is_traced(number) and not float(number) > 0:
        raise ValueError(f"{name}: expected a positive number, got {float(number)}")
    return number


def check_adjoint(adjoint: diffrax.AbstractAdjoint | None) -> diffrax.AbstractAdjoint:
    """The adjoint, by default ``diffrax.RecursiveCheckpointAdjoint()``.

    Raises:
        TypeError: it is not a diffrax adjoint.
        ValueError: it treats the state as a vector in R^n.
    """
    if adjoint is None:
        return diffrax.RecursiveCheckpointAdjoint()
    if isinstance(adjoint, diffrax.BacksolveAdjoint | diffrax.ImplicitAdjoint):
        raise ValueError(
            f"adjoint: {type(adjoint).__name__} treats the state as a vector in R^n, which a point of a manifold is "
            "not; take diffrax.RecursiveCheckpointAdjoint() (reverse mode), diffrax.ForwardMode() or "
            "diffrax.DirectAdjoint()"
        )
    if not isinstance(adjoint, diffrax.AbstractAdjoint):
        raise TypeError(f"adjoint: expected an adjoint of diffrax, got {type(adjoint).__name__}")
    return adjoint
