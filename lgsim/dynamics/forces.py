"""Terms of the equations of motion: bias and gravity forces."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim._compile.spatial import Force, Motion, to_child, to_parent
from lgsim._compile.xla import batch_last, fusion_barrier
from lgsim.dynamics import row_tree, validation
from lgsim.dynamics import rows as row
from lgsim.dynamics.inverse_dynamics import newton_euler
from lgsim.dynamics.row_tree import full
from lgsim.multibody.model import Model


def bias_forces(
    model: Model, q: Float[Array, "*#batch nq"], v: Float[Array, "*#batch nv"]
) -> Float[Array, "*batch nv"]:
    """The bias force ``h(q, v)`` of ``M(q) a + h(q, v) = tau``: Coriolis, centrifugal and gravity forces.

    These are the joint forces at zero acceleration. Springs, damping and dry friction are not included.

    Args:
        q: Configuration.
        v: Velocity, rad/s or m/s; for group joints and a floating base in the child's frame.

    Returns:
        Joint forces, N m or N; for a floating base, a wrench in its frame.

    Raises:
        ValueError: an array has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.

    Source: Ploen and Park 1999, (11)-(14) at zero acceleration.
    """
    return validation.call(_bias, model, q=(q, "q"), v=(v, "v"))


def gravity_forces(model: Model, q: Float[Array, "*batch nq"]) -> Float[Array, "*batch nv"]:
    """The joint forces that compensate gravity: ``g(q) = dV/dq``, V being ``potential_energy``.

    Args:
        q: Configuration.

    Returns:
        Joint forces, N m or N; for a floating base, a wrench in its frame.

    Raises:
        ValueError: q has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.

    Source: Ploen and Park 1999, (11)-(14) at rest.
    """
    return validation.call(_gravity, model, q=(q, "q"))


@batch_last
def _bias(model: Model, q: Array, v: Array) -> Array:
    q, v = full(model, q, v)
    return newton_euler(model, q, v, jnp.zeros_like(v))


@batch_last
def _gravity(model: Model, q: Array) -> Array:
    (q,) = full(model, q)
    tree = model.topology
    m = row_tree.machine(model, q)
    order = row_tree.sweep(tree)
    _, lift = row_tree.root_motion(model, m, jnp.zeros((tree.nv, *m.batch), q.dtype))

    # (11)-(14) at rest: A_i = Ad^-1 A_p from A_0 = -g, F_i = I A_i + sum Ad^-T F_j, tau_i = S . F_i
    def outward(A: Motion, x: tuple) -> tuple[Motion, Force]:
        T, inertia = x
        A = fusion_barrier(to_child(T, A))
        return A, fusion_barrier(inertia.momentum(A))

    def inward(children: Force, x: tuple) -> tuple[Force, Array]:
        T, S, F = x
        F = fusion_barrier(F + children)
        return fusion_barrier(to_parent(T, F)), S.power(F)

    weights = order.outward(outward, lift, (m.poses, m.inertias), m.batch)
    nothing = Force(*jax.tree.map(jnp.zeros_like, tuple(lift)))
    total, tau = order.inward(inward, nothing, (m.poses, m.screws, weights), m.batch)
    if m.base is not None:
        tau = jnp.concatenate([row_tree.stack(m.base.inertia.momentum(lift) + total), tau])
    return row.gathered(model, tau)
