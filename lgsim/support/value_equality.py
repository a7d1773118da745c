"""Equality and hash of objects with arrays: equality compares values, and the hash raises an error."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer


class ValueEquality:
    """A pytree that equals another one of the same class, structure and values, and has a hash only without arrays."""

    def __eq__(self, other: object) -> Any:
        """True if all values and dtypes are equal; a traced boolean for traced values."""
        if type(other) is not type(self):
            return NotImplemented
        if other is self:
            return True
        # equinox distinguishes arrays of numpy and of JAX
        equal = eqx.tree_equal(*(jax.tree.map(_on_jax, tree) for tree in (self, other)))
        return equal if isinstance(equal, Tracer) else bool(equal)

    def __hash__(self) -> int:
        """The hash of a tree of static values, such as axes for ``jax.vmap``.

        Raises:
            TypeError: it contains arrays.
        """
        leaves, structure = jax.tree.flatten(self)
        try:
            return hash((structure, *leaves))
        except TypeError:
            name = type(self).__name__
            raise TypeError(
                f"a {name} is an argument of a jitted function, not a static one: it contains arrays, which have no"
                f" hash; leave it out of static_argnums and static_argnames, and use its static parts, such as its"
                f" topology, as the key of a dict or a cache"
            ) from None


def _on_jax(leaf: Any) -> Any:
    return jnp.asarray(leaf) if isinstance(leaf, np.ndarray | np.generic) else leaf
