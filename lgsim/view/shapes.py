"""Visual shapes: solids and meshes with a pose and a color."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from lgsim.multibody.geometry import Geometry, Mesh

Color = tuple[float, float, float, float]
"""Red, green, blue and opacity, each in [0, 1]."""

GRAY: Color = (0.72, 0.74, 0.77, 1.0)


@dataclass(frozen=True, eq=False)
class Shape:
    """A colored solid or mesh attached to a frame.

    Attributes:
        geometry: Solid or mesh.
        pose: Pose of the shape in its frame, (4, 4), m.
        color: Red, green, blue and opacity, each in [0, 1].
    """

    geometry: Geometry | Mesh
    pose: Float[np.ndarray, "4 4"]
    color: Color = GRAY


Shapes = dict[str, list[Shape]]
"""Shapes by the name of their frame."""


def pose_between(start: Float[np.ndarray, " 3"], end: Float[np.ndarray, " 3"]) -> Float[np.ndarray, "4 4"]:
    """Pose at the midpoint of two points, with the z axis from the first to the second."""
    way = end - start
    z = way / np.linalg.norm(way)
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x /= np.linalg.norm(x)
    pose = np.eye(4)
    pose[:3, :3] = np.stack([x, np.cross(z, x), z], axis=1)
    pose[:3, 3] = (start + end) / 2
    return pose
