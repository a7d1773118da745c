"""The step of a machine that has a given momentum at its start: Newton's method on the displacement, exact, in O(n).

The equations of a step are ``F(d) = p``, F the momentum at its start (``discrete_momenta.start_momentum``). A change y
of the displacement moves the body at t_(k+1) by ``V = sum S'_j y_j`` over the rows that carry it, and its momentum by
``B V``, B being 6x6 and not symmetric. So with sums over all that a row carries

    dF_i = S_i . sum B V + (drives)_ij y_j

is solved for y by an articulated elimination on the way to the root, rows from the left by S, columns by S':

    A <- A - (A S') (S^T A) / (S . A S' + drive).

Where a joint's springs or stops couple its degrees of freedom, its rows carry as many entries more beside the six of a
twist, with the coupling in these; they end at the first row of the joint. Where a joint mimics another one, the matrix
of all rows is reduced and solved as a whole.

Source: Lee, Liu, Park, Srinivasa 2016, appendix; Fan, Schultz, Murphey, Efficient computation of higher-order
variational integrators in robotic simulation and trajectory optimization, WAFR 2018.
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

from lgsim.dynamics import linearization
from lgsim.dynamics import rows as row
from lgsim.dynamics.discrete.discrete_momenta import (
    Moved,
    end_forces,
    end_momentum,
    full,
    midpoint_forces,
    moved,
    start_forces,
    start_momentum,
)
from lgsim.dynamics.discrete.displacement import Node, carried, end_columns, node
from lgsim.dynamics.discrete.rotation_maps import Mat, RotationMap, hat, scaled_identity
from lgsim.linalg import dense, elimination
from lgsim.multibody.joint import GroupJoint
from lgsim.multibody.model import Model
from lgsim.multibody.topology import Topology
from lgsim.spatial import Motion
from lgsim.xla import batch_last, fusion_barrier, linear_last


class StepMatrix(NamedTuple):
    """The Jacobian of the equations of a step in the displacements, in parts.

    Attributes:
        left: S, and the unit vectors of coupled joints (rows, 6 + n, *batch).
        right: S' of the displacements' chart, and the same (rows, 6 + n, *batch).
        bodies: B, and what couples the joint's rows (rows, 6 + n, 6 + n, *batch).
        drive: What a degree of freedom adds by itself (nv, *batch).
        joints: Where joints mimic others, what couples the degrees of freedom of a joint (nv, nv, *batch), or None.
    """

    left: Array
    right: Array
    bodies: Array
    drive: Array
    joints: Array | None = None

    @property
    def transposed(self) -> StepMatrix:
        """The parts of the transposed matrix."""
        joints = None if self.joints is None else dense.transpose(self.joints)
        return StepMatrix(self.right, self.left, jnp.swapaxes(self.bodies, 1, 2), self.drive, joints)


def coupled(tree: Topology) -> tuple[int, ...]:
    """The joints whose springs or stops act across their degrees of freedom."""
    return tuple(
        body
        for body, joint in enumerate(tree.joints)
        if isinstance(joint, GroupJoint) and (joint.stopped or joint.nq == joint.nv)
    )


def step_matrix(kind: RotationMap, model: Model, q: Array, step: Moved, d: Array, h: Array) -> StepMatrix:
    """The Jacobian at a step with displacements d (nv, *batch) of length h (*batch)."""
    tree = model.topology
    right = end_columns(tree, d, carried(step.change, step.at.screws))
    bodies = _body_matrices(kind, step.at, step, h)
    slopes = -0.5 * h * _midpoint_slopes(model, q, d, h)
    members = coupled(tree)
    alone = np.ones(tree.nv, bool)
    for body in members:
        alone[tree.v_slice(body)] = False
    drive = model.armature / h + jnp.where(_column(alone, d), slopes[0], 0)
    matrix = StepMatrix(_six(step.at.screws), _six(right), bodies, drive)
    if members:
        matrix = _with_joint_blocks(tree, matrix, slopes) if tree.has_mimic else _widened(tree, matrix, slopes)
    return fusion_barrier(matrix)


def _body_matrices(kind: RotationMap, at: Node, step: Moved, h: Array) -> Array:
    """B (rows, 6, 6, *batch): how the wrench of a body's momentum changes as the body at t_(k+1) moves."""
    share = at.mass / h
    spin = kind.spin_slope(step.change.s, step.phi, at.inertia) * (1 / h)
    c0, c1 = hat(at.center), hat(step.center)
    return _blocks(scaled_identity(share), c1 * -share, c0 * share, spin - (c0 @ c1) * share)


def _blocks(ff: Mat, fw: Mat, nf: Mat, nw: Mat) -> Array:
    top = jnp.stack([jnp.stack([*a, *b], axis=1) for a, b in zip(ff, fw, strict=True)], axis=1)
    bottom = jnp.stack([jnp.stack([*a, *b], axis=1) for a, b in zip(nf, nw, strict=True)], axis=1)
    return fusion_barrier(jnp.concatenate([top, bottom], axis=1))


def _six(S: Motion) -> Array:
    """Screws as rows (k, 6, *batch)."""
    return jnp.stack([*S.v, *S.w], axis=1)


def _midpoint_slopes(model: Model, q: Array, d: Array, h: Array) -> Array:
    """The derivatives of ``midpoint_forces`` by the displacement: (1, nv, *batch), or [j, i] that of the number i by
    the j-th number of its joint where joints couple theirs, (n, nv, *batch).
    """
    tree = model.topology
    members = coupled(tree)
    width = max([tree.joints[body].nv for body in members], default=1)

    def along(seed: np.ndarray) -> Array:
        push = jnp.broadcast_to(jnp.asarray(seed, d.dtype).reshape(-1, *[1] * (d.ndim - 1)), d.shape)
        return jax.jvp(lambda x: midpoint_forces(model, q, x, h), (d,), (push,))[1]

    if not members:
        return along(np.ones(tree.nv))[None]
    return jnp.stack([along(seed) for seed in _seeds(tree, members, width)])


def _seeds(tree: Topology, members: tuple[int, ...], width: int) -> np.ndarray:
    """(width, nv): 1 for the j-th number of each coupled joint; all numbers of the others are in the first one."""
    seeds = np.zeros((width, tree.nv))
    seeds[0] = 1
    for body in members:
        part = tree.v_slice(body)
        seeds[:, part] = np.eye(width)[:, : part.stop - part.start]
    return seeds


def _widened(tree: Topology, matrix: StepMatrix, slopes: Array) -> StepMatrix:
    """The parts with the slopes (n, nv, *batch) of coupled joints beside the matrices of their bodies."""
    width, batch = len(slopes), slopes.shape[2:]
    units = np.zeros((tree.rows, width))
    chosen = np.zeros((tree.rows, width, width), int)
    for body in coupled(tree):
        start, part = tree.row_starts[body], tree.v_slice(body)
        count = part.stop - part.start
        units[start : start + count, :count] = np.eye(count)
        chosen[tree.body_row[body], :count, :count] = _places(tree, part)
    coupling = _chosen(slopes, chosen)
    zero = jnp.zeros((tree.rows, 6, width, *batch), slopes.dtype)
    top = jnp.concatenate([matrix.bodies, zero], axis=2)
    bottom = jnp.concatenate([jnp.swapaxes(zero, 1, 2), coupling], axis=2)
    unit = jnp.asarray(units, slopes.dtype).reshape(*units.shape, *[1] * len(batch))
    unit = jnp.broadcast_to(unit, units.shape + batch)
    left, right = (jnp.concatenate([x, unit], axis=1) for x in (matrix.left, matrix.right))
    return matrix._replace(left=left, right=right, bodies=jnp.concatenate([top, bottom], axis=1))


def _with_joint_blocks(tree: Topology, matrix: StepMatrix, slopes: Array) -> StepMatrix:
    """The parts with the slopes of coupled joints as blocks of a matrix."""
    chosen = np.zeros((tree.nv, tree.nv), int)
    for body in coupled(tree):
        part = tree.v_slice(body)
        chosen[part, part] = _places(tree, part)
    return matrix._replace(joints=_chosen(slopes, chosen))


def _places(tree: Topology, part: slice) -> np.ndarray:
    """Where the block [i, j] of a joint is in the flat slopes, plus one."""
    i = np.arange(part.start, part.stop)
    return 1 + np.arange(len(i))[None] * tree.nv + i[:, None]


def _chosen(slopes: Array, places: np.ndarray) -> Array:
    """Entries of the slopes at places of ``_places``, zero at place 0."""
    flat = slopes.reshape(-1, *slopes.shape[2:])
    return jnp.concatenate([jnp.zeros_like(flat[:1]), flat])[places]


def _column(flags: np.ndarray, like: Array) -> np.ndarray:
    return flags.reshape(flags.shape + (1,) * (like.ndim - flags.ndim))


def solve(model: Model, matrix: StepMatrix, r: Array) -> Array:
    """``J^-1 r`` (nv, *batch)."""
    return _solve_whole(model, matrix, r) if model.topology.has_mimic else _solve_tree(model.topology, matrix, r)


def _solve_tree(tree: Topology, matrix: StepMatrix, r: Array) -> Array:
    order = linearization.order(tree)
    width, batch = matrix.left.shape[1], r.shape[1:]
    # the entries of a joint end where its first row is solved
    inner = np.ones((tree.rows, width), bool)
    inner[tree.row_first, 6:] = False
    keep = jnp.asarray(_column(inner, matrix.left), r.dtype)
    xs = (matrix.left, matrix.right, matrix.bodies, matrix.drive, r)
    narrow = width == 6

    def inward(below: Array, x: tuple) -> tuple[Array, tuple[Array, Array]]:
        (left, right, own, drive, r), keep = (x, None) if narrow else (x[:-1], x[-1])
        A, P = fusion_barrier(below[:, :width] + own), below[:, width]
        U = fusion_barrier(jnp.sum(A * right[None], axis=1))
        W = fusion_barrier(jnp.sum(A * left[:, None], axis=0))
        pivot = 1 / (_dot(left, U) + drive)
        free = pivot * (r - _dot(left, P))
        gain = fusion_barrier(W * pivot[None])
        A, P = A - U[:, None] * gain[None], P + U * free[None]
        if keep is not None:
            A, P = A * keep[:, None] * keep[None], P * keep
        return fusion_barrier(jnp.concatenate([A, P[:, None]], axis=1)), (gain, free)

    shape = (width, width + 1, *batch)
    _, (gain, free) = order.inward(inward, jnp.zeros(shape, r.dtype), xs if narrow else (*xs, keep), shape)

    def outward(eta: Array, x: tuple) -> tuple[Array, Array]:
        (right, gain, free), keep = (x, None) if narrow else (x[:-1], x[-1])
        if keep is not None:
            eta = eta * keep
        y = fusion_barrier(free - _dot(gain, eta))
        return fusion_barrier(eta + right * y[None]), y

    shape, onward = (width, *batch), (matrix.right, gain, free)
    return order.outward(outward, jnp.zeros(shape, r.dtype), onward if narrow else (*onward, keep), shape)


def _solve_whole(model: Model, matrix: StepMatrix, r: Array) -> Array:
    tree = model.topology
    order = linearization.order(tree)
    C = order.up(matrix.bodies)
    U = fusion_barrier(jnp.sum(C * matrix.right[:, None], axis=2))
    W = fusion_barrier(jnp.sum(C * matrix.left[:, :, None], axis=1))
    below = tree.row_carried

    def dot(x: Array, y: Array) -> Array:
        return jnp.sum(x * y, axis=2)

    M = dense.masked(below, dense.pairs(dot, W, matrix.right))
    M = M + dense.masked(below.T & ~below, dense.pairs(dot, matrix.left, U))
    M = linearization.reduced(model, M)
    n = len(M)
    eye = np.eye(n, dtype=bool).reshape(n, n, *[1] * (M.ndim - 2))
    M = M + jnp.where(eye, matrix.drive[None], 0)
    return elimination.solve(elimination.factor(M if matrix.joints is None else M + matrix.joints), r)


def _dot(x: Array, y: Array) -> Array:
    return jnp.sum(x * y, axis=0)


# The step.


class Attempt(NamedTuple):
    """What an iteration found.

    Attributes:
        d: Displacement of each degree of freedom in the step (nv,), rad or m; of groups the algebra vector.
        p: The momentum at its end but for half the impulse of other forces (nv,).
        correction: The largest change of the last iteration relative to the largest displacement, () without a unit;
            infinite where a body turns by half a turn or more.
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

    def core(model: Model, q: Array, momentum: Array, guess: Array, h: Array, smallest: Array) -> Attempt:
        q, momentum, guess, h = full(model, h, q, momentum, guess)
        at = node(model, q)

        def iterate(state: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
            d, _ = state
            y = fusion_barrier(_change(kind, model, q, at, momentum, d, h)[0])
            return (fusion_barrier(d + y), y), None

        (d, y), _ = jax.lax.scan(iterate, (guess, jnp.zeros_like(guess)), None, length=iterations)
        step = moved(kind, model, at, d, h)
        p = end_forces(model, step, d, h) + 0.5 * h * midpoint_forces(model, q, d, h)
        return Attempt(d, p, _relative(model.topology, step, d, y, smallest))

    return batch_last(core)


@cache
def trial(kind: RotationMap) -> Callable[..., tuple[Array, Array, Array]]:
    """The function of (model, q, momentum, d, h, smallest) that gives Newton's change at d, the momentum at the end of
    the step with d, and the change's relative size, as ``Attempt`` has them.
    """

    def core(model: Model, q: Array, momentum: Array, d: Array, h: Array, smallest: Array) -> tuple:
        q, momentum, d, h = full(model, h, q, momentum, d)
        y, step = _change(kind, model, q, node(model, q), momentum, d, h)
        p = end_forces(model, step, d, h) + 0.5 * h * midpoint_forces(model, q, d, h)
        return y, p, _relative(model.topology, step, d, y, smallest)

    return batch_last(core)


def _change(
    kind: RotationMap, model: Model, q: Array, at: Node, momentum: Array, d: Array, h: Array
) -> tuple[Array, Moved]:
    """(Newton's change of d, the step with d)."""
    step = moved(kind, model, at, d, h)
    rest = momentum - start_forces(model, step, d, h) + 0.5 * h * midpoint_forces(model, q, d, h)
    return solve(model, step_matrix(kind, model, q, step, d, h), fusion_barrier(rest)), step


def _relative(tree: Topology, step: Moved, d: Array, y: Array, smallest: Array) -> Array:
    size = jnp.maximum(jnp.max(jnp.abs(d), axis=0), smallest)
    upright = jnp.min(step.change.s[tree.body_row], axis=0) > 0
    return jnp.where(upright, jnp.max(jnp.abs(y), axis=0) / size, jnp.inf)


@cache
def _linear_solve(kind: RotationMap) -> Callable[[Any, Array], Array]:
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
        (model, q, momentum, h) = by
        value = found(by, d, p)
        d = value[0]
        leaves, structure = jax.tree.flatten((model, q, h))
        pushes = structure.flatten_up_to((moving[0], moving[1], moving[3]))
        some = [i for i, dx in enumerate(pushes) if not isinstance(dx, SymbolicZero)]

        def machine(given: list[Array]) -> tuple[Model, Array, Array]:
            chosen = dict(zip(some, given, strict=True))
            return jax.tree.unflatten(structure, [chosen.get(i, x) for i, x in enumerate(leaves)])

        here, push = [leaves[i] for i in some], [pushes[i] for i in some]

        def start(given: list[Array]) -> Array:
            model, q, h = machine(given)
            return start_momentum(kind)(model, q, d, h)

        def end(given: list[Array], d: Array) -> Array:
            model, q, h = machine(given)
            return end_momentum(kind)(model, q, d, h)

        rest = jnp.zeros_like(d) if isinstance(moving[2], SymbolicZero) else moving[2]
        if some:
            rest = rest - jax.jvp(start, (here,), (push,))[1]
        change = _linear_solve(kind)((model, q, d, h), rest)
        return value, (change, jax.jvp(end, (here, d), (push, change))[1])

    found = batch_last(core, rule)
    return found
