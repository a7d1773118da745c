"""Coordinates of a group about an element, ``g phi(u)``: exponential ones or the Cayley map."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from lgsim.integrators.coordinates import Cayley, Coordinates, Exponential, group_cayley
from lgsim.lie.group import Element, LieGroup

Vector = Float[Array, " dim"]


class Chart(NamedTuple):
    """A map phi of the algebra to the group with ``phi(-u) phi(u) = 1``.

    Attributes:
        element: ``element(u)``, phi(u).
        body_differential: ``body_differential(u, w)``, the body velocity (dim,) of phi(u) where u moves with w:
            ``d phi(u) = phi(u) hat(dphi_(-u) w)``.
        doubled: ``doubled(u)``, the coordinates (dim,) of phi(u) phi(u).
        ambiguous: ``ambiguous(u)``, True if phi(u) phi(u) has other, smaller coordinates, such as a rotation beyond
            pi: the equations of a step then have other solutions.
    """

    element: Callable[[Vector], Element]
    body_differential: Callable[[Vector, Vector], Vector]
    doubled: Callable[[Vector], Vector]
    ambiguous: Callable[[Vector], Bool[Array, ""]]


@singledispatch
def chart(coordinates: Coordinates, group: LieGroup) -> Chart:
    """The chart of coordinates on a group.

    Raises:
        TypeError: the coordinates do not support it.
    """
    raise TypeError(f"coordinates: expected Exponential() or Cayley(), got {type(coordinates).__name__}")


@chart.register
def _(coordinates: Exponential, group: LieGroup) -> Chart:
    def ambiguous(u: Vector) -> Bool[Array, ""]:
        half = group.exp(u)
        # the logarithm is a rotation by at most pi, so that larger angles are off by a whole turn
        return jnp.any(jnp.abs(group.log(group.compose(half, half)) - 2 * u) > 1)

    return Chart(group.exp, lambda u, w: group.dexp_action(-u, w), lambda u: 2 * u, ambiguous)


@chart.register
def _(coordinates: Cayley, group: LieGroup) -> Chart:
    cayley = group_cayley(group)
    inverse, slope = cayley.cayinv, cayley.dcay
    if inverse is None or slope is None:
        raise TypeError(
            f"coordinates: discrete mechanics needs cayinv and dcay too, which the Cayley map of {group!r} was "
            "registered without; take Exponential()"
        )

    def doubled(u: Vector) -> Vector:
        half = cayley.cay(u)
        return inverse(group.compose(half, half))

    # a Cayley vector determines the rotation uniquely
    return Chart(cayley.cay, lambda u, w: slope(-u, w), doubled, lambda u: jnp.zeros((), bool))
