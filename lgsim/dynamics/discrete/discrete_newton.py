"""The step of a machine that has a given momentum at its start: Newton's method on the displacement, exact, in O(n).

The equations of a step are ``F(d) = p``, F the momentum at its start (``discrete_momenta.legendre``); their
Jacobian is solved in O(n) (``step_matrix.py``). Whatever found a step, its derivatives are those of the implicit
function.
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
    """What an iteration found.

    Attributes:
        d: Displacement of each degree of freedom in the step (nv,), rad or m; of groups the algebra vector.
        p: The momentum at its end but for half the impulse of other forces (nv,).
        correction: The largest change of the last iteration relative to the largest displacement, () without a unit;
            infinite where the step is not unique: a body or a joint turns by half a turn or more, or a body that has
            inertia by so much that its momentum is that of a smaller turn too (``RotationMap.least``).
    """

    d: Array
    p: Array
    correction: Array


@cache
def attempt(kind: RotationMap, iterations: int) -> Callable[..., Attempt]:
    """The function of (model, q, momentum, guess, h, smallest) that takes a number of Newton's iterations at once.

    ``momentum`` is that at the start with half the impulse of other forces, ``smallest`` the displacement (rad or m)
    below which changes are relative to it. Not to be differentiated.
    """

    def iterated(change: Callable[[Array], Array], guess: Array) -> tuple[Array, Array]:
        def iterate(state: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
            d = state[0]
            y = fusion_barrier(change(d))
            return (fusion_barrier(d + y), y), None

        return control_flow.scan(iterate, (guess, jnp.zeros_like(guess)), None, length=iterations)[0]

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
    """What Newton's method says at a displacement d.

    Attributes:
        change: Its change of d (nv,).
        p: The momentum at the end of the step with d, as in ``Attempt``.
        correction: The change's relative size, as in ``Attempt``.
        gap: The largest part of the momentum at the start that the step with d misses, kg m^2/s or kg m/s, ().
    """

    change: Array
    p: Array
    correction: Array
    gap: Array


@cache
def trial(kind: RotationMap) -> Callable[..., Trial]:
    """The function of (model, q, momentum, d, h, smallest) that tries a displacement d."""

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
"""The rows from which on an iteration is a program of its own, which is compiled once instead of for each of a number
of iterations; a step of one state takes a quarter longer than all in one, to compile takes half."""


Pair = Callable[..., tuple[Array, Array]]


def _by_size(whole: Callable[..., Any], by_parts: Callable[..., Any]) -> Callable[..., Any]:
    """The first function of (model, ...) for machines of few rows, the second for others."""
    return lambda model, *args: (whole if model.topology.rows < MANY else by_parts)(model, *args)


@cache
def _parts(kind: RotationMap) -> tuple[Pair, Pair]:
    """An attempt in programs: a change with the gap; the momentum at the end with the correction.

    Each finds the machine at q anew: that is a fifth of the arithmetic, and handed on for a batch it would be more
    numbers than caches hold.
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
    """(Newton's change of d, the largest part of the momentum at the start that is missed, the step with d)."""
    step = moved(kind, model, at, d, h)
    rest = momentum - start_forces(model, step, d, h) + 0.5 * h * midpoint_forces(model, q, d, h)
    rest = fusion_barrier(rest)
    return solve(model, step_matrix(kind, model, q, step, d, h), rest), _largest(jnp.abs(rest)), step


def _end(
    kind: RotationMap, model: Model, q: Array, step: Moved, d: Array, y: Array, h: Array, smallest: Array
) -> tuple[Array, Array]:
    """(the momentum at the end of a step, the relative size of a change y of it)."""
    p = end_forces(model, step, d, h) + 0.5 * h * midpoint_forces(model, q, d, h)
    return p, _relative(kind, model, step, d, y, smallest)


def _relative(kind: RotationMap, model: Model, step: Moved, d: Array, y: Array, smallest: Array) -> Array:
    tree = model.topology
    s, mass, inertia = row.select((step.s, step.at.mass, step.at.inertia), tree.body_row)
    # rings of a gimbal, which have no inertia, turn by nearly half a turn where it passes its singularity
    heavy = (mass > 0) | (inertia.xx + inertia.yy + inertia.zz > 0)
    unique = _largest(jnp.where(heavy, kind.least, 0) - s) < 0
    # a whole turn more of one hinge and less of the next moves no body, and makes any change small beside it
    unique &= _largest(turns(tree, step.at, row.speeds(model, d))) < np.pi
    size = jnp.maximum(_largest(jnp.abs(d)), smallest)
    return jnp.where(unique, _largest(jnp.abs(y)) / size, jnp.inf)


def _largest(x: Array) -> Array:
    """The largest of the rows, by a loop: a reduction over all of them has no place in a native function of XLA."""
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
    """The function of ((model, q, momentum, h), d, p) that gives a solved step's d and p with their derivatives.

    They are those of the implicit function ``F(d) = momentum``, whatever found d, in both modes and to any order; d and
    p themselves (``Attempt``) are numbers.
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
            # the same program twice: to compile another would take longer than half of this one takes to run
            pushes = jax.tree.map(lambda x: x if isinstance(x, SymbolicZero) else jnp.zeros_like(x), pushes)
            rest = rest - start
        change = linear_solve(kind)((model, q, d, h), rest)
        _, end = legendre_change(kind)(at, (*pushes[:2], change, pushes[3]))
        return value, (change, end if by_machine is None else by_machine + end)

    found = batch_last(core, rule)
    return found
