"""Between ordinary arrays and components, fast in both directions of differentiation.

``pack`` joins n arrays along a new last axis and ``unpack`` takes them apart; each is linear and the transpose of the
other. They are primitives of their own because JAX's ready operations transpose badly here: slices turn into sums of
padded arrays, in each of which XLA's CPU back end computes the whole cotangent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from lgsim.spatial.algebra import Mat, Scalar, Transform, Vec


def unpack(array: Array, start: int = 0) -> Vec:
    """The three entries ``array[..., start : start + 3]`` as a vector of components."""
    return Vec(*components(array)[start : start + 3])


def unpack_matrix(array: Array) -> Mat:
    """A 3x3 matrix ``array`` of shape (..., 3, 3) by components."""
    return Mat(*(Vec(*row) for row in rows(array)))


def unpack_transform(array: Array) -> Transform:
    """A homogeneous matrix ``array`` of shape (..., 4, 4) by components; its bottom row is not read."""
    entries = rows(array)[:3]
    return Transform(Mat(*(Vec(*row[:3]) for row in entries)), Vec(*(row[3] for row in entries)))


def rows(array: Array) -> list[list[Array]]:
    """The entries of ``array`` of shape (..., m, n), row by row."""
    m, n = array.shape[-2:]
    entries = components(array.reshape((*array.shape[:-2], m * n)))
    return [entries[n * i : n * i + n] for i in range(m)]


def components(array: Array) -> list[Array]:
    """The entries along the last axis."""
    return list(_unpack_p.bind(array))


def pack(parts: Sequence[Scalar], shape: tuple[int, ...]) -> Array:
    """One array of shape (..., *shape) from its components in row-major order; Python numbers are constants."""
    arrays = [c for c in parts if not isinstance(c, int | float)]
    batch = jnp.broadcast_shapes(*(a.shape for a in arrays))
    dtype = arrays[0].dtype
    full = [jnp.full(batch, c, dtype) if isinstance(c, int | float) else jnp.broadcast_to(c, batch) for c in parts]
    return _pack_p.bind(*full).reshape(batch + shape)


def _select(*parts: Array) -> Array:
    """Joined by selecting on the index: one vectorised loop, where a concatenation is a branch for each element."""
    rank = parts[0].ndim
    index = jax.lax.broadcasted_iota(jnp.int32, (1,) * rank + (len(parts),), rank)
    out = parts[0][..., None]
    for i, part in enumerate(parts[1:], start=1):
        out = jnp.where(index == i, part[..., None], out)
    return jnp.broadcast_to(out, (*parts[0].shape, len(parts)))


def _slices(array: Array) -> list[Array]:
    return [array[..., i] for i in range(array.shape[-1])]


_pack_p = Primitive("lgsim_pack")
_pack_p.def_impl(jax.jit(_select))
_pack_p.def_abstract_eval(lambda *parts: parts[0].update(shape=(*parts[0].shape, len(parts))))
mlir.register_lowering(_pack_p, mlir.lower_fun(_select, multiple_results=False))
ad.deflinear2(_pack_p, lambda ct, *parts: list(_unpack_p.bind(ct)))


def _batch_pack(arrays: Sequence[Any], axes: Sequence[Any]) -> tuple[Any, int]:
    size = next(a.shape[axis] for a, axis in zip(arrays, axes, strict=True) if axis is not None)
    moved = [batching.bdim_at_front(a, axis, size) for a, axis in zip(arrays, axes, strict=True)]
    return _pack_p.bind(*moved), 0


batching.primitive_batchers[_pack_p] = _batch_pack

_unpack_p = Primitive("lgsim_unpack")
_unpack_p.multiple_results = True
_unpack_p.def_impl(jax.jit(_slices))
_unpack_p.def_abstract_eval(lambda a: [a.update(shape=a.shape[:-1])] * a.shape[-1])
mlir.register_lowering(_unpack_p, mlir.lower_fun(_slices, multiple_results=True))


def _transpose_unpack(cotangents: Sequence[Any], array: ad.UndefinedPrimal) -> list:
    batch = array.aval.shape[:-1]
    return [_pack_p.bind(*(jnp.zeros(batch, array.aval.dtype) if type(c) is ad.Zero else c for c in cotangents))]


def _jvp_unpack(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list, list]:
    (array,), (tangent,) = primals, tangents
    values = _unpack_p.bind(array)
    if type(tangent) is ad.Zero:
        return values, [ad.Zero(v.aval.to_tangent_aval()) for v in values]
    return values, _unpack_p.bind(tangent)


ad.primitive_jvps[_unpack_p] = _jvp_unpack
ad.primitive_transposes[_unpack_p] = _transpose_unpack


def _batch_unpack(arrays: Sequence[Any], axes: Sequence[Any]) -> tuple[list, list[int]]:
    moved = batching.bdim_at_front(arrays[0], axes[0], arrays[0].shape[axes[0]])
    outputs = _unpack_p.bind(moved)
    return outputs, [0] * len(outputs)


batching.primitive_batchers[_unpack_p] = _batch_unpack
