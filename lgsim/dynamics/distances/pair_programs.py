"""The engine of pairs: which closed form or search belongs to two forms, and the derivative that all of them have."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from lgsim._compile.spatial import Transform
from lgsim._compile.xla import batch_last, change_along
from lgsim.dynamics.distances.fields import in_field
from lgsim.dynamics.distances.nearest import ClosestPair, Nearest, core_distance, meeting, moved
from lgsim.dynamics.distances.segments import below_plane, box_and_segment, two_segments
from lgsim.dynamics.distances.simplex import two_polytopes
from lgsim.multibody.geometry import Geometry
from lgsim.multibody.geometry.forms import Block, Convex, Field, Form, HalfSpaceForm, Segment

Numbers = tuple[tuple[Array, ...], Array | None]
"""The sizes of a solid, and its samples (count,)."""

CLOSED: dict[tuple[type, type], Callable[..., Nearest]] = {
    (Segment, Segment): two_segments,
    (Block, Segment): box_and_segment,
}
"""Pairs of convex cores that need no search."""
FORMULAS = (two_segments, box_and_segment, below_plane)
"""What takes no loop."""
_TURNING = (box_and_segment, two_polytopes)
"""What finds a direction that turns with the solids where cores overlap."""


def solver(a: Form | None, b: Form | None) -> tuple[Callable[..., Any] | None, bool]:
    """(what finds the nearest points of two forms, whether it wants the second one first); None where nothing does."""
    for first, second, swapped in ((a, b, False), (b, a, True)):
        if (type(first), type(second)) in CLOSED:
            return CLOSED[type(first), type(second)], swapped
        if isinstance(second, Convex) and isinstance(first, HalfSpaceForm):
            return below_plane, swapped
        if isinstance(second, Convex) and isinstance(first, Field):
            return in_field, swapped
    return (two_polytopes, False) if isinstance(a, Convex) and isinstance(b, Convex) else (None, False)


class PairPrograms(NamedTuple):
    """What is asked of one pair of two kinds, ``program(numbers of a, numbers of b, pose of b in a)``.

    Attributes:
        distance: The distance alone.
        meeting: All of a ``ClosestPair``.
    """

    distance: Callable[[Numbers, Numbers, Transform], Array]
    meeting: Callable[[Numbers, Numbers, Transform], ClosestPair]


@cache
def pair_programs(first: Geometry, second: Geometry) -> PairPrograms:
    """The programs of two kinds of solids.

    The first derivative of a distance is that at fixed places on both solids, ``n . (dx_b - dx_a)``: how the nearest
    points move along the surfaces does not change it (Danskin's theorem), and would only bring in rounding where cores
    are nearly parallel. Derivatives of higher order take in how the points and the direction move.
    """

    def forms(a: Numbers, b: Numbers) -> tuple[Any, Any]:
        shapes = (kind.resized(sizes).sampled(samples) for kind, (sizes, samples) in ((first, a), (second, b)))
        one, other = (shape.form() for shape in shapes)
        return one, other

    find, swapped = solver(_form_of(first), _form_of(second))
    assert find is not None

    def ordered(a: Numbers, b: Numbers, T: Transform) -> tuple[Any, Any, Transform]:
        one, other = forms(a, b)
        return (other, one, T.inverse()) if swapped else (one, other, T)

    def surfaces(a: Numbers, b: Numbers, T: Transform) -> ClosestPair:
        given = ordered(a, b, T)
        m = find(*given) if find is in_field else meeting(*given, find(*given))
        if not swapped:
            return m
        return ClosestPair(m.distance, -(T.R @ m.normal), moved(T, m.second), moved(T, m.first))

    # one native function for all pairs of all states; loops are faster as XLA has them
    native = batch_last if find in FORMULAS else lambda f, rule=None: f
    if find is in_field:
        return PairPrograms(lambda *args: surfaces(*args).distance, surfaces)
    search = native(lambda *args: find(*ordered(*args)))

    def held(found: Nearest, args: Any) -> Array:
        one, other, T = ordered(*args)
        return core_distance(one, other, T, found)[0] - (one.radius + other.radius)

    def value(*args: Any) -> Array:
        return held(find(*ordered(*args)), args)

    def rule(args: tuple, changes: tuple) -> tuple[Array, Array]:
        found = search(*args)
        change = change_along(lambda *at: held(found, at), args, changes)
        if find in _TURNING:
            one, other, T = ordered(*args)
            gap = moved(T, other.place(found.second)) - one.place(found.first)
            turn = change_along(lambda *at: search(*at).axis, args, changes)
            change = change + jnp.where(found.inside, turn.dot(gap), 0)
        return whole(*args), change

    if find in FORMULAS:
        whole = batch_last(value, rule)
    else:
        whole = jax.custom_jvp(value)
        whole.defjvp(rule, symbolic_zeros=True)
    return PairPrograms(whole, native(surfaces))


def measurable(first: Geometry, second: Geometry) -> bool:
    """Whether two kinds of solids have a distance."""
    return solver(_form_of(first), _form_of(second))[0] is not None


@cache
def _form_of(kind: Geometry) -> Form | None:
    example = kind.resized([jnp.ones(())] * len(kind.sizes)).sampled(jnp.ones(kind.sample_count))
    return None if kind.drawn_alone else example.form()
