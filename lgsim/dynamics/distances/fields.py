"""Solids against a sampled signed distance field, evaluated at points of their cores."""

from __future__ import annotations

from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim._compile.spatial import Transform, Vec
from lgsim.dynamics.distances.nearest import ClosestPair, moved
from lgsim.multibody.geometry.forms import Field, length

_TAPS = 4
"""Coefficients per axis of a cubic spline at a point."""


def in_field(a: Field, b: Any, T: Transform) -> ClosestPair:
    """The least value of the field at the sample points of a core, minus the radius of the solid.

    A sphere is sampled at its center, a capsule at nine points of its segment, a box and a hull at their corners. A box
    is also sampled at the centers of its sides and edges. The field between these points is not sampled.
    """
    probes = b.probes()
    at = [moved(T, b.place(x)) for x in probes]
    points = Vec(*(jnp.stack([p[i] for p in at]) for i in range(3)))
    values, slopes = _field_value(a, points)
    least = jnp.argmin(jax.lax.stop_gradient(values), axis=0)
    value, slope, point = (jax.tree.map(lambda x: x[least], x) for x in (values, slopes, points))
    n = length(slope)[1]
    distance = value - b.radius
    second = point - n * b.radius
    return ClosestPair(distance, n, second - n * distance, second)


def _field_value(a: Field, p: Vec) -> tuple[Array, Vec]:
    """(value, gradient) of a field at points (k,) in its frame.

    Outside the grid, let f be the value at the nearest point of its box and r the distance to it. The field is
    continued by ``sqrt(r^2 + f^2)``, a lower bound of the distance to anything inside the box.
    """
    spans = [a.spacing * (n - 1) for n in a.shape]
    edge = Vec(*(jnp.clip(x, 0, span) for x, span in zip(p, spans, strict=True)))
    within, slope = _spline(a, edge)
    off = p - edge
    beyond = off.dot(off)
    outside = beyond > 0
    far = jnp.sqrt(jnp.where(outside, beyond + within * within, 1))
    out = off * (1 / far) + _clamped(slope, off) * (within / far)
    value = jnp.where(outside, far, within)
    return value, Vec(*(jnp.where(outside, x, y) for x, y in zip(out, slope, strict=True)))


def _clamped(slope: Vec, off: Vec) -> Vec:
    return Vec(*(jnp.where(o != 0, 0, s) for s, o in zip(slope, off, strict=True)))


def _spline(a: Field, p: Vec) -> tuple[Array, Vec]:
    """(value, gradient) of the spline at points inside the grid."""
    cells, weights, slopes = [], [], []
    for x, n in zip(p, a.shape, strict=True):
        u = x / a.spacing
        cell = jnp.clip(jnp.floor(jax.lax.stop_gradient(u)), 0, n - 2)
        f = u - cell
        cells.append(cell.astype(int))
        weights.append(_basis(f))
        slopes.append(_basis_slope(f))
    # sum over the 4 x 4 x 4 coefficients around the cell
    strides = np.cumprod([1, a.shape[2] + 2, a.shape[1] + 2])[::-1]
    corner = sum(cell * int(stride) for cell, stride in zip(cells, strides, strict=True))
    value, gradient = jnp.zeros_like(p.x), [jnp.zeros_like(p.x)] * 3
    for i, j, k in product(range(_TAPS), repeat=3):
        c = a.coefficients[corner + int(i * strides[0] + j * strides[1] + k * strides[2])]
        x, y, z = weights[0][i], weights[1][j], weights[2][k]
        value = value + c * x * y * z
        gradient = [
            gradient[0] + c * slopes[0][i] * y * z,
            gradient[1] + c * x * slopes[1][j] * z,
            gradient[2] + c * x * y * slopes[2][k],
        ]
    return value, Vec(*gradient) * (1 / a.spacing)


def _basis(f: Array) -> tuple[Array, ...]:
    g = 1 - f
    return g**3 / 6, (3 * f**3 - 6 * f**2 + 4) / 6, (3 * g**3 - 6 * g**2 + 4) / 6, f**3 / 6


def _basis_slope(f: Array) -> tuple[Array, ...]:
    g = 1 - f
    return -(g**2) / 2, (3 * f**2 - 4 * f) / 2, -(3 * g**2 - 4 * g) / 2, f**2 / 2
