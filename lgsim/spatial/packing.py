"""Between ordinary arrays and components."""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import Array

from lgsim.spatial.algebra import Mat, Scalar, Vec


def unpack(array: Array, start: int = 0) -> Vec:
    """The three entries ``array[..., start : start + 3]`` as a vector of components."""
    return Vec(*(array[..., start + i] for i in range(3)))


def unpack_matrix(array: Array) -> Mat:
    """The leading 3x3 block of ``array`` of shape (..., n, n), n >= 3, as a matrix of components."""
    return Mat(*(Vec(*(array[..., i, j] for j in range(3))) for i in range(3)))


def pack(components: Sequence[Scalar], shape: tuple[int, ...]) -> Array:
    """One array of shape (..., *shape) from its components in row-major order; Python numbers are constants.

    The components are selected by their index along the last axis: on XLA's CPU back end this keeps one vectorised
    loop, where a concatenation inside a fusion becomes a branch for each element (twice as slow, measured at 1e5
    elements). Tangents are stacked instead, so that the transpose is a plain slice.
    """
    arrays = [c for c in components if not isinstance(c, int | float)]
    batch = jnp.broadcast_shapes(*(a.shape for a in arrays))
    slots = tuple(c if isinstance(c, int | float) else None for c in components)
    flat = _select(slots, *(jnp.broadcast_to(a, batch) for a in arrays))
    assert math.prod(shape) == len(slots)
    return flat.reshape(batch + shape)


def _fill(slots: tuple[float | None, ...], arrays: tuple[Array, ...]) -> list[Array]:
    rest = iter(arrays)
    like = arrays[0]
    return [next(rest) if s is None else jnp.full_like(like, s) for s in slots]


@jax.custom_jvp
def _select_arrays(arrays: tuple[Array, ...]) -> Array:
    rank = arrays[0].ndim
    index = jax.lax.broadcasted_iota(jnp.int32, (1,) * rank + (len(arrays),), rank)
    out = arrays[0][..., None]
    for i, a in enumerate(arrays[1:], start=1):
        out = jnp.where(index == i, a[..., None], out)
    return out


@_select_arrays.defjvp
def _(primals: tuple[tuple[Array, ...]], tangents: tuple[tuple[Array, ...]]) -> tuple[Array, Array]:
    return _select_arrays(*primals), jnp.stack(tangents[0], axis=-1)


def _select(slots: tuple[float | None, ...], *arrays: Array) -> Array:
    return _select_arrays(tuple(_fill(slots, arrays)))
