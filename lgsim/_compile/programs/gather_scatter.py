"""Source and target indices of gathers and scatters, computed by numpy for known indices.

Semantics: https://openxla.org/xla/operation_semantics#gather, with the terms of JAX.
"""

from __future__ import annotations

from typing import Any, no_type_check

import numpy as np
from jax.lax import GatherScatterMode


def gathered_places(
    shape: tuple[int, ...], indices: np.ndarray, dims: Any, sizes: tuple[int, ...], mode: Any
) -> tuple[np.ndarray, np.ndarray]:
    """For each entry of a gather's result: its index in the flat operand, and True if it is inside the operand.

    Args:
        shape: Shape of the operand.
        indices: The indices, the index vector on the last axis.
        dims: JAX's ``GatherDimensionNumbers``.
        sizes: The sizes of a slice, one for each axis of the operand.
        mode: JAX's ``GatherScatterMode``.
    """
    batching = tuple(dims.operand_batching_dims)
    window = [axis for axis in range(len(shape)) if axis not in dims.collapsed_slice_dims and axis not in batching]
    return _places(
        shape, indices, mode, sizes, tuple(dims.offset_dims), window, tuple(dims.start_index_map),
        batching, tuple(dims.start_indices_batching_dims),
    )  # fmt: skip


def scattered_places(
    shape: tuple[int, ...], indices: np.ndarray, updates: tuple[int, ...], dims: Any, mode: Any
) -> tuple[np.ndarray, np.ndarray]:
    """For each entry of a scatter's updates: its index in the flat operand, and True if it is inside the operand.

    Args:
        shape: Shape of the operand.
        indices: The indices, the index vector on the last axis.
        updates: Shape of the updates.
        dims: JAX's ``ScatterDimensionNumbers``.
        mode: JAX's ``GatherScatterMode``.
    """
    batching = tuple(dims.operand_batching_dims)
    window = [axis for axis in range(len(shape)) if axis not in dims.inserted_window_dims and axis not in batching]
    sizes = [1] * len(shape)
    for axis, own in zip(dims.update_window_dims, window, strict=True):
        sizes[own] = updates[axis]
    return _places(
        shape, indices, mode, tuple(sizes), tuple(dims.update_window_dims), window,
        tuple(dims.scatter_dims_to_operand_dims), batching, tuple(dims.scatter_indices_batching_dims),
    )  # fmt: skip


@no_type_check
def _places(shape, indices, mode, sizes, offsets, window, index_map, batching, index_batching):
    batch = indices.shape[:-1]
    rank = len(batch) + len(offsets)
    others = [axis for axis in range(rank) if axis not in offsets]
    extents = [0] * rank
    for axis, own in zip(offsets, window, strict=True):
        extents[axis] = sizes[own]
    for axis, size in zip(others, batch, strict=True):
        extents[axis] = size

    def spread(x):  # an array over the indices' axes on those of the result
        return np.reshape(x, [extents[axis] if axis in others else 1 for axis in range(rank)])

    # start of each window, clipped to the operand, and whether it was inside
    inside = np.ones(batch, bool)
    starts = np.zeros((len(shape), *batch), int)
    for k, axis in enumerate(index_map):
        start, last = indices[..., k].astype(int), shape[axis] - sizes[axis]
        inside &= (start >= 0) & (start <= last)
        starts[axis] = np.clip(start, 0, last)
    for axis, own in zip(batching, index_batching, strict=True):
        starts[axis] = np.arange(batch[own]).reshape([-1 if i == own else 1 for i in range(len(batch))])
    # flat index = sum over axes of (start + offset in the window) * stride
    strides = np.concatenate([np.cumprod(np.array(shape[:0:-1], int))[::-1], [1]]).astype(int) if shape else []
    places = np.zeros(extents, int)
    for axis in range(len(shape)):
        places = places + spread(starts[axis]) * strides[axis]
    for axis, own in zip(offsets, window, strict=True):
        along = np.arange(extents[axis]).reshape([-1 if i == axis else 1 for i in range(rank)])
        places = places + along * strides[own]
    everywhere = mode in (GatherScatterMode.CLIP, GatherScatterMode.PROMISE_IN_BOUNDS, GatherScatterMode.ONE_HOT)
    allowed = np.ones(extents, bool) if everywhere else np.broadcast_to(spread(inside), extents)
    return np.asarray(places), allowed
