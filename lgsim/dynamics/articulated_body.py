"""Forward dynamics by the articulated-body algorithm in O(n), on arrays with the batch axis last."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from lgsim._compile.spatial import Articulated, Force, Inertia, Mat, Motion, Sym, Vec, to_child, to_parent
from lgsim._compile.spatial.inertia import cross_dual
from lgsim._compile.xla import fusion_barrier
from lgsim.dynamics import row_tree
from lgsim.dynamics.rows import Screw, Turn
from lgsim.multibody.model import Model


class Eliminated(NamedTuple):
    """Result of eliminating the rate of a row: ``y = free - gain . (acceleration of the row's frame)``."""

    gain: Motion
    free: Array


def forward(model: Model, q: Array, v: Array, tau: Array, wrenches: Array | None = None) -> Array:
    """Accelerations v' for arrays with the batch axis last; without mimic joints.

    Source: Featherstone, Rigid Body Dynamics Algorithms, 2008, Table 7.1.
    """
    q, v, tau = row_tree.full((model, wrenches), q, v, tau)
    tree = model.topology
    m = row_tree.machine(model, q)
    order = row_tree.sweep(tree)
    on_base, on_rows = row_tree.on_rows(tree, m, wrenches)
    V0, fall = row_tree.root_motion(model, m, v)
    rest = slice(row_tree.BASE if tree.floats else 0, None)
    bias = row_tree.group_biases(model, v)
    if bias is not None:
        tau = tau - model.armature * bias  # a drive feels v', the rows' accelerations are v' - bias
    rates, forces, armature = v[rest], tau[rest], model.armature[rest]

    # pass 1, outward: V_i = Ad^-1 V_p + S_i v_i and the bias force p_i = V_i x* I_i V_i - F_i
    def outward(V, x):
        T, S, inertia, rate, external = x
        V = fusion_barrier(S.moved(to_child(T, V), rate))
        return V, (V, bias_force(inertia, V, external))

    # pass 2, inward: I^A_i and p^A_i of the subtree; eliminate the rate of row i from its equation
    def inward(children, x):
        T, S, V, inertia, p, rate, force, drive = x
        A, P = children
        A, P = fusion_barrier((A + inertia.articulated, P + p))
        A, P, left = eliminate(A, P, S, force, drive, fusion_barrier(S.carried(V, rate)))
        return fusion_barrier((A.to_parent(T), to_parent(T, P))), left

    # pass 3, outward: A_i = Ad^-1 A_p + V_i x S_i v_i, then v'_i = free - gain . A_i
    def onward(parent, x):
        T, S, V, rate, left = x
        A = to_child(T, parent)
        A = fusion_barrier(A + S.carried(V, rate))
        y = fusion_barrier(left.free - (left.gain.v.dot(A.v) + left.gain.w.dot(A.w)))
        return S.moved(A, y), y

    V, p = order.outward(outward, V0, (m.poses, m.screws, m.inertias, rates, on_rows), m.batch)
    zero = jax.tree.map(jnp.zeros_like, fall)
    empty = (_nothing(zero.v.x), Force(*zero))
    xs = (m.poses, m.screws, V, m.inertias, p, rates, forces, armature)
    (A, P), left = order.inward(inward, empty, xs, m.batch)
    start = fall
    # a floating base: solve (I^A + armature) A_0 = F - p^A for the base acceleration
    if m.base is not None:
        P = P + bias_force(m.base.inertia, V0, on_base)
        A = fusion_barrier(driven(A + m.base.inertia.articulated, model.armature[: row_tree.BASE]))
        wrench = row_tree.motion(tau[: row_tree.BASE])
        # the armature moves with the base but has no weight
        held = row_tree.motion(model.armature[: row_tree.BASE])
        push = Force(*(_times(h, f) for h, f in zip(held, fall, strict=True)))
        start = A.solve(fusion_barrier(Force(*wrench) - P + push))
    y = order.outward(onward, start, (m.poses, m.screws, V, rates, left), m.batch)
    if m.base is not None:
        y = jnp.concatenate([row_tree.stack(start - fall), y])
    return y if bias is None else y + bias


def bias_force(inertia: Inertia, V: Motion, external: Force | None) -> Force:
    """The wrench on a body at zero acceleration: ``-ad_V^T I V - F_external``."""
    F = cross_dual(V, fusion_barrier(inertia.momentum(V)))
    return fusion_barrier(F if external is None else F - external)


def eliminate(
    A: Articulated, P: Force, S: Screw | Turn, force: Array, drive: Array, carried: Motion
) -> tuple[Articulated, Force, Eliminated]:
    """Eliminate the rate y of a row from ``F = A (acc + S y) + P``, ``S . F + drive y = force``.

    The parent feels ``A' = A - U U^T/d`` and ``P' = P + A' carried + U (force - S . P)/d``, with ``U = A S`` and
    ``d = S . U + drive``. Source: Featherstone, Rigid Body Dynamics Algorithms, 2008, Table 7.1.
    """
    # U = A S, d = S . U + drive, u = force - S . P
    U = fusion_barrier(S.column(A))
    d = S.power(U) + drive
    u = force - S.power(P)
    k, g, scale = fusion_barrier((U.f * (1 / d), U.n * (1 / d), u / d))
    f, n = U
    # A' = A - U U^T/d, by blocks
    M = Sym(
        A.M.xx - k.x * f.x, A.M.xy - k.x * f.y, A.M.xz - k.x * f.z,
        A.M.yy - k.y * f.y, A.M.yz - k.y * f.z, A.M.zz - k.z * f.z,
    )  # fmt: skip
    H = Mat(A.H.r0 - f * g.x, A.H.r1 - f * g.y, A.H.r2 - f * g.z)
    I = Sym(  # noqa: E741
        A.I.xx - g.x * n.x, A.I.xy - g.x * n.y, A.I.xz - g.x * n.z,
        A.I.yy - g.y * n.y, A.I.yz - g.y * n.z, A.I.zz - g.z * n.z,
    )  # fmt: skip
    left = fusion_barrier(Articulated(M, H, I))
    P = fusion_barrier(P + left @ carried + U * scale)
    return left, P, Eliminated(Motion(k, g), scale)


def driven(A: Articulated, armature: Array) -> Articulated:
    """The inertia of a floating base with its armature on the diagonal."""
    v, w = row_tree.motion(armature)
    zero = jnp.zeros_like(v.x)
    return Articulated(A.M + Sym(v.x, zero, zero, v.y, zero, v.z), A.H, A.I + Sym(w.x, zero, zero, w.y, zero, w.z))


def _times(a: Vec, b: Vec) -> Vec:
    return Vec(a.x * b.x, a.y * b.y, a.z * b.z)


def _nothing(z: Array) -> Articulated:
    sym = Sym(*(z,) * 6)
    return Articulated(sym, Mat(*(Vec(z, z, z),) * 3), sym)
