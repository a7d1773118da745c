"""Arrays joined along a new last axis and taken apart again, fast in both directions of differentiation.

``join_last`` and ``split_last`` are linear and each is the transpose of the other. They are primitives of their own
because JAX's ready operations transpose badly here: slices turn into sums of padded arrays, in each of which XLA's CPU
back end computes the whole cotangent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from lgsim.xla.expansion import register_definition


def join_last(*parts: Array) -> Array:
    """Arrays (...) of one shape and dtype as one array (..., n)."""
    return _join.bind(*parts)


def split_last(array: Array) -> list[Array]:
    """The n arrays (...) of an array (..., n)."""
    return list(_split.bind(array))


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


_join = Primitive("lgsim_pack")
_join.def_impl(jax.jit(_select))
_join.def_abstract_eval(lambda *parts: parts[0].update(shape=(*parts[0].shape, len(parts))))
mlir.register_lowering(_join, mlir.lower_fun(_select, multiple_results=False))
register_definition(_join, _select)
ad.deflinear2(_join, lambda ct, *parts: list(_split.bind(ct)))


def _batch_join(arrays: Sequence[Any], axes: Sequence[Any]) -> tuple[Any, int]:
    size = next(a.shape[axis] for a, axis in zip(arrays, axes, strict=True) if axis is not None)
    moved = [batching.bdim_at_front(a, axis, size) for a, axis in zip(arrays, axes, strict=True)]
    return _join.bind(*moved), 0


batching.primitive_batchers[_join] = _batch_join

_split = Primitive("lgsim_unpack")
_split.multiple_results = True
_split.def_impl(jax.jit(_slices))
_split.def_abstract_eval(lambda a: [a.update(shape=a.shape[:-1])] * a.shape[-1])
mlir.register_lowering(_split, mlir.lower_fun(_slices, multiple_results=True))
register_definition(_split, _slices)


def _transpose_split(cotangents: Sequence[Any], array: ad.UndefinedPrimal) -> list:
    batch = array.aval.shape[:-1]
    return [_join.bind(*(jnp.zeros(batch, array.aval.dtype) if type(c) is ad.Zero else c for c in cotangents))]


def _jvp_split(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list, list]:
    (array,), (tangent,) = primals, tangents
    values = _split.bind(array)
    if type(tangent) is ad.Zero:
        return values, [ad.Zero(v.aval.to_tangent_aval()) for v in values]
    return values, _split.bind(tangent)


ad.primitive_jvps[_split] = _jvp_split
ad.primitive_transposes[_split] = _transpose_split


def _batch_split(arrays: Sequence[Any], axes: Sequence[Any]) -> tuple[list, list[int]]:
    moved = batching.bdim_at_front(arrays[0], axes[0], arrays[0].shape[axes[0]])
    outputs = _split.bind(moved)
    return outputs, [0] * len(outputs)


batching.primitive_batchers[_split] = _batch_split
