"""Inverse and forward dynamics with all Jacobians, in O(n d) for n rows and tree depth d.

All quantities are in the root frame. The screw, motion and mass moments of each row at (q, v) are computed once
(``freeze``); accelerations and forces follow (``accelerations``, ``net_forces``). A Jacobian is a masked product of the
motion that a row causes (``Changes``) and the sums over what it carries (``Carried``).

The mass moments determine the inertia and Coriolis forces of a moving body, or of a sum of bodies. With r and r' the
position and velocity of a mass element in one fixed frame, the Coriolis effects of a rigid body need
twelve numbers: ``P = int r' r^T dm`` and ``p = int r' dm``. The 6x6 matrix B of Singh, Russell, Wensing, Efficient
analytical derivatives of rigid-body dynamics using spatial vector algebra, IEEE Robotics and Automation Letters 7(2),
2022, for a rigid body is ``w -> int (w x r', r x (w x r')) dm``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim._compile.linalg import dense
from lgsim._compile.spatial import Force, Inertia, Mat, Motion, Sym, Transform, Vec, cross_dual, to_parent
from lgsim._compile.spatial.algebra import Scalar
from lgsim._compile.spatial.inertia import cross_matrix
from lgsim._compile.xla import fusion_barrier
from lgsim.dynamics import row_tree
from lgsim.dynamics import rows as row
from lgsim.dynamics.row_tree import Sweep
from lgsim.multibody.model import Model
from lgsim.multibody.topology import Topology


class CoriolisFactor(NamedTuple):
    """``P = int r' r^T dm`` and ``p = int r' dm``."""

    P: Mat
    p: Vec

    def __matmul__(self, w: Vec) -> Force:
        """``int (w x r', r x (w x r')) dm``: half the Coriolis wrench of a rotation w of the body."""
        return Force(w.cross(self.p), w * _trace(self.P) - self.P @ w)

    def transpose_angular(self, V: Motion) -> Vec:
        """The vector c with ``c . w = (self @ w) . V``."""
        return V.w * _trace(self.P) - self.P.transpose_apply(V.w) + self.p.cross(V.v)


def _of_body(inertia: Inertia, T: Transform, V: Motion) -> tuple[Inertia, CoriolisFactor]:
    """Mass moments of a body with pose T and motion V, in the frame of both."""
    moved = fusion_barrier(inertia.transformed(T))
    return moved, _of_inertia(moved, V)


def _of_inertia(inertia: Inertia, V: Motion) -> CoriolisFactor:
    """The CoriolisFactor of an inertia with motion V, both in one frame: ``r' = v + w x r``."""
    I, h = inertia.I, inertia.h  # noqa: E741
    half = 0.5 * (I.xx + I.yy + I.zz)
    second = Sym(half - I.xx, -I.xy, -I.xz, half - I.yy, -I.yz, half - I.zz)  # int r r^T dm
    outer = Mat(h * V.v.x, h * V.v.y, h * V.v.z)
    return fusion_barrier(CoriolisFactor(outer + cross_matrix(V.w, second.matrix), V.v * inertia.m + V.w.cross(h)))


def _trace(P: Mat) -> Scalar:
    return P.r0.x + P.r1.y + P.r2.z


class WorldFrameState(NamedTuple):
    """A model at (q, v) in one fixed frame: the world, or the frame of a floating base. Components (k, *batch)."""

    S: Motion
    V: Motion
    """Twist of each row: sum over the rows that carry it and itself."""
    V_parent: Motion
    V_own: Motion
    """Twist before and after the joint of each row."""
    inertia: Inertia
    gyro: CoriolisFactor
    """Inertia and Coriolis factor of the body on each row only."""
    fall: Motion
    """(*batch): the acceleration of the frame at rest relative to free fall."""
    external: Force | None
    """External wrench on each row."""
    poses: Transform
    """Pose of each row."""


def order(tree: Topology) -> Sweep:
    """The order of all rows, those of a floating base included."""
    return Sweep(tree.row_parent)


def freeze(model: Model, q: Array, v: Array, wrenches: Array | None) -> WorldFrameState:
    """Screws, twists and mass moments at (q, v)."""
    tree = model.topology
    rows = row.rows(model)
    relative = row.poses(model, rows, q)
    fall = jax.tree.map(lambda x: jnp.broadcast_to(x, q.shape[1:]), row.gravity(model))
    if tree.floats:
        relative, fall = from_base(model, rows, relative, fall, q)
    T = world_poses(order(tree), relative, q.shape[1:])
    # S = b v_z + a w_z at the pose of the row, V = sum of S v outward
    z = Vec(T.R.r0.z, T.R.r1.z, T.R.r2.z)
    S = fusion_barrier(Motion(z * rows.b + T.p.cross(z) * rows.a, z * rows.a))
    V = order(tree).down(fusion_barrier(S * row.speeds(model, v)))
    own = V if not tree.groups else row.select(V, tree.row_unit[1])
    parent = _before(tree, V, S, row.speeds(model, v)) if tree.groups else V
    inertia, gyro = _of_body(row.row_inertias(tree, rows, row.inertias(model)), T, V)
    # external wrenches in the root frame, on the last row of each body
    external = None
    if wrenches is not None:
        F = Force(row.vector(wrenches), row.vector(wrenches, 3))
        A = row.select(rows.align, tree.body_row).T
        at = row.select(T, tree.body_row)
        external = row.spread(to_parent(at, Force(A @ F.f, A @ F.n)), tree.body_row, tree.rows)
    return WorldFrameState(S, V, parent, own, inertia, gyro, fall, external, T)


def _before(tree: Topology, V: Motion, S: Motion, rates: Array) -> Motion:
    """The twist of the carrier of each row's joint."""
    first, _ = tree.row_unit
    return row.select(V - S * rates, first)


def from_base(model: Model, rows: row.Rows, relative: Transform, fall: Motion, q: Array) -> tuple[Transform, Motion]:
    """Poses and fall in the frame of the base: mass moments about a far origin would lose digits."""
    joint = model.topology.base
    pose = row.transform(model.placements[:1]) @ joint.transform([q[i : i + 1] for i in range(joint.nq)])
    turned = row.select(pose.R, 0).T
    aligned = Transform(
        row.select(rows.align, slice(0, 1)), jax.tree.map(jnp.zeros_like, row.select(relative.p, slice(0, 1)))
    )
    moved = jax.tree.map(
        lambda x, y: jnp.concatenate([jnp.broadcast_to(y, (1, *x.shape[1:])), x[1:]]), relative, aligned
    )
    return moved, Motion(turned @ fall.v, fall.w)


def world_poses(order: Sweep, relative: Transform, batch: tuple[Any, ...]) -> Transform:
    """The pose of every row in the root frame."""

    def step(parent: Transform, T: Transform) -> tuple[Transform, Transform]:
        T = fusion_barrier(Transform(fusion_barrier(parent.R) @ T.R, parent.R @ T.p + parent.p))
        return T, T

    p = relative.p.x
    one, zero = jnp.ones(batch, p.dtype), jnp.zeros(batch, p.dtype)
    identity = Transform(
        Mat(Vec(one, zero, zero), Vec(zero, one, zero), Vec(zero, zero, one)),
        Vec(zero, zero, zero),
    )
    return order.outward(step, identity, relative, batch)


class Carried(NamedTuple):
    """Sums over all that a row carries, itself included."""

    inertia: Inertia
    gyro: CoriolisFactor
    force: Force


class Linear(NamedTuple):
    """Joint forces and their derivatives, by rows."""

    tau: Array
    dq: Array
    dv: Array
    mass: Array


def accelerations(tree: Topology, frozen: WorldFrameState, v: Array, a: Array | None) -> tuple[Motion, Motion, Motion]:
    """(A, S', A before the joint) at rates v and accelerations a (k, *batch); None for zero a."""
    drift = fusion_barrier(frozen.V_own.cross(frozen.S))
    given = drift * v if a is None else drift * v + frozen.S * a
    fall = jax.tree.map(lambda x: x[None], frozen.fall)
    A = order(tree).down(fusion_barrier(given)) + fall
    if not tree.groups:
        return fusion_barrier(A), drift, fusion_barrier(A)
    first, last = tree.row_unit
    return fusion_barrier(row.select(A, last)), drift, fusion_barrier(row.select(A - given, first))


def net_forces(frozen: WorldFrameState, A: Motion) -> Force:
    """The wrench that accelerates each body: ``I A + B w`` minus the external one."""
    F = frozen.inertia.momentum(A) + frozen.gyro @ frozen.V.w
    return fusion_barrier(F if frozen.external is None else F - frozen.external)


def mass_matrix(tree: Topology, S: Motion, F: Force) -> Array:
    """``M_ij = S_i . F_j`` by rows, F_j = I_j S_j of the row that is further out."""
    below = tree.row_carried
    M = dense.pairs(lambda F, S: F.power(S), F, S)
    if not below.all():
        M = dense.masked(below, M)
    other = dense.pairs(lambda S, F: F.power(S), S, F)
    return fusion_barrier(M + dense.masked(below.T & ~below, other))


class Changes(NamedTuple):
    """Derivatives of the motion with respect to each row, by rows."""

    psi: Motion
    """``psi'``: derivative of the velocity with respect to q."""
    psi2: Motion
    """``psi''``: derivative of the acceleration with respect to q."""
    rate: Motion
    """``psi' + S'``: derivative of the acceleration with respect to v."""


def changes(tree: Topology, frozen: WorldFrameState, drift: Motion, A_parent: Motion) -> Changes:
    """``psi' = V_p x S`` and ``psi'' = A_p x S + V_p x psi'``, p being the parent of the joint of the row."""
    psi = fusion_barrier(frozen.V_parent.cross(frozen.S)) if tree.groups else drift
    return Changes(
        psi, fusion_barrier(A_parent.cross(frozen.S) + frozen.V_parent.cross(psi)), fusion_barrier(psi + drift)
    )


def derivatives(
    tree: Topology, frozen: WorldFrameState, carried: Carried, drift: Motion, A_parent: Motion
) -> tuple[Array, Array]:
    """(dtau/dq, dtau/dv) by rows, Singh, Russell, Wensing 2022.

    Where the joint of j carries i, or is the same joint:

        (1)  dq_ij = S_i . (I_i psi''_j + 2 B_i psi'_j),  dv_ij = S_i . (I_i (psi'_j + S'_j) + 2 B_i S_j);

    and where the joint of i carries j, with the wrench N_j that passes through j:

        (2)  dq_ij = S_i . (I_j psi''_j + 2 B_j psi'_j + S_j x* N_j),  dv_ij = S_i . (I_j (psi'_j + S'_j) + 2 B_j S_j).
    """
    # pairs (i, j): the joint of j carries i or is its joint; the joint of i carries j and is another one
    below = tree.row_carried
    above = (below & ~below.T).T
    S, (psi, psi2, rate) = frozen.S, changes(tree, frozen, drift, A_parent)
    I, B, N = carried  # noqa: E741
    # 2 B_i^T S_i and I_i S_i of (1), once for each row
    feels = fusion_barrier((B.transpose_angular(S) * 2.0, I.momentum(S)))

    def lower(x, y):
        (g, f), (turn, push) = x, y
        return g.dot(turn) + f.power(push)

    def upper(s, k):
        return k.power(s)

    dq = dense.masked(below, dense.pairs(lower, feels, (psi.w, psi2)))
    dv = dense.masked(below, dense.pairs(lower, feels, (S.w, rate)))
    if above.any():
        # the brackets of (2), once for each row
        drag = fusion_barrier(I.momentum(rate) + (B @ S.w) * 2.0)
        push = fusion_barrier(cross_dual(S, N) + I.momentum(psi2) + (B @ psi.w) * 2.0)
        dq = dq + dense.masked(above, dense.pairs(upper, S, push))
        dv = dv + dense.masked(above, dense.pairs(upper, S, drag))
    return fusion_barrier((dq, dv))


def reduced(model: Model, array: Array) -> Array:
    """A matrix by rows (k, k, *batch) in the degrees of freedom (nv, nv, *batch): ``G^T A G`` with mimic joints."""
    if not model.topology.has_mimic:
        return array
    half = row.gathered(model, array)
    return jnp.swapaxes(row.gathered(model, jnp.swapaxes(half, 0, 1)), 0, 1)


def armature(model: Model, M: Array) -> Array:
    """M (nv, nv, *batch) plus the armature on its diagonal."""
    n = M.shape[0]
    eye = np.eye(n, dtype=bool).reshape((n, n) + (1,) * (M.ndim - 2))
    return M + jnp.where(eye, model.armature[None], 0)


def inverse(model: Model, q: Array, v: Array, a: Array, wrenches: Array | None) -> Linear:
    """Inverse dynamics and its derivatives in the degrees of freedom."""
    q, v, a = row_tree.full((model, wrenches), q, v, a)
    tree = model.topology
    # pass 1, outward: S, V, A and S' = V x S of each row
    frozen = freeze(model, q, v, wrenches)
    A, drift, A_parent = accelerations(tree, frozen, row.speeds(model, v), row.speeds(model, a))
    # pass 2, inward: I, B and N summed over all that each row carries
    I, B, N = order(tree).up((frozen.inertia, frozen.gyro, net_forces(frozen, A)))  # noqa: E741
    # pass 3, pairs of rows (i, j): tau, M, dtau/dq and dtau/dv
    tau = N.power(frozen.S)
    M = mass_matrix(tree, frozen.S, fusion_barrier(I.momentum(frozen.S)))
    dq, dv = derivatives(tree, frozen, Carried(I, B, N), drift, A_parent)
    M = armature(model, reduced(model, M))
    return Linear(row.gathered(model, tau) + model.armature * a, reduced(model, dq), reduced(model, dv), M)


def forward(model: Model, q: Array, v: Array, tau: Array, wrenches: Array | None) -> tuple[Array, Array, Array, Array]:
    """(v', dtau/dq, dtau/dv at that v', inverse mass matrix); ``dv'/dx = -inverse dtau/dx``."""
    a, dq, dv, _, W = forward_by(model, q, v, tau, wrenches, dense.inverse, dense.times)
    return a, dq, dv, W


def forward_by(
    model: Model,
    q: Array,
    v: Array,
    tau: Array,
    wrenches: Array | None,
    prepare: Callable[[Array], Array],
    solve: Callable[[Array, Array], Array],
) -> tuple[Array, Array, Array, Array, Array]:
    """(v', dtau/dq, dtau/dv at that v', the mass matrix M, ``prepare(M)``) with ``v' = solve(prepare(M), ...)``."""
    q, v, tau = row_tree.full((model, wrenches), q, v, tau)
    tree = model.topology
    # passes 1 and 2 of inverse dynamics at v' = 0
    frozen = freeze(model, q, v, wrenches)
    rates = row.speeds(model, v)
    A, drift, A_parent = accelerations(tree, frozen, rates, None)
    I, B, N = order(tree).up((frozen.inertia, frozen.gyro, net_forces(frozen, A)))  # noqa: E741
    F = fusion_barrier(I.momentum(frozen.S))
    M = armature(model, reduced(model, mass_matrix(tree, frozen.S, F)))
    prepared = prepare(M)
    a = fusion_barrier(solve(prepared, fusion_barrier(tau - row.gathered(model, N.power(frozen.S)))))
    # A and N are affine in v': D = sum S_j v'_j over the rows that carry it adds to A, and I D + sum F_j v'_j over the
    # rows further out, with F_j = I_j S_j, adds to N
    rates = row.speeds(model, a)
    given = frozen.S * rates
    D = order(tree).down(fusion_barrier(given))
    pushed = fusion_barrier(F * rates)
    further = order(tree).up(pushed)
    N = fusion_barrier(N + I.momentum(D) + further - pushed)
    if tree.groups:
        first, _ = tree.row_unit
        D = row.select(D - given, first)
    # pass 3 at that v'
    dq, dv = derivatives(tree, frozen, Carried(I, B, N), drift, fusion_barrier(A_parent + D))
    return a, reduced(model, dq), reduced(model, dv), M, prepared
