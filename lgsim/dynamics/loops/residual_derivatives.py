"""Derivatives of the force balance and of the loop accelerations at fixed accelerations and loop forces.

A closed chain obeys ``r1 = ID(q, v, a) - tau - J'f = 0`` and ``r2 = second derivatives of the residuals = 0``. Let dx_j
be a displacement of row j of the tree, and psi', psi'' the changes of ``linearization.Changes``. Sums run over the rows
that carry only b (sign 1) or only a (sign -1). The relative motion of a loop's ends in axes fixed to b changes by

    dxi    = sum s_j S_j dx_j
    dV_rel = sum s_j (psi'_j + S_j x V_a) dx_j + s_j S_j dv_j
    dA_rel = sum s_j (psi''_j - (V_a + V_b) x psi'_j + S_j x A_a - V_b x (S_j x V_a)) dx_j
           + s_j (psi'_j + S'_j - (V_a + V_b) x S_j) dv_j.

The wrench W of the loop forces is fixed in b. ``linearization.derivatives`` takes the wrench on a as fixed in a; so the
forces of the joints that carry a change by a further ``S_i . (dxi x* W)``.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim._compile.spatial import Force, Mat, Motion, Transform, Vec, cross_dual, to_child, to_parent
from lgsim._compile.xla import fusion_barrier
from lgsim.dynamics.linearization import Changes, WorldFrameState
from lgsim.dynamics.loops import loop_ends
from lgsim.dynamics.loops.loop_ends import End, Ends, KindEnds
from lgsim.multibody.loops.loop import FrameLoop, Relative
from lgsim.multibody.model import Model


class Derivatives(NamedTuple):
    """Derivatives by rows of the tree (k columns)."""

    force: Array
    """Derivatives of r1 with respect to displacements beyond ``linearization.derivatives``, (k, k, *batch)."""
    by_q: Array
    """Derivatives of r2 with respect to displacements, (m, k, *batch)."""
    by_v: Array
    """Derivatives of r2 with respect to rates, (m, k, *batch)."""


def derivatives(
    model: Model, frozen: WorldFrameState, changes: Changes, ends: Ends, f: Array, v: Array, y: Array
) -> Derivatives:
    """All derivatives, for loop forces f (m, *batch), rates v and accelerations y of the rows (k, *batch)."""
    tree = model.topology
    batch = f.shape[1:]
    force = jnp.zeros((tree.rows, tree.rows, *batch), f.dtype)
    parts = []
    for number, at in enumerate(loop_ends.kinds(tree)):
        if number in ends.frames:
            more, by_q, by_v = _of_frames(model, at, frozen, changes, ends.frames[number], f)
        else:
            more, by_q, by_v = _of_joints(at, ends.slopes[number], f, v, y, tree.rows)
        force = force + more
        parts.append((by_q, by_v))
    order = np.argsort(np.concatenate([at.rows.ravel() for at in loop_ends.kinds(tree)]))
    by_q, by_v = (jnp.concatenate(column)[order] for column in zip(*parts, strict=True))
    return Derivatives(fusion_barrier(force), fusion_barrier(by_q), fusion_barrier(by_v))


def _of_frames(
    model: Model, at: KindEnds, frozen: WorldFrameState, changes: Changes, end: End, f: Array
) -> tuple[Array, Array, Array]:
    """(force, by_q, by_v) of loops of one kind, rows in the order of ``KindEnds.rows``."""
    kind = at.kind
    assert isinstance(kind, FrameLoop)
    own = [f[rows] for rows in at.rows]
    # the wrench W = sum_r T_r f_r of each loop on b
    W = sum((T * x for T, x in zip(end.wrenches[1:], own[1:], strict=True)), end.wrenches[0] * own[0])
    S = _columns(frozen.S)
    (Va, Vb), (Aa, _) = (tuple(_rows(x) for x in pair) for pair in (end.V, end.A))
    psi, psi2, rate = (_columns(x) for x in changes)
    sign = loop_ends.beside(at.signs, f)
    # dA_rel with respect to dx and dv, as in the module's formula
    slide = fusion_barrier(S.cross(Va))
    both = fusion_barrier(Va + Vb)
    dA_q = fusion_barrier((psi2 - both.cross(psi) + S.cross(Aa) - Vb.cross(slide)) * sign)
    dA_v = fusion_barrier((rate - both.cross(S)) * sign)
    # constraint wrenches fixed in b: dr2 = T . dA_rel, dr1 = S_i . (dxi x* W) on the rows that carry a
    if kind.steady:
        by_q, by_v = ([_rows(T).power(x) for T in end.wrenches] for x in (dA_q, dA_v))
        turned = cross_dual(S * sign, _rows(W))
        force = _contracted(S, loop_ends.beside(at.carries[0], f), turned)
        return force, jnp.concatenate(by_q), jnp.concatenate(by_v)
    # else in the axes of b, where T depends on the relative pose
    X = _rows(end.pose_b)
    pose = to_child(X, S * sign)
    local = [
        (pose, to_child(X, (psi + slide) * sign), to_child(X, dA_q)),
        (None, to_child(X, S * sign), to_child(X, dA_v)),
    ]
    numbers = [x[:, None] for x in at.numbers(model)]
    relative = jax.tree.map(lambda x: x[:, None], end.relative)
    by_q, by_v = (_along(kind, relative, numbers, *change) for change in local)
    turning = _wrench_change(kind, relative, numbers, pose)
    moved = sum(
        (to_parent(X, T) * x[:, None] for T, x in zip(turning[1:], own[1:], strict=True)),
        to_parent(X, turning[0]) * own[0][:, None],
    )
    # the wrench also changes in b, so that the rows that carry b are affected
    force = _contracted(S, loop_ends.beside(at.carries[0], f), cross_dual(S * sign, _rows(W)) + moved)
    force = force - _contracted(S, loop_ends.beside(at.carries[1], f), moved)
    return force, by_q, by_v


def _of_joints(
    at: KindEnds, slopes: tuple[Array, ...], f: Array, v: Array, y: Array, count: int
) -> tuple[Array, Array, Array]:
    """(force, by_q, by_v) of couplings: ``r2 = y_b - f' y_a - f'' v_a^2``."""
    _, _, second, third = slopes
    a = at.joint_rows[0]
    mask = np.arange(count)[None] == a[:, None]
    by_q = _placed(mask, -(second * y[a] + third * v[a] * v[a]))
    by_v = _placed(mask, -2 * second * v[a])
    own = _placed(mask, second * f[at.rows[0]])
    parts = [_placed_both(mask[g], own[g]) for g in range(len(a))]
    force = sum(parts[1:], parts[0])
    return force, by_q, by_v


def _contracted(S: Motion, carries: np.ndarray, columns: Force) -> Array:
    """``sum_g carries_gi S_i . columns_gj``."""

    def term(g: int) -> Array:
        mine = jax.tree.map(lambda x: x[g][None], columns)
        return mine.power(jax.tree.map(lambda x: (x[0] * carries[g])[:, None], S))

    return reduce(lambda total, g: fusion_barrier(total + term(g)), range(1, len(carries)), term(0))


def _along(kind: FrameLoop, at: Relative, numbers: list[Array], pose: Motion | None, V: Motion, A: Motion) -> Array:
    """The change (rows g, k, *batch) of a kind's rates along changes (g, k, *batch) of its ends."""
    at = jax.tree.map(lambda x: jnp.broadcast_to(x, V.v.x.shape), at)
    fixed = jax.tree.map(jnp.zeros_like, at.pose)
    change = Relative(fixed if pose is None else displaced(at.pose, pose), V, A)
    return jnp.concatenate(jax.jvp(lambda at: kind.rates(at, numbers), (at,), (change,))[1])


def _wrench_change(kind: FrameLoop, at: Relative, numbers: list[Array], pose: Motion) -> list[Force]:
    """The changes of the constraint wrenches T in b."""
    here = jax.tree.map(lambda x: jnp.broadcast_to(x, pose.v.x.shape), at.pose)
    return jax.jvp(lambda X: kind.wrenches(X, numbers), (here,), (displaced(here, pose),))[1]


def displaced(X: Transform, xi: Motion) -> Transform:
    """The change ``X hat(xi)`` of a pose under a displacement xi in its own axes."""
    w = xi.w
    R = Mat(*(Vec(r.y * w.z - r.z * w.y, r.z * w.x - r.x * w.z, r.x * w.y - r.y * w.x) for r in X.R))
    return Transform(R, X.R @ xi.v)


def _columns(x):
    return jax.tree.map(lambda c: c[None], x)


def _rows(x):
    return jax.tree.map(lambda c: c[:, None], x)


def _placed(mask: np.ndarray, value: Array) -> Array:
    """(g, k, *batch) with value (g, *batch) where the mask (g, k) is set, else zero."""
    return jnp.where(mask.reshape(mask.shape + (1,) * (value.ndim - 1)), value[:, None], 0)


def _placed_both(mask: np.ndarray, own: Array) -> Array:
    """(k, k, *batch) with own (k, *batch) on the diagonal where the mask is set, else zero."""
    both = np.diag(mask)
    return jnp.where(both.reshape(both.shape + (1,) * (own.ndim - 1)), own[None], 0)
