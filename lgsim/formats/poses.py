"""Rotations and poses in the forms of files: angles about fixed axes, quaternions, the normal of a plane."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float


def pose(
    position: Sequence[float] | Float[np.ndarray, " 3"], rotation: Float[np.ndarray, "3 3"] | None = None
) -> Float[np.ndarray, "4 4"]:
    """The pose (4, 4) of a position, m, and a rotation; None for the identity."""
    out = np.eye(4)
    if rotation is not None:
        out[:3, :3] = rotation
    out[:3, 3] = position
    return out


def rotation_from_rpy(roll: float, pitch: float, yaw: float) -> Float[np.ndarray, "3 3"]:
    """``Rz(yaw) Ry(pitch) Rx(roll)``: successive rotations about the fixed axes x, y, z, rad."""
    (c, s), (d, t), (e, u) = ((math.cos(angle), math.sin(angle)) for angle in (roll, pitch, yaw))
    return np.array(
        [
            [e * d, e * t * s - u * c, e * t * c + u * s],
            [u * d, u * t * s + e * c, u * t * c - e * s],
            [-t, d * s, d * c],
        ]
    )


def rotation_from_quaternion(quaternion: Float[np.ndarray, " 4"]) -> Float[np.ndarray, "3 3"]:
    """The rotation of a quaternion (x, y, z, w) of any norm."""
    largest = quaternion / np.max(np.abs(quaternion))
    return rotation_from_unit_quaternion(largest / np.linalg.norm(largest))


def rotation_from_unit_quaternion(quaternion: Float[np.ndarray, " 4"]) -> Float[np.ndarray, "3 3"]:
    """The rotation of a unit quaternion (x, y, z, w)."""
    x, y, z, w = quaternion
    v = np.array([x, y, z])
    hat = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return (w * w - v @ v) * np.eye(3) + 2 * np.outer(v, v) + 2 * w * hat


def plane_axes(normal: Float[np.ndarray, " 3"]) -> Float[np.ndarray, "3 3"]:
    """Two directions in a plane and its normal: the axes x, y, z under the shortest rotation of z to the normal.

    For the normal -z all rotations have the same angle, and the one about x is used.
    """
    # scaled by the largest entry: squares of very large or small entries overflow or underflow
    normal = normal / np.max(np.abs(normal))
    normal = normal / np.linalg.norm(normal)
    x, y, z = normal
    r = np.hypot(x, y)
    a, b = (x / r, y / r) if r else (0.0, 1.0)
    first = np.array([1 - a * a * (1 - z), -a * b * (1 - z), -x])
    return np.array([first, np.cross(normal, first), normal])
