"""Selection of the closed form or search for a pair of solids, and the derivative rule that all pairs share."""

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
"""The sizes of a solid, and its grid samples (count,)."""

CLOSED: dict[tuple[type, type], Callable[..., Nearest]] = {
    (Segment, Segment): two_segments,
    (Block, Segment): box_and_segment,
}
"""Solvers of pairs of convex cores that need no search."""
FORMULAS = (two_segments, box_and_segment, below_plane)
"""Solvers without a loop."""
_TURNING = (box_and_segment, two_polytopes)
"""Solvers whose separating direction rotates with the solids where cores overlap."""


def solver(a: Form | None, b: Form | None) -> tuple[Callable[..., Any] | None, bool]:
    """(solver for the closest points of two forms or None, True if it takes the second one first)."""
    for first, second, swapped in ((a, b, False), (b, a, True)):
        if (type(first), type(second)) in CLOSED:
            return CLOSED[type(first), type(second)], swapped
        if isinstance(second, Convex) and isinstance(first, HalfSpaceForm):
            return below_plane, swapped
        if isinstance(second, Convex) and isinstance(first, Field):
            return in_field, swapped
    return (two_polytopes, False) if isinstance(a, Convex) and isinstance(b, Convex) else (None, False)


class PairPrograms(NamedTuple):
    """Programs of a pair of two kinds, ``program(numbers of a, numbers of b, pose of b in a)``.

    Attributes:
        distance: The distance only.
        meeting: A ``ClosestPair``.
    """

    distance: Callable[[Numbers, Numbers, Transform], Array]
    meeting: Callable[[Numbers, Numbers, Transform], ClosestPair]


@cache
def pair_programs(first: Geometry, second: Geometry) -> PairPrograms:
    """Programs for two kinds of solids.

    The first derivative of a distance is taken at fixed points of both solids, ``n . (dx_b - dx_a)``. The motion of the
    closest points along the surfaces does not change it (Danskin's theorem), and would add rounding errors where cores
    are nearly parallel. Higher derivatives include the motion of the points and of the direction.
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

    # one native function for all pairs and states; loops are faster as XLA lowers them
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
        # Danskin: d' = n . (dx_b - dx_a) at fixed coordinates of both points
        change = change_along(lambda *at: held(found, at), args, changes)
        # the separating direction of overlapping cores rotates: add dn . (x_b - x_a)
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
    """True if two kinds of solids have a distance."""
    return solver(_form_of(first), _form_of(second))[0] is not None


@cache
def _form_of(kind: Geometry) -> Form | None:
    example = kind.resized([jnp.ones(())] * len(kind.sizes)).sampled(jnp.ones(kind.sample_count))
    return None if kind.drawn_alone else example.form()
