"""The Jacobian of the equations of a step, ``F(d) = p``, in parts, and its solution in O(n).

A change y of the displacement moves the body at t_(k+1) by ``V = sum S'_j y_j`` over the rows that carry it, and the
wrench of its momentum by ``B V``, B being 6x6 and not symmetric. So with sums over all that a row carries

    dF_i = S_i . sum B V + (drives)_ij y_j

is solved for y by an articulated elimination on the way to the root, rows from the left by S, columns by S':

    A <- A - (A S') (S^T A) / (S . A S' + drive).

Where a joint's springs or stops couple its degrees of freedom, its rows carry as many entries more beside the six of a
twist, with the coupling in these; they end at the first row of the joint. Where a joint mimics another one, the matrix
of all rows is reduced and solved as a whole. By components: a native function of XLA is made of vectors over the batch.

Source: Lee, Liu, Park, Srinivasa 2016, appendix; Fan, Schultz, Murphey, Efficient computation of higher-order
variational integrators in robotic simulation and trajectory optimization, WAFR 2018.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.dynamics import linearization
from lgsim.dynamics.discrete.discrete_momenta import Moved, midpoint_forces
from lgsim.dynamics.discrete.displacement import Node, carried, end_columns
from lgsim.dynamics.discrete.rotation_maps import RotationMap, hat, scaled_identity
from lgsim.linalg import dense, elimination
from lgsim.multibody.joint import GroupJoint
from lgsim.multibody.model import Model
from lgsim.multibody.topology import Topology
from lgsim.spatial import Motion
from lgsim.xla import fusion_barrier

Column = tuple[Array, ...]
"""A vector of six or more components, (*rows, *batch) each."""
Block = tuple[Column, ...]
"""A square matrix by rows."""


class StepMatrix(NamedTuple):
    """The Jacobian of the equations of a step in the displacements, in parts.

    Attributes:
        left: S of each row, and the unit vectors of coupled joints.
        right: S' of the displacements' chart, and the same.
        bodies: B, and what couples the joint's rows.
        drive: What a degree of freedom adds by itself (nv, *batch).
        joints: Where joints mimic others, what couples the degrees of freedom of a joint (nv, nv, *batch), or None.
    """

    left: Column
    right: Column
    bodies: Block
    drive: Array
    joints: Array | None = None

    @property
    def transposed(self) -> StepMatrix:
        """The parts of the transposed matrix."""
        joints = None if self.joints is None else dense.transpose(self.joints)
        return StepMatrix(self.right, self.left, _transposed(self.bodies), self.drive, joints)


def coupled(tree: Topology) -> tuple[int, ...]:
    """The joints whose springs or stops act across their degrees of freedom."""
    return tuple(
        body
        for body, joint in enumerate(tree.joints)
        if isinstance(joint, GroupJoint) and (joint.stopped or joint.nq == joint.nv)
    )


def step_matrix(kind: RotationMap, model: Model, q: Array, step: Moved, d: Array, h: Array) -> StepMatrix:
    """The Jacobian at a step with displacements d (nv, *batch) of length h (1, *batch)."""
    tree = model.topology
    right = end_columns(tree, d, carried(step.change, step.at.screws))
    bodies = _body_matrices(kind, step.at, step, h)
    slopes = -0.5 * h[None] * _midpoint_slopes(model, q, d, h)
    members = coupled(tree)
    alone = np.ones(tree.nv, bool)
    for body in members:
        alone[tree.v_slice(body)] = False
    drive = model.armature / h + jnp.where(_column(alone, d), slopes[0], 0)
    matrix = StepMatrix(_column_of(step.at.screws), _column_of(right), bodies, drive)
    if members:
        matrix = _with_joint_blocks(tree, matrix, slopes) if tree.has_mimic else _widened(tree, matrix, slopes)
    return fusion_barrier(matrix)


def _body_matrices(kind: RotationMap, at: Node, step: Moved, h: Array) -> Block:
    """B: how the wrench of a body's momentum changes as the body at t_(k+1) moves."""
    share = at.mass / h
    spin = kind.spin_slope(step.change.s, step.phi, at.inertia) * (1 / h)
    c0, c1 = hat(at.center), hat(step.center)
    top = zip(scaled_identity(share), c1 * -share, strict=True)
    bottom = zip(c0 * share, spin - (c0 @ c1) * share, strict=True)
    return fusion_barrier(tuple((*a, *b) for a, b in (*top, *bottom)))


def _column_of(S: Motion) -> Column:
    return (*S.v, *S.w)


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
    width = len(slopes)
    units = np.zeros((width, tree.rows))
    chosen = np.zeros((width, width, tree.rows), int)
    for body in coupled(tree):
        start, part = tree.row_starts[body], tree.v_slice(body)
        count = part.stop - part.start
        units[:count, start : start + count] = np.eye(count)
        chosen[:count, :count, tree.body_row[body]] = _places(tree, part)
    one = jnp.ones_like(matrix.drive)
    unit = tuple(one * _column(row, one) for row in units)
    none = (jnp.zeros_like(one),) * 6
    top = tuple((*row, *none[:width]) for row in matrix.bodies)
    bottom = tuple((*none, *(_chosen(slopes, place) for place in row)) for row in chosen)
    return matrix._replace(left=(*matrix.left, *unit), right=(*matrix.right, *unit), bodies=(*top, *bottom))


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
    width, batch = len(matrix.left), r.shape[1:]
    # the further entries of a joint end where its first row is solved
    inner = jnp.asarray(_column(~tree.row_first, r), r.dtype)
    zero = jnp.zeros((), r.dtype)

    def inward(below: tuple[Block, Column], x: tuple) -> tuple[tuple[Block, Column], tuple[Column, Array]]:
        (A, P), (left, right, own, drive, r, inner) = below, x
        A = fusion_barrier(tuple(_sum(a, b) for a, b in zip(A, own, strict=True)))
        U = fusion_barrier(tuple(_dot(row, right) for row in A))
        W = fusion_barrier(tuple(_dot(column, left) for column in _transposed(A)))
        pivot = 1 / (_dot(left, U) + drive)
        free = fusion_barrier(pivot * (r - _dot(left, P)))
        gain = fusion_barrier(tuple(w * pivot for w in W))
        A = tuple(tuple(a - u * g for a, g in zip(row, gain, strict=True)) for row, u in zip(A, U, strict=True))
        P = tuple(p + u * free for p, u in zip(P, U, strict=True))
        A, P = tuple(_kept(row, inner) for row in _kept(A, inner)), _kept(P, inner)
        return fusion_barrier((A, P)), (gain, free)

    nothing = (zero,) * width
    xs = (*matrix[:4], r, inner)
    _, (gain, free) = order.inward(inward, ((nothing,) * width, nothing), xs, batch)

    def outward(eta: Column, x: tuple) -> tuple[Column, Array]:
        right, gain, free, inner = x
        eta = _kept(eta, inner)
        y = fusion_barrier(free - _dot(gain, eta))
        return fusion_barrier(tuple(e + s * y for e, s in zip(eta, right, strict=True))), y

    still = jax.tree.map(lambda z: jnp.broadcast_to(z, batch), nothing)
    return order.outward(outward, still, (matrix.right, gain, free, inner), batch)


def _kept(x: tuple[Any, ...], inner: Array) -> tuple[Any, ...]:
    """Entries of a column, or rows of a block, those beyond six times ``inner``."""
    return (*x[:6], *(jax.tree.map(lambda c: c * inner, each) for each in x[6:]))


def _solve_whole(model: Model, matrix: StepMatrix, r: Array) -> Array:
    tree = model.topology
    C = linearization.order(tree).up(matrix.bodies)
    U = fusion_barrier(tuple(_dot(row, matrix.right) for row in C))
    W = fusion_barrier(tuple(_dot(column, matrix.left) for column in _transposed(C)))
    below = tree.row_carried
    M = dense.masked(below, dense.pairs(_dot, W, matrix.right))
    M = linearization.reduced(model, M + dense.masked(below.T & ~below, dense.pairs(_dot, matrix.left, U)))
    n = len(M)
    eye = np.eye(n, dtype=bool).reshape(n, n, *[1] * (M.ndim - 2))
    M = M + jnp.where(eye, matrix.drive[None], 0)
    return elimination.solve(elimination.factor(M if matrix.joints is None else M + matrix.joints), r)


def _dot(x: Column, y: Column) -> Array:
    return sum((a * b for a, b in zip(x[1:], y[1:], strict=True)), x[0] * y[0])


def _sum(x: Column, y: Column) -> Column:
    return tuple(a + b for a, b in zip(x, y, strict=True))


def _transposed(A: Block) -> Block:
    return tuple(zip(*A, strict=True))
