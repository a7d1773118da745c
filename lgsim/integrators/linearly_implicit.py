"""Linearly implicit (Rosenbrock) methods in the Lie algebra: stiff motions at the cost of one factorization per step.

``y(t) = exp(sigma(t)) . y_n`` moves with ``sigma' = F(sigma) = dexpinv_sigma(f)``, an equation in a vector space whose
Jacobian at sigma = 0 is known in closed form where the field's is. With J that Jacobian, ``s = h gamma`` and one
factorization of 1 - s J, the stages of a step are

    (1 - s J) u_i = gamma (h F(sum_j a_ij u_j) + sum_j c_ij u_j + gamma_i h^2 f_t),    sigma_1 = sum_i m_i u_i.

J includes the derivative of dexpinv: for a left action with velocity xi the block ``-ad_xi / 2`` is added to the
derivative of the field, and without it methods of order above 2 fall to order 2. Nothing is iterated, so that forward
and reverse mode differentiate the step directly.

Source: Hairer, Wanner, Solving ODEs II, IV.7, eq. (7.25); the chart is that of Munthe-Kaas 1999.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim._compile.xla import control_flow
from lgsim.integrators.coordinates import EXPONENTIAL
from lgsim.integrators.method import Field, Method
from lgsim.integrators.rosenbrock_tableau import RosenbrockTableau
from lgsim.lie.action import Action, Point

Vector = Float[Array, " algebra"]


class Linearization(NamedTuple):
    """The linearization of a field at one state for a linearly implicit step.

    Attributes:
        value: The field f (action.dim,).
        rate: Its partial derivative with respect to time (action.dim,).
        resolvent: ``r -> (1 - s J)^-1 r`` for vectors (action.dim,), J being the Jacobian at sigma = 0 of
            ``dexpinv_sigma(f(t, exp(sigma) . y))``.
    """

    value: Vector
    rate: Vector
    resolvent: Callable[[Vector], Vector]


@runtime_checkable
class LinearizableField(Protocol):
    """A field that solves its own linear systems by exploiting their structure."""

    def linearize(self, action: Action, t: Float[Array, ""], y: Point, args: Any, s: Float[Array, ""]) -> Linearization:
        """The field at (t, y), with the resolvent for the time s."""
        ...


def linearize(
    action: Action, field: Field, t: Float[Array, ""], y: Point, args: Any, s: Float[Array, ""]
) -> Linearization:
    """The linearization of a field: its own if it is a ``LinearizableField``, else by forward mode and dense LU.

    Args:
        field: ``field(t, y, args)``, the algebra vector (action.dim,).
        s: The time s of the resolvent ``(1 - s J)^-1``.
    """
    if isinstance(field, LinearizableField):
        return field.linearize(action, t, y, args, s)

    def rate(t: Float[Array, ""], sigma: Vector) -> Vector:
        xi = field(t, EXPONENTIAL.move(action, sigma, y), args)
        return EXPONENTIAL.inverse_differential(action, sigma, xi)

    zero, one = jnp.zeros(action.dim, s.dtype), jnp.ones((), s.dtype)
    value, by_time = jax.jvp(lambda t: rate(t, zero), (t,), (one,))
    jacobian = jax.jacfwd(lambda sigma: rate(t, sigma))(zero)
    factors = jax.scipy.linalg.lu_factor(jnp.eye(action.dim, dtype=s.dtype) - s * jacobian)
    return Linearization(value, by_time, lambda r: jax.scipy.linalg.lu_solve(factors, r))


class LinearlyImplicit(Method):
    """A Rosenbrock method in exponential coordinates: stable for stiff fields, without iterations.

    A step costs one evaluation of the field for each stage, one Jacobian and one factorization. A
    ``LinearizableField``, such as that of a multibody model, provides its own; otherwise both come from forward mode.
    Time-dependent fields keep the order if the dependence is smooth within a step.
    """

    tableau: RosenbrockTableau = eqx.field(static=True)

    @property
    def name(self) -> str:
        """The name of the method: the family and the tableau."""
        return f"linearly implicit Munthe-Kaas ({self.tableau.name})"

    @property
    def requires(self) -> tuple[str, ...]:
        """The operation "dexpinv"."""
        return EXPONENTIAL.requires

    def step(
        self, action: Action, field: Field, t: Float[Array, ""], y: Point, dt: Float[Array, ""], args: Any
    ) -> tuple[Point, Vector | None]:
        """The state after a step, and the difference of the algebra vectors of a pair as an error estimate."""
        tableau, dtype = self.tableau, dt.dtype
        count = tableau.stages
        gamma = jnp.asarray(tableau.gamma, dtype)
        value, rate, resolvent = linearize(action, field, t, y, args, gamma * dt)
        a, c = (jnp.asarray([_full(row, count) for row in rows], dtype) for rows in (tableau.a, tableau.c))
        nodes, slopes = jnp.asarray(tableau.nodes, dtype), jnp.asarray(tableau.slopes, dtype)
        drift = dt * dt * rate
        # stage 1: sigma = 0, so that F = f
        first = resolvent(gamma * (dt * value + slopes[0] * drift))

        def stage(
            u: Float[Array, "stages algebra"], entry: tuple[Array, Array, Array, Array, Array]
        ) -> tuple[Array, None]:
            index, to_point, to_right, node, slope = entry
            sigma = jnp.sum(to_point[:, None] * u, axis=0)
            xi = field(t + node * dt, EXPONENTIAL.move(action, sigma, y), args)
            # h F(sigma_i) at sigma_i = sum_j a_ij u_j, then (1 - s J) u_i = right-hand side
            moved = dt * EXPONENTIAL.inverse_differential(action, sigma, xi)
            right = gamma * (moved + jnp.sum(to_right[:, None] * u, axis=0) + slope * drift)
            return u.at[index].set(resolvent(right)), None

        u = jnp.zeros((count, action.dim), dtype).at[0].set(first)
        rows = (jnp.arange(1, count), a[1:], c[1:], nodes[1:], slopes[1:])
        u, _ = control_flow.scan(stage, u, rows)
        sigma = jnp.sum(jnp.asarray(tableau.m, dtype)[:, None] * u, axis=0)
        y1 = EXPONENTIAL.move(action, sigma, y)
        if tableau.m_embedded is None:
            return y1, None
        gap = [w - e for w, e in zip(tableau.m, tableau.m_embedded, strict=True)]
        return y1, jnp.sum(jnp.asarray(gap, dtype)[:, None] * u, axis=0)


def _full(row: tuple[float, ...], count: int) -> tuple[float, ...]:
    return (*row, *[0.0] * (count - len(row)))
