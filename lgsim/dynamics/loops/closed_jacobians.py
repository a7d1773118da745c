"""Closed-chain forward dynamics by dense matrices, with all Jacobians, also with mimic joints.

    M da - J' df = -dr1,    J da = -dr2,

The derivatives solve this system with the residuals r1, r2 of ``residual_derivatives`` at fixed (a, f). With
``X = M^-1 J'`` and ``G = J X``:
``G df = X' dr1 - dr2``, ``da = -M^-1 dr1 + X df``.

Source: Carpentier, Mansard, Analytical derivatives of rigid body dynamics algorithms, RSS 2018, for models without
loops.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from lgsim._compile.linalg import dense
from lgsim._compile.spatial import Force
from lgsim._compile.xla import fusion_barrier
from lgsim.dynamics import linearization, row_tree
from lgsim.dynamics import rows as row
from lgsim.dynamics.linearization import Carried
from lgsim.dynamics.loops import closure, loop_ends, residual_derivatives
from lgsim.multibody.model import Model


class Closed(NamedTuple):
    """A closed chain at one state, with derivatives in the degrees of freedom."""

    a: Array
    """(nv, *batch)."""
    f: Array
    """(m, *batch)."""
    W: Array
    """The inverse mass matrix of the tree (nv, nv, *batch)."""
    X: Array
    """``M^-1 J'`` (nv, m, *batch)."""
    mobility: closure.Mobility
    """``J M^-1 J'`` (m, m, *batch)."""
    force_q: Array
    force_v: Array
    """Derivatives of r1 (nv, nv, *batch)."""
    rate_q: Array
    rate_v: Array
    """Derivatives of r2 (m, nv, *batch)."""


class Dense(NamedTuple):
    """The matrices of a closed chain."""

    W: Array
    J: Array
    X: Array
    mobility: closure.Mobility


def jacobian(model: Model, frozen: linearization.WorldFrameState, ends: loop_ends.Ends) -> Array:
    """J (m, nv, *batch): rates of the loop residuals per velocity on the closed set."""
    tree = model.topology
    signs = loop_ends.beside(loop_ends.row_signs(tree, "signs"), frozen.S.v.x)
    J = dense.pairs(lambda T, S: T.power(S), ends.rows, frozen.S) * signs
    joint = loop_ends.joint_units(tree, ends, frozen.S.v.x)
    if joint is not None:
        J = J + joint
    return fusion_barrier(jnp.swapaxes(row.gathered(model, jnp.swapaxes(J, 0, 1)), 0, 1))


def forward(model: Model, q: Array, v: Array, tau: Array, wrenches: Array | None) -> tuple[Array, Array]:
    """(accelerations (nv, *batch), forces of the loop rows (m, *batch)) of any model with loops."""
    q, v, tau = row_tree.full((model, wrenches), q, v, tau)
    frozen, start = _start(model, q, v, wrenches)
    A, _, _, N, F = start
    matrices, ends = _dense(model, q, v, frozen, A, F)
    a, f = _solved(model, matrices, ends, tau, N, frozen)
    return a, f


def linearized(model: Model, q: Array, v: Array, tau: Array, wrenches: Array | None) -> Closed:
    """Accelerations, forces and all derivatives."""
    q, v, tau = row_tree.full((model, wrenches), q, v, tau)
    tree = model.topology
    order = linearization.order(tree)
    frozen, (A, drift, A_parent, N, F) = _start(model, q, v, wrenches)
    # accelerations a and loop forces f
    matrices, ends = _dense(model, q, v, frozen, A, F)
    a, f = _solved(model, matrices, ends, tau, N, frozen)
    rates, y = row.speeds(model, v), row.speeds(model, a)
    # the state at these accelerations; N includes the loop wrenches
    A, drift, A_parent = linearization.accelerations(tree, frozen, rates, y)
    ends = loop_ends.loop_ends(model, q, rates, frozen, A, y)
    net = linearization.net_forces(frozen, A) - loop_wrenches(model, ends, f)
    I, B, N = order.up((frozen.inertia, frozen.gyro, fusion_barrier(net)))  # noqa: E741
    dq, dv = linearization.derivatives(tree, frozen, Carried(I, B, N), drift, A_parent)
    # derivatives of r1 and r2 at fixed (a, f)
    changes = linearization.changes(tree, frozen, drift, A_parent)
    more, by_q, by_v = residual_derivatives.derivatives(model, frozen, changes, ends, f, rates, y)
    by_q, by_v = (jnp.swapaxes(row.gathered(model, jnp.swapaxes(x, 0, 1)), 0, 1) for x in (by_q, by_v))
    force = linearization.reduced(model, dq + more)
    return Closed(a, f, matrices.W, matrices.X, matrices.mobility, force, linearization.reduced(model, dv), by_q, by_v)


def loop_wrenches(model: Model, ends: loop_ends.Ends, f: Array) -> Force:
    """The wrenches of loop forces f (m, *batch) on each row of the tree (k, *batch), in the root frame."""
    weights = f[:, None] * loop_ends.beside(loop_ends.row_signs(model.topology, "pushes"), f)
    sums = [[dense.sum_rows(weights * c[:, None]) for c in part] for part in ends.rows]
    return fusion_barrier(Force(*(type(part)(*own) for part, own in zip(ends.rows, sums, strict=True))))


def projector(model: Model, q: Array) -> tuple[Array, closure.Mobility]:
    """(``X = M^-1 J'`` (nv, m, *batch), ``J X`` (m, m, *batch)) at q (nq, *batch)."""
    (q,) = row_tree.full(model, q)
    zero_rates = jnp.zeros((model.nv, *q.shape[1:]), q.dtype)
    frozen, (A, _, _, _, F) = _start(model, q, zero_rates, None)
    found, _ = _dense(model, q, zero_rates, frozen, A, F)
    return found.X, found.mobility


def mobility(model: Model, q: Array) -> Array:
    """``J M^-1 J'`` (m, m, *batch) at q (nq, *batch)."""
    zero_rates = jnp.zeros((model.nv, *q.shape[1:]), q.dtype)
    frozen, (A, _, _, _, F) = _start(model, q, zero_rates, None)
    return _dense(model, q, zero_rates, frozen, A, F)[0].mobility.G


def _start(model: Model, q: Array, v: Array, wrenches: Array | None):
    """The state at zero accelerations: (frozen, (A, S', A before the joint, net forces carried, I S))."""
    tree = model.topology
    frozen = linearization.freeze(model, q, v, wrenches)
    A, drift, A_parent = linearization.accelerations(tree, frozen, row.speeds(model, v), None)
    I, N = linearization.order(tree).up((frozen.inertia, linearization.net_forces(frozen, A)))  # noqa: E741
    return frozen, (A, drift, A_parent, N, fusion_barrier(I.momentum(frozen.S)))


def _dense(model: Model, q: Array, v: Array, frozen, A, F) -> tuple[Dense, loop_ends.Ends]:
    tree = model.topology
    rates = row.speeds(model, v)
    M = linearization.armature(model, linearization.reduced(model, linearization.mass_matrix(tree, frozen.S, F)))
    W = dense.inverse(fusion_barrier(M))
    ends = loop_ends.loop_ends(model, q, rates, frozen, A, jnp.zeros_like(rates))
    J = jacobian(model, frozen, ends)
    X = fusion_barrier(dense.product(W, jnp.swapaxes(J, 0, 1)))
    return Dense(W, J, X, closure.prepared(fusion_barrier(dense.mirrored(dense.product(J, X))))), ends


def _solved(model: Model, matrices: Dense, ends, tau: Array, N: Force, frozen) -> tuple[Array, Array]:
    # free accelerations; G f = -(rates + J a); a + X f
    a = fusion_barrier(dense.times(matrices.W, tau - row.gathered(model, N.power(frozen.S))))
    c = fusion_barrier(ends.rates + dense.times(matrices.J, a))
    f = closure.proximal_solution(matrices.mobility, -c)
    return fusion_barrier(a + dense.times(matrices.X, f)), f
