"""Mask of the leaves that an optimizer can change as a whole."""

from __future__ import annotations

from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

Tree = TypeVar("Tree")


def trainable(model: Tree) -> Tree:
    """A mask of the model's structure: True for each floating-point leaf with only finite values.

    ``optax.adamw(1e-3, mask=lgsim.trainable(model))`` excludes infinite limits from weight decay, which would make them
    NaN, and ``eqx.partition(model, lgsim.trainable(model))`` separates trained from constant leaves. A mask has one
    entry for each leaf: if a single limit of ``Model.drives`` is infinite, none of its columns is trainable, not even
    damping. Train such columns as separate arrays, ``model.replace(damping=damping)``.

    ``optax.masked(optimizer, mask)`` passes the gradients of all other leaves through; add
    ``optax.masked(optax.set_to_zero(), jax.tree.map(lambda x: not x, mask))`` to keep these constant. The mask does not
    know constraints: an optimizer step does not keep placements rigid or ``inertias`` physical. ``lgsim.identify`` has
    coordinates that do.

    Args:
        model: A model, or any pytree that contains models, such as a controller.

    Returns:
        The same tree with True or False as each leaf.

    Raises:
        ValueError: a leaf is traced, so that its values are unknown.
    """
    return jax.tree.map(_trains, model)


def _trains(leaf: object) -> bool:
    if isinstance(leaf, Tracer) and jnp.issubdtype(leaf.dtype, jnp.floating):
        raise ValueError(
            "trainable: expected concrete values, got values traced by JAX; call it outside of jit, grad and vmap, and"
            " pass the mask itself to optax, mask=lgsim.trainable(model)"
        )
    if not isinstance(leaf, np.ndarray | np.floating | Array | float):
        return False
    return bool(jnp.issubdtype(jnp.result_type(leaf), jnp.floating) and jnp.all(jnp.isfinite(leaf)))
