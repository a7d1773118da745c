"""Soft constraints: what may be broken at a price."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from lgsim._compile.xla import number_field
from lgsim.integrators.method import Number
from lgsim.lie.action import Point
from lgsim.optimize.constraints.constraint import Constraint, Grid, Price
from lgsim.optimize.cost import Control
from lgsim.support.check import is_traced


class Soft(Constraint):
    """A constraint that may be broken: a violation s of a row costs ``linear s + quadratic s^2 / 2``.

    The violation is ``max(c, 0)`` of an inequality and ``|c|`` of an equality. A linear price is exact: where it is
    above the multiplier that the constraint needs, the optimum is that of the constraint itself, and the multiplier
    never exceeds it. With a quadratic price only, the row is always broken a little where it is active, and has no
    multiplier. A solution that breaks soft rows is successful.

    Attributes:
        constraint: The constraint.
        linear: Cost of a violation by its size, in the unit of the cost by that of the row: one number or one for each
            row, not negative.
        quadratic: Cost of half its square, likewise.

    Raises:
        ValueError: a price is negative or not finite, or both are zero.
        TypeError: what it gets is no constraint.

    Source: Nocedal and Wright, Numerical Optimization, 2nd ed., sec. 17.2.
    """

    constraint: Any
    linear: Any = number_field(0.0)
    quadratic: Any = number_field(0.0)

    def __check_init__(self):
        if not isinstance(self.constraint, Constraint):
            raise TypeError(
                f"constraint: expected a constraint of lgsim.optimize, got {type(self.constraint).__name__}"
            )
        for name, price in (("linear", self.linear), ("quadratic", self.quadratic)):
            if not is_traced(price) and not np.all(np.isfinite(price) & (np.asarray(price) >= 0)):
                raise ValueError(f"{name}: expected finite prices that are not negative, got {price}")
        if not is_traced(self.linear, self.quadratic) and not np.any(self.linear) and not np.any(self.quadratic):
            raise ValueError("linear, quadratic: expected a price of a violation, got zero for both")

    @property
    def equality(self) -> bool:
        """Whether all rows are zero, else none is positive, where they are met."""
        return self.constraint.equality

    @property
    def on_path(self) -> bool:
        """Whether it holds at the nodes with a control."""
        return self.constraint.on_path

    @property
    def at_end(self) -> bool:
        """Whether it holds at the last node."""
        return self.constraint.at_end

    @property
    def name(self) -> str:
        return f"Soft({self.constraint.name})"

    @property
    def curved(self) -> bool:
        return self.constraint.curved

    @property
    def price(self) -> Price:
        return Price(self.linear, self.quadratic)

    def value(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        return self.constraint.value(t, y, u, args)

    def holds(self, k: Int[Array, ""] | int, t: Number) -> Bool[Array, ""] | bool:
        return self.constraint.holds(k, t)

    def on_grid(self, grid: Grid) -> Constraint:
        return eqx.tree_at(lambda soft: soft.constraint, self, self.constraint.on_grid(grid))

    def at_step(self, dt: Number) -> Constraint:
        return eqx.tree_at(lambda soft: soft.constraint, self, self.constraint.at_step(dt))

    def priced(self, factor: Float[Array, ""]) -> Constraint:
        prices = tuple(factor * jnp.asarray(price, factor.dtype) for price in (self.linear, self.quadratic))
        return eqx.tree_at(lambda soft: (soft.linear, soft.quadratic), self, prices)
