"""Products of the Jacobian of forward dynamics and of its transpose with a vector, in O(n) by sums over the tree.

With the notation of ``linearization.py``, a change (dq, dv) moves body b by sums over the rows that carry it,

    dV_b = sum psi'_j dq_j + S_j dv_j,    dA_b = sum psi''_j dq_j + (psi'_j + S'_j) dv_j

With P_b = I_b dA_b + 2 B_b dV_b and N_j the net force of all that row j carries, inverse dynamics changes by

    dtau_i = S_i . (sum over all that i carries of P_b  +  sum over the joints further out of S_j x* N_j dq_j).

For the transpose let X = sum S_i x_i. With p_j = sum I_b X_b and c_j = sum 2 B_b^T X_b over all that j carries,

    (x^T dtau/dq)_j = psi''_j . p_j + psi'_j . c_j + X(before j) . (S_j x* N_j)
    (x^T dtau/dv)_j = (psi'_j + S'_j) . p_j + S_j . c_j.

As all inertias are in one frame, the articulated-body elimination for ``M y = x`` needs no frame changes.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from lgsim._compile.spatial import Articulated, Force, Mat, Motion, Sym, Vec, cross_dual
from lgsim._compile.xla import fusion_barrier
from lgsim.dynamics import linearization, row_tree
from lgsim.dynamics import rows as row
from lgsim.multibody.model import Model
from lgsim.multibody.topology import Topology


class Moving(NamedTuple):
    """A model at (q, v, v'), by rows (k, *batch) in one frame."""

    frozen: linearization.WorldFrameState
    changes: linearization.Changes
    turned: Force
    """``S x* N``."""


def moving(model: Model, q: Array, v: Array, a: Array, wrenches: Array | None) -> Moving:
    """The state and its derivatives that both products need."""
    tree = model.topology
    frozen = linearization.freeze(model, q, v, wrenches)
    A, drift, A_parent = linearization.accelerations(tree, frozen, row.speeds(model, v), row.speeds(model, a))
    N = linearization.order(tree).up(linearization.net_forces(frozen, A))
    return Moving(frozen, linearization.changes(tree, frozen, drift, A_parent), fusion_barrier(cross_dual(frozen.S, N)))


def change(
    model: Model, q: Array, v: Array, a: Array, wrenches: Array | None, dq: Array, dv: Array, dtau: Array
) -> Array:
    """``M^-1 (dtau - dID)`` for changes (nv, *batch) of the state, along the tangent, and of the joint forces."""
    q, v, a, dq, dv, dtau = row_tree.full((model, wrenches), q, v, a, dq, dv, dtau)
    tree = model.topology
    order = linearization.order(tree)
    m = moving(model, q, v, a, wrenches)
    S, inertia, gyro = m.frozen.S, m.frozen.inertia, m.frozen.gyro
    psi, psi2, rate = m.changes
    turn = fusion_barrier(psi.w * dq + S.w * dv)
    # dV_b and dA_b as sums over the rows that carry b
    dA, dw = order.down((fusion_barrier(psi2 * dq + rate * dv), turn))
    if tree.groups:
        dA, dw = row.select((dA, dw), tree.row_unit[1])
    own = fusion_barrier(m.turned * dq)
    # P_b + S x* N dq summed inward; the own joint adds nothing to its S x* N term
    F = order.up(fusion_barrier(inertia.momentum(dA) + (gyro @ dw) * 2.0 + own))
    F = _further(tree, F, own)
    return solve(model, m.frozen, fusion_barrier(dtau - F.power(S)))[0]


def _further(tree: Topology, sums: Force, own: Force) -> Force:
    """Sums over all that a row carries, minus the part of its own joint."""
    if not tree.groups:
        return fusion_barrier(sums - own)
    within = linearization.order(tree).up(own)
    beyond = row.select(within - own, tree.row_unit[1])
    return fusion_barrier(sums - within + beyond)


def pulled(model: Model, q: Array, v: Array, a: Array, wrenches: Array | None, y: Array) -> tuple[Array, Array, Array]:
    """The transpose of ``change``: (dq, dv, dtau), each (nv, *batch), for a covector y of the acceleration."""
    q, v, a, y = row_tree.full((model, wrenches), q, v, a, y)
    tree = model.topology
    m = moving(model, q, v, a, wrenches)
    S, inertia, gyro = m.frozen.S, m.frozen.inertia, m.frozen.gyro
    psi, psi2, rate = m.changes
    # x = M^-1 y and the motion X = sum S_i x_i
    x, X = solve(model, m.frozen, y)
    before = X - S * x
    if tree.groups:
        first, last = tree.row_unit
        X, before = row.select(X, last), row.select(before, first)
    # p_j and c_j, then (x^T dtau/dq)_j and (x^T dtau/dv)_j
    p, c = linearization.order(tree).up(fusion_barrier((inertia.momentum(X), gyro.transpose_angular(X) * 2.0)))
    by_q = p.power(psi2) + c.dot(psi.w) + m.turned.power(before)
    by_v = p.power(rate) + c.dot(S.w)
    return -by_q, -by_v, x


def weighted_gradients(model: Model, q: Array, v: Array, a: Array, w: Array) -> tuple[Array, Array, Array]:
    """Gradients (nv, *batch) of ``w . ID(q, v, a)`` along the tangent at q and with respect to v and a."""
    q, v, a, w = row_tree.full((model, None), q, v, a, w)
    tree = model.topology
    m = moving(model, q, v, a, None)
    own = m.frozen.S * w
    X = linearization.order(tree).down(fusion_barrier(own))
    before = X - own
    if tree.groups:
        first, last = tree.row_unit
        before = row.select(before, first)
        carried = row.select(X, last)
    else:
        carried = X
    momentum, gyro = m.frozen.inertia.momentum(carried), m.frozen.gyro.transpose_angular(carried) * 2.0
    # p_j and c_j for X = sum S_i w_i, as in ``pulled``
    p, c = linearization.order(tree).up(fusion_barrier((momentum, gyro)))
    psi, psi2, rate = m.changes
    by_q = p.power(psi2) + c.dot(psi.w) + m.turned.power(before)
    by_v = p.power(rate) + c.dot(m.frozen.S.w)
    return by_q, by_v, p.power(m.frozen.S) + model.armature * w


class Eliminated(NamedTuple):
    """Result of an elimination for each row (k, *batch): ``y = free - gain . (motion of the parent)``.

    Attributes:
        gain: ``A S d`` with the articulated inertia A.
        free: ``d (x - S . P)``.
        give: ``d = 1/(S . A S + armature)``.
    """

    gain: Force
    free: Array
    give: Array


def solve(model: Model, frozen: linearization.WorldFrameState, x: Array) -> tuple[Array, Motion]:
    """``y = M^-1 x`` and the motion of each row at rates y, by articulated-body inertias in one frame."""
    left = eliminate(model, frozen, x)
    return substitute(model.topology, frozen.S, left.gain, left.free)


def eliminate(model: Model, frozen: linearization.WorldFrameState, x: Array) -> Eliminated:
    """The inward sweep with joint forces x (k, *batch)."""
    batch = x.shape[1:]

    # Featherstone 2008, Table 7.1, without bias terms: U = A S, d = 1/(S . U + armature), u = x - S . P
    def inward(children: tuple, row: tuple) -> tuple:
        S, inertia, drive, force = row
        A, P = children
        A = fusion_barrier(A + inertia.articulated)
        U = fusion_barrier(A @ S)
        d = 1 / (U.power(S) + drive)
        g = fusion_barrier(U * d)
        u = fusion_barrier(force - P.power(S))
        return fusion_barrier((_less(A, U, g), P + g * u)), (g, u * d, d)

    zero = jnp.zeros(batch, x.dtype)
    vec = Vec(zero, zero, zero)
    nothing = Articulated(Sym(*(zero,) * 6), Mat(vec, vec, vec), Sym(*(zero,) * 6)), Force(vec, vec)
    order = linearization.order(model.topology)
    return Eliminated(*order.inward(inward, nothing, (frozen.S, frozen.inertia, model.armature, x), batch)[1])


def substitute(tree: Topology, S: Motion, gain: Force, free: Array) -> tuple[Array, Motion]:
    """The outward sweep: (y (k, *batch), the motion of each row at rates y)."""

    def outward(parent: Motion, row: tuple) -> tuple[Motion, tuple[Array, Motion]]:
        S, g, own = row
        y = own - g.power(parent)
        X = fusion_barrier(parent + S * y)
        return X, (y, X)

    zero = jnp.zeros(free.shape[1:], free.dtype)
    vec = Vec(zero, zero, zero)
    return linearization.order(tree).outward(outward, Motion(vec, vec), (S, gain, free), free.shape[1:])


def _less(A: Articulated, U: Force, g: Force) -> Articulated:
    """``A - U g^T``, symmetric."""

    def less(S: Sym, a: Vec, b: Vec) -> Sym:
        return S - Sym(a.x * b.x, a.x * b.y, a.x * b.z, a.y * b.y, a.y * b.z, a.z * b.z)

    return Articulated(less(A.M, U.f, g.f), A.H - Mat(g.f * U.n.x, g.f * U.n.y, g.f * U.n.z), less(A.I, U.n, g.n))
