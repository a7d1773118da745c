"""Second derivatives of forward dynamics, weighted by a covector and computed once for all directions.

With ``w = M^-1 mu`` the gradients of ``mu . a(q, v, tau)`` are

    G_q = -ID_q^T w = -s_q,    G_v = -ID_v^T w = -s_v,    G_tau = w,    where s(q, v, a) = w . ID(q, v, a),

ID_q being along the tangent. s is linear in a and quadratic in v. With its second derivatives s_qq, s_vq, s_vv, s_aq
along changes (dq, dv, da) = (dq, dv, M^-1 (dtau - ID_q dq - ID_v dv)), and with ``dw = -M^-1 s_aq dq``,

    dG_q = -(s_qq dq + s_vq^T dv + s_aq^T da + ID_q^T dw),    dG_v = -(s_vq dq + s_vv dv + ID_v^T dw),    dG_tau = dw.

The columns of s_qq, s_vq and s_aq are derivatives along each dq of O(n) sums over the tree; those of s_vv are these
sums at unit velocities. Source: Singh, Russell and Wensing 2023, Second-order derivatives of rigid-body dynamics, for
the idea of contracting inverse dynamics first.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Float

from lgsim._compile.xla import batch_last, is_zero_tangent, native_derivative
from lgsim.dynamics.forward_dynamics import acceleration, linearized
from lgsim.dynamics.jacobian_products import weighted_gradients
from lgsim.multibody import configuration
from lgsim.multibody.model import Model

SMALL = 8
"""Number of degrees of freedom up to which all directions are one program, whose length is quadratic in it."""

_gradients = batch_last(weighted_gradients)
_gradients_along = native_derivative(weighted_gradients)


class Jacobians(NamedTuple):
    """Forward dynamics at a state with its Jacobians, factored: ``da = W (dtau - by_q dq - by_v dv)``."""

    a: Float[Array, " nv"]
    by_q: Float[Array, "nv nv"]
    by_v: Float[Array, "nv nv"]
    W: Float[Array, "nv nv"]

    def change(self, dq: Array, dv: Array, dtau: Array) -> Array:
        """The change of the acceleration."""
        return self.W @ (dtau - self.by_q @ dq - self.by_v @ dv)


def forward_dynamics_by_hessians(
    model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], tau: Float[Array, " nv"], wrenches: Array | None
) -> Float[Array, " nv"]:
    """``forward_dynamics`` of one state, without checks, for Hessians by forward over reverse mode.

    Reverse mode treats the model parameters as constants. With loops, mimic joints or wrenches the usual rules
    apply.
    """
    if model.topology.loops or model.topology.has_mimic or wrenches is not None:
        return acceleration(model, q, v, tau, wrenches)
    return _by_hessians(model, q, v, tau)


@jax.custom_vjp
def _by_hessians(model: Model, q: Array, v: Array, tau: Array) -> Array:
    return _value(model, q, v, tau)


def _forth(model: Model, q: Array, v: Array, tau: Array) -> tuple[Array, tuple]:
    return _value(model, q, v, tau), (model, q, v, tau)


def _back(kept: tuple, mu: Array) -> tuple:
    model, q, v, tau = kept
    by_q, by_v, by_tau = _pulled(model, q, v, tau, mu)
    (by_q,) = jax.linear_transpose(lambda dq: configuration.velocity(model.topology, q, dq), q)(by_q)
    return jax.tree.map(jnp.zeros_like, model), by_q, by_v, by_tau


_by_hessians.defvjp(_forth, _back)


@jax.custom_jvp
def _value(model: Model, q: Array, v: Array, tau: Array) -> Array:
    return linearized(model, q, v, tau, None)[0]


def _value_rule(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    model, q, v, tau = primals
    at = Jacobians(*linearized(model, q, v, tau, None))
    return at.a, at.change(*_directions(model, q, v, tangents))


_value.defjvp(_value_rule, symbolic_zeros=True)


@jax.custom_jvp
def _pulled(model: Model, q: Array, v: Array, tau: Array, mu: Array) -> tuple[Array, Array, Array]:
    return _pull(Jacobians(*linearized(model, q, v, tau, None)), mu)


def _pull(at: Jacobians, mu: Array) -> tuple[Array, Array, Array]:
    """The gradients of ``mu . a``."""
    w = at.W.T @ mu
    return -(at.by_q.T @ w), -(at.by_v.T @ w), w


def _pulled_rule(primals: tuple, tangents: tuple) -> tuple[tuple, tuple]:
    model, q, v, tau, mu = primals
    at = Jacobians(*linearized(model, q, v, tau, None))
    value = _pull(at, mu)
    qq, vq, aq, vv = _second(model, q, v, at.a, value[2])
    dq, dv, dtau = _directions(model, q, v, tangents[:4])
    # dw = -M^-1 s_aq dq and dG_q, dG_v, dG_tau of the module docstring
    da, dw = at.change(dq, dv, dtau), -at.W @ (aq @ dq)
    by_q = -(qq @ dq + vq.T @ dv + aq.T @ da + at.by_q.T @ dw)
    by_v = -(vq @ dq + vv @ dv + at.by_v.T @ dw)
    change = by_q, by_v, dw
    if not is_zero_tangent(tangents[4]):
        change = jax.tree.map(jnp.add, change, _pull(at, tangents[4]))
    return value, change


_pulled.defjvp(_pulled_rule, symbolic_zeros=True)


def _directions(model: Model, q: Array, v: Array, tangents: tuple) -> tuple[Array, Array, Array]:
    """The changes (dq along the tangent, dv, dtau)."""
    numbers, dq, dv, dtau = tangents
    if not all(map(is_zero_tangent, jax.tree.leaves(numbers, is_leaf=is_zero_tangent))):
        raise TypeError("model: expected constant parameters in second derivatives, got differentiated parameters")
    dq = jnp.zeros_like(v) if is_zero_tangent(dq) else configuration.velocity(model.topology, q, dq)
    dv, dtau = (jnp.zeros_like(v) if is_zero_tangent(x) else x for x in (dv, dtau))
    return dq, dv, dtau


def _second(model: Model, q: Array, v: Array, a: Array, w: Array) -> tuple[Array, Array, Array, Array]:
    """(s_qq, s_vq, s_aq, s_vv), each (nv, nv), with derivatives with respect to the second letter as columns."""
    units = jnp.eye(v.size, dtype=v.dtype)
    vv = jax.vmap(lambda v: _gradients(model, q, v, a, w)[1], out_axes=1)(units)
    if v.size <= SMALL:
        return *_by_units(model, q, v, a, w), vv
    zero = [SymbolicZero.from_primal_value(x) for x in (v, a, w)]
    numbers = jax.tree.map(SymbolicZero.from_primal_value, model)

    def along(dv: Array) -> tuple[Array, Array, Array]:
        dq = configuration.rate(model.topology, q, dv)
        return _gradients_along((model, q, v, a, w), (numbers, dq, *zero))

    return *jax.vmap(along, out_axes=1)(units), vv


@batch_last
def _by_units(model: Model, q: Array, v: Array, a: Array, w: Array) -> list[Array]:
    """(s_qq, s_vq, s_aq) for few degrees of freedom, as one native function."""

    def gradients(dq: Array) -> tuple[Array, Array, Array]:
        return weighted_gradients(model, configuration.retract_rows(model.topology, q, dq), v, a, w)

    zero = jnp.zeros_like(v)
    along = jax.linearize(gradients, zero)[1]
    # terms that do not depend on the direction are not part of its column
    columns = [along(zero.at[i].set(1)) for i in range(len(v))]
    return [jnp.stack(each, axis=1) for each in zip(*columns, strict=True)]
