"""Shapes for a model without visuals: rods between its joints, and ellipsoids of inertia."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from lgsim.multibody.geometry import Capsule, Ellipsoid, Sphere
from lgsim.multibody.inertia import PLACES
from lgsim.multibody.model import Model
from lgsim.multibody.topology import ROOT, WORLD
from lgsim.view.shapes import Color, Shape, pose_between

_ROD: Color = (0.80, 0.82, 0.85, 1.0)
JOINT: Color = (0.24, 0.26, 0.30, 1.0)
INERTIA: Color = (0.10, 0.47, 0.82, 0.35)

_THICKNESS = 0.07
"""Radius of a rod relative to the median distance between joints."""


def skeleton(model: Model, inertias: bool = True) -> dict[str, list[Shape]]:
    """Shapes of a model from its parameters, by the name of their frame.

    A rod connects each joint to the next joints on the same body, or to the center of mass of a body without further
    joints; a sphere marks each joint. The ellipsoid of a body has uniform density and the mass, center of mass and
    inertia of the body.

    Args:
        inertias: False to omit the ellipsoids.

    Returns:
        Shapes by the name of their frame, including "world".
    """
    ends = _ends(model)
    lengths = [float(np.linalg.norm(end)) for points in ends.values() for end in points]
    parameters = np.asarray(model.inertias, float)
    solids = {name: _solid(own) for name, own in zip(model.body_names, parameters, strict=True)}
    sizes = lengths + [float(max(solid[1])) for solid in solids.values() if solid is not None]
    typical = float(np.median([size for size in sizes if size > 0] or [1.0]))
    radius = _THICKNESS * typical
    shapes: dict[str, list[Shape]] = {ROOT: []}
    for name, points in ends.items():
        mine = shapes.setdefault(name, [])
        if name != ROOT:
            mine.append(Shape(Sphere(1.6 * radius), np.eye(4), JOINT))
        mine += [_rod(point, radius) for point in points if np.linalg.norm(point) > radius]
        solid = solids.get(name)
        if inertias and solid is not None:
            mine.append(Shape(Ellipsoid(_visible(solid[1], radius)), solid[0], INERTIA))
    return {name: found for name, found in shapes.items() if found}


def _ends(model: Model) -> dict[str, list[Float[np.ndarray, " 3"]]]:
    """End points of the rods that start at the joint of each body, in the body frame, m."""
    ends: dict[str, list[np.ndarray]] = {ROOT: [], **{name: [] for name in model.body_names}}
    placements, parameters = np.asarray(model.placements, float), np.asarray(model.inertias, float)
    for body, parent in enumerate(model.topology.parents):
        ends[ROOT if parent == WORLD else model.body_names[parent]].append(placements[body, :3, 3])
    for body, name in enumerate(model.body_names):
        if not ends[name] and parameters[body, 0] > 0:
            ends[name].append(parameters[body, 1:4] / parameters[body, 0])
    return ends


def _rod(point: Float[np.ndarray, " 3"], radius: float) -> Shape:
    """A rod from the origin to a point."""
    return Shape(Capsule(radius, float(np.linalg.norm(point))), pose_between(np.zeros(3), point), _ROD)


def _solid(
    parameters: Float[np.ndarray, " 10"],
) -> tuple[Float[np.ndarray, "4 4"], Float[np.ndarray, " 3"]] | None:
    """Pose and semi-axes of the uniform ellipsoid with ten inertial parameters; None for a body without mass."""
    mass = parameters[0]
    if not mass > 0:
        return None
    center = parameters[1:4] / mass
    inertia = parameters[PLACES] - mass * (center @ center * np.eye(3) - np.outer(center, center))
    # second moments about the center: m a^2 / 5 along each semi-axis a of an ellipsoid
    moments, axes = np.linalg.eigh(0.5 * np.trace(inertia) * np.eye(3) - inertia)
    pose = np.eye(4)
    pose[:3, :3] = axes * np.array([1.0, 1.0, np.sign(np.linalg.det(axes))])
    pose[:3, 3] = center
    return pose, np.sqrt(5 * np.maximum(moments, 0.0) / mass)


def _visible(radii: Float[np.ndarray, " 3"], radius: float) -> tuple[float, float, float]:
    """Semi-axes of an ellipsoid, with a lower bound that keeps rods and points visible."""
    x, y, z = (float(max(r, radius / 2)) for r in radii)
    return x, y, z
