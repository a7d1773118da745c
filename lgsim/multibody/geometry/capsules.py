"""Capsules: cylinders with hemispherical ends, and their fit to points."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float

from lgsim.multibody.geometry.forms import Form, Segment
from lgsim.multibody.geometry.geometry import Geometry
from lgsim.multibody.geometry.hulls import checked_points
from lgsim.multibody.geometry.triangles import Mesh, arc, revolution
from lgsim.support import check


@dataclass(frozen=True)
class Capsule(Geometry):
    """All points within ``radius`` of a segment of ``length`` on the z axis, centered at the origin, m."""

    radius: Any
    length: Any

    sizes = ("radius", "length")

    @classmethod
    def example(cls) -> Capsule:
        """A capsule of radius 0.2 m and length 0.8 m."""
        return cls(0.2, 0.8)

    def form(self) -> Form:
        """A segment with a radius."""
        return Segment(0.5 * self.length, self.radius)

    def triangles(self) -> Mesh:
        """The surface, smooth everywhere."""
        low, high = (np.array([0.0, side * self.length / 2]) for side in (-1, 1))
        return revolution([np.concatenate([low + self.radius * arc(-90.0, 0.0), high + self.radius * arc(0.0, 90.0)])])


def fit_capsules(points: Any, count: int = 1) -> list[tuple[Capsule, Float[np.ndarray, "4 4"]]]:
    """Capsules that contain all given points: [(capsule, its pose in the frame of the points)].

    The points are divided into slabs across their longest extent. In each slab the axis is the principal axis of its
    points, and the segment is as short as the radius allows. A region between two slabs may be in neither capsule:
    use the vertices of a mesh with short edges.

    Args:
        points: (n, 3), m.
        count: Number of slabs; slabs without points have no capsule.

    Raises:
        ValueError: no points, points that are not finite or of another shape, or a count below one.
    """
    array = checked_points("fit_capsules", points)
    count = check.count("fit_capsules: count", count)
    axes = _principal(array)
    along = (array - array.mean(axis=0)) @ axes[:, 2]
    edges = np.linspace(along.min(), along.max(), count + 1)
    slabs = [array[(along >= low) & (along <= high)] for low, high in pairwise(edges)]
    return [_capsule_about(slab) for slab in slabs if len(slab)]


def _principal(points: np.ndarray) -> np.ndarray:
    """The principal axes (3, 3) as columns, right-handed, the longest last."""
    axes = np.linalg.eigh(np.cov((points - points.mean(axis=0)).T, bias=True))[1] if len(points) > 1 else np.eye(3)
    axes[:, 0] *= np.sign(np.linalg.det(axes))
    return axes


def _capsule_about(points: np.ndarray) -> tuple[Capsule, np.ndarray]:
    axes = _principal(points)
    at = points @ axes
    middle = (at.min(axis=0) + at.max(axis=0)) / 2
    at = at - middle
    off = np.hypot(at[:, 0], at[:, 1])
    radius = float(off.max())
    half = float(np.max(np.abs(at[:, 2]) - np.sqrt(np.maximum(radius**2 - off**2, 0)), initial=0.0))
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = axes, axes @ middle
    return Capsule(radius, 2 * half), pose
