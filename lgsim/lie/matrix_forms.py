"""Operations derived from a few primitives in every group: matrices of actions, duals, products along coordinates."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array


def columns(action: Callable[[Array, Array], Array], element: Array, dim: int, rank: int = 1) -> Array:
    """The (dim, dim) matrix of the linear map ``action(element, .)``; ``rank`` axes of ``element`` are not batch."""
    batch = element.ndim - rank
    basis = jnp.eye(dim, dtype=element.dtype).reshape((1,) * batch + (dim, dim))
    return jnp.swapaxes(action(jnp.expand_dims(element, batch), basis), -1, -2)


def transpose(matrix: Array) -> Array:
    """Transpose of the last two axes."""
    return jnp.swapaxes(matrix, -1, -2)


def apply(matrix: Array, vector: Array) -> Array:
    """``matrix vector``; the batch axes have equal rank."""
    return jnp.sum(matrix * vector[..., None, :], axis=-1)


def transpose_apply(matrix: Array, vector: Array) -> Array:
    """``matrix^T vector``; the batch axes have equal rank."""
    return jnp.sum(matrix * vector[..., :, None], axis=-2)
