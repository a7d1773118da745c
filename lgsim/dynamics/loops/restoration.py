"""Projection to the closed configurations and their tangent velocities, after an integration step has left them.

The configuration takes one Newton step in the metric of the mass matrix, ``q exp(-X P r)`` with ``X = M^-1 J'``, P the
inverse of ``J X`` and r the residual. Then, at the new configuration but with the same X and P, it takes another one,
and the velocity takes ``v - X P J v`` twice. The remaining error is of the order of the product of both corrections.
The velocity needs J of the new configuration: with the old one its rate would remain of the order of the first
correction.

For derivatives, the restored state is the projection itself, by the implicit function theorem: on the closed set
``dx -> dx - X P dr`` and ``dv -> dv - X P d(J v)``.

Source: Hairer, Lubich, Wanner, Geometric Numerical Integration, 2006, IV.4.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from lgsim._compile.linalg import dense
from lgsim._compile.xla import batch_last, change_along, fusion_barrier, is_zero_tangent, linear_last
from lgsim.dynamics import linearization, row_tree
from lgsim.dynamics import rows as row
from lgsim.dynamics.loops import closed_jacobians, closure, loop_ends
from lgsim.multibody import configuration
from lgsim.multibody.loops.loop import FrameLoop, JointLoop
from lgsim.multibody.model import Model


def residual(model: Model, q: Array) -> Array:
    """Loop residuals (m, *batch), zero where the loops are closed, at q (nq, *batch)."""
    x = row.coordinates(model, q)
    parts, order = [], []
    for at in loop_ends.kinds(model.topology):
        order.append(at.rows.ravel())
        if isinstance(at.kind, FrameLoop):
            parts += at.kind.residual(loop_ends.relative_poses(model, at, q), at.numbers(model))
        elif isinstance(at.kind, JointLoop):
            a, b = at.joint_rows
            parts.append(x[b] - at.kind.values(x[a], at.numbers(model))[0])
    return loop_ends.in_order(parts, order)


def _rates_at(model: Model, q: Array) -> Callable[[Array], Array]:
    """The function v -> ``J v`` (m, *batch) at q (nq, *batch)."""
    tree = model.topology
    zero_rates = jnp.zeros((tree.rows, *q.shape[1:]), q.dtype)
    frozen = linearization.freeze(model, q, jnp.zeros((tree.nv, *q.shape[1:]), q.dtype), None)
    A, _, _ = linearization.accelerations(tree, frozen, zero_rates, None)
    ends = loop_ends.loop_ends(model, q, zero_rates, frozen, A, zero_rates)
    return lambda v: loop_ends.velocity_rates(tree, frozen.S, ends, row.speeds(model, v))


def correction(model: Model, q: Array) -> Callable[[Array], Array]:
    """The function r -> ``X P r`` (nv, *batch), see above, at q (nq, *batch)."""
    if not model.topology.has_mimic:
        return closure.correction(model, q)
    X, mobility = closed_jacobians.projector(model, q)
    return lambda r: dense.times(X, closure.proximal_solution(mobility, r))


def _restored(model: Model, q: Array, v: Array) -> tuple[Array, Array]:
    q, v = row_tree.full(model, q, v)
    tree = model.topology
    correct = correction(model, q)
    q = fusion_barrier(configuration.retract_rows(tree, q, -correct(residual(model, q))))
    rates = _rates_at(model, q)
    for _ in range(2):
        v = fusion_barrier(v - correct(rates(v)))
    return configuration.retract_rows(tree, q, -correct(residual(model, q))), v


closure_residual = batch_last(lambda model, q: residual(model, *row_tree.full(model, q)))
"""``residual`` of one state."""


@batch_last
def _closure_rates(model: Model, q: Array, v: Array) -> Array:
    """The rates ``J v`` of the loop residuals (m,) of one state."""
    q, v = row_tree.full(model, q, v)
    return _rates_at(model, q)(v)


closure_projector = batch_last(closed_jacobians.projector)
"""``M^-1 J'`` (nv, m) of one state, and ``J M^-1 J'``."""


def _correction(projector: tuple[Array, closure.Mobility], r: Array) -> Array:
    X, mobility = projector
    return dense.times(X, closure.proximal_solution(mobility, r))


def _correction_back(projector: tuple[Array, closure.Mobility], x: Array) -> Array:
    X, mobility = projector
    return closure.proximal_solution(mobility, fusion_barrier(dense.times(dense.transpose(X), x)))


corrected_by = linear_last(_correction, _correction_back)
"""``X G^-1 r`` (nv,) of one state's projector and changes r of the loop residuals (m,)."""


def _rule(primals: tuple, tangents: tuple) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    (model, q, v), (d_model, dq, dv) = primals, tangents
    tree = model.topology
    new_q, new_v = restored(*primals)
    projector = closure_projector(model, new_q)
    dx = jnp.zeros_like(v) if is_zero_tangent(dq) else configuration.velocity(tree, q, dq)
    rates = jnp.zeros_like(v) if is_zero_tangent(dv) else dv
    here = (model, new_q)
    dr = change_along(closure_residual, here, (d_model, configuration.rate(tree, new_q, dx)))
    dx = dx - corrected_by(projector, dr)
    back = configuration.rate(tree, new_q, dx)
    du = change_along(_closure_rates, (*here, new_v), (d_model, back, rates))
    return (new_q, new_v), (back, rates - corrected_by(projector, du))


restored = batch_last(_restored, _rule)
"""(q, v) of one state (nq,), (nv,), projected to the closed set."""
