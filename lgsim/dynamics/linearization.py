"""Inverse dynamics and all its derivatives in closed form, in one fixed frame, the batch last.

For a row j with screw S_j, carried by the motion V and acceleration A (against free fall) of what carries its joint:

    psi'_j = V x S_j,   psi''_j = A x S_j + V x psi'_j,   S'_j = V_own x S_j

and for i carried by j, or of the same joint, with I_i, B_i, N_i the inertia, Gyro and net force of all that i carries:

    dtau_i/dq_j = S_i . (I_i psi''_j + 2 B_i psi'_j)
    dtau_j/dq_i = S_j . (I_i psi''_i + 2 B_i psi'_i + S_i x* N_i)        (j of another joint)
    dtau_i/dv_j = S_i . (I_i (psi'_j + S'_j) + 2 B_i S_j),   dtau_j/dv_i the same with S_j . (...)_i
    M_ij = S_i . I_i S_j

Derivatives with respect to q are along the tangent, ``q -> retract(q, dv)``. Source: Singh, Russell, Wensing 2022,
Table II, for joints of any degree of freedom; its matrix B reduced to moments of mass (``moments.py``).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.dynamics import machine as mc
from lgsim.dynamics import matrices, moments
from lgsim.dynamics import rows as row
from lgsim.dynamics.sweep import Sweep
from lgsim.multibody.model import Model
from lgsim.multibody.topology import Topology
from lgsim.spatial import Force, Inertia, Mat, Motion, Transform, Vec, cross_dual, cut, to_parent


class Frozen(NamedTuple):
    """A model at (q, v) in one fixed frame: the world, or the one where a free base is. Components (k, *batch)."""

    S: Motion
    V: Motion
    """Of each row: sum over the rows that carry it and itself."""
    V_parent: Motion
    V_own: Motion
    """Before and after the joint of each row."""
    inertia: Inertia
    gyro: moments.Gyro
    """Of the body on each row alone."""
    fall: Motion
    """(*batch): the acceleration of the frame at rest against free fall."""
    external: Force | None
    """Of each row."""


def order(tree: Topology) -> Sweep:
    """All rows, those of a free base included."""
    return Sweep(tree.row_parent)


def freeze(model: Model, q: Array, v: Array, wrenches: Array | None) -> Frozen:
    """Screws, motions and moments at (q, v)."""
    tree = model.topology
    rows = row.rows(model)
    relative = row.poses(model, rows, q)
    fall = jax.tree.map(lambda x: jnp.broadcast_to(x, q.shape[1:]), row.gravity(model))
    if tree.floats:
        relative, fall = _from_base(model, rows, relative, fall, q)
    T = world_poses(order(tree), relative, q.shape[1:])
    z = Vec(T.R.r0.z, T.R.r1.z, T.R.r2.z)
    S = cut(Motion(z * rows.b + T.p.cross(z) * rows.a, z * rows.a))
    V = order(tree).down(cut(S * row.speeds(model, v)))
    own = V if not tree.groups else row.select(V, tree.row_unit[1])
    parent = _before(tree, V, S, row.speeds(model, v)) if tree.groups else V
    inertia, gyro = moments.of_body(row.row_inertias(tree, rows, row.inertias(model)), T, V)
    external = None
    if wrenches is not None:
        F = Force(row.vector(wrenches), row.vector(wrenches, 3))
        A = row.select(rows.align, tree.body_row).T
        at = row.select(T, tree.body_row)
        external = row.spread(to_parent(at, Force(A @ F.f, A @ F.n)), tree.body_row, tree.rows)
    return Frozen(S, V, parent, own, inertia, gyro, fall, external)


def _before(tree: Topology, V: Motion, S: Motion, rates: Array) -> Motion:
    """The motion of what carries the joint of each row."""
    first, _ = tree.row_unit
    return row.select(V - S * rates, first)


def _from_base(model: Model, rows: row.Rows, relative: Transform, fall: Motion, q: Array) -> tuple[Transform, Motion]:
    """Poses and fall in the frame where the base is: moments about a far origin would lose digits."""
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


def world_poses(order: Sweep, relative: Transform, batch: tuple[int, ...]) -> Transform:
    """The pose of every row in the frame of the roots."""

    def step(parent: Transform, T: Transform) -> tuple[Transform, Transform]:
        T = cut(Transform(cut(parent.R) @ T.R, parent.R @ T.p + parent.p))
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
    gyro: moments.Gyro
    force: Force


class Linear(NamedTuple):
    """Joint forces and their derivatives, by rows."""

    tau: Array
    dq: Array
    dv: Array
    mass: Array


def accelerations(tree: Topology, frozen: Frozen, v: Array, a: Array | None) -> tuple[Motion, Motion, Motion]:
    """(A, S', A before the joint) at rates v and accelerations a (k, *batch), or none."""
    drift = cut(frozen.V_own.cross(frozen.S))
    given = drift * v if a is None else drift * v + frozen.S * a
    fall = jax.tree.map(lambda x: x[None], frozen.fall)
    A = order(tree).down(cut(given)) + fall
    if not tree.groups:
        return cut(A), drift, cut(A)
    first, last = tree.row_unit
    return cut(row.select(A, last)), drift, cut(row.select(A - given, first))


def net_forces(frozen: Frozen, A: Motion) -> Force:
    """What each body needs: ``I A + B w`` less the external wrench."""
    F = frozen.inertia.momentum(A) + frozen.gyro @ frozen.V.w
    return cut(F if frozen.external is None else F - frozen.external)


def mass_matrix(tree: Topology, S: Motion, F: Force) -> Array:
    """``M_ij = S_i . F_j``, F_j = I_i S_j of the row that is further out, by rows."""
    below = tree.row_carried
    M = matrices.pairs(lambda F, S: F.power(S), F, S)
    if not below.all():
        M = matrices.masked(below, M)
    other = matrices.pairs(lambda S, F: F.power(S), S, F)
    return cut(M + matrices.masked(below.T & ~below, other))


class Changes(NamedTuple):
    """How the motion changes with each row, by rows."""

    psi: Motion
    """``psi'``: of the velocity with q."""
    psi2: Motion
    """``psi''``: of the acceleration with q."""
    rate: Motion
    """``psi' + S'``: of the acceleration with v."""


def changes(tree: Topology, frozen: Frozen, drift: Motion, A_parent: Motion) -> Changes:
    """The motions of the equations above."""
    psi = cut(frozen.V_parent.cross(frozen.S)) if tree.groups else drift
    return Changes(psi, cut(A_parent.cross(frozen.S) + frozen.V_parent.cross(psi)), cut(psi + drift))


def derivatives(
    tree: Topology, frozen: Frozen, carried: Carried, drift: Motion, A_parent: Motion
) -> tuple[Array, Array]:
    """(dtau/dq, dtau/dv) by rows."""
    # pairs (i, j): the joint of j carries i or is its joint; the joint of i carries j and is another one
    below = tree.row_carried
    above = (below & ~below.T).T
    S, (psi, psi2, rate) = frozen.S, changes(tree, frozen, drift, A_parent)
    I, B, N = carried  # noqa: E741
    feels = cut((B.transpose_angular(S) * 2.0, I.momentum(S)))

    def lower(x, y):
        (g, f), (turn, push) = x, y
        return g.dot(turn) + f.power(push)

    def upper(s, k):
        return k.power(s)

    dq = matrices.masked(below, matrices.pairs(lower, feels, (psi.w, psi2)))
    dv = matrices.masked(below, matrices.pairs(lower, feels, (S.w, rate)))
    if above.any():
        drag = cut(I.momentum(rate) + (B @ S.w) * 2.0)
        push = cut(cross_dual(S, N) + I.momentum(psi2) + (B @ psi.w) * 2.0)
        dq = dq + matrices.masked(above, matrices.pairs(upper, S, push))
        dv = dv + matrices.masked(above, matrices.pairs(upper, S, drag))
    return cut((dq, dv))


def reduced(model: Model, array: Array) -> Array:
    """A matrix by rows (k, k, *batch) in the degrees of freedom (nv, nv, *batch): ``G^T A G`` where joints mimic."""
    if not model.topology.has_mimic:
        return array
    half = row.gathered(model, array)
    return jnp.swapaxes(row.gathered(model, jnp.swapaxes(half, 0, 1)), 0, 1)


def armature(model: Model, M: Array) -> Array:
    """M (nv, nv, *batch) with the armature on its diagonal."""
    n = M.shape[0]
    eye = np.eye(n, dtype=bool).reshape((n, n) + (1,) * (M.ndim - 2))
    return M + jnp.where(eye, model.armature[None], 0)


def inverse(model: Model, q: Array, v: Array, a: Array, wrenches: Array | None) -> Linear:
    """Inverse dynamics with its derivatives in the degrees of freedom."""
    q, v, a = mc.full((model, wrenches), q, v, a)
    tree = model.topology
    frozen = freeze(model, q, v, wrenches)
    A, drift, A_parent = accelerations(tree, frozen, row.speeds(model, v), row.speeds(model, a))
    I, B, N = order(tree).up((frozen.inertia, frozen.gyro, net_forces(frozen, A)))  # noqa: E741
    tau = N.power(frozen.S)
    M = mass_matrix(tree, frozen.S, cut(I.momentum(frozen.S)))
    dq, dv = derivatives(tree, frozen, Carried(I, B, N), drift, A_parent)
    M = armature(model, reduced(model, M))
    return Linear(row.gathered(model, tau) + model.armature * a, reduced(model, dq), reduced(model, dv), M)


def forward(model: Model, q: Array, v: Array, tau: Array, wrenches: Array | None) -> tuple[Array, Array, Array, Array]:
    """(v', dtau/dq, dtau/dv at that v', inverse mass matrix); ``dv'/dx = -inverse dtau/dx``."""
    q, v, tau = mc.full((model, wrenches), q, v, tau)
    tree = model.topology
    frozen = freeze(model, q, v, wrenches)
    rates = row.speeds(model, v)
    A, drift, A_parent = accelerations(tree, frozen, rates, None)
    I, B, N = order(tree).up((frozen.inertia, frozen.gyro, net_forces(frozen, A)))  # noqa: E741
    F = cut(I.momentum(frozen.S))
    M = armature(model, reduced(model, mass_matrix(tree, frozen.S, F)))
    W = matrices.inverse(M)
    a = cut(matrices.times(W, cut(tau - row.gathered(model, N.power(frozen.S)))))
    # what the accelerations add to motions and forces
    rates = row.speeds(model, a)
    given = frozen.S * rates
    D = order(tree).down(cut(given))
    pushed = cut(F * rates)
    further = order(tree).up(pushed)
    N = cut(N + I.momentum(D) + further - pushed)
    if tree.groups:
        first, _ = tree.row_unit
        D = row.select(D - given, first)
    dq, dv = derivatives(tree, frozen, Carried(I, B, N), drift, cut(A_parent + D))
    return a, reduced(model, dq), reduced(model, dv), W
