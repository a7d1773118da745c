"""The mask of the leaves that an optimizer can change as a whole."""

from __future__ import annotations

from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

Tree = TypeVar("Tree")


def trainable(model: Tree) -> Tree:
    """A mask of the model's structure: True for each leaf of floats that are all finite.

    ``optax.adamw(1e-3, mask=lgsim.trainable(model))`` decays no infinite limit, which would become NaN, and
    ``eqx.partition(model, lgsim.trainable(model))`` parts what is trained from what stays. A mask has one entry for a
    leaf: where a single limit of ``Model.drives`` is infinite, none of its columns is trainable, dampers included.
    Train such columns as arrays of their own, ``model.replace(damping=damping)``.

    ``optax.masked(optimizer, mask)`` hands the gradients of all other leaves on as they are; add
    ``optax.masked(optax.set_to_zero(), jax.tree.map(lambda x: not x, mask))`` so that these stay. The mask does not
    know what the numbers mean: a step of an optimizer makes no pose of placements and no body of ``inertias`` where the
    gradient leads away from them; ``lgsim.identify`` has coordinates that stay valid.

    Args:
        model: A model, or any pytree that holds some, such as a controller.

    Returns:
        The same tree with True or False as each leaf.

    Raises:
        ValueError: a leaf is traced, so that nobody knows whether it is finite.
    """
    return jax.tree.map(_trains, model)


def _trains(leaf: object) -> bool:
    if isinstance(leaf, Tracer) and jnp.issubdtype(leaf.dtype, jnp.floating):
        raise ValueError(
            "trainable: expected known numbers, got some that JAX traces; call it outside of jit, grad and vmap, and"
            " give optax the mask itself, mask=lgsim.trainable(model)"
        )
    if not isinstance(leaf, np.ndarray | np.floating | Array | float):
        return False
    return bool(jnp.issubdtype(jnp.result_type(leaf), jnp.floating) and jnp.all(jnp.isfinite(leaf)))
