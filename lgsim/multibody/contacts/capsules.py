"""A capsule: a segment with a radius."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp

from lgsim._compile.spatial import Transform, Vec
from lgsim.multibody.contacts.contact import Shape, Sized, Sizes, Surface, column


@dataclass(frozen=True)
class Capsule(Shape):
    """All points within ``radius`` of a segment of ``length`` on the frame's z axis, centered at the origin.

    Planes touch the two ends; surfaces that are round about a segment touch the nearest point.
    """

    sizes = ("radius", "length")

    def count(self, surface: Surface) -> int:
        """Two ends, or the nearest point."""
        return 2 if surface.half_axis(dict.fromkeys(surface.sizes, 0.0)) is None else 1

    def points(self, sizes: Sizes) -> Vec:
        """The ends of the segment."""
        zero = jnp.zeros_like(sizes["length"])
        return Vec(zero, zero, column([-0.5, 0.5], sizes["length"]) * sizes["length"])

    def centers(self, sizes: Sizes, pose: Transform, surface: Surface, other: Sizes) -> Vec:
        """The ends in the frame of a plane; for a round surface the nearest point to its segment.

        For parallel overlapping segments, where many points are nearest, the one nearest to the center is used.
        Source: Ericson, Real-Time Collision Detection, 2005, section 5.1.9, with both segments about their centers.
        """
        half_axis = surface.half_axis(other)
        if half_axis is None:
            return super().centers(sizes, pose, surface, other)
        half, p = 0.5 * sizes["length"], pose.p
        e = Vec(pose.R.r0.z, pose.R.r1.z, pose.R.r2.z)
        square = e.x * e.x + e.y * e.y  # squared norm of the cross product of the directions
        skew = square > 0
        on_line = jnp.where(skew, (e.z * p.z - e.dot(p)) / jnp.where(skew, square, 1), 0)
        t = jnp.clip(e.z * jnp.clip(on_line, -half, half) + p.z, -half_axis, half_axis)
        return p + e * jnp.clip(e.z * t - e.dot(p), -half, half)


def capsule(radius: float, length: float) -> Sized:
    """A capsule about the z axis of its frame.

    Args:
        radius: m, nonnegative.
        length: Length of the segment between the centers of its ends, m, nonnegative.
    """
    return Sized(Capsule(), {"radius": radius, "length": length})
