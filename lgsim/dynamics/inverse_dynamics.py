"""Inverse dynamics by the recursive Newton-Euler algorithm, and its Jacobians in closed form."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim._compile.spatial import Force, cross_dual, to_child, to_parent
from lgsim._compile.xla import batch_last, fusion_barrier
from lgsim.dynamics import linearization, row_tree, validation
from lgsim.dynamics import rows as row
from lgsim.multibody.model import Model


class InverseDynamicsDerivatives(NamedTuple):
    """Joint forces (..., nv) and their derivatives (..., nv, nv); ``da`` is the mass matrix."""

    tau: Array
    dq: Array
    dv: Array
    da: Array


def inverse_dynamics(
    model: Model,
    q: Float[Array, "*#batch nq"],
    v: Float[Array, "*#batch nv"],
    a: Float[Array, "*#batch nv"],
    wrenches: Float[Array, "*#batch bodies 6"] | None = None,
) -> Float[Array, "*batch nv"]:
    """Inverse dynamics: the joint forces tau for an acceleration a, ``tau = M(q) a + h(q, v) - J^T F``.

    Recursion outward ``V_i = Ad^-1 V_p + S v_i``, ``A_i = Ad^-1 A_p + S a_i + [V_i, S v_i]``, and inward
    ``F_i = I A_i - ad_{V_i}^T I V_i + sum Ad^-T F_j``, ``tau_i = S^T F_i``. The armature adds to the diagonal of M.

    Args:
        q: Configuration.
        v: Velocity, rad/s or m/s; for group joints and a floating base in the child's frame.
        a: Time derivative of v, componentwise.
        wrenches: External wrench (f, n) on each body, in the body's frame at its origin, N and N m.

    Returns:
        Joint forces, N m or N; for a floating base, the wrench in its frame.

    Raises:
        ValueError: an array has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.

    Source: Ploen and Park 1999, (11)-(14).
    """
    return validation.call(_core, model, q=(q, "q"), v=(v, "v"), a=(a, "v"), wrenches=(wrenches, "wrenches"))


@batch_last
def _core(model: Model, q: Array, v: Array, a: Array, wrenches: Array | None) -> Array:
    return newton_euler(model, q, v, a, wrenches)


def newton_euler(model: Model, q: Array, v: Array, a: Array, wrenches: Array | None = None) -> Array:
    """The recursive Newton-Euler algorithm on arrays with the batch axis last, Ploen and Park 1999, (11)-(14)."""
    q, v, a = row_tree.full((model, wrenches), q, v, a)
    tree = model.topology
    m = row_tree.machine(model, q)
    order = row_tree.sweep(tree)
    on_base, on_rows = row_tree.on_rows(tree, m, wrenches)
    V0, A0 = row_tree.root_motion(model, m, v)
    # a floating base: its acceleration is given, relative to free fall
    if m.base is not None:
        A0 = fusion_barrier(A0 + row_tree.motion(a[: row_tree.BASE]))
    # group joints: accelerations of the rows are v' minus the bias
    bias = row_tree.group_biases(model, v)
    y = a if bias is None else a - bias
    rest = slice(row_tree.BASE if tree.floats else 0, None)
    rates, accelerations = row.speeds(model, v)[rest], row.speeds(model, y)[rest]

    # (11), (12) outward: V_i = Ad^-1 V_p + S v_i, A_i = Ad^-1 A_p + V_i x S v_i + S a_i
    def outward(parent, x):
        (V, A), (T, S, inertia, rate, acceleration, external) = parent, x
        V = fusion_barrier(S.moved(to_child(T, V), rate))
        A = to_child(T, A) + S.carried(V, rate)
        A = fusion_barrier(S.moved(A, acceleration))
        return (V, A), body_force(inertia, V, A, external)

    # (13), (14) inward: F_i = I A_i - ad_V^T I V_i + sum Ad^-T F_j, tau_i = S . F_i
    def inward(children, x):
        T, S, F = x
        F = fusion_barrier(F + children)
        return fusion_barrier(to_parent(T, F)), S.power(F)

    xs = (m.poses, m.screws, m.inertias, rates, accelerations, on_rows)
    forces = order.outward(outward, (V0, A0), xs, m.batch)
    zero = Force(*jax.tree.map(jnp.zeros_like, tuple(A0)))
    total, tau = order.inward(inward, zero, (m.poses, m.screws, forces), m.batch)
    if m.base is not None:
        root = body_force(m.base.inertia, V0, A0, on_base) + total
        tau = jnp.concatenate([row_tree.stack(root), tau])
    return row.gathered(model, tau) + model.armature * a


def body_force(inertia, V, A, external: Force | None) -> Force:
    """The wrench on a body for its motion: ``I A - ad_V^T I V - F_external``."""
    momentum, push = fusion_barrier((inertia.momentum(V), inertia.momentum(A)))
    F = push + cross_dual(V, momentum)
    return fusion_barrier(F if external is None else F - external)


def inverse_dynamics_derivatives(
    model: Model,
    q: Float[Array, "*#batch nq"],
    v: Float[Array, "*#batch nv"],
    a: Float[Array, "*#batch nv"],
    wrenches: Float[Array, "*#batch bodies 6"] | None = None,
) -> InverseDynamicsDerivatives:
    """Inverse dynamics and its closed-form derivatives with respect to q, v and a.

    ``dq[i, j]`` is the derivative of tau_i along the tangent: the derivative of
    ``inverse_dynamics(model, retract(q, s e_j), v, a)`` with respect to s at 0, at fixed v and a. Wrenches stay
    constant in the body frames.

    Args:
        q: Configuration, as for ``inverse_dynamics``.
        v: Velocity.
        wrenches: External wrenches in the body frames.

    Raises:
        ValueError, TypeError: as ``inverse_dynamics``.

    Source: Singh, Russell, Wensing 2022; see ``linearization.py``.
    """
    named = {"q": (q, "q"), "v": (v, "v"), "a": (a, "v"), "wrenches": (wrenches, "wrenches")}
    return InverseDynamicsDerivatives(*validation.call(_inverse, model, **named))


@batch_last
def _inverse(model: Model, q: Array, v: Array, a: Array, wrenches: Array | None) -> linearization.Linear:
    return linearization.inverse(model, q, v, a, wrenches)
