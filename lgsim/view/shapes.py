"""Shapes to draw: primitives as triangles, made by numpy alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

SEGMENTS = 40
"""The number of segments around a circle."""

Color = tuple[float, float, float, float]
"""Red, green, blue and opacity, each in [0, 1]."""

GRAY: Color = (0.72, 0.74, 0.77, 1.0)


@dataclass(frozen=True, eq=False)
class Mesh:
    """A surface of triangles.

    Attributes:
        vertices: Corners of the triangles, (k, 3), m; those on sharp edges stand there once for each side, so that the
            sides are shaded apart.
        faces: Indices of the three vertices of each triangle, counterclockwise from outside, (f, 3).
        flat: Whether each triangle is shaded for itself.
    """

    vertices: Float[np.ndarray, "k 3"]
    faces: Int[np.ndarray, "f 3"]
    flat: bool = False

    def triangles(self) -> Mesh:
        """The mesh itself."""
        return self


class Geometry(ABC):
    """A solid around the origin of its own frame."""

    @abstractmethod
    def triangles(self) -> Mesh:
        """The surface of the solid."""


@dataclass(frozen=True)
class Box(Geometry):
    """A box of edges ``size`` (x, y, z), m."""

    size: tuple[float, float, float]

    def triangles(self) -> Mesh:
        """Six sides, each with its own corners."""
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
        """The surface, by meridians."""
        return revolution([self.radius * _arc(-90.0, 90.0)])


@dataclass(frozen=True)
class Ellipsoid(Geometry):
    """An ellipsoid of semi-axes ``radii`` along x, y, z, m."""

    radii: tuple[float, float, float]

    def triangles(self) -> Mesh:
        """The surface of a ball, stretched."""
        ball = Sphere(1.0).triangles()
        return Mesh(ball.vertices * np.array(self.radii), ball.faces)


@dataclass(frozen=True)
class Cylinder(Geometry):
    """A cylinder of ``radius`` and ``length`` along z, m, its middle at the origin."""

    radius: float
    length: float

    def triangles(self) -> Mesh:
        """The wall and the two ends."""
        r, h = self.radius, self.length / 2
        return revolution([np.array(part, float) for part in ([(0, -h), (r, -h)], [(r, -h), (r, h)], [(r, h), (0, h)])])


@dataclass(frozen=True)
class Capsule(Geometry):
    """A cylinder of ``radius`` and ``length`` along z, m, its middle at the origin, with half balls on its ends."""

    radius: float
    length: float

    def triangles(self) -> Mesh:
        """The surface, smooth all over."""
        low, high = (np.array([0.0, side * self.length / 2]) for side in (-1, 1))
        return revolution(
            [np.concatenate([low + self.radius * _arc(-90.0, 0.0), high + self.radius * _arc(0.0, 90.0)])]
        )


@dataclass(frozen=True, eq=False)
class Shape:
    """A colored solid or mesh that is drawn on a frame.

    Attributes:
        geometry: The solid or the mesh.
        pose: Pose of its own frame in the frame that carries it, (4, 4), m.
        color: Red, green, blue and opacity, each in [0, 1].
    """

    geometry: Geometry | Mesh
    pose: Float[np.ndarray, "4 4"]
    color: Color = GRAY


def revolution(profiles: list[Float[np.ndarray, "_ 2"]]) -> Mesh:
    """The surface that profiles sweep about z, with sharp edges between one profile and the next.

    Args:
        profiles: Points (k, 2) of radius and height, m, with the solid on the left of the way along them.
    """
    angles = np.arange(SEGMENTS) * (2 * np.pi / SEGMENTS)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    vertices, faces, start = [], [], 0
    for profile in profiles:
        rings = len(profile)
        points = np.zeros((rings, SEGMENTS, 3))
        points[..., :2] = profile[:, None, :1] * circle
        points[..., 2] = profile[:, None, 1]
        ring, at = np.meshgrid(np.arange(rings - 1), np.arange(SEGMENTS), indexing="ij")
        beside = (at + 1) % SEGMENTS
        a, b, c, d = (r * SEGMENTS + s for r, s in ((ring, at), (ring, beside), (ring + 1, beside), (ring + 1, at)))
        # where a ring is a point on the axis, one triangle of each pair has no area
        lower = np.stack([a, b, c], axis=-1)[profile[:-1, 0] > 0].reshape(-1, 3)
        upper = np.stack([a, c, d], axis=-1)[profile[1:, 0] > 0].reshape(-1, 3)
        vertices.append(points.reshape(-1, 3))
        faces += [lower + start, upper + start]
        start += rings * SEGMENTS
    return Mesh(np.concatenate(vertices), np.concatenate(faces))


def pose_between(start: Float[np.ndarray, " 3"], end: Float[np.ndarray, " 3"]) -> Float[np.ndarray, "4 4"]:
    """The pose in the middle of two points whose z axis runs from the first to the second."""
    way = end - start
    z = way / np.linalg.norm(way)
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x /= np.linalg.norm(x)
    pose = np.eye(4)
    pose[:3, :3] = np.stack([x, np.cross(z, x), z], axis=1)
    pose[:3, 3] = (start + end) / 2
    return pose


def _arc(first: float, last: float) -> Float[np.ndarray, "k 2"]:
    """Points (radius, height) of the unit circle between two latitudes in degrees."""
    degrees = np.linspace(first, last, round((last - first) / 360 * SEGMENTS) + 1)
    points = np.stack([np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))], axis=1)
    # the poles lie on the axis, without rounding
    points[np.abs(degrees) == 90, 0] = 0.0
    return points
