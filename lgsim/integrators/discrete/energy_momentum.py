"""The energy-momentum method: preserves energy and symmetry momenta by a discrete gradient in invariants.

Sources: Gonzalez 1996, Time integration and discrete Hamiltonian systems; Wendlandt 1995 and 1997 (with constraints).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.integrators.discrete.discrete_gradient import discrete_gradient
from lgsim.integrators.discrete.mechanics import DiscreteMechanics, State
from lgsim.integrators.discrete.problem_checks import Rule, check_mechanics, check_start, cotangent_group, known
from lgsim.integrators.method import Field, ImplicitMethod
from lgsim.integrators.newton import Newton
from lgsim.lie.action import Action, Point
from lgsim.lie.group import Euclidean

Vector = Float[Array, " n"]
Scalar = Float[Array, ""]


RULE = Rule("energy-momentum", order=2)


class EnergyMomentum(ImplicitMethod):
    """Gonzalez' energy-momentum method for ``DiscreteMechanics`` on ``Euclidean(n)`` with a constant mass matrix M.

    With a potential energy V(q) = U(w(q)) of invariants w of a symmetry, each at most quadratic in q, a step solves

        q1 - q0 = h M^-1 (p0 + p1)/2,
        p1 - p0 = h f - h Dw(mean)^T D U(w0, w1) - h D c(q0, q1)^T lambda,    c(q1) = 0,

    with Gonzalez' discrete gradients D, and the force f at the midpoint. It preserves the energy at any step size, and
    the momenta of the symmetry: linear and angular momentum if w are squared distances, and constraints are quadratic,
    such as ``(|x|^2 - l^2)/2``. It is symmetric and of order 2, but not symplectic. Velocities normal to the
    constraints are not corrected.

    Attributes:
        potential: ``U(w, args)``, J; with ``invariants`` None it may be omitted, and then w = q and U is V. That is
            the plain midpoint formula: it preserves the energy, and angular momentum only if V is at most quadratic.
        invariants: ``w(q, args)``, (k,), at most quadratic in q.
        newton: solver of the equations of a step, starting from rest.

    Raises:
        ValueError: only one of invariants and their potential is given.
    """

    potential: Callable[..., Scalar] | None = eqx.field(static=True)
    invariants: Callable[..., Vector] | None = eqx.field(static=True)
    newton: Newton
    tableau: Rule = eqx.field(static=True)

    def __init__(
        self,
        potential: Callable[..., Scalar] | None = None,
        invariants: Callable[..., Vector] | None = None,
        newton: Newton | None = None,
    ):
        self.potential, self.invariants, self.tableau = potential, invariants, RULE
        self.newton = Newton() if newton is None else newton
        if (potential is None) != (invariants is None):
            raise ValueError(
                "potential, invariants: expected both, potential(w, args) being a function of w = invariants(q, args), "
                "or none of them"
            )

    @property
    def fixed_step_reason(self) -> str:
        """The reason for its fixed steps."""
        return (
            "an energy-momentum step is symmetric in time only with steps of one length; adaptive steps "
            "destroy the structure"
        )

    def check(self, action: Action) -> None:
        """Raise TypeError unless the action moves the cotangent bundle of ``Euclidean(n)``."""
        group = cotangent_group(action, "the energy-momentum method")
        if not isinstance(group, Euclidean):
            raise TypeError(
                f"action: the energy-momentum method needs lgsim.Cotangent(lgsim.Euclidean(n)), got {group!r}; on "
                "other groups take a variational method, or constraints on vectors"
            )

    def check_problem(self, action: Action, field: Field, t0: Scalar, y0: Point, args: Any) -> None:
        """Raise if the method does not support the field, its mass matrix, the invariants or y0.

        Raises:
            TypeError: the field is not a ``DiscreteMechanics``.
            ValueError: y0 violates the constraints, the mass matrix is not constant, the invariants are not quadratic,
                or the potential is not that of the Lagrangian.
        """
        super().check_problem(action, field, t0, y0, args)
        mechanics = check_mechanics(field, action, self.name)
        check_start(mechanics, t0, y0, args, tangent=False)
        if not known(t0, y0, args, mechanics):
            return
        q = y0[0]
        limit = 10.0 ** (-0.5 * np.finfo(q.dtype).precision)
        away = jnp.asarray(np.random.default_rng(0).normal(size=q.shape), q.dtype) * (1 + jnp.max(jnp.abs(q)))
        M = np.asarray(_mass(mechanics, t0, q, y0[1] * 0, args))
        others = [_mass(mechanics, t0, q + a, b, args) for a, b in ((away, 0 * away), (0 * away, away))]
        if not all(np.max(np.abs(np.asarray(other) - M)) <= limit * np.max(np.abs(M)) for other in others):
            raise ValueError(
                "lagrangian: the energy-momentum method needs the kinetic energy v . M v/2 with a constant M, and its "
                "second derivatives with respect to v depend on q or v; use mass point positions with constraints"
            )
        given = self._potential(mechanics, t0, args)
        if self.invariants is None or self.potential is None:
            return
        up, down = (np.asarray(self.invariants(q + s * away, args)) for s in (1, -1))
        # a quadratic w has w(q + a) - w(q - a) = 2 Dw(q) a
        line = np.asarray(jax.jvp(lambda x: self.invariants(x, args), (q,), (away,))[1])  # pyright: ignore
        curve = np.abs(up - down - 2 * line)
        rows = np.flatnonzero(curve > limit * (np.abs(up) + np.abs(down) + np.abs(line)))
        if rows.size:
            raise ValueError(
                f"invariants: row {rows[0]} is more than quadratic in q, and energy would be lost; take squares of "
                "distances, and their roots in the potential"
            )
        values = [float(self.potential(self.invariants(x, args), args) - given(x)) for x in (q, q + away / 8)]
        sizes = [abs(float(given(x))) for x in (q, q + away / 8)]
        if not abs(values[1] - values[0]) <= limit * max(*sizes, abs(values[0])):
            raise ValueError(
                "potential: potential(invariants(q, args), args) is not the potential energy -lagrangian(q, 0, args): "
                f"between two configurations they differ by {values[1] - values[0]:.3g}"
            )

    def monitored_step(
        self, action: Action, field: Field, t: Scalar, y: Point, dt: Scalar, args: Any
    ) -> tuple[Point, None, Scalar]:
        """(state after a step, no error estimate, largest relative residual () of the equations)."""
        y1, gap, _ = self._advance(cast(DiscreteMechanics, field), t, y, dt, args)
        return y1, None, gap

    def multipliers(
        self, mechanics: DiscreteMechanics, t: Scalar | float, y: State, dt: Scalar | float, args: Any = None
    ) -> Float[Array, "1 rows"]:
        """The multipliers lambda of the step from (t, y), (1, rows)."""
        dtype = y[0].dtype
        return self._advance(mechanics, jnp.asarray(t, dtype), y, jnp.asarray(dt, dtype), args)[2][None]

    def _potential(self, mechanics: DiscreteMechanics, t: Scalar, args: Any) -> Callable[[Vector], Scalar]:
        """The potential energy of a configuration, at time t."""
        return lambda q: -mechanics.value(t, q, jnp.zeros_like(q), args)

    def _advance(
        self, mechanics: DiscreteMechanics, t: Scalar, y: State, h: Scalar, args: Any
    ) -> tuple[State, Scalar, Float[Array, " rows"]]:
        """The state at t + h, the largest relative residual () of the equations, and the multipliers."""
        (q0, p0), middle = y, t + h / 2
        M = _mass(mechanics, middle, q0, 0 * p0, args)
        at_rest = self._potential(mechanics, middle, args)
        if self.potential is None or self.invariants is None:
            energy, invariants = at_rest, lambda q: q
        else:
            potential, functions = self.potential, self.invariants
            energy, invariants = lambda w: potential(w, args), lambda q: functions(q, args)

        def constraint_slopes(d: Vector) -> Float[Array, "rows n"]:
            return discrete_gradient(lambda q: mechanics.gaps(q, args), q0, q0 + d)

        def impulse(d: Vector, multipliers: Float[Array, " rows"]) -> Vector:
            q1, mean, v = q0 + d, q0 + d / 2, d / h
            # -Dw(mean)^T D U(w0, w1), f at the midpoint, -D c^T lambda
            slope = discrete_gradient(lambda w: energy(w)[None], invariants(q0), invariants(q1))[0]
            _, pull_back = jax.vjp(invariants, mean)
            total = -pull_back(slope)[0]
            if mechanics.force is not None:
                with_force = mechanics.slopes(middle, mean, v, args).force
                without = eqx.tree_at(lambda m: m.force, mechanics, None).slopes(middle, mean, v, args).force
                total = total + with_force - without
            if multipliers.size:
                total = total - multipliers @ constraint_slopes(d)
            return h * total

        def residual(x: Float[Array, " m"]) -> Float[Array, " m"]:
            d, multipliers = x[: q0.size], x[q0.size :]
            # p1 = 2 M d/h - p0 inserted in the equation of p1 - p0
            balance = 2 * (M @ d / h - p0) - impulse(d, multipliers)
            # c(q1) - c(q0) without the rounding of either, which the factor d/h would amplify in the momenta
            return jnp.concatenate([balance, constraint_slopes(d) @ d]) if multipliers.size else balance

        start = jnp.zeros(q0.size + mechanics.gaps(q0, args).size, q0.dtype)
        x, gap = self.newton.solve(residual, start, q0, q0.size)
        d, multipliers = x[: q0.size], x[q0.size :]
        return (q0 + d, p0 + impulse(d, multipliers)), gap, multipliers


def _mass(mechanics: DiscreteMechanics, t: Scalar, q: Vector, v: Vector, args: Any) -> Float[Array, "n n"]:
    """The second derivatives of the Lagrangian with respect to v, (n, n)."""
    return jax.jacfwd(lambda w: mechanics.slopes(t, q, w, args).momentum)(v)
