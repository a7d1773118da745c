"""Checks of the arguments of an adaptive integration, and what they stand for where they are None."""

from __future__ import annotations

from functools import partial
from typing import Any

import diffrax
import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from lgsim.integrators.adaptive.events import Event
from lgsim.integrators.method import Method
from lgsim.integrators.methods import METHODS
from lgsim.integrators.validation import scalar
from lgsim.lie.action import Action, Point


def usable(method: Method, action: Action, between: bool) -> None:
    """Raise unless the method can take adaptive steps with the action, and knows states between them if asked for."""
    if not isinstance(method, Method):
        raise TypeError(f"method: expected a method such as lgsim.MK54, got {type(method).__name__}")
    if method.embedded_order is None:
        embedded = ", ".join(name for name, each in METHODS.items() if each.embedded_order is not None)
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


def saved_times(save_at: Any, save_steps: bool, t0: Array, t1: Array) -> Array | None:
    """The times (n,) of ``save_at``, which must be in order, or None."""
    if save_at is None:
        return None
    if save_steps:
        raise ValueError("save_at: expected None together with save_steps=True; call evaluate for other times")
    times = jnp.asarray(save_at).astype(t0.dtype)
    if times.ndim != 1 or not times.size:
        raise ValueError(f"save_at: expected times of shape (n,), got shape {times.shape}")
    if not any(isinstance(a, Tracer) for a in (times, t0, t1)):
        way = np.diff([float(t0), *np.asarray(times, float), float(t1)])
        if not (np.all(way >= 0) or np.all(way <= 0)):
            raise ValueError(f"save_at: expected times in order from t0 = {t0} to t1 = {t1}, got {np.asarray(times)}")
    return times


def checked_events(events: Event | tuple[Event, ...], t0: Array, y0: Point, args: Any) -> tuple[Event, ...]:
    """The events as a tuple, each with a condition that is one number."""
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
    rtol: float | Array,
    atol: float | Array,
    dtype: jnp.dtype,
) -> diffrax.AbstractStepSizeController:
    """The controller, or diffrax's for the tolerances."""
    if controller is None:
        return diffrax.PIDController(rtol=_tolerance("rtol", rtol, dtype), atol=_tolerance("atol", atol, dtype))
    if not isinstance(controller, diffrax.AbstractStepSizeController):
        raise TypeError(
            "controller: expected a step controller such as diffrax.PIDController(rtol, atol) or "
            f"ElementaryController(tolerance), got {type(controller).__name__}"
        )
    return controller


def _tolerance(name: str, value: float | Array, dtype: jnp.dtype) -> Array:
    tolerance = scalar(name, value, dtype)
    if not isinstance(tolerance, Tracer) and not float(tolerance) > 0:
        raise ValueError(f"{name}: expected a positive tolerance, got {float(tolerance)}")
    return tolerance


def usable_adjoint(adjoint: diffrax.AbstractAdjoint | None) -> diffrax.AbstractAdjoint:
    """The adjoint, or the default one; those that take a state for a vector are refused."""
    if adjoint is None:
        return diffrax.RecursiveCheckpointAdjoint()
    if isinstance(adjoint, diffrax.BacksolveAdjoint | diffrax.ImplicitAdjoint):
        raise ValueError(
            f"adjoint: {type(adjoint).__name__} takes the state for a vector of R^n, which a point of a manifold is "
            "not; take diffrax.RecursiveCheckpointAdjoint() (reverse mode), diffrax.ForwardMode() or "
            "diffrax.DirectAdjoint()"
        )
    if not isinstance(adjoint, diffrax.AbstractAdjoint):
        raise TypeError(f"adjoint: expected an adjoint of diffrax, got {type(adjoint).__name__}")
    return adjoint
