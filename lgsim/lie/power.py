"""Powers of an action: several equal actions as one."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
from jax import Array

from lgsim.lie.action import Action, Point
from lgsim.support import check


class Power(Action):
    """A power of an action, ``count`` equal copies: one compiled program for any count.

    The state is that of one action with a leading axis of length ``count`` on each array; the algebra vector
    concatenates theirs, (count dim,). The action's operations must accept leading axes, as those of this library do.

    Attributes:
        count: the number of copies.
    """

    action: Action
    count: int = eqx.field(static=True)

    def __check_init__(self) -> None:
        if not isinstance(self.action, Action):
            raise TypeError(f"action: expected an action, got {type(self.action).__name__}")
        check.count("count", self.count)

    def rows(self, xi: Array, name: str = "xi") -> Array:
        """The algebra vectors of the parts, (..., count, dim of one); ``name`` is the argument's name in errors."""
        xi = self._vector(name, xi)
        return xi.reshape(*xi.shape[:-1], self.count, self.action.dim)

    def joined(self, rows: Array) -> Array:
        """The algebra vector from those of the parts: the inverse of ``rows``."""
        return rows.reshape(*rows.shape[:-2], self.dim)

    @property
    def dim(self) -> int:
        return self.count * self.action.dim

    def move(self, xi: Array, y: Point) -> Point:
        return self.action.move(self.rows(xi), y)

    def dexpinv(self, sigma: Array, xi: Array) -> Array:
        return self.joined(self.action.dexpinv(self.rows(sigma, "sigma"), self.rows(xi)))

    def bracket(self, a: Array, b: Array) -> Array:
        return self.joined(self.action.bracket(self.rows(a, "a"), self.rows(b, "b")))

    def difference(self, y0: Point, y1: Point) -> Array:
        return self.joined(self.action.difference(y0, y1))

    def sizes(self, y: Point) -> Array:
        return jax.vmap(self.action.sizes)(y).reshape(self.dim)

    def project(self, y: Point) -> Point:
        return self.action.project(y)

    def defects(self, y: Point) -> dict[str, Any]:
        return self.action.defects(y)

    def provides(self, verb: str) -> bool:
        return self.action.provides(verb)
