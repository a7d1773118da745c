"""The adaptive loop: what to save, where to stop, and what came of it."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer
from jax.typing import ArrayLike

from lgsim.integrators.adaptive.controller import AlgebraController
from lgsim.integrators.adaptive.events import Directed, Event, locate
from lgsim.integrators.adaptive.solver import AlgebraTerm, GroupSolver, LastStep
from lgsim.integrators.arguments import check_field, count, scalar, state
from lgsim.integrators.method import Field, Method
from lgsim.integrators.methods import METHODS
from lgsim.lie.action import Action, Point


class RESULTS(eqx.Enumeration):
    """How an adaptive integration ended; the text says what to do."""

    successful = ""
    event_occurred = "An event ended the integration."
    max_steps_reached = (
        "max_steps were taken before t1. Raise max_steps or the tolerances, or look whether the motion became stiff."
    )
    stalled = (
        "The step shrank until it no longer changed the time. The field is not finite from here on, or the solution "
        "grows without bound: look at the field at the last state, y."
    )
    nonfinite = "The last state is not finite. Take a controller that rejects steps, such as the default one."


class Solution(eqx.Module):
    """What ``solve`` returns.

    Attributes:
        t: the time reached: t1, the time of an event, or where the integration failed.
        y: the state there.
        ts: the saved times; infinity where the integration ended before. None if nothing was asked for.
        ys: the states there, each leaf with the leading axis of ``ts``; infinity where ``ts`` is. Else None.
        accepted: the number of accepted steps.
        rejected: the number of rejected steps.
        event: which event ended the integration, bool, shape (events,); None without events.
        result: ``RESULTS.successful``, ``RESULTS.event_occurred`` or what went wrong.
        interpolation: the dense output, or None.
    """

    t: Array
    y: Point
    ts: Array | None
    ys: Point | None
    accepted: Array
    rejected: Array
    event: Array | None
    result: RESULTS
    interpolation: diffrax.DenseInterpolation | None

    @property
    def message(self) -> str:
        """How it ended, in words and with the time; empty after a success. Outside of ``jax.jit`` only."""
        text = RESULTS[self.result]
        return f"t = {float(self.t):.9g}: {text}" if text else ""

    def evaluate(self, t: ArrayLike) -> Point:
        """The state at the time t, or at the times of an array (n,); NaN where no step went. Needs ``dense=True``.

        A quartic in the algebra over each step: its error falls with the fifth power of the step.

        Raises:
            ValueError: no dense output was asked for.
        """
        if self.interpolation is None:
            raise ValueError("evaluate: there is no dense output; pass dense=True to solve")
        times = jnp.asarray(t, self.t.dtype)
        evaluate = self.interpolation.evaluate
        return jax.vmap(lambda time: evaluate(time))(times) if times.ndim else evaluate(times)


def solve(
    method: Method,
    action: Action,
    field: Field,
    y0: Point,
    *,
    t0: float | Array = 0.0,
    t1: float | Array,
    args: Any = None,
    rtol: float | Array = 1e-6,
    atol: float | Array = 1e-9,
    dt0: float | Array | None = None,
    save_at: Any = None,
    save_steps: bool = False,
    dense: bool = False,
    events: Event | tuple[Event, ...] = (),
    max_steps: int = 4096,
    adjoint: diffrax.AbstractAdjoint | None = None,
    controller: diffrax.AbstractStepSizeController | None = None,
) -> Solution:
    """Solve ``y' = field(t, y, args) . y`` from t0 to t1 with steps that keep the error of each below a tolerance.

    The estimate e of an embedded pair lies in the algebra, and a step is kept if

        rms(e_i / (atol + rtol w_i)) < 1

    with the sizes w of ``action.sizes``: 1 for a rotation (rad) or a pose (rad, m), whose error means the same at
    every point, and the component's own size in R^n. Commutator-free pairs give one distance, which is measured by the
    norm of all entries of the state. So the error at t1 is proportional to the tolerance, with a factor of the problem.
    States never leave the manifold. Steps are chosen by a controller, so long-time energies drift with any method: take
    ``lgsim.integrate`` where they matter.

    States between steps (``save_at``, ``evaluate``) lie on quartics in the algebra, whose error falls with the fifth
    power of the step, as that of a step of order 4. To land on the times instead, pass

        controller=diffrax.ClipStepSizeController(diffrax.PIDController(rtol, atol), step_ts=times)

    New numbers, tolerances included, never compile again. Works under ``jax.jit``, ``jax.vmap``, and ``jax.grad`` or
    ``jax.jvp`` as ``adjoint`` says; the steps themselves are taken as constants in derivatives.

    Args:
        method: an embedded method: MK54, CF32a, CF32b, CF43. The pair CF32b sees no error in a field of time alone
            with a fixed direction, whose two schemes agree; take another one there.
        action: how the algebra moves the state, such as ``lgsim.actions.RightTranslation(lgsim.SE3)``.
        field: ``field(t, y, args)``, the algebra vector (action.dim,) in the dtype of y0.
        y0: the initial state, an array or a tuple of arrays of one dtype (float32 or float64).
        t0: the initial time.
        t1: the final time; before t0 to run backwards.
        args: anything ``field`` needs; arrays in it are differentiable.
        rtol: the tolerance relative to the sizes w.
        atol: the absolute tolerance, in the units of the algebra's components.
        dt0: the length of the first step; None to choose it from the field.
        save_at: times at which to save, shape (n,), in order from t0 to t1.
        save_steps: save y0 and the state after each accepted step; arrays of length max_steps + 1.
        dense: keep what ``Solution.evaluate`` needs; memory for max_steps steps.
        events: an ``Event`` or a tuple of them; the first one to occur ends the integration.
        max_steps: the largest number of steps, rejected ones included.
        adjoint: how to differentiate: ``diffrax.RecursiveCheckpointAdjoint()`` for reverse mode (None is this one),
            ``diffrax.ForwardMode()`` for forward mode, ``diffrax.DirectAdjoint()`` for both at more cost.
        controller: another step controller of diffrax; it sees errors and sizes as ``AlgebraController`` says. rtol and
            atol are then its own.

    Returns:
        Solution(t, y, ts, ys, accepted, rejected, event, result, interpolation). Nothing is raised at a failure: look
        at ``result``, or print ``message``.

    Raises:
        TypeError: an argument is of the wrong kind or dtype, or the action lacks what the method needs.
        ValueError: the method has no error estimate, shapes do not fit, times are out of order, or the adjoint is one
            that takes the state for a vector of R^n.

    Source: Hairer, Norsett, Wanner, Solving ODEs I, section II.4 (step control with local extrapolation).
    """
    _usable(method, action)
    y0, dtype = state(y0)
    t0, t1 = scalar("t0", t0, dtype), scalar("t1", t1, dtype)
    dt0 = None if dt0 is None else scalar("dt0", dt0, dtype)
    check_field(action, field, t0, y0, args)
    if save_at is not None and save_steps:
        raise ValueError("save_at: expected None together with save_steps=True; call evaluate for other times")
    times = None if save_at is None else _times(save_at, t0, t1, dtype)
    events = (events,) if isinstance(events, Event) else tuple(events)
    _check_events(events, t0, y0, args)
    if controller is None:
        controller = diffrax.PIDController(rtol=_tolerance("rtol", rtol, dtype), atol=_tolerance("atol", atol, dtype))
    solver = GroupSolver(method, action, dense=dense or times is not None)
    return _run(
        solver, AlgebraController(controller, action), AlgebraTerm(field), y0, t0, t1, dt0, args, times, save_steps,
        dense, events, count("max_steps", max_steps), _adjoint(adjoint),
    )  # fmt: skip


@eqx.filter_jit
def _run(
    solver: GroupSolver, controller: AlgebraController, term: AlgebraTerm, y0: Point, t0: Array, t1: Array,
    dt0: Array | None, args: Any, times: Array | None, save_steps: bool, dense: bool, events: tuple[Event, ...],
    max_steps: int, adjoint: diffrax.AbstractAdjoint,
) -> Solution:  # fmt: skip
    sign = jnp.where(t0 < t1, 1, -1).astype(t0.dtype)
    subs = {"end": diffrax.SubSaveAt(t1=True)}
    if times is not None:
        subs["saved"] = diffrax.SubSaveAt(ts=times)
    elif save_steps:
        subs["saved"] = diffrax.SubSaveAt(t0=True, steps=True)
    found = diffrax.diffeqsolve(
        term,
        solver,
        t0,
        t1,
        None if dt0 is None else sign * jnp.abs(dt0),
        y0,
        args,
        saveat=diffrax.SaveAt(subs=subs, dense=dense, solver_state=True),
        stepsize_controller=controller,
        adjoint=adjoint,
        event=_diffrax_event(events, sign),
        max_steps=max_steps,
        throw=False,
    )
    at, states, last = cast(dict, found.ts), cast(dict, found.ys), cast(LastStep, found.solver_state)
    t, y = jax.tree.map(lambda a: a[0], (at["end"], states["end"]))
    ts, ys = at.get("saved"), states.get("saved")
    occurred = found.result == diffrax.RESULTS.event_occurred
    which = None
    if events:
        start = sign * last.t

        def partial_step(dt: Array) -> Point:
            return solver.method.step(solver.action, term.field, start, last.y, dt, args)[0]

        t, y, which = jax.lax.cond(
            occurred,
            lambda: locate(events, partial_step, start, t, args),
            lambda: (t, y, jnp.zeros(len(events), bool)),
        )
        if ts is not None:
            late = sign * (ts - t) > 0
            ts = jnp.where(late, sign * jnp.inf, ts)
            ys = jax.tree.map(lambda a: jnp.where(late.reshape(-1, *[1] * (a.ndim - 1)), jnp.inf, a), ys)
    result = RESULTS.where(
        found.result == diffrax.RESULTS.max_steps_reached, RESULTS.max_steps_reached, RESULTS.stalled
    )
    result = RESULTS.where(found.result == diffrax.RESULTS.successful, RESULTS.successful, result)
    result = RESULTS.where(occurred, RESULTS.event_occurred, result)
    finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(y)]))
    result = RESULTS.where(finite, result, RESULTS.nonfinite)
    stats = found.stats
    return Solution(
        t, y, ts, ys, stats["num_accepted_steps"], stats["num_rejected_steps"], which, result, found.interpolation
    )


def _diffrax_event(events: tuple[Event, ...], sign: Array) -> diffrax.Event | None:
    if not events:
        return None
    return diffrax.Event([Directed(e, sign) for e in events], direction=[e.rising for e in events])


def _usable(method: Method, action: Action) -> None:
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


def _tolerance(name: str, value: float | Array, dtype: jnp.dtype) -> Array:
    tolerance = scalar(name, value, dtype)
    if not isinstance(tolerance, Tracer) and not float(tolerance) > 0:
        raise ValueError(f"{name}: expected a positive tolerance, got {float(tolerance)}")
    return tolerance


def _times(save_at: Any, t0: Array, t1: Array, dtype: jnp.dtype) -> Array:
    times = jnp.asarray(save_at).astype(dtype)
    if times.ndim != 1 or not times.size:
        raise ValueError(f"save_at: expected times of shape (n,), got shape {times.shape}")
    if not any(isinstance(a, Tracer) for a in (times, t0, t1)):
        way = np.diff([float(t0), *np.asarray(times, float), float(t1)])
        if not (np.all(way >= 0) or np.all(way <= 0)):
            raise ValueError(f"save_at: expected times in order from t0 = {t0} to t1 = {t1}, got {np.asarray(times)}")
    return times


def _check_events(events: tuple[Event, ...], t0: Array, y0: Point, args: Any) -> None:
    for position, event in enumerate(events):
        if not isinstance(event, Event):
            raise TypeError(f"events[{position}]: expected adaptive.Event(condition), got {type(event).__name__}")
        value = eqx.filter_eval_shape(partial(event.condition), t0, y0, args)
        if getattr(value, "shape", None) != () or value.dtype != t0.dtype:
            raise ValueError(f"events[{position}]: expected a condition with a scalar of {t0.dtype}, got {value}")


def _adjoint(adjoint: diffrax.AbstractAdjoint | None) -> diffrax.AbstractAdjoint:
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
