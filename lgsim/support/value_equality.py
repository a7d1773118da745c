"""Equality and hash of what holds arrays: the one is of values, the other is refused in words."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer


class ValueEquality:
    """A pytree that is equal to another one of the same class, structure and numbers, and has a hash without arrays."""

    def __eq__(self, other: object) -> Any:
        """Whether all numbers are equal, in value and type; of traced numbers a traced boolean."""
        if type(other) is not type(self):
            return NotImplemented
        if other is self:
            return True
        # equinox takes arrays of numpy and of JAX for different ones
        equal = eqx.tree_equal(*(jax.tree.map(_on_jax, tree) for tree in (self, other)))
        return equal if isinstance(equal, Tracer) else bool(equal)

    def __hash__(self) -> int:
        """The hash of a tree of static things, such as axes for ``jax.vmap``.

        Raises:
            TypeError: there are arrays in it.
        """
        leaves, structure = jax.tree.flatten(self)
        try:
            return hash((structure, *leaves))
        except TypeError:
            name = type(self).__name__
            raise TypeError(
                f"a {name} is an argument of a jitted function, not a static one: its numbers are arrays, which have no"
                f" hash; leave it out of static_argnums and static_argnames, and take what is static of it, such as its"
                f" topology, as the key of a dict or a cache"
            ) from None


def _on_jax(leaf: Any) -> Any:
    return jnp.asarray(leaf) if isinstance(leaf, np.ndarray | np.generic) else leaf
