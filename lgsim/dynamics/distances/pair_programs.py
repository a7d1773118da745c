"""The engine of pairs: which closed form or search belongs to two forms, and the derivative that all of them have."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from lgsim.dynamics.distances.fields import in_field
from lgsim.dynamics.distances.nearest import Meeting, Nearest, core_distance, meeting, moved
from lgsim.dynamics.distances.segments import below_plane, box_and_segment, two_segments
from lgsim.dynamics.distances.simplex import two_polytopes
from lgsim.multibody.geometry import Geometry
from lgsim.multibody.geometry.forms import Block, Convex, Field, Form, Segment, Under
from lgsim.spatial import Transform
from lgsim.xla import batch_last, change_along

Numbers = tuple[tuple[Array, ...], Array | None]
"""The sizes of a solid, and its samples (count,)."""

CLOSED: dict[tuple[type, type], Callable[..., Nearest]] = {
    (Segment, Segment): two_segments,
    (Block, Segment): box_and_segment,
}
"""Pairs of convex cores that need no search."""
FORMULAS = (two_segments, box_and_segment, below_plane)
"""What takes no loop."""
TURNING = (box_and_segment, two_polytopes)
"""What finds a direction that turns with the solids where cores overlap."""


def solver(a: Form, b: Form) -> tuple[Callable[..., Any] | None, bool]:
    """(what finds the nearest points of two forms, whether it wants the second one first); None where nothing does."""
    for first, second, swapped in ((a, b, False), (b, a, True)):
        if (type(first), type(second)) in CLOSED:
            return CLOSED[type(first), type(second)], swapped
        if isinstance(second, Convex) and isinstance(first, Under):
            return below_plane, swapped
        if isinstance(second, Convex) and isinstance(first, Field):
            return in_field, swapped
    return (two_polytopes, False) if isinstance(a, Convex) and isinstance(b, Convex) else (None, False)


@cache
def pair_program(first: Geometry, second: Geometry) -> Callable[[Numbers, Numbers, Transform], Meeting]:
    """``program(numbers of a, numbers of b, pose of b in a)`` gives the ``Meeting`` of one pair of two kinds.

    The first derivative of a distance is that at fixed places on both solids, ``n . (dx_b - dx_a)``: how the nearest
    points move along the surfaces does not change it (Danskin's theorem), and would only bring in rounding where cores
    are nearly parallel. Derivatives of higher order take in how the points and the direction move.
    """

    def forms(a: Numbers, b: Numbers) -> tuple[Any, Any]:
        shapes = (kind.resized(sizes).sampled(samples) for kind, (sizes, samples) in ((first, a), (second, b)))
        one, other = (shape.form() for shape in shapes)
        return one, other

    def of(find: Callable[..., Any], swapped: bool) -> Callable[..., Any]:
        def found(a: Numbers, b: Numbers, T: Transform) -> Any:
            one, other = forms(a, b)
            return find(other, one, T.inverse()) if swapped else find(one, other, T)

        return found

    def ordered(a: Numbers, b: Numbers, T: Transform, swapped: bool) -> tuple[Any, Any, Transform]:
        one, other = forms(a, b)
        return (other, one, T.inverse()) if swapped else (one, other, T)

    def turned_back(T: Transform, m: Meeting, swapped: bool) -> Meeting:
        if not swapped:
            return m
        return Meeting(m.distance, -(T.R @ m.normal), moved(T, m.second), moved(T, m.first))

    def surfaces(a: Numbers, b: Numbers, T: Transform) -> Meeting:
        one, other = forms(a, b)
        find, swapped = solver(one, other)
        assert find is not None
        found = of(find, swapped)(a, b, T)
        if find is not in_field:
            found = meeting(*ordered(a, b, T, swapped), found)
        return turned_back(T, found, swapped)

    def nearest(a: Numbers, b: Numbers, T: Transform) -> Any:
        find, swapped = solver(*forms(a, b))
        assert find is not None
        return of(find, swapped)(a, b, T)

    by_formula = solver(_form_of(first), _form_of(second))[0] in FORMULAS
    search = batch_last(nearest) if by_formula else nearest

    def rule(args: tuple, changes: tuple) -> tuple[Meeting, Meeting]:
        find, swapped = solver(*forms(*args[:2]))
        value = whole(*args)
        if find is in_field:
            return value, change_along(surfaces, args, changes)
        found = search(*args)

        def held(*at: Any) -> Array:
            one, other, T = ordered(*at, swapped)
            return core_distance(one, other, T, found)[0] - (one.radius + other.radius)

        change = change_along(held, args, changes)
        if find in TURNING:
            one, other, T = ordered(*args, swapped)
            gap = moved(T, other.place(found.second)) - one.place(found.first)
            turn = change_along(lambda *at: search(*at).axis, args, changes)
            change = change + jnp.where(found.inside, turn.dot(gap), 0)
        rest = change_along(surfaces, args, changes)
        return value, rest._replace(distance=change)

    if by_formula:
        # one native function for all pairs of all states
        whole = batch_last(surfaces, rule)
        return whole
    searched = jax.custom_jvp(surfaces)
    searched.defjvp(rule, symbolic_zeros=True)
    whole = searched
    return searched


def measurable(first: Geometry, second: Geometry) -> bool:
    """Whether two kinds of solids have a distance."""
    forms = [_form_of(kind) for kind in (first, second)]
    return None not in forms and solver(*forms)[0] is not None


@cache
def _form_of(kind: Geometry) -> Form | None:
    example = kind.resized([jnp.ones(())] * len(kind.sizes)).sampled(jnp.ones(kind.sample_count))
    return None if kind.drawn_alone else example.form()
