"""A height field: terrain with heights on a grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from lgsim._compile.spatial import Vec
from lgsim._compile.xla import control_flow
from lgsim.multibody.contacts.contact import Sized, Sizes, Surface

_SEARCHES = 5
"""Newton steps to the nearest point; two more follow, which are differentiated."""
_ASKEW = 1e-6
"""Squared angle to the normal below which a point of the surface counts as the nearest one."""


@dataclass(frozen=True)
class HeightField(Surface):
    """The graph of heights over a grid in the x-y plane, centered at the frame's origin; outside is above.

    Between the nodes it is the natural bicubic spline through the heights, beyond the grid its linear continuation, so
    that its second derivatives are continuous everywhere.

    Attributes:
        nodes: Number of heights along x and along y.
    """

    nodes: tuple[int, int] = (2, 2)

    sizes = ("spacing_x", "spacing_y")
    positive = ("spacing_x", "spacing_y")

    @classmethod
    def example(cls) -> HeightField:
        """A few cells, with different numbers along x and y."""
        return cls((5, 4))

    @property
    def grid(self) -> tuple[int, int]:
        """Shape of the heights."""
        return self.nodes

    def gap(self, sizes: Sizes, p: Vec) -> tuple[Array, Vec]:
        """The distance to the nearest point of the surface, and the normal there.

        Newton's method starts at the point below. If it does not converge, as for points beyond the radius of
        curvature of the surface, the distance is that to the last iterate, with the sign of the height above the
        surface.
        """
        known = (sizes["spacing_x"], sizes["spacing_y"], _control_points(sizes["heights"]))

        def toward(p: Vec, known: tuple, foot: tuple[Array, Array]) -> tuple[Array, Array]:
            x, y = foot
            h = self._heights(known, x, y)
            above = h.value - p.z
            g = (x - p.x + above * h.x, y - p.y + above * h.y)
            own, bent = (1 + h.x * h.x, h.x * h.y, 1 + h.y * h.y), (above * h.xx, above * h.xy, above * h.yy)
            full = tuple(a + b for a, b in zip(own, bent, strict=True))
            convex = (full[0] > 0) & (full[0] * full[2] > full[1] * full[1])
            a, b, c = (jnp.where(convex, x, y) for x, y in zip(full, own, strict=True))
            size = a * c - b * b
            return (c * g[0] - b * g[1]) / size, (a * g[1] - b * g[0]) / size

        def search(_: Any, foot: tuple[Array, Array]) -> tuple[Array, Array]:
            # at most one cell per step
            steps = zip(foot, toward(fixed, still, foot), still, strict=False)
            return tuple(x - jnp.clip(dx, -s, s) for x, dx, s in steps)  # pyright: ignore[reportReturnType]

        fixed, still = lax.stop_gradient((p, known))
        x, y = control_flow.fori_loop(0, _SEARCHES, search, (fixed.x, fixed.y))
        for _ in range(2):
            dx, dy = toward(p, known, (x, y))
            x, y = x - dx, y - dy
        h = self._heights(known, x, y)
        size = lax.rsqrt(1 + h.x * h.x + h.y * h.y)
        normal, off = Vec(-h.x * size, -h.y * size, size), Vec(p.x - x, p.y - y, p.z - h.value)
        along, square = off.dot(normal), off.dot(off)
        aside = off - normal * along
        nearest = aside.dot(aside) <= _ASKEW * square
        apart = jnp.sqrt(jnp.where(nearest, 1, square))
        outside = p.z > self._heights(known, p.x, p.y).value
        return jnp.where(nearest, along, jnp.where(outside, apart, -apart)), normal

    def _heights(self, known: tuple[Array, Array, Array], x: Array, y: Array) -> _Heights:
        """Height above the points (x, y) and its derivatives, in the basis of uniform cubic B-splines (de Boor)."""
        spacing_x, spacing_y, points = known
        (i, u), (j, w) = (
            _weights(at / spacing + 0.5 * (count - 1), count)
            for at, spacing, count in zip((x, y), (spacing_x, spacing_y), self.nodes, strict=True)
        )
        four = np.arange(4).reshape(*(1,) * x.ndim, 4)
        near = points[i[..., None, None] + four[..., None], j[..., None, None] + four[..., None, :]]
        rows = [jnp.sum(near * part[..., None, :], axis=-1) for part in w]

        def value(part: Array, row: Array) -> Array:
            return jnp.sum(part * row, axis=-1)

        return _Heights(
            value(u[0], rows[0]), value(u[1], rows[0]) / spacing_x, value(u[0], rows[1]) / spacing_y,
            value(u[2], rows[0]) / (spacing_x * spacing_x), value(u[1], rows[1]) / (spacing_x * spacing_y),
            value(u[0], rows[2]) / (spacing_y * spacing_y),
        )  # fmt: skip


class _Heights(NamedTuple):
    """Height above a point with its first and second derivatives along the axes."""

    value: Array
    x: Array
    y: Array
    xx: Array
    xy: Array
    yy: Array


def _weights(u: Array, count: int) -> tuple[Array, tuple[Array, Array, Array]]:
    """Cell of a position u in grid steps, and weights (..., 4) of its control points with two derivatives by u.

    Beyond the nodes the weights continue linearly.
    """
    cell = jnp.clip(jnp.floor(lax.stop_gradient(u)), 0, count - 2)
    t = u - cell
    s = jnp.clip(t, 0, 1)
    r = 1 - s
    inner = [(3 * x - 6) * x * x / 6 + 2 / 3 for x in (s, r)]
    value = jnp.stack([r * r * r / 6, *inner, s * s * s / 6], -1)
    slope = jnp.stack([-0.5 * r * r, (1.5 * s - 2) * s, (2 - 1.5 * r) * r, 0.5 * s * s], -1)
    bend = jnp.stack([r, 3 * s - 2, 3 * r - 2, s], -1)
    return cell.astype(int), (value + slope * (t - s)[..., None], slope, bend)


def _control_points(heights: Array) -> Array:
    """Control points (nx + 2, ny + 2) of the natural spline through heights (nx, ny)."""
    x, y = (jnp.asarray(_inverse(count), heights.dtype) for count in heights.shape)
    return jnp.matmul(jnp.matmul(x, heights, precision="highest"), y.T, precision="highest")


def _inverse(count: int) -> np.ndarray:
    """The matrix (count + 2, count) from values at nodes to control points of a natural spline.

    The values are ``(c_-1 + 4 c_0 + c_1) / 6``, the second derivatives at the ends are zero.
    """
    equations = np.zeros((count + 2, count + 2))
    for node in range(count):
        equations[node + 1, node : node + 3] = (1 / 6, 2 / 3, 1 / 6)
    equations[0, :3] = equations[-1, -3:] = (1, -2, 1)
    return np.linalg.inv(equations)[:, 1:-1]


def height_field(heights: Any, spacing: Any) -> Sized:
    """Terrain with given heights on a grid centered at the origin of its frame, along its x and y axes.

    The heights are a separate leaf of the model, ``Model.heights``, shared by all contacts against the frame.

    Args:
        heights: (nx, ny), m: ``heights[i, j]`` at ``x = (i - (nx - 1) / 2) spacing``, and likewise for y.
        spacing: Distance between the nodes, m, one number or one each for x and y. The radius of curvature of the
            terrain should exceed the radius of the spheres on it: otherwise a sphere touches it at two points, and the
            contact acts at one of them.

    Raises:
        ValueError: the heights are not a grid of at least two by two finite numbers, or a spacing is not positive.
    """
    try:
        array = np.array(heights, float)
    except ValueError as fault:
        raise ValueError("height_field: heights: expected a grid (nx, ny), got rows of different lengths") from fault
    if array.ndim != 2 or min(array.shape) < 2:
        raise ValueError(
            f"height_field: heights: expected a grid (nx, ny) of at least two by two, got shape {array.shape};"
            " use contacts.plane() for flat ground"
        )
    if not np.isfinite(array).all():
        raise ValueError("height_field: heights: expected finite numbers")
    own = np.array(spacing, float)
    if own.shape not in ((), (2,)) or not (np.isfinite(own).all() and (own > 0).all()):
        raise ValueError(f"height_field: spacing: expected a positive number or two, got {spacing}")
    x, y = np.broadcast_to(own, 2).tolist()
    nx, ny = array.shape
    return Sized(HeightField((nx, ny)), {"spacing_x": x, "spacing_y": y}, array)
