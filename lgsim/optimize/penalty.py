"""What an augmented Lagrangian adds to the costs of a problem's nodes."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from lgsim.lie.action import Point
from lgsim.optimize.constraints import Constraint
from lgsim.optimize.cost import Cost, Residual, Sum


class Penalty(Residual):
    """``rho/2 |c + m/rho|^2`` of equalities, and of inequalities its positive part; m are multipliers, rho the weight.

    Source: Nocedal and Wright, Numerical Optimization, 2nd ed., sec. 17.3 and 17.4.
    """

    constraints: tuple[Constraint, ...]
    multipliers: tuple[Array, ...]
    weight: Array

    def residual(self, t: Any, y: Point, u: Array | None, args: Any) -> Array:
        rows = []
        for constraint, m in zip(self.constraints, self.multipliers, strict=True):
            shifted = constraint.value(t, y, u, args) + m / self.weight
            rows.append(shifted if constraint.equality else jnp.maximum(shifted, 0))
        return jnp.concatenate(rows)


class Penalties(eqx.Module):
    """Multipliers of all nodes, and the weight of all penalties.

    Attributes:
        along: For each constraint along the way (H, rows).
        end: For each constraint at the end (rows,).
        weight: The penalty rho.
    """

    along: tuple[Array, ...]
    end: tuple[Array, ...]
    weight: Array

    def at(self, constraints: tuple[Constraint, ...], k: Any) -> Cost:
        """The cost that is added at node k."""
        held = tuple(c for c in constraints if c.along)
        return (
            Penalty(constraints=held, multipliers=tuple(m[k] for m in self.along), weight=self.weight)
            if held
            else Sum(())
        )

    def at_end(self, constraints: tuple[Constraint, ...]) -> Cost:
        """The cost that is added at the last node."""
        held = tuple(c for c in constraints if c.end)
        return Penalty(constraints=held, multipliers=self.end, weight=self.weight) if held else Sum(())
