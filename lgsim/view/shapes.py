"""Shapes to draw: primitives as triangles, made by numpy alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

SEGMENTS = 40
"""Around a circle."""

Color = tuple[float, float, float, float]
"""Red, green, blue and opacity, each in [0, 1]."""

GREY: Color = (0.72, 0.74, 0.77, 1.0)


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles.

    Attributes:
        vertices: (k, 3), m. Points on sharp edges stand there once for each side, so that the sides are shaded apart.
        faces: Three vertices each, anticlockwise from outside, (f, 3).
        flat: Whether each triangle is shaded for itself.
    """

    vertices: np.ndarray
    faces: np.ndarray
    flat: bool = False

    def triangles(self) -> Mesh:
        """Itself."""
        return self


class Geometry(ABC):
    """A solid around the origin of its own frame."""

    @abstractmethod
    def triangles(self) -> Mesh:
        """Its surface."""


@dataclass(frozen=True)
class Box(Geometry):
    """A box of edges ``size`` (x, y, z), m."""

    size: tuple[float, float, float]

    def triangles(self) -> Mesh:
        """Six sides with corners of their own."""
        vertices, faces = [], []
        for axis in range(3):
            for sign in (-1.0, 1.0):
                u, v = np.roll(np.eye(3), axis, axis=1)[1:]
                corners = [sign * np.eye(3)[axis] + a * u + b * v for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
                start = len(vertices)
                vertices += corners
                order = np.array([[0, 1, 2], [0, 2, 3]]) if sign > 0 else np.array([[0, 2, 1], [0, 3, 2]])
                faces += list(order + start)
        return Mesh(np.array(vertices) * np.array(self.size) / 2, np.array(faces))


@dataclass(frozen=True)
class Sphere(Geometry):
    """A ball of ``radius``, m."""

    radius: float

    def triangles(self) -> Mesh:
        """Its surface, by meridians."""
        return revolution([self.radius * _arc(-90.0, 90.0)])


@dataclass(frozen=True)
class Ellipsoid(Geometry):
    """An ellipsoid of semi-axes ``radii`` along x, y, z, m."""

    radii: tuple[float, float, float]

    def triangles(self) -> Mesh:
        """A ball's, stretched."""
        ball = Sphere(1.0).triangles()
        return Mesh(ball.vertices * np.array(self.radii), ball.faces)


@dataclass(frozen=True)
class Cylinder(Geometry):
    """A cylinder of ``radius`` and ``length`` along z, m, its middle at the origin."""

    radius: float
    length: float

    def triangles(self) -> Mesh:
        """Its wall and its two ends."""
        r, h = self.radius, self.length / 2
        return revolution([np.array(part, float) for part in ([(0, -h), (r, -h)], [(r, -h), (r, h)], [(r, h), (0, h)])])


@dataclass(frozen=True)
class Capsule(Geometry):
    """A cylinder of ``radius`` and ``length`` along z, m, its middle at the origin, with half balls on its ends."""

    radius: float
    length: float

    def triangles(self) -> Mesh:
        """Its surface, smooth all over."""
        low, high = (np.array([0.0, side * self.length / 2]) for side in (-1, 1))
        return revolution(
            [np.concatenate([low + self.radius * _arc(-90.0, 0.0), high + self.radius * _arc(0.0, 90.0)])]
        )


@dataclass(frozen=True, eq=False)
class Shape:
    """Something to draw on a frame.

    Attributes:
        geometry: Its form.
        pose: Of its own frame in the frame that carries it, (4, 4), m.
        color: Red, green, blue and opacity, each in [0, 1].
    """

    geometry: Geometry | Mesh
    pose: np.ndarray
    color: Color = GREY


def revolution(parts: list[np.ndarray]) -> Mesh:
    """The surface that profiles sweep about z; sharp edges between one part and the next.

    Args:
        parts: Each (k, 2): radius and height, with the solid on the left of the way along it.
    """
    angles = np.arange(SEGMENTS) * (2 * np.pi / SEGMENTS)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    vertices, faces, start = [], [], 0
    for part in parts:
        rings = len(part)
        points = np.zeros((rings, SEGMENTS, 3))
        points[..., :2] = part[:, None, :1] * circle
        points[..., 2] = part[:, None, 1]
        ring, at = np.meshgrid(np.arange(rings - 1), np.arange(SEGMENTS), indexing="ij")
        beside = (at + 1) % SEGMENTS
        a, b, c, d = (r * SEGMENTS + s for r, s in ((ring, at), (ring, beside), (ring + 1, beside), (ring + 1, at)))
        # where a ring is a point on the axis, one triangle of each pair has no area
        lower = np.stack([a, b, c], axis=-1)[part[:-1, 0] > 0].reshape(-1, 3)
        upper = np.stack([a, c, d], axis=-1)[part[1:, 0] > 0].reshape(-1, 3)
        vertices.append(points.reshape(-1, 3))
        faces += [lower + start, upper + start]
        start += rings * SEGMENTS
    return Mesh(np.concatenate(vertices), np.concatenate(faces))


def along(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The pose (4, 4) in the middle of two points whose z axis runs from the first to the second."""
    way = end - start
    z = way / np.linalg.norm(way)
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x /= np.linalg.norm(x)
    pose = np.eye(4)
    pose[:3, :3] = np.stack([x, np.cross(z, x), z], axis=1)
    pose[:3, 3] = (start + end) / 2
    return pose


def _arc(first: float, last: float) -> np.ndarray:
    """Points (radius, height) of the unit circle between two latitudes in degrees."""
    degrees = np.linspace(first, last, round((last - first) / 360 * SEGMENTS) + 1)
    points = np.stack([np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))], axis=1)
    # the poles lie on the axis, without rounding
    points[np.abs(degrees) == 90, 0] = 0.0
    return points
