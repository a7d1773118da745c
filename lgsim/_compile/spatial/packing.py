"""Conversion between arrays and component types, fast in both differentiation modes."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array

from lgsim._compile.spatial.algebra import Mat, Scalar, Transform, Vec
from lgsim._compile.xla.packing import join_last, split_last


def unpack(array: Array, start: int = 0) -> Vec:
    """The three entries ``array[..., start : start + 3]`` as a vector by components."""
    return Vec(*components(array)[start : start + 3])


def unpack_matrix(array: Array) -> Mat:
    """A 3x3 matrix ``array`` of shape (..., 3, 3) by components."""
    return Mat(*(Vec(*row) for row in rows(array)))


def unpack_transform(array: Array) -> Transform:
    """A homogeneous matrix ``array`` of shape (..., 4, 4) by components; its bottom row is ignored."""
    entries = rows(array)[:3]
    return Transform(Mat(*(Vec(*row[:3]) for row in entries)), Vec(*(row[3] for row in entries)))


def rows(array: Array) -> list[list[Array]]:
    """The entries of ``array`` of shape (..., m, n), row by row."""
    m, n = array.shape[-2:]
    entries = components(array.reshape((*array.shape[:-2], m * n)))
    return [entries[n * i : n * i + n] for i in range(m)]


def components(array: Array) -> list[Array]:
    """The entries along the last axis."""
    return split_last(array)


def pack(parts: Sequence[Scalar], shape: tuple[int, ...]) -> Array:
    """One array of shape (..., *shape) from components in row-major order; Python numbers are constants."""
    arrays = [c for c in parts if not isinstance(c, int | float)]
    batch = jnp.broadcast_shapes(*(a.shape for a in arrays))
    dtype = arrays[0].dtype
    full = [jnp.full(batch, c, dtype) if isinstance(c, int | float) else jnp.broadcast_to(c, batch) for c in parts]
    return join_last(*full).reshape(batch + shape)
