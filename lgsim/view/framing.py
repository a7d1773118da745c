"""From where the camera sees a whole motion, and where the floor lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lgsim.view.motion import Places
from lgsim.view.shapes import Mesh, Shape

Parts = Mapping[str, Sequence[tuple[Shape, Mesh]]]
"""What is drawn, by the name of its frame."""

FIELD = float(np.deg2rad(35.0))
"""The camera's vertical field of view."""

WIDE = 1.4
"""How much wider than high a window is at least taken to be."""

FULL = 0.85
"""How much of the window is filled."""

VIEW = np.array([0.8, -1.0, 0.4]) / np.linalg.norm([0.8, -1.0, 0.4])
"""From the middle of what is drawn to the camera."""

MOMENTS = 500
"""At most so many moments of a motion decide."""


def corners(names: Sequence[str], parts: Parts, places: Places) -> np.ndarray:
    """The corners of the boxes around all parts, at moments of the motion: (k, 3), m."""
    every = -(-len(places.time) // MOMENTS)
    positions, quaternions = places.positions[::every], places.quaternions[::every]
    found = [np.zeros((0, 3))]
    for name, mine in parts.items():
        for shape, mesh in mine:
            low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
            box = np.stack(np.meshgrid(*zip(low, high, strict=True)), axis=-1).reshape(-1, 3)
            points = box @ shape.pose[:3, :3].T + shape.pose[:3, 3]
            if name in names:
                index = names.index(name)
                points = positions[:, None, index] + _turned(quaternions[:, index], points)
            found.append(points.reshape(-1, 3))
    return np.concatenate(found)


def camera(points: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """(place of the camera, what it looks at, size of what it sees) for points (k, 3)."""
    if not len(points):
        points = np.array([[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]])
    low, high = points.min(axis=0), points.max(axis=0)
    middle, size = (low + high) / 2, float(np.linalg.norm(high - low))
    right = np.array([-VIEW[1], VIEW[0], 0.0]) / np.hypot(VIEW[0], VIEW[1])
    own = points - middle
    near, across, up = own @ VIEW, np.abs(own @ right), np.abs(own @ np.cross(VIEW, right))
    distance = np.max(near + np.maximum(up, across / WIDE) / (FULL * np.tan(FIELD / 2)))
    return middle + distance * VIEW, middle, size


def floor(names: Sequence[str], parts: Parts, places: Places) -> float:
    """The height of the ground, m: zero, or under the lowest solid part where that is lower."""
    solid = {name: [part for part in mine if part[0].color[3] >= 1] for name, mine in parts.items()}
    points = corners(names, solid, places)
    return min(0.0, float(points[:, 2].min())) if len(points) else 0.0


def cell(size: float) -> float:
    """The width of the ground's cells, m: the largest 1, 2 or 5 times a power of ten under a tenth of a size."""
    power = 10.0 ** np.floor(np.log10(size / 10))
    return float(power * max(digit for digit in (1, 2, 5) if digit * power <= size / 10))


def _turned(quaternions: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Points (k, 3) turned by each of the quaternions (F, 4): (F, k, 3)."""
    w, u = quaternions[:, None, :1], quaternions[:, None, 1:]
    across = np.cross(u, points[None]) * 2
    return points[None] + w * across + np.cross(u, across)
