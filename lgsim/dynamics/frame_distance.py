"""Distances between spheres and capsules that are fixed to frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.dynamics.kinematics import forward_kinematics, frame_index
from lgsim.multibody.model import Model, check_model


@dataclass(frozen=True)
class Capsule:
    """All points within ``radius`` of a segment fixed to a frame; a sphere where ``start`` and ``end`` agree.

    Attributes:
        frame: Name of the frame, or its place in ``model.frame_names``, or None for the world; static.
        start: The segment's first end in the frame, (3,), m.
        end: Its other end, (3,), m.
        radius: m.
    """

    frame: str | int | None
    start: Any
    end: Any
    radius: Any


jax.tree_util.register_dataclass(Capsule, data_fields=["start", "end", "radius"], meta_fields=["frame"])


def sphere(frame: str | int | None, center: Any, radius: Any) -> Capsule:
    """A sphere about a point (3,) of a frame."""
    return Capsule(frame, center, center, radius)


def frame_distance(
    model: Model, q: Float[Array, "*batch nq"], pairs: Sequence[tuple[Capsule, Capsule]]
) -> Float[Array, "*batch pairs"]:
    """The distance of the surfaces of two capsules, for each pair: ``|x_1 - x_2| - r_1 - r_2``, x closest points.

    Negative where they overlap: the depth, as long as the segments themselves do not meet.

    It is continuous everywhere, and its derivative with respect to q, the model's and the capsules' numbers is the
    velocity of the closest points along their distance, itself continuous wherever these points are unique. Two cases
    are one-sided, and finite in both: parallel segments that lie beside each other have many closest points, of which
    an end of one segment is taken; segments that meet have no direction between them, and the derivative is taken as 0
    in the pairs' directions. Second derivatives jump where a closest point reaches the end of its segment.

    Args:
        model: The machine.
        q: Configuration.
        pairs: Pairs of capsules, at least one.

    Returns:
        m.

    Raises:
        ValueError: q has a wrong length, there is no such frame, no pair, or the numbers of a capsule have a wrong
            shape.
        TypeError: dtypes differ, or are not float32 or float64.
    """
    check_model(model)
    first, second = (_stacked(model, capsules) for capsules in _columns(pairs))
    poses = forward_kinematics(model, q)
    world = jnp.broadcast_to(jnp.eye(4, dtype=poses.dtype), (*poses.shape[:-3], 1, 4, 4))
    poses = jnp.concatenate([poses, world], axis=-3)
    (p1, d1, r1), (p2, d2, r2) = _placed(poses, first), _placed(poses, second)
    return segment_distance(p1, d1, p2, d2) - jnp.broadcast_to(r1 + r2, (*poses.shape[:-3], len(pairs)))


Segments = tuple[Array, Array, Array, Array]
"""p1, d1, p2, d2 of two segments ``p + s d``, s in [0, 1]."""


@jax.custom_jvp
def segment_distance(
    p1: Float[Array, "*batch 3"],
    d1: Float[Array, "*batch 3"],
    p2: Float[Array, "*batch 3"],
    d2: Float[Array, "*batch 3"],
) -> Float[Array, "*batch"]:
    """The distance of two segments ``p + s d``, s in [0, 1]."""
    return _norm(_gap(p1, d1, p2, d2, *_closest(p1, d1, p2, d2)))


@segment_distance.defjvp
def _(primals: Segments, tangents: Segments) -> tuple[Array, Array]:
    # at fixed places on the segments: how the closest points slide along them does not change the distance, and would
    # only bring in rounding errors where the segments are nearly parallel
    s, t = _closest(*primals)
    gap = _gap(*primals, s=s, t=t)
    length = _norm(gap)
    along = gap / jnp.where(length > 0, length, 1)[..., None]
    return length, _dot(along, _gap(*tangents, s=s, t=t))


def _gap(p1: Array, d1: Array, p2: Array, d2: Array, s: Array, t: Array) -> Array:
    return p2 - p1 + t[..., None] * d2 - s[..., None] * d1


def _closest(p1: Array, d1: Array, p2: Array, d2: Array) -> tuple[Array, Array]:
    """The places (s, t) of the closest points.

    They are inside both segments, where the lines are closest, or one of them is an end. All five candidates are points
    of the segments, so that the nearest of them is right to rounding however parallel they are.
    """
    r = p2 - p1
    n = jnp.cross(d1, d2)
    square = _dot(n, n)
    skew = square > 0
    scale = jnp.where(skew, square, 1)
    inner = [_inside(jnp.where(skew, _dot(jnp.cross(r, d), n) / scale, 0)) for d in (d2, d1)]
    zero, one = jnp.zeros_like(square), jnp.ones_like(square)
    s = jnp.stack([inner[0], zero, one, _nearest(p2, p1, d1), _nearest(p2 + d2, p1, d1)])
    t = jnp.stack([inner[1], _nearest(p1, p2, d2), _nearest(p1 + d1, p2, d2), zero, one])
    gaps = jax.vmap(_gap, (None, None, None, None, 0, 0))(p1, d1, p2, d2, s, t)
    best = jnp.argmin(_dot(gaps, gaps), axis=0)[None]
    return jnp.take_along_axis(s, best, axis=0)[0], jnp.take_along_axis(t, best, axis=0)[0]


def _nearest(p: Array, start: Array, d: Array) -> Array:
    """The place in [0, 1] of the point of a segment that is nearest to p; 0 where the segment is a point."""
    length = _dot(d, d)
    extended = length > 0
    return jnp.where(extended, _inside(_dot(p - start, d) / jnp.where(extended, length, 1)), 0)


def _inside(s: Array) -> Array:
    return jnp.clip(s, 0, 1)


def _dot(a: Array, b: Array) -> Array:
    return jnp.sum(a * b, axis=-1)


def _norm(x: Array) -> Array:
    square = _dot(x, x)
    apart = square > 0
    return jnp.where(apart, jnp.sqrt(jnp.where(apart, square, 1)), 0)


def _columns(pairs: Sequence[tuple[Capsule, Capsule]]) -> tuple[list[Capsule], list[Capsule]]:
    if not len(pairs):
        raise ValueError("pairs: expected at least one pair of capsules")
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def _stacked(model: Model, capsules: list[Capsule]) -> tuple[np.ndarray, Array, Array, Array]:
    """(place of each capsule's frame, that of the world being last; start and end, (pairs, 3); radius)."""
    last = len(model.frame_names)
    frames = [last if c.frame is None else frame_index(model.topology, c.frame) for c in capsules]
    shapes = {"start": (3,), "end": (3,), "radius": ()}
    numbers = {name: [jnp.asarray(getattr(c, name), model.dtype) for c in capsules] for name in shapes}
    for name, shape in shapes.items():
        for c, x in zip(capsules, numbers[name], strict=True):
            if x.shape != shape:
                raise ValueError(f"pairs: {name} of a capsule on {c.frame!r}: expected shape {shape}, got {x.shape}")
    start, end, radius = (jnp.stack(x) for x in numbers.values())
    return np.array(frames), start, end, radius


def _placed(poses: Array, capsules: tuple[np.ndarray, Array, Array, Array]) -> tuple[Array, Array, Array]:
    """(start, end - start) of the segments in the world, (..., pairs, 3), and radius."""
    frames, start, end, radius = capsules
    T = poses[..., frames, :, :]
    R, p = T[..., :3, :3], T[..., :3, 3]
    start, along = (jnp.einsum("...pij,pj->...pi", R, x) for x in (start, end - start))
    return p + start, along, radius
