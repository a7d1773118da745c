"""Adaptive integration: argument checks, the diffrax call, and the solution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import diffrax
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Real

from lgsim._compile.xla import compiled, control_flow
from lgsim.integrators.adaptive.checks import check_adjoint, check_events, check_method, saved_states, step_controller
from lgsim.integrators.adaptive.controller import AlgebraController
from lgsim.integrators.adaptive.events import DirectedCondition, Event, locate_event
from lgsim.integrators.adaptive.solution import RESULTS, Solution
from lgsim.integrators.adaptive.solver import AlgebraTerm, GroupSolver, LastStep
from lgsim.integrators.method import Field, Method, Number, check_field, scalar, state
from lgsim.lie.action import Action, Point
from lgsim.support import check


def solve(
    method: Method,
    action: Action,
    field: Field,
    y0: Point,
    *,
    t0: Number = 0.0,
    t1: Number,
    args: Any = None,
    rtol: Number = 1e-6,
    atol: Number = 1e-9,
    dt0: Number | None = None,
    max_step: Number | None = None,
    jump_times: Real[ArrayLike, " jumps"] | Sequence[float] | None = None,
    save_at: Real[ArrayLike, " n"] | Sequence[float] | None = None,
    save_steps: bool = False,
    dense: bool = False,
    events: Event | tuple[Event, ...] = (),
    max_steps: int = 4096,
    adjoint: diffrax.AbstractAdjoint | None = None,
    controller: diffrax.AbstractStepSizeController | None = None,
) -> Solution:
    """Solve ``y' = field(t, y, args) . y`` from t0 to t1 with step-size control by a tolerance.

    The estimate e of an embedded pair lies in the algebra, and a step is accepted if
    ``rms(e_i / (atol + rtol w_i)) < 1`` with the sizes w of ``action.sizes``; see ``lgsim.integrators.adaptive``, also
    for states between the steps. New values, tolerances included, do not recompile. Works under ``jax.jit``,
    ``jax.vmap``, and ``jax.grad`` or ``jax.jvp`` depending on ``adjoint``; the step sizes count as constants in
    derivatives.

    Args:
        method: an embedded method: MK54, CF32a, CF32b, CF43. CF32b estimates no error for a field that depends on time
            only and has a fixed direction, since its two schemes agree; take another one there.
        action: the group action on the state, such as ``lgsim.actions.RightTranslation(lgsim.SE3)``.
        field: ``field(t, y, args)``, the algebra vector (action.dim,) in the dtype of y0.
        y0: the initial state, an array or a tuple of arrays of one dtype (float32 or float64).
        t1: the final time; before t0 to run backwards.
        args: anything ``field`` needs; arrays in it are differentiable.
        rtol: the tolerance relative to the sizes w.
        atol: the absolute tolerance, in the units of the algebra's components.
        dt0: the length of the first step; None to choose it from the field.
        max_step: the largest step; None for no limit. The error estimate of a step sees nothing of a force that acts
            between its stages, so that a pulse or an event shorter than a step can be missed.
        jump_times: times (n,), in any order, at which the field jumps: steps end just before them and begin just after
            them. One at t0 or t1 itself changes nothing there: a step begins or ends at that very time.
        save_at: times at which to save, shape (n,), in order from t0 to t1.
        save_steps: True to save y0 and the state after each accepted step, for ``Solution.step_sizes``; takes memory
            for max_steps + 1 states.
        dense: True to keep the dense output for ``Solution.evaluate``; takes memory for max_steps steps.
        events: an ``Event`` or a tuple of them; the first one to occur ends the integration.
        max_steps: the largest number of steps, including rejected ones.
        adjoint: the differentiation method: ``diffrax.RecursiveCheckpointAdjoint()`` for reverse mode (default),
            ``diffrax.ForwardMode()`` for forward mode, ``diffrax.DirectAdjoint()`` for both at higher cost.
        controller: another step-size controller with its own tolerances, such as ``ElementaryController(tolerance)``.

    Returns:
        A ``Solution``. A failure raises no error: check ``result``, or print ``message``.

    Raises:
        TypeError: an argument is of the wrong kind or dtype, or the action lacks an operation that the method needs.
        ValueError: the method has no error estimate, shapes do not fit, times are out of order or not finite,
            ``max_step`` is not positive, it or ``jump_times`` is given with a controller, y0 is off the manifold
            (``action.check_point``; not inside ``jit``), or the adjoint treats the state as a vector in R^n.

    Source: Hairer, Norsett, Wanner, Solving ODEs I, section II.4 (step control with local extrapolation).
    """
    between = dense or save_at is not None
    check_method(method, action, between)
    y0, dtype = state(y0)
    t0, t1 = scalar("t0", t0, dtype), scalar("t1", t1, dtype)
    first = None if dt0 is None else scalar("dt0", dt0, dtype)
    check_field(action, field, t0, y0, args)
    action.check_point(y0, "y0")
    return _run(
        GroupSolver(method, action, dense=between),
        AlgebraController(step_controller(controller, rtol, atol, dtype, max_step, jump_times), action),
        AlgebraTerm(field), y0, (t0, t1, first), args,
        diffrax.SaveAt(subs=saved_states(save_at, save_steps, t0, t1), dense=dense, solver_state=True),
        check_events(events, t0, y0, args), check.count("max_steps", max_steps), check_adjoint(adjoint),
    )  # fmt: skip


@compiled
def _run(
    solver: GroupSolver, controller: AlgebraController, term: AlgebraTerm, y0: Point,
    span: tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""] | None], args: Any, saveat: diffrax.SaveAt,
    events: tuple[Event, ...], max_steps: int, adjoint: diffrax.AbstractAdjoint,
) -> Solution:  # fmt: skip
    """``solve`` with checked arguments: the diffrax call, the exact event location, and the result."""
    t0, t1, dt0 = span
    sign = jnp.where(t0 < t1, 1, -1).astype(t0.dtype)
    run = diffrax.diffeqsolve(
        term,
        solver,
        t0,
        t1,
        None if dt0 is None else sign * jnp.abs(dt0),
        y0,
        args,
        saveat=saveat,
        stepsize_controller=controller,
        adjoint=adjoint,
        event=_diffrax_event(events, sign),
        max_steps=max_steps,
        throw=False,
    )
    times_by_name, states_by_name, last = cast(dict, run.ts), cast(dict, run.ys), cast(LastStep, run.solver_state)
    t, y = jax.tree.map(lambda a: a[0], (times_by_name["end"], states_by_name["end"]))
    ts, ys = times_by_name.get("saved"), states_by_name.get("saved")
    if ts is not None:
        ys = _restored(solver.action, term.field, ts, ys, args)
    occurred = run.result == diffrax.RESULTS.event_occurred
    which = None
    if events:
        start = sign * last.t

        def partial_step(dt: Float[Array, ""]) -> Point:
            y = solver.method.step(solver.action, term.field, start, last.y, dt, args)[0]
            return solver.action.restore(term.field, y, args)

        # diffrax stops at the end of the step; locate the crossing inside it
        t, y, which = control_flow.cond(
            occurred,
            lambda: locate_event(events, partial_step, start, t, args),
            lambda: (t, y, jnp.zeros(len(events), bool)),
        )
        if ts is not None:
            # states saved after the event are not part of the solution
            late = sign * (ts - t) > 0
            ts = jnp.where(late, sign * jnp.inf, ts)
            ys = jax.tree.map(lambda a: jnp.where(late.reshape(-1, *[1] * (a.ndim - 1)), jnp.inf, a), ys)
    result = RESULTS.where(run.result == diffrax.RESULTS.max_steps_reached, RESULTS.max_steps_reached, RESULTS.stalled)
    result = RESULTS.where(run.result == diffrax.RESULTS.successful, RESULTS.successful, result)
    result = RESULTS.where(occurred, RESULTS.event_occurred, result)
    finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(y)]))
    result = RESULTS.where(finite, result, RESULTS.nonfinite)
    stats = run.stats
    return Solution(
        t, y, ts, ys, stats["num_accepted_steps"], stats["num_rejected_steps"], which, result, run.interpolation,
        ts is not None and saveat.subs["saved"].ts is None,
    )  # fmt: skip


def _restored(action: Action, field: Field, ts: Float[Array, " n"], ys: Any, args: Any) -> Any:
    """Saved states, projected onto the constraint set, which interpolation between steps leaves by its error."""

    def restore(t: Float[Array, ""], y: Point) -> Point:
        back = action.restore(field, y, args)
        return y if back is y else jax.tree.map(lambda new, old: jnp.where(jnp.isfinite(t), new, old), back, y)

    return jax.vmap(restore)(ts, ys)


def _diffrax_event(events: tuple[Event, ...], sign: Float[Array, ""]) -> diffrax.Event | None:
    """The events in diffrax's form; None if there are none."""
    if not events:
        return None
    return diffrax.Event([DirectedCondition(e, sign) for e in events], direction=[e.rising for e in events])
