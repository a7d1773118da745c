"""Closed-form derivatives of contact forces as joint forces, without forward mode through the kinematics.

In the surface frame, the wrench F of a contact on the shape depends only on the pose and the twist V of the shape,
by six columns P and six columns N. Let S_i be the screw of row i of the tree and ``psi'_i`` its change
(``linearization.Changes``), and V_a the twist of the shape's body. Sums run over the rows that carry only the shape
(s = 1) or only the surface (s = -1). Displacements dx and rates dv of the rows change

    dxi = sum s_i S_i dx_i,    dV = sum s_i (psi'_i + S_i x V_a) dx_i + s_i S_i dv_i,    dF = P dxi + N dV.

The opposite wrench is fixed in the surface; the wrench on the shape also changes by ``- dxi x* F``, since wrenches
are expressed in body frames. Row j feels ``S_j .`` the sum of the wrenches on the sides that it carries.
"""

from __future__ import annotations

from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim._compile.spatial import Force, Mat, Motion, Transform, Vec, cross_dual, to_child
from lgsim._compile.xla import fusion_barrier
from lgsim.dynamics import linearization
from lgsim.dynamics import rows as row
from lgsim.dynamics.contacts.contact_law import point_forces
from lgsim.dynamics.contacts.touching_points import Bodies, ContactPair, meetings, native_where_even, points_of
from lgsim.dynamics.row_tree import full
from lgsim.multibody.model import Model
from lgsim.multibody.topology import WORLD, Topology


def _derivatives(model: Model, q: Array, v: Array) -> tuple[Array, Array]:
    q, v = full(model, q, v)
    tree = model.topology
    frozen = linearization.freeze(model, q, v, None)
    psi = fusion_barrier(frozen.V_parent.cross(frozen.S))
    total = None
    for meeting in meetings(model, _bodies(model, frozen, q)):
        found = _of_kind(tree, frozen, psi, meeting)
        total = found if total is None else fusion_barrier(jax.tree.map(jnp.add, total, found))
    assert total is not None
    by_q, by_v = (linearization.reduced(model, x) for x in total)
    return by_q, by_v


contact_derivatives = native_where_even(_derivatives)
"""``contact_derivatives(model, q, v)``: derivatives of the joint forces that the contact wrenches are equivalent to.

With respect to the tangent at q and to v, (nv, nv) each; for one state, without checks."""


def _bodies(model: Model, frozen: linearization.WorldFrameState, q: Array) -> Bodies:
    """The bodies in the root frame, which is the frame of a floating base; twists in body frames."""
    tree = model.topology
    align = row.select(row.rows(model).align, tree.body_row)
    at, V = row.select(frozen.poses, tree.body_row), row.select(frozen.V, tree.body_row)
    own = Transform(at.R @ align.T, at.p)
    twists = fusion_barrier(to_child(own, V))
    one = jnp.ones(q.shape[1:], q.dtype)
    zero = jnp.zeros_like(one)
    zero_vector = Vec(zero, zero, zero)
    # the world as the last body, in the frame of a floating base
    world = Transform(Mat(Vec(one, zero, zero), Vec(zero, one, zero), Vec(zero, zero, one)), zero_vector)
    if tree.floats:
        pose = row.transform(model.placements[:1]) @ tree.base.transform([q[i : i + 1] for i in range(tree.base.nq)])
        world = row.select(pose.inverse(), 0)
    poses, rest = (
        jax.tree.map(lambda x, w: jnp.concatenate([x, jnp.broadcast_to(w, x.shape[1:])[None]]), *pair)
        for pair in ((own, world), (twists, Motion(zero_vector, zero_vector)))
    )
    return Bodies(poses, rest)


def _of_kind(
    tree: Topology, frozen: linearization.WorldFrameState, psi: Motion, meeting: ContactPair
) -> tuple[Array, Array]:
    """(by_q, by_v) by rows (k, k, *batch) of contacts of one kind, grouped by surface frame."""
    local = _local(meeting)
    against = [tree.contacts[i].against for i in meeting.places]
    found = []
    for frame in dict.fromkeys(against):
        group = np.array([i for i, name in enumerate(against) if name == frame])
        F, P, N = row.select(local, group)
        X = row.select(meeting.surface.pose, group[:1])
        # S_i and psi'_i in the surface frame; s_i = 1 for rows that carry the shape, -1 for the surface
        S, change = fusion_barrier((to_child(X, frozen.S), to_child(X, psi)))
        carries = [_carries(tree, side.bodies[group]) for side in (meeting.shape, meeting.surface)]
        sign = carries[0] - carries[1]
        assert meeting.shape.twist is not None
        Va = row.select(meeting.relative.act(meeting.shape.twist), group)
        x, psi_x = (_columns(y) * _beside(sign, S.v.x) for y in (S, change))
        by_q = fusion_barrier(_applied(P, x) + _applied(N, psi_x + x.cross(_rows(Va))))
        # dF = P dxi + N dV with dxi = s S dx, dV = s (psi' + S x V_a) dx + s S dv
        turned = fusion_barrier(-cross_dual(x, _rows(F)))
        found.append((
            # the wrench on the shape moves with it: - dxi x* F
            _felt(S, [(sign, by_q), (carries[0], turned)]), _felt(S, [(sign, fusion_barrier(_applied(N, x)))])
        ))  # fmt: skip
    return reduce(lambda a, b: fusion_barrier(jax.tree.map(jnp.add, a, b)), found)


def _local(meeting: ContactPair) -> tuple[Force, list[Force], list[Force]]:
    """(F, P, N) of contacts (m, *batch) in the surface frames."""

    def wrench(relative: Transform, V: Motion) -> Force:
        t = points_of(meeting, relative, V)
        f, couple = point_forces(t)[2:]
        n = t.point.cross(f)
        F = Force(f, n if couple is None else n + couple)
        return jax.tree.map(lambda x: x[0] if x.shape[0] == 1 else jnp.sum(x, axis=0), F)

    relative, V = meeting.relative, meeting.twist
    assert V is not None
    one = jnp.ones_like(V.v.x)
    zero = jnp.zeros_like(one)
    zero_twist, fixed = (jax.tree.map(jnp.zeros_like, x) for x in (V, relative))
    P, N = [], []
    for i in range(6):
        unit = [one if i == k else zero for k in range(6)]
        along = Motion(Vec(*unit[:3]), Vec(*unit[3:]))
        value, change = jax.jvp(wrench, (relative, V), (_moved(relative, along), zero_twist))
        P.append(fusion_barrier(change))
        N.append(fusion_barrier(jax.jvp(wrench, (relative, V), (fixed, along))[1]))
    return fusion_barrier(value), P, N


def _moved(T: Transform, xi: Motion) -> Transform:
    """The change ``hat(xi) T`` of a pose under a displacement xi in the axes in which the pose is given."""
    (a, b, c), w = T.R, xi.w
    return Transform(Mat(c * w.y - b * w.z, a * w.z - c * w.x, b * w.x - a * w.y), xi.v + w.cross(T.p))


def _applied(columns: list[Force], x: Motion) -> Force:
    """Products of columns (m, *batch) with motions (m, k, *batch)."""
    parts = (_rows(column) * number for column, number in zip(columns, (*x.v, *x.w), strict=True))
    return reduce(lambda a, b: a + b, parts)


def _felt(S: Motion, wrenches: list[tuple[np.ndarray, Force]]) -> Array:
    """``sum_m c_mj S_j . F_mi``, (j, i, *batch), over pairs of c (m, k), which is -1, 0 or 1, and F (m, k).

    Rows with the same c for all contacts, such as those of a base, share one sum of wrenches.
    """
    kinds, of_row = np.unique(np.concatenate([c for c, _ in wrenches]), axis=1, return_inverse=True)
    columns = [jax.tree.map(lambda x, m=m: x[m], F) for _, F in wrenches for m in range(len(F.f.x))]
    sums = []
    for kind in kinds.T:
        terms = [F * c for F, c in zip(columns, kind, strict=True) if c]
        sums.append(reduce(lambda a, b: a + b, terms) if terms else jax.tree.map(jnp.zeros_like, columns[0]))
    F = fusion_barrier(jax.tree.map(lambda *x: jnp.stack(x), *sums))
    return row.select(F, of_row.ravel()).power(_rows(S))


def _carries(tree: Topology, bodies: np.ndarray) -> np.ndarray:
    """1 where a row carries a body, else 0, (m, k)."""
    none = np.zeros(tree.rows)
    return np.array([none if b == WORLD else tree.row_carried[tree.body_row[b]] for b in bodies], float)


def _beside(mask: np.ndarray, like: Array) -> Array:
    return jnp.asarray(mask.reshape(mask.shape + (1,) * (like.ndim - 1)), like.dtype)


def _columns(x):
    return jax.tree.map(lambda c: c[None], x)


def _rows(x):
    return jax.tree.map(lambda c: c[:, None], x)
