"""A coordinate map as an action sees it, and how the maps of parts make that of a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
from jax import Array

from lgsim.lie.action import Point
from lgsim.lie.group import join, split
from lgsim.lie.power import Power


class Verbs(NamedTuple):
    """A coordinate map phi on one action.

    Attributes:
        move: ``move(sigma, y)``, the point ``phi(sigma) . y``.
        rate: ``rate(sigma, xi)``, the rate of sigma for which ``phi(sigma(t)) . y`` moves with xi.
    """

    move: Callable[[Array, Point], Point]
    rate: Callable[[Array, Array], Array]


def side_by_side(parts: Sequence[Verbs], dims: Sequence[int]) -> Verbs:
    """The map of a product: each part on its own, because elements of different parts commute."""

    def move(sigma: Array, y: Point) -> Point:
        return tuple(part.move(s, z) for part, s, z in zip(parts, split(sigma, dims), y, strict=True))

    def rate(sigma: Array, xi: Array) -> Array:
        return join([part.rate(s, x) for part, s, x in zip(parts, split(sigma, dims), split(xi, dims), strict=True)])

    return Verbs(move, rate)


def repeated(one: Verbs, power: Power) -> Verbs:
    """The map of equal parts."""
    return Verbs(
        lambda sigma, y: jax.vmap(one.move)(power.rows(sigma), y),
        lambda sigma, xi: power.joined(jax.vmap(one.rate)(power.rows(sigma), power.rows(xi))),
    )
