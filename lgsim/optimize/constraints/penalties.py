"""Penalty terms and multipliers of an augmented Lagrangian."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from lgsim._compile.xla import export_module
from lgsim.integrators.method import Number
from lgsim.lie.action import Action, Point
from lgsim.optimize.constraints.constraint import Constraint
from lgsim.optimize.cost import Control, Cost, Quadratic, Sum, model_of_rows, move_node, zero_tangent

Rows = Float[Array, "*#rows"]
"""One value for each row of a constraint, at one node or at several."""


class RowPenalty(NamedTuple):
    """The penalty terms of the rows c of a constraint, as functions of c.

    Attributes:
        value: Values of the rows' penalty terms.
        slope: Their first derivatives.
        curvature: Their second derivatives.
    """

    value: Rows
    slope: Rows
    curvature: Rows


def updated(constraint: Constraint, multipliers: Rows, weight: Rows, c: Rows) -> Rows:
    """The multipliers after an outer iteration, ``m + rho c`` clipped to the admissible range.

    Multipliers of inequalities are nonnegative, those of soft rows at most their linear penalty.
    """
    most = jnp.broadcast_to(jnp.asarray(constraint.price.linear, c.dtype), c.shape)
    return jnp.clip(multipliers + weight * c, -most if constraint.equality else jnp.zeros_like(most), most)


def violations(constraint: Constraint, c: Rows) -> Rows:
    """The violations of a constraint's rows."""
    return jnp.abs(c) if constraint.equality else jnp.maximum(c, 0)


def row_penalty(constraint: Constraint, multipliers: Rows, weight: Rows, c: Rows) -> RowPenalty:
    """``min_s linear s + quadratic c_+^2 / 2 + rho/2 (c + m/rho - s)^2`` over s >= 0, for each row.

    For a hard row s = 0. With a linear penalty it is quadratic up to that slope and then linear, with a constant
    multiplier.
    """
    slope = updated(constraint, multipliers, weight, c)
    # an infinite bound must not be multiplied
    value = slope * jnp.where(slope == 0, 0, c + multipliers / weight) - slope**2 / (2 * weight)
    free = slope == multipliers + weight * c
    quadratic = jnp.broadcast_to(jnp.asarray(constraint.price.quadratic, c.dtype), c.shape)
    excess = c if constraint.equality else jnp.maximum(c, 0)
    return RowPenalty(
        value + quadratic * excess**2 / 2,
        slope + quadratic * excess,
        jnp.where(free, weight, 0) + jnp.where(excess != 0, quadratic, 0),
    )


class Penalty(Cost):
    """The penalty terms of constraints at a node: ``rho/2 |c + m/rho|^2`` for equalities c, and for inequalities the
    same of the positive part of ``c + m/rho``; see ``row_penalty`` for soft ones.

    Its quadratic model omits the second derivatives of the constraints, unless an exact one is requested.

    Attributes:
        node: Index of the node.
        multipliers: A multiplier m for each row, of each constraint (rows,).
        weights: The penalties rho, likewise.
        kept: Mask of the rows that are used, likewise.

    Source: Nocedal and Wright, Numerical Optimization, 2nd ed., sec. 17.3 and 17.4.
    """

    constraints: tuple[Constraint, ...]
    node: Int[Array, ""] | int
    multipliers: tuple[Float[Array, " _"], ...]
    weights: tuple[Float[Array, " _"], ...]
    kept: tuple[Bool[Array, " _"], ...]

    def value(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, ""]:
        return jnp.sum(self._penalty(t, self._values(t, y, u, args)).value)

    def quadratic(self, action: Action, t: Number, y: Point, u: Control, args: Any, exact: bool) -> Quadratic:
        if exact:
            return super().quadratic(action, t, y, u, args, exact)

        def f(z: Array) -> Array:
            return self._values(t, *move_node(action, y, u, z), args)

        z = zero_tangent(action, y, u)
        c = f(z)
        if not c.size:
            return Sum(()).quadratic(action, t, y, u, args, exact)
        J = (jax.jacrev if c.size < z.size else jax.jacfwd)(f)(z)
        penalty = self._penalty(t, c)
        # rows that are not used need not be finite
        J = jnp.where((penalty.slope == 0)[:, None] & (penalty.curvature == 0)[:, None], 0, J)
        return model_of_rows(J, penalty.curvature, penalty.slope, jnp.sum(penalty.value), z.size)

    def rows(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        value = self._penalty(t, self._values(t, y, u, args)).value
        # the square root is not differentiable at zero, where the derivative of the row is used
        return jnp.where(value > 0, jnp.sqrt(2 * jnp.where(value > 0, value, 1)), 0)

    def _values(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        """All rows of all constraints."""
        return jnp.concatenate([c.value(t, y, u, args) for c in self.constraints])

    def _penalty(self, t: Number, values: Float[Array, " rows"]) -> RowPenalty:
        """The sum of all penalty terms."""
        parts, start = [], 0
        for constraint, m, weight, kept in zip(
            self.constraints, self.multipliers, self.weights, self.kept, strict=True
        ):
            c = values[start : start + m.size]
            start += m.size
            counts = kept & constraint.holds(self.node, t)
            part = row_penalty(constraint, m, weight, c)
            parts.append(jax.tree.map(lambda x, counts=counts: jnp.where(counts, x, 0), part))
        return RowPenalty(*(jnp.concatenate(x) for x in zip(*parts, strict=True)))


@export_module("lgsim.optimize.Penalties")
class Penalties(eqx.Module):
    """The multipliers of all nodes, and the penalty weight.

    Attributes:
        path: Multipliers of each path constraint (H, rows): the decrease of the cost per unit of relaxation of the row.
        end: Multipliers of each end constraint (rows,).
        weight: The penalty rho of rows of unit scale.
        path_sizes: Natural scale of each row of each path constraint (rows,); its penalty is rho over the square of its
            scale. None for one.
        end_sizes: The same for end constraints.
        start_rows: Mask of the rows of each path constraint that a control affects at the first node (rows,); the
            others are ignored there. None for all.
    """

    path: tuple[Float[Array, "horizon _"], ...]
    end: tuple[Float[Array, " _"], ...]
    weight: Float[Array, ""]
    path_sizes: tuple[Float[Array, " _"], ...] | None = None
    end_sizes: tuple[Float[Array, " _"], ...] | None = None
    start_rows: tuple[Bool[Array, " _"], ...] | None = None

    @property
    def path_weights(self) -> tuple[Float[Array, " _"], ...]:
        """The penalty of each row of each path constraint (rows,)."""
        return self._weights(tuple(m[0] for m in self.path), self.path_sizes)

    @property
    def end_weights(self) -> tuple[Float[Array, " _"], ...]:
        """The penalty of each row of each end constraint (rows,)."""
        return self._weights(self.end, self.end_sizes)

    def at_node(self, constraints: tuple[Constraint, ...], k: Int[Array, ""] | int) -> Cost:
        """The penalty term of node k, added to its running cost."""
        active = tuple(c for c in constraints if c.on_path)
        multipliers = tuple(m[k] for m in self.path)
        started = k > 0
        rows = tuple(jnp.ones(m.shape, bool) for m in multipliers) if self.start_rows is None else self.start_rows
        kept = tuple(row | started for row in rows)
        return Penalty(active, k, multipliers, self.path_weights, kept) if active else Sum(())

    def at_end(self, constraints: tuple[Constraint, ...], horizon: int) -> Cost:
        """The penalty term of the last node, added to the terminal cost."""
        active = tuple(c for c in constraints if c.at_end)
        kept = tuple(jnp.ones(m.shape, bool) for m in self.end)
        return Penalty(active, horizon, self.end, self.end_weights, kept) if active else Sum(())

    def _weights(
        self, like: tuple[Float[Array, " _"], ...], sizes: tuple[Float[Array, " _"], ...] | None
    ) -> tuple[Float[Array, " _"], ...]:
        if sizes is None:
            return tuple(jnp.full_like(m, self.weight) for m in like)
        return tuple(self.weight / size**2 for size in sizes)
