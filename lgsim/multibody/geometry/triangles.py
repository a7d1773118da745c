"""Triangle meshes of surfaces, in NumPy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

_SEGMENTS = 40
"""Number of segments of a circle."""


@dataclass(frozen=True, eq=False)
class Mesh:
    """A triangle mesh.

    Attributes:
        vertices: Vertices of the triangles, (k, 3), m; on sharp edges they are repeated for each side, so that sides
            are shaded separately.
        faces: Indices of the three vertices of each triangle, counterclockwise from outside, (f, 3).
        flat: True for flat shading of each triangle.
    """

    vertices: Float[np.ndarray, "k 3"]
    faces: Int[np.ndarray, "f 3"]
    flat: bool = False

    def triangles(self) -> Mesh:
        """The mesh itself."""
        return self


def revolution(profiles: list[Float[np.ndarray, "_ 2"]]) -> Mesh:
    """The surface of revolution of profiles about z, with sharp edges between consecutive profiles.

    Args:
        profiles: Points (k, 2) of radius and height, m, with the body on the left along the profile.
    """
    angles = np.arange(_SEGMENTS) * (2 * np.pi / _SEGMENTS)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    vertices, faces, start = [], [], 0
    for profile in profiles:
        rings = len(profile)
        points = np.zeros((rings, _SEGMENTS, 3))
        points[..., :2] = profile[:, None, :1] * circle
        points[..., 2] = profile[:, None, 1]
        ring, at = np.meshgrid(np.arange(rings - 1), np.arange(_SEGMENTS), indexing="ij")
        beside = (at + 1) % _SEGMENTS
        a, b, c, d = (r * _SEGMENTS + s for r, s in ((ring, at), (ring, beside), (ring + 1, beside), (ring + 1, at)))
        # at a ring on the axis, one triangle of each pair has no area
        lower = np.stack([a, b, c], axis=-1)[profile[:-1, 0] > 0].reshape(-1, 3)
        upper = np.stack([a, c, d], axis=-1)[profile[1:, 0] > 0].reshape(-1, 3)
        vertices.append(points.reshape(-1, 3))
        faces += [lower + start, upper + start]
        start += rings * _SEGMENTS
    return Mesh(np.concatenate(vertices), np.concatenate(faces))


def arc(first: float, last: float) -> Float[np.ndarray, "k 2"]:
    """Points (radius, height) of the unit circle between two latitudes, degrees."""
    degrees = np.linspace(first, last, round((last - first) / 360 * _SEGMENTS) + 1)
    points = np.stack([np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))], axis=1)
    # the poles are exactly on the axis
    points[np.abs(degrees) == 90, 0] = 0.0
    return points
