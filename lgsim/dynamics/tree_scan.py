"""Recursions over the rows of a tree: outward from the root, inward from the leaves, one ``lax.scan`` each.

The program does not grow with the number of bodies. In a chain a row passes what it knows to its neighbor; in a tree
that goes through arrays over the rows, with one more place at the end for what carries the roots.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Step = Callable[[Any, Any], tuple[Any, Any]]


class Sweep:
    """The order of rows: ``parents[i] < i`` carries row i, -1 for a root."""

    def __init__(self, parents: np.ndarray):
        self.length = len(parents)
        self.parents = np.where(parents < 0, self.length, parents)
        self.is_chain = bool(np.all(parents == np.arange(self.length) - 1))

    def outward(self, step: Step, root: Any, xs: Any, batch: tuple[int, ...]) -> Any:
        """The results of ``value, result = step(parent's value, x)``, of which the roots see ``root``."""
        if not self.length:
            return self._nothing(step, root, xs)
        if self.is_chain:
            return self._neighbor(step, root, xs, batch, reverse=False)[1]

        def one(values: Any, x: Any) -> tuple[Any, Any]:
            i, parent, x = x
            value, result = step(_get(values, parent), x)
            return _set(values, i, value), result

        places = jax.tree.map(lambda r: self._places(r, batch).at[self.length].set(r), root)
        return jax.lax.scan(one, places, (np.arange(self.length), self.parents, xs))[1]

    def inward(self, step: Step, zero: Any, xs: Any, batch: tuple[int, ...]) -> tuple[Any, Any]:
        """(sum over the roots, results) of ``value, result = step(sum of the children's values, x)``."""
        if not self.length:
            return jax.tree.map(lambda z: jnp.broadcast_to(z, batch), zero), self._nothing(step, zero, xs)
        if self.is_chain:
            return self._neighbor(step, zero, xs, batch, reverse=True)

        def one(sums: Any, x: Any) -> tuple[Any, Any]:
            i, parent, x = x
            value, result = step(_get(sums, i), x)
            return jax.tree.map(lambda s, v: s.at[parent].add(v), sums, value), result

        places = jax.tree.map(lambda z: self._places(z, batch), zero)
        sums, results = jax.lax.scan(one, places, (np.arange(self.length), self.parents, xs), reverse=True)
        return _get(sums, self.length), results

    def down(self, values: Any) -> Any:
        """For each row the sum over the rows that carry it and itself, of components (rows, *batch)."""

        def add(i: Any, x: Any) -> Any:
            return jax.tree.map(lambda c: c.at[i].add(c[parents[i]]), x)

        parents = jnp.asarray(self.parents)
        return self._with_world(lambda first, x: jax.lax.fori_loop(first, self.length, add, x), values)

    def up(self, values: Any) -> Any:
        """For each row the sum over the rows that it carries and itself, of components (rows, *batch)."""

        def add(k: Any, x: Any) -> Any:
            i = self.length - k
            return jax.tree.map(lambda c: c.at[parents[i]].add(c[i]), x)

        parents = jnp.asarray(self.parents)
        return self._with_world(lambda first, x: jax.lax.fori_loop(1, self.length + 1 - first, add, x), values)

    def _with_world(self, f: Callable[[int, Any], Any], values: Any) -> Any:
        """``f(first row that hangs on another, values)``; a row of zeros for the world where it carries several."""
        if np.sum(self.parents == self.length) == 1:
            return f(1, values)
        wide = jax.tree.map(lambda x: jnp.concatenate([x, jnp.zeros_like(x[:1])]), values)
        return jax.tree.map(lambda x: x[:-1], f(0, wide))

    def _neighbor(self, step: Step, start: Any, xs: Any, batch: tuple[int, ...], reverse: bool) -> tuple[Any, Any]:
        def one(value: Any, x: Any) -> tuple[Any, Any]:
            value, result = step(value, x)
            return jax.tree.map(lambda v: jnp.broadcast_to(v, batch), value), result

        return jax.lax.scan(one, jax.tree.map(lambda s: jnp.broadcast_to(s, batch), start), xs, reverse=reverse)

    def _nothing(self, step: Step, start: Any, xs: Any) -> Any:
        """No rows: results of length zero. A loop of no turns has no place in a native function."""
        first = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), xs)
        result = jax.eval_shape(step, start, first)[1]
        return jax.tree.map(lambda r: jnp.zeros((0, *r.shape), r.dtype), result)

    def _places(self, like: Any, batch: tuple[int, ...]) -> jax.Array:
        return jnp.zeros((self.length + 1, *batch), like.dtype)


def _get(tree: Any, i: Any) -> Any:
    return jax.tree.map(lambda x: x[i], tree)


def _set(tree: Any, i: Any, value: Any) -> Any:
    return jax.tree.map(lambda x, y: x.at[i].set(y), tree, value)
