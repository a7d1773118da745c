"""Inertial parameters of solids of constant density."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from lgsim.multibody.builder import ten_parameters
from lgsim.multibody.geometry import Box, Capsule, Cylinder, Ellipsoid, Geometry, Mesh, Sphere

Moments = tuple[float, Float[np.ndarray, " 3"], Float[np.ndarray, "3 3"]]
"""Volume, m^3; center, m; second moments of volume ``integral of x x^T dV`` about the center, m^5."""


def solid_parameters(
    solid: Geometry | Mesh, density: float, pose: Float[np.ndarray, "4 4"]
) -> Float[np.ndarray, " 10"]:
    """The ten inertial parameters (10,) of a solid of constant density, kg/m^3, at a pose, m.

    Raises:
        ValueError: the solid has no volume, such as a half-space or a mesh that is not closed.
    """
    if type(solid) not in _MOMENTS:
        raise ValueError(f"expected a shape with a volume, got a {type(solid).__name__}")
    volume, center, second = _MOMENTS[type(solid)](solid)
    if not volume > 0:
        raise ValueError("expected a closed surface whose triangles are counterclockwise from outside, got no volume")
    R, p = pose[:3, :3], pose[:3, 3]
    second = density * R @ second @ R.T
    return ten_parameters(np.array(density * volume), R @ center + p, np.trace(second) * np.eye(3) - second)


def _centered(volume: float, *squares: float) -> Moments:
    """Moments of a shape with three planes of symmetry, from its mean squares of x, y and z."""
    return volume, np.zeros(3), volume * np.diag(squares)


def _ellipsoid(radii: Any) -> Moments:
    a = np.array(radii, float)
    return _centered(4 / 3 * np.pi * float(np.prod(a)), *(a**2 / 5))


def _cylinder(radius: float, length: float) -> Moments:
    return _centered(np.pi * radius**2 * length, radius**2 / 4, radius**2 / 4, length**2 / 12)


def _capsule(radius: float, length: float) -> Moments:
    """A cylinder and the halves of a sphere, whose centers of volume are 3/8 of the radius off their faces."""
    tube, ball = _cylinder(radius, length), _ellipsoid((radius,) * 3)
    z = length / 2
    own = ball[0] * (z**2 + 3 / 4 * z * radius)
    return tube[0] + ball[0], np.zeros(3), tube[2] + ball[2] + np.diag([0.0, 0.0, own])


def _mesh(mesh: Mesh) -> Moments:
    """Sums over the signed tetrahedra of the origin and the triangles.

    Source: Tonon 2004, J. Math. Stat. 1(1), eq. of the covariance of a tetrahedron.
    """
    corners = np.asarray(mesh.vertices, float)[np.asarray(mesh.faces, int)]
    middle = corners.reshape(-1, 3).mean(axis=0)
    corners = corners - middle
    parts = np.linalg.det(corners) / 6
    volume, total = float(np.sum(parts)), np.sum(corners, axis=1)
    if not volume > 0:
        return volume, middle, np.zeros((3, 3))
    center = parts @ total / (4 * volume)
    second = np.einsum("t,tia,tib->ab", parts, corners, corners) + np.einsum("t,ta,tb->ab", parts, total, total)
    return volume, middle + center, second / 20 - volume * np.outer(center, center)


_MOMENTS: Mapping[type, Callable[[Any], Moments]] = {
    Box: lambda s: _centered(float(np.prod(s.size)), *(np.array(s.size, float) ** 2 / 12)),
    Sphere: lambda s: _ellipsoid((s.radius,) * 3),
    Ellipsoid: lambda s: _ellipsoid(s.radii),
    Cylinder: lambda s: _cylinder(s.radius, s.length),
    Capsule: lambda s: _capsule(s.radius, s.length),
    Mesh: _mesh,
}
