"""Geometry given by a signed distance field on a grid, with cubic spline interpolation (C2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from math import prod
from typing import Any

import numpy as np

from lgsim.multibody.geometry.boxes import Box
from lgsim.multibody.geometry.forms import Field, Form
from lgsim.multibody.geometry.geometry import Geometry
from lgsim.multibody.geometry.triangles import Mesh

LEAST = 4
"""Smallest number of samples along each axis."""


@dataclass(frozen=True)
class DistanceGrid(Geometry):
    """A signed distance field, sampled on a grid with distance ``spacing``, the first sample at the origin.

    Distances are negative inside.

    Attributes:
        shape: Number of samples along x, y, z; static.
        spacing: Distance between samples, m.
        coefficients: Spline coefficients, (count,): a leaf of the model, see ``Model.grids``.
    """

    shape: tuple[int, int, int]
    spacing: Any
    coefficients: Any = field(default=None, compare=False, repr=False)

    sizes = ("spacing",)
    positive = ("spacing",)

    @classmethod
    def example(cls) -> DistanceGrid:
        """A ball of radius 0.3 m in a cube of 1 m."""
        at = np.stack(np.meshgrid(*[np.linspace(-0.5, 0.5, 9)] * 3, indexing="ij"))
        return distance_grid(np.linalg.norm(at, axis=0) - 0.3, 0.125)

    @property
    def bare(self) -> DistanceGrid:
        """The grid shape without values."""
        return DistanceGrid(self.shape, None)

    @property
    def sample_count(self) -> int:
        """Number of coefficients: two more than samples along each axis."""
        return prod(n + 2 for n in self.shape)

    def samples(self) -> np.ndarray | None:
        """The coefficients."""
        return self.coefficients

    def sampled(self, values: Any) -> DistanceGrid:
        """The same grid with other coefficients."""
        return replace(self, coefficients=values)

    def form(self) -> Form:
        """The field."""
        return Field(self.shape, self.spacing, self.coefficients)

    def plain(self) -> dict[str, Any]:
        """The grid shape."""
        return {"kind": "DistanceGrid", "shape": list(self.shape)}

    @classmethod
    def of_static(cls, static: Mapping[str, Any]) -> DistanceGrid:
        """A grid without values."""
        return cls(static["shape"], None)

    def triangles(self) -> Mesh:
        """Boxes at the cells in which the samples change sign."""
        values = _spline_samples(self.shape, np.asarray(self.coefficients))
        inside = np.argwhere(values <= 0)
        one = Box((self.spacing,) * 3).triangles()
        corners = [one.vertices + self.spacing * at for at in inside] or [np.zeros((0, 3))]
        faces = [one.faces + i * len(one.vertices) for i in range(len(inside))] or [np.zeros((0, 3), int)]
        return Mesh(np.concatenate(corners), np.concatenate(faces), flat=True)


def distance_grid(samples: Any, spacing: float) -> DistanceGrid:
    """Geometry from samples of its signed distance, interpolated by a natural cubic spline.

    Args:
        samples: ``samples[i, j, k]`` is the distance at ``spacing (i, j, k)`` in the geometry's frame, m, negative
            inside; at least four along each axis.
        spacing: m.

    Raises:
        ValueError: the samples are not such a grid, or not finite.
    """
    array = np.array(samples, float)
    if array.ndim != 3 or min(array.shape, default=0) < LEAST:
        raise ValueError(
            f"distance_grid: samples: expected a grid (nx, ny, nz) of at least {LEAST} along each axis, got shape"
            f" {array.shape}"
        )
    if not np.isfinite(array).all():
        raise ValueError("distance_grid: samples: expected finite numbers")
    for axis in range(3):
        inverse = _spline(array.shape[axis])
        array = np.moveaxis(np.tensordot(inverse, array, axes=(1, axis)), 0, axis)
    shape = (array.shape[0] - 2, array.shape[1] - 2, array.shape[2] - 2)
    return DistanceGrid(shape, spacing, array.ravel())


def _spline_samples(shape: tuple[int, int, int], coefficients: np.ndarray) -> np.ndarray:
    """The interpolated samples of a spline."""
    array = coefficients.reshape([n + 2 for n in shape])
    for axis in range(3):
        a = np.moveaxis(array, axis, 0)
        array = np.moveaxis((a[:-2] + 4 * a[1:-1] + a[2:]) / 6, 0, axis)
    return array


@cache
def _spline(count: int) -> np.ndarray:
    """(count + 2, count): coefficients of the natural cubic B-spline from samples.

    Source: de Boor, A Practical Guide to Splines, 2001, chapter IV; uniform knots.
    """
    A = np.zeros((count + 2, count + 2))
    for i in range(count):
        A[i + 1, i : i + 3] = 1 / 6, 4 / 6, 1 / 6
    A[0, :3] = A[-1, -3:] = 1, -2, 1
    return np.linalg.inv(A)[:, 1:-1]
