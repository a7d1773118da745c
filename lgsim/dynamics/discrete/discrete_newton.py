"""The step of a model for a given initial momentum: Newton's method on the displacement with the exact Jacobian, O(n).

The equations of a step are ``F(d) = p``, F being the momentum at its start (``discrete_momenta.legendre``). Their
Jacobian is solved in O(n) (``step_matrix.py``). The derivatives of a step are those of the implicit function,
independent of the iteration that found it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.custom_derivatives import SymbolicZero

from lgsim._compile.xla import batch_last, control_flow, fusion_barrier, linear_last
from lgsim.dynamics import rows as row
from lgsim.dynamics.discrete.discrete_momenta import (
    Moved,
    end_forces,
    full,
    legendre_change,
    midpoint_forces,
    moved,
    start_forces,
)
from lgsim.dynamics.discrete.displacement import Node, node, turns
from lgsim.dynamics.discrete.rotation_maps import RotationMap
from lgsim.dynamics.discrete.step_matrix import solve, step_matrix
from lgsim.multibody.model import Model


class Attempt(NamedTuple):
    """Result of the Newton iterations.

    Attributes:
        d: Displacement of each degree of freedom in the step (nv,), rad or m; for groups the algebra vector.
        p: Momentum at the end, without half the impulse of other forces (nv,).
        correction: The largest change of the last iteration relative to the largest displacement, (), dimensionless.
            Infinite where the step is not unique: a body or a joint rotates by half a turn or more, or a body with
            inertia rotates so far that a smaller rotation has the same momentum (``RotationMap.least``).
    """

    d: Array
    p: Array
    correction: Array


@cache
def attempt(kind: RotationMap, iterations: int) -> Callable[..., Attempt]:
    """A function of (model, q, momentum, guess, h, smallest) that does a fixed number of Newton iterations.

    ``momentum`` is the momentum at the start with half the impulse of other forces. ``smallest`` is the displacement
    (rad or m) below which changes are relative to it. The result must not be differentiated.
    """

    def iterated(change: Callable[[Array], Array], guess: Array) -> tuple[Array, Array]:
        def iterate(state: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
            d = state[0]
            y = fusion_barrier(change(d))
            return (fusion_barrier(d + y), y), None

        return control_flow.scan(iterate, (guess, jnp.zeros_like(guess)), None, length=iterations)[0]

    # few rows: all iterations in one native function; many rows: a program per iteration
    def core(model: Model, q: Array, momentum: Array, guess: Array, h: Array, smallest: Array) -> Attempt:
        q, momentum, guess, h = full(model, h, q, momentum, guess)
        at = node(model, q)
        d, y = iterated(lambda d: _change(kind, model, q, at, momentum, d, h)[0], guess)
        return Attempt(d, *_end(kind, model, q, moved(kind, model, at, d, h), d, y, h, smallest))

    def by_parts(model: Model, q: Array, momentum: Array, guess: Array, h: Array, smallest: Array) -> Attempt:
        change, end = _parts(kind)
        d, y = iterated(lambda d: change(model, q, momentum, d, h)[0], guess)
        return Attempt(d, *end(model, q, d, y, h, smallest))

    return _by_size(batch_last(core), by_parts)


class Trial(NamedTuple):
    """One Newton iteration at a displacement d.

    Attributes:
        change: The Newton change of d (nv,).
        p: Momentum at the end of the step with d, as in ``Attempt``.
        correction: Relative size of the change, as in ``Attempt``.
        gap: Largest component of the residual of the initial momentum, kg m^2/s or kg m/s, ().
    """

    change: Array
    p: Array
    correction: Array
    gap: Array


@cache
def trial(kind: RotationMap) -> Callable[..., Trial]:
    """A function of (model, q, momentum, d, h, smallest) that does one Newton iteration at d."""

    def core(model: Model, q: Array, momentum: Array, d: Array, h: Array, smallest: Array) -> Trial:
        q, momentum, d, h = full(model, h, q, momentum, d)
        y, gap, step = _change(kind, model, q, node(model, q), momentum, d, h)
        return Trial(y, *_end(kind, model, q, step, d, y, h, smallest), gap)

    def by_parts(model: Model, q: Array, momentum: Array, d: Array, h: Array, smallest: Array) -> Trial:
        change, end = _parts(kind)
        y, gap = change(model, q, momentum, d, h)
        return Trial(y, *end(model, q, d, y, h, smallest), gap)

    return _by_size(batch_last(core), by_parts)


MANY = 12
"""Number of rows from which each iteration is a separate program, compiled once and not for each number of iterations.
For one state, a step is a quarter slower than in one program; compilation takes half the time."""


Pair = Callable[..., tuple[Array, Array]]


def _by_size(whole: Callable[..., Any], by_parts: Callable[..., Any]) -> Callable[..., Any]:
    """The first function of (model, ...) for models of few rows, the second for others."""
    return lambda model, *args: (whole if model.topology.rows < MANY else by_parts)(model, *args)


@cache
def _parts(kind: RotationMap) -> tuple[Pair, Pair]:
    """A Newton iteration in two programs: the change with the gap; the final momentum with the correction.

    Each recomputes the state at q. That is a fifth of the arithmetic; passed on for a batch, the state would exceed
    the caches.
    """

    def change(model: Model, q: Array, momentum: Array, d: Array, h: Array) -> tuple[Array, Array]:
        q, momentum, d, h = full(model, h, q, momentum, d)
        return _change(kind, model, q, node(model, q), momentum, d, h)[:2]

    def end(model: Model, q: Array, d: Array, y: Array, h: Array, smallest: Array) -> tuple[Array, Array]:
        q, d, y, h = full(model, h, q, d, y)
        return _end(kind, model, q, moved(kind, model, node(model, q), d, h), d, y, h, smallest)

    return batch_last(change), batch_last(end)


def _change(
    kind: RotationMap, model: Model, q: Array, at: Node, momentum: Array, d: Array, h: Array
) -> tuple[Array, Array, Moved]:
    """(Newton change of d, largest component of the initial momentum residual, the step with d)."""
    step = moved(kind, model, at, d, h)
    rest = momentum - start_forces(model, step, d, h) + 0.5 * h * midpoint_forces(model, q, d, h)
    rest = fusion_barrier(rest)
    return solve(model, step_matrix(kind, model, q, step, d, h), rest), _largest(jnp.abs(rest)), step


def _end(
    kind: RotationMap, model: Model, q: Array, step: Moved, d: Array, y: Array, h: Array, smallest: Array
) -> tuple[Array, Array]:
    """(the momentum at the end of a step, the relative size of a change y of the displacement)."""
    p = end_forces(model, step, d, h) + 0.5 * h * midpoint_forces(model, q, d, h)
    return p, _relative(kind, model, step, d, y, smallest)


def _relative(kind: RotationMap, model: Model, step: Moved, d: Array, y: Array, smallest: Array) -> Array:
    tree = model.topology
    s, mass, inertia = row.select((step.s, step.at.mass, step.at.inertia), tree.body_row)
    # gimbal rings without inertia rotate by nearly half a turn near the singularity
    heavy = (mass > 0) | (inertia.xx + inertia.yy + inertia.zz > 0)
    unique = _largest(jnp.where(heavy, kind.least, 0) - s) < 0
    # +2 pi of one hinge and -2 pi of the next move no body, and make any change relatively small
    unique &= _largest(turns(tree, step.at, row.speeds(model, d))) < np.pi
    size = jnp.maximum(_largest(jnp.abs(d)), smallest)
    return jnp.where(unique, _largest(jnp.abs(y)) / size, jnp.inf)


def _largest(x: Array) -> Array:
    """The largest of the rows, by a loop: native functions of XLA do not support a reduction over all rows."""
    return control_flow.fori_loop(1, len(x), lambda i, top: jnp.maximum(top, x[i]), x[0])


@cache
def linear_solve(kind: RotationMap) -> Callable[[Any, Array], Array]:
    """``J^-1 r`` of ((model, q, d, h), r), with its transpose."""

    def by(transposed: bool) -> Callable[[Any, Array], Array]:
        def core(args: tuple[Model, Array, Array, Array], r: Array) -> Array:
            model, q, d, h = args
            q, d, r, h = full(model, h, q, d, r)
            matrix = step_matrix(kind, model, q, moved(kind, model, node(model, q), d, h), d, h)
            return solve(model, matrix.transposed if transposed else matrix, r)

        return core

    return linear_last(by(False), by(True), full=True)


@cache
def with_derivatives(kind: RotationMap) -> Callable[..., tuple[Array, Array]]:
    """A function of ((model, q, momentum, h), d, p) that returns d and p of a solved step with derivatives.

    The derivatives are those of the implicit function ``F(d) = momentum``, in both modes and to any order; d and p
    themselves (``Attempt``) are constants.
    """

    def core(by: tuple[Model, Array, Array, Array], d: Array, p: Array) -> tuple[Array, Array]:
        model, q, momentum, h = by
        d, p, _, _, _ = full(model, h, d, p, q, momentum)
        return d, p

    def rule(args: tuple, changes: tuple) -> tuple[Any, Any]:
        (by, d, p), (moving, _, _) = args, changes
        model, q, _, h = by
        value = found(by, d, p)
        d = value[0]
        push_model, push_q, push_momentum, push_h = moving
        at, pushes = (model, q, d, h), (push_model, push_q, jnp.zeros_like(d), push_h)
        rest = jnp.zeros_like(d) if isinstance(push_momentum, SymbolicZero) else push_momentum
        by_machine = None
        if not all(isinstance(x, SymbolicZero) for x in jax.tree.leaves((push_model, push_q, push_h))):
            start, by_machine = legendre_change(kind)(at, pushes)
            # the same program twice: compiling another takes longer than running half of this one
            pushes = jax.tree.map(lambda x: x if isinstance(x, SymbolicZero) else jnp.zeros_like(x), pushes)
            rest = rest - start
        change = linear_solve(kind)((model, q, d, h), rest)
        _, end = legendre_change(kind)(at, (*pushes[:2], change, pushes[3]))
        return value, (change, end if by_machine is None else by_machine + end)

    found = batch_last(core, rule)
    return found
