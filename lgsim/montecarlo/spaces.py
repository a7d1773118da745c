"""Where values live that have no sum: what means, covariances and Gaussians on a group need of it."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import equinox as eqx
from jax import Array

from lgsim.lie.group import LieGroup
from lgsim.multibody import configuration
from lgsim.multibody.model import Model
from lgsim.multibody.topology import Topology


class Space(eqx.Module):
    """A manifold whose points are arrays, with a chart about each point."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """Length of a tangent vector."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of a point."""

    @abstractmethod
    def move(self, x: Array, u: Array) -> Array:
        """The point at the tangent vector u (dim,) of the chart about x."""

    @abstractmethod
    def gap(self, x: Array, y: Array) -> Array:
        """The u (dim,) with ``move(x, u) = y``, the smallest of them."""


class Configurations(Space):
    """The configurations q of a machine, with ``model.retract`` and ``model.difference``."""

    topology: Topology = eqx.field(static=True)

    @property
    def dim(self) -> int:
        """The degrees of freedom."""
        return self.topology.nv

    @property
    def shape(self) -> tuple[int, ...]:
        """(nq,)."""
        return (self.topology.nq,)

    def move(self, x: Array, u: Array) -> Array:
        """``model.retract(x, u)``."""
        return configuration.retract(self.topology, x, u)

    def gap(self, x: Array, y: Array) -> Array:
        """``model.difference(x, y)``."""
        return configuration.difference(self.topology, x, y)


class Elements(Space):
    """The elements of a group that are arrays, with body tangents: ``move(g, u) = g exp(u)``."""

    group: LieGroup

    def __check_init__(self) -> None:
        if not isinstance(self.group, LieGroup) or not hasattr(self.group.identity(), "shape"):
            raise TypeError(f"group: expected an lgsim.LieGroup whose elements are arrays, got {self.group!r}")

    @property
    def dim(self) -> int:
        """Dimension of the group."""
        return self.group.dim

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an element."""
        return tuple(self.group.shapes)

    def move(self, x: Array, u: Array) -> Array:
        """``x exp(u)``."""
        return self.group.compose(x, self.group.exp(u))

    def gap(self, x: Array, y: Array) -> Array:
        """``log(x^-1 y)``."""
        return self.group.log(self.group.compose(self.group.inverse(x), y))


class Numbers(Space):
    """Arrays of plain numbers of any shape."""

    of: tuple[int, ...] = eqx.field(static=True)

    @property
    def dim(self) -> int:
        """How many numbers."""
        return math.prod(self.of)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape given."""
        return self.of

    def move(self, x: Array, u: Array) -> Array:
        """``x + u``."""
        return x + u.reshape(self.of)

    def gap(self, x: Array, y: Array) -> Array:
        """``y - x``."""
        return (y - x).ravel()


def space_of(given: Any) -> Space:
    """The space of a machine's configurations, of a group's elements, or the one given.

    Raises:
        TypeError: it is none of these.
    """
    if isinstance(given, Model):
        return Configurations(given.topology)
    if isinstance(given, LieGroup):
        return Elements(given)
    if isinstance(given, Space):
        return given
    raise TypeError(f"space: expected an lgsim.Model, an lgsim.LieGroup or a Space, got {type(given).__name__}")
