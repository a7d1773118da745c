"""The linear systems of linearly implicit steps in O(n), for forces that act joint by joint.

With the notation of ``jacobian_products.py``, a change of the joints by ``dq = s (r + s y)``, ``dv = s y`` and
``dv' = y - w`` changes the motion of body b by ``x_b = (dA_b, angular part of dV_b)``, nine numbers, and

    (1)  x_i = x_p + P_i y_i + c_i,   P = (s^2 psi'' + s rate + S, s^2 psi' + s S),   c = (s r psi'' - w S, s r psi').

The wrench through a joint changes by ``Phi_i = G_i x_i + g_i``, with a 6 x 9 matrix G_i. The row

    (2)  S_i . Phi_i + armature (y_i - w_i) = s (b_q (r_i + s y_i) + b_v y_i + f_i)

with the derivatives b_q, b_v of the joint's own forces is solved for y_i on the way to the root, as in the
articulated-body recursion: ``(1 - s J) (x, y) = (r, w)`` is solved exactly, without the matrix J.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from lgsim._compile.spatial import Force, Motion, Vec
from lgsim._compile.xla import fusion_barrier, native_with_derivatives
from lgsim.dynamics import articulated_body, jacobian_products, linearization, row_tree
from lgsim.multibody.model import Model
from lgsim.multibody.topology import Topology


class TreeSystem(NamedTuple):
    """Factors of the linear systems of linearly implicit steps at one state, by rows (k, ...).

    Attributes:
        acceleration: v' (nv,), rad/s^2 or m/s^2.
        acceleration_rate: Partial derivative of v' with respect to time (nv,), rad/s^3 or m/s^3.
        screws: S as (k, 6).
        lever: (s psi'', s psi') as (k, 9), the coefficient of r in c.
        push: P as (k, 9).
        gain: ``S^T G / D`` (k, 9).
        left: ``G P + s^2 S x* N`` (k, 6).
        right: G times the lever, and s S x* N (k, 2, 6).
        carried: G times (S, 0) (k, 6).
        pivot: 1/D (k,).
        own: (armature, s b_q) (2, k).
    """

    acceleration: Array
    acceleration_rate: Array
    screws: Array
    lever: Array
    push: Array
    gain: Array
    left: Array
    right: Array
    carried: Array
    pivot: Array
    own: Array


def applies(topology: Topology) -> bool:
    """True if each degree of freedom is a row of its own: no joint is a group or mimics another one."""
    return not (topology.groups or topology.floats or topology.has_mimic)


@native_with_derivatives
def tree_system(
    model: Model, q: Array, v: Array, tau: Array, force_derivatives: tuple[Array, Array, Array], s: Array
) -> TreeSystem:
    """The system of steps with ``s = h gamma`` from the state (q, v) of a model for which ``applies`` is true.

    Args:
        q: Configuration (nq,).
        v: Velocity (nv,), rad/s or m/s.
        tau: All joint forces (nv,), N m or N.
        force_derivatives: Derivatives of each joint force with respect to its own coordinate, its own velocity and
            time, (nv,) each.
        s: The time s, s.
    """
    q, v, tau, by_q, by_v, by_time = row_tree.full((model, s[None]), q, v, tau, *force_derivatives)
    tree, batch = model.topology, v.shape[1:]
    order = linearization.order(tree)
    # pass 1, outward: v', then psi', psi'', rate and S x* N at (q, v, v')
    a = articulated_body.forward(model, q, v, tau)
    m = jacobian_products.moving(model, q, v, a, None)
    psi, psi2, rate = m.changes
    S, s = m.frozen.S, jnp.broadcast_to(s, batch)[None]
    # P, and the coefficient of r in c of (1), as nine components each
    lever = _nine(psi2 * s, psi.w * s)
    push = fusion_barrier(lever * s[:, None] + _nine(rate * s + S, S.w * s))
    screws = _six(S)
    turned = _six(m.turned) * s[:, None]
    own = _own(m.frozen)
    drive = model.armature - s * (s * by_q + by_v)

    # pass 2, inward: (2) solved for y_i gives the gain; the parent feels the rest of G_i
    def inward(below: Array, x: tuple) -> tuple[Array, tuple]:
        G, screw, P, lever, turned, drive = x
        G = fusion_barrier(G + below)
        out = fusion_barrier(_dot(screw[:, None], G))
        pivot = 1 / (_dot(out, P) + drive)
        left = fusion_barrier(jnp.sum(G * P[None], axis=1) + s * turned)
        gain = fusion_barrier(out * pivot[None])
        carried = jnp.sum(G[:, :6] * screw[None], axis=1)
        right = jnp.stack([jnp.sum(G * lever[None], axis=1), turned])
        return fusion_barrier(G - left[:, None] * gain[None]), (gain, left, right, carried, pivot)

    zero = jnp.zeros((6, 9, *batch), v.dtype)
    xs = (own, screws, push, lever, turned, drive)
    _, (gain, left, right, carried, pivot) = order.inward(inward, zero, xs, zero.shape)
    # the partial derivative of v' with respect to time, M^-1 dtau/dt
    change, _ = jacobian_products.solve(model, m.frozen, by_time)
    numbers = jnp.stack([jnp.broadcast_to(model.armature, v.shape), s * by_q])
    return TreeSystem(a, change, screws, lever, push, gain, left, right, carried, pivot, numbers)


def solve_tree(
    topology: Topology, system: TreeSystem, s: Array, r: Array, w: Array, force: Array
) -> tuple[Array, Array]:
    """(x, y) with ``(1 - s J) (x, y) = (r, w + s M^-1 force)``, by an inward and an outward sweep.

    Args:
        system: Result of ``tree_system``.
        s: The time s, s.
        r: Right-hand side of the configuration (nv,).
        w: Right-hand side of the velocity (nv,).
        force: Additional joint forces (nv,).
    """
    return _solve(topology)(system, s, r, w, force)


@cache
def _solve(topology: Topology) -> Callable[..., tuple[Array, Array]]:
    def core(system: TreeSystem, s: Array, r: Array, w: Array, force: Array) -> tuple[Array, Array]:
        system, s, r, w, force = _full(system, s, r, w, force)
        order, batch = linearization.order(topology), w.shape[1:]
        armature, pull = system.own[0], system.own[1]
        # right-hand side of (2): armature w + s (b_q r + f)
        joint = armature * w + pull * r + s[None] * force

        # inward: g_i of Phi_i, and y_i for a parent at rest
        def inward(below: Array, x: tuple) -> tuple[Array, Array]:
            screw, left, right, carried, pivot, r, w, joint = x
            through = fusion_barrier(below + right[0] * r[None] - carried * w[None])
            free = pivot * (joint - _dot(screw, through))
            return fusion_barrier(through + right[1] * r[None] + left * free[None]), free

        # pass 3, outward: y_i of x_p, then x_i of (1)
        def outward(parent: Array, x: tuple) -> tuple[Array, Array]:
            screw, lever, push, gain, free, r, w = x
            y = fusion_barrier(free - _dot(gain, parent))
            moved = parent + push * y[None] + lever * r[None]
            return fusion_barrier(moved.at[:6].add(-screw * w[None])), y

        back = (system.screws, system.left, system.right, system.carried, system.pivot, r, w, joint)
        _, free = order.inward(inward, jnp.zeros((6, *batch), w.dtype), back, (6, *batch))
        onward = (system.screws, system.lever, system.push, system.gain, free, r, w)
        y = order.outward(outward, jnp.zeros((9, *batch), w.dtype), onward, (9, *batch))
        return r + s[None] * y, y

    return native_with_derivatives(core)


def _full(system: TreeSystem, s: Array, *vectors: Array) -> Any:
    """All arguments with full batch axes, whichever of them has a batch."""
    rank = s.ndim
    leaves, structure = jax.tree.flatten((system, s, *vectors))
    batch = jnp.broadcast_shapes(*(x.shape[x.ndim - rank :] for x in leaves))
    wide = [jnp.broadcast_to(x, (*x.shape[: x.ndim - rank], *batch)) for x in leaves]
    return jax.tree.unflatten(structure, wide)


def _dot(x: Array, y: Array) -> Array:
    return jnp.sum(x * y, axis=0)


def _six(x: Motion | Force) -> Array:
    """Components (k, *batch) as rows (k, 6, *batch)."""
    return jnp.stack([*x[0], *x[1]], axis=1)


def _nine(A: Motion, w: Vec) -> Array:
    """Components (k, *batch) as rows (k, 9, *batch)."""
    return jnp.stack([*A.v, *A.w, *w], axis=1)


def _own(frozen: linearization.WorldFrameState) -> Array:
    """The matrices (k, 6, 9, *batch) of ``I dA + 2 B dw`` of the body on each row."""
    one = jnp.ones_like(frozen.inertia.m)
    zero = jnp.zeros_like(one)
    nothing, units = Vec(zero, zero, zero), [Vec(*(one if i == j else zero for j in range(3))) for i in range(3)]
    columns = [frozen.inertia.momentum(Motion(e, nothing)) for e in units]
    columns += [frozen.inertia.momentum(Motion(nothing, e)) for e in units]
    columns += [(frozen.gyro @ e) * 2.0 for e in units]
    return fusion_barrier(jnp.stack([_six(F) for F in columns], axis=2))
