"""Coordinates of a group about its identity, in which a Munthe-Kaas method works: exp, the Cayley map, second kind.

With a coordinate map phi from the algebra, ``y(t) = phi(sigma(t)) . y_n`` moves with ``sigma' = dphi_sigma^-1 (f)``.
Source: Celledoni et al. 2021, sec. 2.3; Owren and Marthinsen 2001 (second kind); Diele, Lopez, Peluso 1998 (Cayley).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from jax import Array

from lgsim.integrators.cayley import cayley_verbs
from lgsim.integrators.second_kind import second_kind_verbs
from lgsim.lie.action import Action, Point


class Coordinates(ABC):
    """What a Munthe-Kaas method asks of coordinates; they are hashable and hold no arrays.

    Attributes:
        requires: the verbs, beyond ``move``, that the action must provide.
        odd: whether ``phi(-u)`` is the inverse of ``phi(u)``.
    """

    requires: ClassVar[tuple[str, ...]]
    odd: ClassVar[bool]

    def check(self, action: Action) -> None:  # noqa: B027 - most coordinates ask for nothing
        """Raise TypeError if the action has no such coordinates, beyond a verb that it lacks."""

    @abstractmethod
    def move(self, action: Action, sigma: Array, y: Point) -> Point:
        """The point ``phi(sigma) . y``."""

    @abstractmethod
    def inverse_differential(self, action: Action, sigma: Array, xi: Array) -> Array:
        """The rate of sigma for which ``phi(sigma(t)) . y`` moves with xi."""


@dataclass(frozen=True)
class Exponential(Coordinates):
    """The exponential map: canonical coordinates of the first kind."""

    requires: ClassVar[tuple[str, ...]] = ("dexpinv",)
    odd: ClassVar[bool] = True

    def move(self, action: Action, sigma: Array, y: Point) -> Point:
        """``exp(sigma) . y``."""
        return action.move(sigma, y)

    def inverse_differential(self, action: Action, sigma: Array, xi: Array) -> Array:
        """Dexpinv in closed form."""
        return action.dexpinv(sigma, xi)


@dataclass(frozen=True)
class SecondKind(Coordinates):
    """``phi(sigma) = exp(sigma_1 e_1) exp(sigma_2 e_2) ... exp(sigma_d e_d)`` in the basis of the algebra, any action.

    Rotations are singular where the second of three angles is a quarter of a turn.
    """

    requires: ClassVar[tuple[str, ...]] = ("dexpinv",)
    odd: ClassVar[bool] = False

    def move(self, action: Action, sigma: Array, y: Point) -> Point:
        """``phi(sigma) . y``; the last factor acts first."""
        return second_kind_verbs(action).move(sigma, y)

    def inverse_differential(self, action: Action, sigma: Array, xi: Array) -> Array:
        """By one linear system for each part of a product."""
        return second_kind_verbs(action).rate(sigma, xi)


@dataclass(frozen=True)
class Cayley(Coordinates):
    """The Cayley map ``cay(u) = (1 - u/2)^-1 (1 + u/2)`` of rotations and displacements: rational, without an angle.

    An action of one's own defines the verbs ``cay(sigma, y)``, the point ``cay(sigma) . y``, and
    ``dcayinv(sigma, xi)``, the rate of sigma for which it moves with xi.
    """

    requires: ClassVar[tuple[str, ...]] = ()
    odd: ClassVar[bool] = True

    def check(self, action: Action) -> None:
        """Raise TypeError if the action has no Cayley map."""
        cayley_verbs(action)

    def move(self, action: Action, sigma: Array, y: Point) -> Point:
        """``cay(sigma) . y``."""
        return cayley_verbs(action).move(sigma, y)

    def inverse_differential(self, action: Action, sigma: Array, xi: Array) -> Array:
        """Dcayinv in closed form."""
        return cayley_verbs(action).rate(sigma, xi)


EXPONENTIAL = Exponential()
