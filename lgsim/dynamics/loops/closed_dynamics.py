"""Forward dynamics of models with kinematic loops as one function, with its differentiation rule."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from lgsim._compile.linalg import dense
from lgsim._compile.xla import batch_last, change_along, fusion_barrier, is_zero_tangent, linear_last
from lgsim.dynamics import linearization
from lgsim.dynamics import rows as row
from lgsim.dynamics.loops import closed_jacobians, closure, loop_ends
from lgsim.multibody import configuration
from lgsim.multibody.model import Model


def _core(model: Model, q: Array, v: Array, tau: Array, wrenches: Array | None) -> tuple[Array, Array]:
    if model.topology.has_mimic:
        return closed_jacobians.forward(model, q, v, tau, wrenches)
    return closure.forward(model, q, v, tau, wrenches)


closed_linearization = batch_last(closed_jacobians.linearized)


@batch_last
def closed_derivatives(
    model: Model, q: Array, v: Array, tau: Array, wrenches: Array | None
) -> tuple[Array, Array, Array, Array, Array]:
    """(v', its derivatives with respect to q, v and tau (nv, nv), forces of the loop rows)."""
    closed = closed_jacobians.linearized(model, q, v, tau, wrenches)
    n = model.nv
    X = closed.X
    # G^-1 X' is shared by all columns: one system per degree of freedom
    held = closure.proximal_solution(closed.mobility, jnp.swapaxes(X, 0, 1))
    by_tau = fusion_barrier(closed.W - dense.product(X, held))
    force = jnp.concatenate([closed.force_q, closed.force_v], axis=1)
    rate = jnp.concatenate([closed.rate_q, closed.rate_v], axis=1)
    moved = dense.product(-by_tau, force, start=dense.product(-jnp.swapaxes(held, 0, 1), rate))
    return closed.a, moved[:, :n], moved[:, n:], by_tau, closed.f


@batch_last
def residuals(model: Model, q: Array, v: Array, a: Array, f: Array, wrenches: Array | None) -> tuple[Array, Array]:
    """(``ID(q, v, a) - J'f`` (nv,), second derivatives of the loops' residuals (m,))."""
    tree = model.topology
    frozen = linearization.freeze(model, q, v, wrenches)
    rates, y = row.speeds(model, v), row.speeds(model, a)
    A, _, _ = linearization.accelerations(tree, frozen, rates, y)
    ends = loop_ends.loop_ends(model, q, rates, frozen, A, y)
    net = linearization.net_forces(frozen, A) - closed_jacobians.loop_wrenches(model, ends, f)
    tau = linearization.order(tree).up(net).power(frozen.S)
    joint = loop_ends.joint_units(tree, ends, tau)
    if joint is not None:
        tau = tau - dense.sum_rows(joint * f[:, None])
    return row.gathered(model, tau) + model.armature * a, ends.rates


def _changed(closed: closed_jacobians.Closed, changes: tuple[Array, Array]) -> tuple[Array, Array]:
    force, rate = changes
    moved = dense.times(jnp.swapaxes(closed.X, 0, 1), force)
    df = closure.proximal_solution(closed.mobility, fusion_barrier(moved - rate))
    return dense.times(closed.X, df) - dense.times(closed.W, force), df


def _pulled(closed: closed_jacobians.Closed, back: tuple[Array, Array]) -> tuple[Array, Array]:
    a, f = back
    z = closure.proximal_solution(closed.mobility, fusion_barrier(dense.times(jnp.swapaxes(closed.X, 0, 1), a) + f))
    return dense.times(closed.X, z) - dense.times(closed.W, a), -z


_solved = linear_last(_changed, _pulled)
"""(da, df) for changes of both residuals, see ``closed_jacobians``."""


def _rule(primals: tuple, tangents: tuple) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    model, q, v, _, wrenches = primals
    d_model, dq, dv, dtau, d_wrenches = tangents
    closed = closed_linearization(*primals)
    a, f = closed.a, closed.f
    # dr1 and dr2 with tau, q and v, then with parameters and wrenches
    force, rate = jnp.zeros_like(a), jnp.zeros_like(f)
    if not is_zero_tangent(dtau):
        force = force - dtau
    if not is_zero_tangent(dq):
        dx = configuration.velocity(model.topology, q, dq)
        force, rate = force + dense.linear_matvec(closed.force_q, dx), rate + dense.linear_matvec(closed.rate_q, dx)
    if not is_zero_tangent(dv):
        force, rate = force + dense.linear_matvec(closed.force_v, dv), rate + dense.linear_matvec(closed.rate_v, dv)

    def of_numbers(model: Model, wrenches: Array | None) -> tuple[Array, Array]:
        return residuals(model, q, v, a, f, wrenches)

    change = change_along(of_numbers, (model, wrenches), (d_model, d_wrenches))
    if change is not None:
        force, rate = force + change[0], rate + change[1]
    return (a, f), _solved(closed, (force, rate))


closed_dynamics = batch_last(_core, _rule)
"""(accelerations (nv,), forces of the loop rows (m,)) of one state, without checks."""
