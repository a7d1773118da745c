"""The Jacobian of the equations of a step, ``F(d) = p``, in factors, and its solution in O(n).

A change y of the displacement moves the body at t_(k+1) by ``V = sum S'_j y_j`` over the rows that carry it. The
wrench of its momentum changes by ``B V`` with a nonsymmetric 6x6 matrix B. With sums over all that a row carries,

    dF_i = S_i . sum B V + (drives)_ij y_j

is solved for y by an articulated-body elimination toward the root, with S on the left and S' on the right:

    A <- A - (A S') (S^T A) / (S . A S' + drive).

Springs or limits that couple the degrees of freedom of a joint add as many entries to the six of a twist, and the
coupling to these; they end at the first row of the joint. With mimic joints, the matrix of all rows is reduced and
solved as a whole. Everything is written by components: a native function of XLA consists of vectors over the batch.

Source: Lee, Liu, Park, Srinivasa 2016, appendix; Fan, Schultz, Murphey, Efficient computation of higher-order
variational integrators in robotic simulation and trajectory optimization, WAFR 2018.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim._compile.linalg import dense, elimination
from lgsim._compile.spatial import Mat, Motion, Vec
from lgsim._compile.xla import fusion_barrier
from lgsim.dynamics import linearization
from lgsim.dynamics.discrete.discrete_momenta import Moved, midpoint_forces
from lgsim.dynamics.discrete.displacement import end_columns
from lgsim.dynamics.discrete.rotation_maps import RotationMap, hat
from lgsim.multibody.joint import GroupJoint
from lgsim.multibody.model import Model
from lgsim.multibody.topology import Topology

Column = tuple[Array, ...]
"""A vector of six or more components, each of shape (*rows, *batch)."""
Block = tuple[Column, ...]
"""A square matrix by rows."""
FEW = 8
"""Number of rows up to which the full matrix takes fewer operations than the elimination of a tree.

The full matrix takes 84 operations per row and 22 for each row that carries it, the elimination 300."""


class BodyMatrix(NamedTuple):
    """The 6x6 matrix B of one body, or of a sum of bodies, from a twist (v, w) to a wrench (force, moment).

    ::

                     v            w
        force    share 1     - [end] x
        moment  [start] x      spin

    Attributes:
        share: The mass divided by the step size.
        start: First moments of mass at the start of the step.
        end: First moments of mass at the end.
        spin: Derivative of the moment with respect to a rotation.
    """

    share: Array
    start: Vec
    end: Vec
    spin: Mat

    @property
    def transposed(self) -> BodyMatrix:
        """The transposed matrix."""
        return BodyMatrix(self.share, self.end, self.start, self.spin.T)

    def __matmul__(self, V: Motion) -> Column:
        """The product with a twist."""
        return *(V.v * self.share - self.end.cross(V.w)), *(self.start.cross(V.v) + self.spin @ V.w)

    def added(self, A: Block) -> Block:
        """The sum with the first six rows and columns of a matrix."""
        m, (a, b, c), (x, y, z), N = self
        # in the upper right - [x y z] x, in the lower left [a b c] x
        first, second, third, *rest = A
        rows = (
            (first[0] + m, *first[1:4], first[4] + z, first[5] - y),
            (second[0], second[1] + m, second[2], second[3] - z, second[4], second[5] + x),
            (*third[:2], third[2] + m, third[3] + y, third[4] - x, third[5]),
            (rest[0][0], rest[0][1] - c, rest[0][2] + b, *_sum(rest[0][3:6], N.r0)),
            (rest[1][0] + c, rest[1][1], rest[1][2] - a, *_sum(rest[1][3:6], N.r1)),
            (rest[2][0] - b, rest[2][1] + a, rest[2][2], *_sum(rest[2][3:6], N.r2)),
        )
        return *((*row, *old[6:]) for row, old in zip(rows, A, strict=False)), *rest[3:]


@dataclass(frozen=True)
class StepMatrix:
    """The Jacobian of the equations of a step with respect to the displacements, in factors.

    Attributes:
        body: B of a row as a function of the data there.
        known: The data by rows; each B is computed when it is needed.
        left: The screw S of each row.
        right: The screw S' of each row in the chart of the displacements.
        drive: Diagonal entry of each degree of freedom (nv, *batch).
        slopes: Derivatives of springs and limits that couple the degrees of freedom of a joint, (n, nv, *batch) as in
            ``_midpoint_slopes``, or None.
        back: True for the transposed matrix.
    """

    body: Callable[[Any], BodyMatrix]
    known: Any
    left: Motion
    right: Motion
    drive: Array
    slopes: Array | None = None
    back: bool = False

    @property
    def transposed(self) -> StepMatrix:
        """The factors of the transposed matrix."""
        return StepMatrix(
            lambda known: self.body(known).transposed, self.known, self.right, self.left, self.drive, self.slopes,
            not self.back,
        )  # fmt: skip


def coupled(tree: Topology) -> tuple[int, ...]:
    """The joints whose springs or limits couple their degrees of freedom."""
    return tuple(
        body
        for body, joint in enumerate(tree.joints)
        if isinstance(joint, GroupJoint) and (joint.stopped or joint.nq == joint.nv)
    )


def step_matrix(kind: RotationMap, model: Model, q: Array, step: Moved, d: Array, h: Array) -> StepMatrix:
    """The Jacobian at a step with displacements d (nv, *batch) of length h (1, *batch)."""
    tree, at, rate = model.topology, step.at, 1 / h[0]

    def body(known: tuple) -> BodyMatrix:
        share, start, end, s, phi, inertia = known
        moment = start * share
        spin = kind.spin_slope(s, phi, inertia) * rate
        return fusion_barrier(BodyMatrix(share, moment, end * share, spin - hat(moment) @ hat(end)))

    known = at.mass / h, at.center, step.center, step.s, step.phi, at.inertia
    right = end_columns(tree, d, step.screws)
    # -h/2 times the derivative of the midpoint forces: half of their impulse acts at the start
    slopes = -0.5 * h[None] * _midpoint_slopes(model, q, d, h)
    members = coupled(tree)
    alone = np.ones(tree.nv, bool)
    for member in members:
        alone[tree.v_slice(member)] = False
    drive = fusion_barrier(model.armature / h + jnp.where(_column(alone, d), slopes[0], 0))
    return StepMatrix(body, known, at.screws, right, drive, fusion_barrier(slopes) if members else None)


def _midpoint_slopes(model: Model, q: Array, d: Array, h: Array) -> Array:
    """The derivatives of ``midpoint_forces`` with respect to the displacement, (1, nv, *batch) without coupling.

    For coupled joints (n, nv, *batch): [j, i] is the derivative of entry i with respect to the j-th entry of its joint.
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
    """(width, nv): 1 for the j-th entry of each coupled joint; all entries of other joints are in the first row."""
    seeds = np.zeros((width, tree.nv))
    seeds[0] = 1
    for body in members:
        part = tree.v_slice(body)
        seeds[:, part] = np.eye(width)[:, : part.stop - part.start]
    return seeds


def _units(tree: Topology, slopes: Array) -> tuple[Column, Block]:
    """(unit vectors of the rows of coupled joints, blocks of the joints), to extend the twists and body matrices."""
    width = len(slopes)
    units = np.zeros((width, tree.rows))
    chosen = np.zeros((width, width, tree.rows), int)
    for body in coupled(tree):
        start, part = tree.row_starts[body], tree.v_slice(body)
        count = part.stop - part.start
        units[:count, start : start + count] = np.eye(count)
        chosen[:count, :count, tree.body_row[body]] = _places(tree, part)
    one = jnp.ones((tree.rows, *slopes.shape[2:]), slopes.dtype)
    unit = tuple(one * _column(row, one) for row in units)
    return unit, tuple(tuple(_chosen(slopes, place) for place in row) for row in chosen)


def _joint_blocks(tree: Topology, slopes: Array) -> Array:
    """The blocks of coupled joints in a matrix (nv, nv, *batch)."""
    chosen = np.zeros((tree.nv, tree.nv), int)
    for body in coupled(tree):
        part = tree.v_slice(body)
        chosen[part, part] = _places(tree, part)
    return _chosen(slopes, chosen)


def _places(tree: Topology, part: slice) -> np.ndarray:
    """Index of the block [i, j] of a joint in the flat slopes, plus one."""
    i = np.arange(part.start, part.stop)
    return 1 + np.arange(len(i))[None] * tree.nv + i[:, None]


def _chosen(slopes: Array, places: np.ndarray) -> Array:
    """Entries of the slopes at indices of ``_places``, zero at index 0."""
    flat = slopes.reshape(slopes.shape[0] * slopes.shape[1], *slopes.shape[2:])
    return jnp.concatenate([jnp.zeros_like(flat[:1]), flat])[places]


def _column(flags: np.ndarray, like: Array) -> np.ndarray:
    return flags.reshape(flags.shape + (1,) * (like.ndim - flags.ndim))


def solve(model: Model, matrix: StepMatrix, r: Array) -> Array:
    """``J^-1 r`` (nv, *batch): by the full matrix for few rows or mimic joints, else by elimination."""
    tree = model.topology
    return _solve_whole(model, matrix, r) if tree.has_mimic or tree.rows <= FEW else _solve_tree(tree, matrix, r)


def _solve_tree(tree: Topology, matrix: StepMatrix, r: Array) -> Array:
    order = linearization.order(tree)
    batch = r.shape[1:]
    unit, coupling = ((), ()) if matrix.slopes is None else _units(tree, matrix.slopes)
    coupling = _transposed(coupling) if matrix.back else coupling
    left, right = ((*S.v, *S.w, *unit) for S in (matrix.left, matrix.right))
    width = len(left)
    # the additional entries of a joint end at its first row
    inner = jnp.asarray(_column(~tree.row_first, r), r.dtype)
    zero = jnp.zeros((), r.dtype)

    def inward(below: tuple[Block, Column], x: tuple) -> tuple[tuple[Block, Column], tuple[Column, Array]]:
        (A, P), (left, right, known, coupling, drive, r, inner) = below, x
        # A_i: the bodies further out, the body of the row, and the coupling within its joint
        A = matrix.body(known).added(A)
        A = *A[:6], *((*row[:6], *_sum(row[6:], own)) for row, own in zip(A[6:], coupling, strict=True))
        A = fusion_barrier(A)
        # the column U = A S', the row W = S^T A, and the pivot S . A S' + drive
        U = fusion_barrier(tuple(_dot(row, right) for row in A))
        W = fusion_barrier(tuple(_dot(column, left) for column in _transposed(A)))
        pivot = 1 / (_dot(left, U) + drive)
        # y_i = free - gain . (displacement of the parent)
        free = fusion_barrier(pivot * (r - _dot(left, P)))
        gain = fusion_barrier(tuple(w * pivot for w in W))
        # A <- A - U W / pivot, P <- P + U free: the system that remains for the parent
        A = tuple(tuple(a - u * g for a, g in zip(row, gain, strict=True)) for row, u in zip(A, U, strict=True))
        P = tuple(p + u * free for p, u in zip(P, U, strict=True))
        A, P = tuple(_kept(row, inner) for row in _kept(A, inner)), _kept(P, inner)
        return fusion_barrier((A, P)), (gain, free)

    nothing = (zero,) * width
    xs = (left, right, matrix.known, coupling, matrix.drive, r, inner)
    _, (gain, free) = order.inward(inward, ((nothing,) * width, nothing), xs, batch)

    # back substitution, outward: eta_i = eta_p + S'_i y_i
    def outward(eta: Column, x: tuple) -> tuple[Column, Array]:
        right, gain, free, inner = x
        eta = _kept(eta, inner)
        y = fusion_barrier(free - _dot(gain, eta))
        return fusion_barrier(tuple(e + s * y for e, s in zip(eta, right, strict=True))), y

    zero_motion = jax.tree.map(lambda z: jnp.broadcast_to(z, batch), nothing)
    return order.outward(outward, zero_motion, (right, gain, free, inner), batch)


def _kept(x: tuple[Any, ...], inner: Array) -> tuple[Any, ...]:
    """Entries of a column, or rows of a block, with those beyond the first six multiplied by ``inner``."""
    return (*x[:6], *(jax.tree.map(lambda c: c * inner, each) for each in x[6:]))


def _solve_whole(model: Model, matrix: StepMatrix, r: Array) -> Array:
    tree = model.topology
    left, right = ((*S.v, *S.w) for S in (matrix.left, matrix.right))

    def inward(below: BodyMatrix, x: tuple) -> tuple[BodyMatrix, tuple[Array, Array]]:
        own_left, own_right, known = x
        total = fusion_barrier(jax.tree.map(jnp.add, below, matrix.body(known)))
        U, W = fusion_barrier((total @ own_right, total.transposed @ own_left))
        return total, fusion_barrier((_dot(_rows(W), right), _dot(left, _rows(U))))

    z = jnp.zeros((), r.dtype)
    zero = Vec(z, z, z)
    xs = matrix.left, matrix.right, matrix.known
    nothing = BodyMatrix(z, zero, zero, Mat(zero, zero, zero))
    _, (lower, upper) = linearization.order(tree).inward(inward, nothing, xs, r.shape[1:])
    below = tree.row_carried
    # S_i . (B_i S'_j) from both triangles, then mimic joints, drives and coupled joints
    M = dense.masked(below, lower) + dense.masked(below.T & ~below, dense.transpose(upper))
    M = linearization.reduced(model, M)
    n = len(M)
    eye = np.eye(n, dtype=bool).reshape(n, n, *[1] * (M.ndim - 2))
    M = M + jnp.where(eye, matrix.drive[None], 0)
    if matrix.slopes is not None:
        blocks = _joint_blocks(tree, matrix.slopes)
        M = M + (dense.transpose(blocks) if matrix.back else blocks)
    return elimination.solve(elimination.factor(M), r)


def _rows(x: Column) -> Column:
    """A vector of one row with an axis of length one, to broadcast with all rows."""
    return tuple(c[None] for c in x)


def _dot(x: Column, y: Column) -> Array:
    return sum((a * b for a, b in zip(x[1:], y[1:], strict=True)), x[0] * y[0])


def _sum(x: Column, y: Column) -> Column:
    return tuple(a + b for a, b in zip(x, y, strict=True))


def _transposed(A: Block) -> Block:
    return tuple(zip(*A, strict=True))
