"""Arrays joined along a new last axis and split again, fast in both differentiation modes.

``join_last`` and ``split_last`` are linear and transposes of each other. They are primitives because the transposes of
JAX's own operations are slow here: slices become sums of padded arrays, in each of which XLA's CPU backend recomputes
the whole cotangent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from lgsim._compile.xla.expansion import register_definition
from lgsim._compile.xla.jax_internals import define_primitive, instantiated, is_symbolic_zero


def join_last(*parts: Array) -> Array:
    """Arrays (...) of one shape and dtype as one array (..., n)."""
    return _join.bind(*parts)


def split_last(array: Array) -> list[Array]:
    """The n arrays (...) of an array (..., n)."""
    return list(_split.bind(array))


def _select(*parts: Array) -> Array:
    """Join by selecting on the index: one vectorized loop, where a concatenation has a branch per element."""
    rank = parts[0].ndim
    index = jax.lax.broadcasted_iota(jnp.int32, (1,) * rank + (len(parts),), rank)
    out = parts[0][..., None]
    for i, part in enumerate(parts[1:], start=1):
        out = jnp.where(index == i, part[..., None], out)
    return jnp.broadcast_to(out, (*parts[0].shape, len(parts)))


def _slices(array: Array) -> list[Array]:
    return [array[..., i] for i in range(array.shape[-1])]


def _join_batches(arrays: Sequence[Any], axes: Sequence[Any]) -> tuple[Any, int]:
    size = next(a.shape[axis] for a, axis in zip(arrays, axes, strict=True) if axis is not None)
    return _join.bind(*(_first(a, axis, size) for a, axis in zip(arrays, axes, strict=True))), 0


def _first(array: Any, axis: int | None, size: Any) -> Array:
    """An array with its batch axis, if any, moved to the front, else a new one."""
    if axis is None:
        return jnp.broadcast_to(array, (size, *jnp.shape(array)))
    return jnp.moveaxis(array, axis, 0)


_join = define_primitive(
    "lgsim_pack",
    impl=jax.jit(_select),
    abstract_eval=lambda *parts: parts[0].update(shape=(*parts[0].shape, len(parts))),
    lowering=_select,
    batching_rule=_join_batches,
    batch_axes=None,
    computes=False,
    transpose_rule=lambda cotangent, *parts: split_last(cotangent),
    multiple_results=False,
)
register_definition(_join, _select)


def _split_transpose(cotangents: Sequence[Any], array: Any) -> list:
    return [_join.bind(*map(instantiated, cotangents))]


def _split_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list, list]:
    (array,), (tangent,) = primals, tangents
    values = _split.bind(array)
    if is_symbolic_zero(tangent):
        return values, [type(tangent)(v.aval.to_tangent_aval()) for v in values]
    return values, _split.bind(tangent)


def _split_batches(arrays: Sequence[Any], axes: Sequence[Any]) -> tuple[list, list[int]]:
    outputs = _split.bind(_first(arrays[0], axes[0], arrays[0].shape[axes[0]]))
    return outputs, [0] * len(outputs)


_split = define_primitive(
    "lgsim_unpack",
    impl=jax.jit(_slices),
    abstract_eval=lambda a: [a.update(shape=a.shape[:-1])] * a.shape[-1],
    lowering=_slices,
    batching_rule=_split_batches,
    batch_axes=None,
    computes=False,
    jvp_rule=_split_jvp,
    transpose_rule=_split_transpose,
)
register_definition(_split, _slices)
