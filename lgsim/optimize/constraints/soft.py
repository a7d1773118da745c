"""Soft constraints, whose violations have a penalty."""

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
    """A soft constraint: a violation s of a row costs ``linear s + quadratic s^2 / 2``.

    The violation is ``max(c, 0)`` for an inequality and ``|c|`` for an equality. The linear penalty is exact: if it
    exceeds the multiplier of the hard constraint, the optimum is that of the hard constraint, and the multiplier does
    not exceed it. With only a quadratic penalty an active row is always slightly violated, and has no multiplier. A
    solution that violates soft rows is successful.

    Attributes:
        constraint: The constraint.
        linear: Penalty per unit of violation, in the unit of the cost over the unit of the row: one value or one for
            each row, nonnegative.
        quadratic: Penalty of half the squared violation, likewise.

    Raises:
        ValueError: a penalty is negative or not finite, or both are zero.
        TypeError: the argument is not a constraint.

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
                raise ValueError(f"{name}: expected finite nonnegative penalties, got {price}")
        if not is_traced(self.linear, self.quadratic) and not np.any(self.linear) and not np.any(self.quadratic):
            raise ValueError("linear, quadratic: expected a nonzero penalty, got zero for both")

    @property
    def equality(self) -> bool:
        """True for an equality; false for an inequality."""
        return self.constraint.equality

    @property
    def on_path(self) -> bool:
        """True if it applies at the nodes with a control."""
        return self.constraint.on_path

    @property
    def at_end(self) -> bool:
        """True if it applies at the last node."""
        return self.constraint.at_end

    @property
    def name(self) -> str:
        return f"Soft({self.constraint.name})"

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
