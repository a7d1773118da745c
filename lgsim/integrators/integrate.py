"""Fixed-step integration: one compiled step for any method and manifold, in a loop over any number of steps.

The memory of reverse mode is a choice between ``lax.scan`` and scans nested under ``jax.checkpoint``. There is no
``while_loop``, so that forward mode, reverse mode and any order of both work with every choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Int, PyTree, Shaped

from lgsim._compile.xla import (
    compiled,
    control_flow,
    export_codes,
    export_module,
    save_marked_values,
    straight_line,
    straight_line_loop,
)
from lgsim.integrators.method import Field, Method, Number, scalar, state
from lgsim.lie.action import Action, Point
from lgsim.lie.group import norm
from lgsim.support import check
from lgsim.support.check import is_traced


@export_codes("lgsim.RESULTS")
class RESULTS(eqx.Enumeration):
    """The result of an integration; the text gives the remedy."""

    successful = ""
    nonfinite = (
        "A saved state is not finite. Take a smaller dt, or look for the first such state in ys: "
        "the field overflowed or divided by zero shortly before it."
    )
    not_converged = (
        "Newton's method did not solve the equations of an implicit step; the first one is in residuals. "
        "Take a smaller dt, or a method with more iterations, such as MKGauss4 with newton=Newton(iterations=12)."
    )


@export_module("lgsim.Solution")
class Solution(eqx.Module):
    """The states that ``integrate`` saved, and the result.

    Attributes:
        ts: the saved times, shape (saved,), ``t0 + k dt`` for each saved step k, the first one t0.
        ys: the saved states, each leaf with the leading axis ``saved``; the first one is y0.
        error_estimate: for an embedded pair the largest estimate of the local error in each saved interval, shape
            (saved - 1,), the Euclidean norm in the algebra (Munthe-Kaas) or ``action.distance``; else None.
        result: ``RESULTS.successful`` or the failure.
        residuals: for an implicit method the relative residual of its equations in each step, before the last Newton
            iteration (``Newton``), shape (steps,); else None.
    """

    ts: Float[Array, " saved"]
    ys: Point
    error_estimate: Float[Array, " intervals"] | None
    result: RESULTS
    residuals: Float[Array, " steps"] | None = None


def integrate(
    method: Method,
    action: Action,
    field: Field,
    y0: Point,
    *,
    t0: Number = 0.0,
    dt: Number,
    steps: int,
    args: Any = None,
    inputs: PyTree[Shaped[ArrayLike, "steps ..."]] = None,
    save_every: int = 1,
    checkpoint: Checkpoint = "step",
    throw: bool = True,
) -> Solution:
    """Solve ``y' = field(t, y, args) . y`` with a fixed step: ``y(t + dt)`` is reached by exponentials, so that y never
    leaves its manifold and nothing is normalized.

    Differentiable with respect to y0, t0, dt and args, in forward and reverse mode, to any order. Compiled once for
    each method, action, field, shape and number of steps. New values, arrays or Python floats, do not recompile, while
    a Python integer in args is part of the program. The compile time does not depend on the number of steps. For
    batches use ``jax.vmap``.

    Args:
        method: a method such as ``lgsim.MK4``.
        action: the group action on the state, such as ``lgsim.actions.RightTranslation(lgsim.SE3)``.
        field: ``field(t, y, args)``, the algebra vector (action.dim,) in the dtype of y0.
        y0: the initial state, an array or a tuple of arrays of one dtype (float32 or float64).
        dt: the step, not zero; negative steps run backwards. In the unit of time of ``field``.
        steps: the number of steps, at least 1.
        args: anything ``field`` needs; arrays in it are differentiable.
        inputs: arrays with a leading axis ``steps``, such as forces that are constant over a step; in step k the field
            is ``field(t, y, (args, inputs[k]))``, at all stages alike.
        save_every: save every ``save_every``-th state; a divisor of ``steps``.
        checkpoint: the values stored for reverse mode: None every intermediate value, "step" the state at each step, an
            integer k the state at every k-th step, "recursive" a logarithmic number of states; ``FirstSteps(count)``
            for a variable number of steps without recompilation, without reverse mode.
        throw: True to raise if an implicit method did not solve the equations of a step. Under ``jax.jit``,
            ``jax.vmap`` and derivatives nothing is raised: check ``result`` and ``residuals``.

    Returns:
        Solution(ts, ys, error_estimate, result, residuals).

    Raises:
        TypeError: an argument is of the wrong kind or dtype, or the action lacks an operation that the method needs.
        ValueError: shapes do not fit, steps < 1, dt is zero or not finite, ``save_every`` does not divide ``steps``, or
            y0 is off the manifold (``action.check_point``; not inside ``jit``).
        RuntimeError: Newton's method did not converge in some step of an implicit method; the message names the step.
    """
    if not isinstance(method, Method):
        raise TypeError(f"method: expected a method such as lgsim.MK4, got {type(method).__name__}")
    if not isinstance(action, Action):
        raise TypeError(
            f"action: expected an action such as lgsim.actions.LeftTranslation(lgsim.SO3), got {type(action).__name__}"
        )
    method.check(action)
    y0, dtype = state(y0)
    steps = check.count("steps", steps)
    save_every = check.count("save_every", save_every)
    if steps % save_every:
        raise ValueError(f"save_every: expected a divisor of steps = {steps}, got {save_every}")
    dt, t0 = scalar("dt", dt, dtype), scalar("t0", t0, dtype)
    if not is_traced(dt) and float(dt) == 0:
        raise ValueError("dt: expected a step that is not zero, got 0")
    lengths = {jnp.shape(leaf)[:1] for leaf in jax.tree.leaves(inputs)}
    if inputs is not None and lengths != {(steps,)}:
        raise ValueError(f"inputs: expected arrays with a leading axis of {steps} steps, got {sorted(lengths)}")
    first_args = args if inputs is None else (args, jax.tree.map(lambda x: jnp.asarray(x)[0], inputs))
    method.check_problem(action, field, t0, y0, first_args)
    grid = _TimeGrid(t0, dt, steps, save_every)
    solution = _run(method, action, field, y0, grid, args, inputs, _checkpoint_policy(checkpoint))
    if throw and solution.residuals is not None and not is_traced(solution.residuals):
        _raise_unless_solved(method, solution.residuals, t0, dt)
    return solution


def _raise_unless_solved(
    method: Method, residuals: Float[Array, " steps"], t0: Float[Array, ""], dt: Float[Array, ""]
) -> None:
    """Raise RuntimeError with the first step whose equations were not solved."""
    largest = method.largest_residual(residuals.dtype)
    failed = np.flatnonzero(~(np.asarray(residuals) <= largest))  # also true for NaN
    if failed.size:
        k = int(failed[0])
        raise RuntimeError(
            f"{method.name}: Newton's method did not converge in step {k}, at t = {float(t0 + k * dt):.9g}: the "
            f"relative residual is {float(residuals[k]):.1e}, above {largest:.1e} ({failed.size} of {residuals.size} "
            "steps). Take a smaller dt or a method with more iterations, or pass throw=False to get the states all "
            "the same."
        )


class _TimeGrid(NamedTuple):
    """The times ``t0 + k dt`` of the steps, of which every ``save_every``-th is saved."""

    t0: Float[Array, ""]
    dt: Float[Array, ""]
    steps: int
    save_every: int


# the norm of the error estimate and the relative residual, of one step and of the steps of an interval
Monitors = tuple[Float[Array, ""] | None, Float[Array, ""] | None]
IntervalMonitors = tuple[Float[Array, " steps"] | None, Float[Array, " steps"] | None]
SavedStep = tuple[Point, Float[Array, ""] | None, Float[Array, ""] | None]
SavedInterval = tuple[Point, Float[Array, ""] | None, Float[Array, " steps"] | None]


@compiled
def _run(
    method: Method, action: Action, field: Field, y0: Point, grid: _TimeGrid, args: Any,
    inputs: PyTree[Shaped[Array, "steps ..."]], loop: Loop,
) -> Solution:  # fmt: skip
    """``integrate`` with checked arguments."""
    t0, dt, steps, save_every = grid

    def step(y: Point, k: Int[Array, ""]) -> tuple[Point, Monitors]:
        return line(y, k, jax.tree.map(lambda x: x[k], inputs))

    def step_with(y: Point, k: Int[Array, ""], row: PyTree[Array] = None) -> tuple[Point, Monitors]:
        step_args = args if inputs is None else (args, row)
        y1, error, residual = method.monitored_step(action, field, t0 + k.astype(dt.dtype) * dt, y, dt, step_args)
        y1 = action.restore(field, y1, step_args)
        return y1, (None if error is None else norm(error) if error.ndim else error, residual)

    # a step of one state, which batches map over by one compiled program
    line = straight_line(step_with)

    def saved_step(y: Point, k: Int[Array, ""]) -> tuple[Point, SavedStep]:
        y1, monitors = step(y, k)
        return y1, (y1, *monitors)

    def interval(y: Point, start: Int[Array, ""]) -> tuple[Point, IntervalMonitors]:
        def steps_from(y: Point, start: Int[Array, ""]) -> tuple[Point, IntervalMonitors]:
            return loop(lambda c, i: step(c, start + i), y, save_every)

        # a row of the inputs is picked by the index of the step, which a single-state program cannot do
        if inputs is not None or isinstance(loop, FirstSteps):
            return steps_from(y, start)
        return straight_line_loop(step_with, steps_from, y, start, save_every)

    def saved_interval(y: Point, j: Int[Array, ""]) -> tuple[Point, SavedInterval]:
        y1, (errors, residuals) = interval(y, j * save_every)
        return y1, (y1, None if errors is None else jnp.max(errors), residuals)

    saved = steps // save_every
    if save_every == 1:
        _, (ys, errors, residuals) = loop(saved_step, y0, saved)
    else:
        _, (ys, errors, residuals) = _store_all(saved_interval, y0, saved)
    ys = jax.tree.map(lambda first, rest: jnp.concatenate([first[None], rest]), y0, ys)
    ts = t0 + (save_every * jnp.arange(saved + 1)).astype(dt.dtype) * dt
    finite = jnp.array(True)
    for leaf in jax.tree.leaves(ys):
        finite = finite & jnp.all(jnp.isfinite(leaf))
    result = RESULTS.where(finite, RESULTS.successful, RESULTS.nonfinite)
    if residuals is not None:
        residuals = residuals.reshape(steps)
        solved = jnp.all(residuals <= cast(float, method.largest_residual(residuals.dtype)))
        result = RESULTS.where(solved, result, RESULTS.not_converged)
    return Solution(ts, ys, errors, result, residuals)


Carry = TypeVar("Carry")
Output = TypeVar("Output")
Index = Int[Array, ""]
Body = Callable[[Carry, Index], tuple[Carry, Output]]
"""``body(carry, k)`` for k = 0 .. length - 1, as in ``lax.scan``; carry and output are pytrees of arrays."""
Loop = Callable[[Body, Any, int], tuple[Any, Any]]
"""``loop(body, carry, length) -> (carry, outputs)``, each output with the leading axis ``length``."""

# nothing can be merged across the boundary of a scan anyway
_remat = partial(jax.checkpoint, prevent_cse=False)
_remat_step = partial(_remat, policy=save_marked_values)


class FirstSteps(eqx.Module):
    """A loop over a number of steps that is an array: another count does not recompile. No reverse mode.

    Outputs after these steps are zero.

    Attributes:
        count: the number of steps, at most that of the loop.
    """

    count: Int[ArrayLike, ""]

    def __call__(self, body: Body[Carry, Output], carry: Carry, length: int) -> tuple[Carry, Output]:
        """Run the loop; arguments and result are those of ``_store_all``."""
        shapes = jax.eval_shape(body, carry, jax.ShapeDtypeStruct((), jnp.arange(0).dtype))[1]
        outputs = jax.tree.map(lambda s: jnp.zeros((length, *s.shape), s.dtype), shapes)

        def step(k: Index, state: tuple[Carry, Output]) -> tuple[Carry, Output]:
            carry, output = body(state[0], k)
            return carry, jax.tree.map(lambda rows, row: rows.at[k].set(row), state[1], output)

        return control_flow.fori_loop(jnp.zeros((), int), jnp.minimum(self.count, length), step, (carry, outputs))


Checkpoint = str | int | FirstSteps | None
"""Memory strategy of reverse mode, or the number of steps taken, see ``integrate``."""


def _checkpoint_policy(checkpoint: Checkpoint) -> Loop:
    """The loop for a ``checkpoint`` argument.

    Args:
        checkpoint: None for ``_store_all``, "step" for ``_store_steps``, an integer k for ``StoreEvery(k)``,
            "recursive" for ``_store_recursively``; ``FirstSteps`` is itself a loop.

    Returns:
        The loop, equal for equal arguments, so that it can be static in a compiled function.

    Raises:
        ValueError: the argument is not one of these.
    """
    if isinstance(checkpoint, FirstSteps):
        return checkpoint
    named: dict[Any, Loop] = {None: _store_all, "step": _store_steps, "recursive": _store_recursively}
    if isinstance(checkpoint, int) and not isinstance(checkpoint, bool) and checkpoint >= 1:
        return StoreEvery(checkpoint)
    if checkpoint in named:
        return named[checkpoint]
    raise ValueError(f'checkpoint: expected None, "step", "recursive" or a positive integer, got {checkpoint!r}')


def _store_all(body: Body[Carry, Output], carry: Carry, length: int) -> tuple[Carry, Output]:
    """Run a loop that stores every intermediate value: no recomputation, memory of length times the work of a step.

    Args:
        body: ``body(carry, k)`` returns the next carry and an output.

    Returns:
        The last carry and the outputs, each with the leading axis ``length``.
    """
    return control_flow.scan(body, carry, jnp.arange(length))


def _store_steps(body: Body[Carry, Output], carry: Carry, length: int) -> tuple[Carry, Output]:
    """Run a loop that stores the carry at every step and recomputes each step backwards; memory of length carries.

    Values that the field marks with ``save_in_checkpoint`` are stored too and not recomputed. Arguments and result are
    those of ``_store_all``.
    """
    return control_flow.scan(_remat_step(body), carry, jnp.arange(length))


@dataclass(frozen=True)
class StoreEvery:
    """A loop that stores the carry at every ``block``-th step: memory of length/block + block carries, one more
    evaluation.

    Attributes:
        block: the number of steps between two stored carries.
    """

    block: int

    def __call__(self, body: Body[Carry, Output], carry: Carry, length: int) -> tuple[Carry, Output]:
        """Run the loop; arguments and result are those of ``_store_all``."""
        return _nest(body, carry, length, [math.ceil(length / self.block), min(self.block, length)])


def _store_recursively(body: Body[Carry, Output], carry: Carry, length: int) -> tuple[Carry, Output]:
    """Run a loop with nested checkpoints: memory of about 8 log_8(length) carries, log_8(length) more
    evaluations. Arguments and result are those of ``_store_all``.
    """
    levels = max(1, math.ceil(math.log(length, 8)))
    factors, rest = [], length
    for left in range(levels, 0, -1):
        factors.append(math.ceil(round(rest ** (1 / left), 9)))
        rest = math.ceil(rest / factors[-1])
    return _nest(body, carry, length, factors)


def _nest(body: Body[Carry, Output], carry: Carry, length: int, factors: list[int]) -> tuple[Carry, Output]:
    """Nested scans over ``prod(factors) >= length`` indices; those beyond the length are skipped by a real branch."""
    total = math.prod(factors)
    run = body if total == length else partial(_skip_beyond, body, length)
    for depth in range(len(factors), 0, -1):
        remat = _remat_step if depth == len(factors) else _remat
        run = partial(_level, remat(run), factors[depth - 1], math.prod(factors[depth:]))
    carry, outputs = run(carry, jnp.zeros((), int))
    return carry, jax.tree.map(lambda a: a.reshape((total, *a.shape[len(factors) :]))[:length], outputs)


def _level(inner: Body[Carry, Output], count: int, stride: int, carry: Carry, start: Index) -> tuple[Carry, Output]:
    """One level of the nested scans: ``inner`` at the indices start, start + stride, ..."""
    return control_flow.scan(lambda c, i: inner(c, start + i * stride), carry, jnp.arange(count))


def _skip_beyond(body: Body[Carry, Output], length: int, carry: Carry, index: Index) -> tuple[Carry, Output]:
    """``body`` at indices below the length; beyond it the unchanged carry and an output of zeros."""
    outputs = jax.eval_shape(body, carry, index)[1]
    return control_flow.cond(
        index < length,
        body,
        lambda c, _: (c, jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), outputs)),
        carry,
        index,
    )
