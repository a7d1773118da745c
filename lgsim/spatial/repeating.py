"""Loops of unknown length, and choices between trees, that keep a batch on the last axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from lgsim.spatial.batching import batch_last
from lgsim.spatial.looping import Levels, loop, over, parts


@batch_last
def where_last(condition: Array, x: Any, y: Any) -> Any:
    """The tree x where the condition holds, else the tree y; one condition for all of an entry."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), x, y)


def while_last(going: Callable[[Any], Array], step: Callable[[Any], Any], carry: Any) -> Any:
    """``jax.lax.while_loop(going, step, carry)``, in a batch without a transpose for each step; see ``scan_last``.

    In a batch an entry that goes on no more keeps its carry while others do. As with JAX's loop, forward mode passes
    and reverse mode does not.

    Raises:
        TypeError: what the step returns has another structure than the carry.
    """
    carry = jax.tree.map(jnp.asarray, carry)
    leaves, structure = jax.tree.flatten(carry)
    test = jax.make_jaxpr(going)(carry)
    body, out = jax.make_jaxpr(step, return_shape=True)(carry)
    if jax.tree.structure(out) != structure:
        raise TypeError(f"step: expected a carry of the structure {structure}, got {jax.tree.structure(out)}")
    found = _while.bind(
        *map(jnp.asarray, (*test.consts, *body.consts)), *leaves,
        test=test, body=body, counts=(len(test.consts), len(body.consts), len(leaves)), levels=(),
    )  # fmt: skip
    return jax.tree.unflatten(structure, found)


def _run(*leaves: Array, test: Any, body: Any, counts: tuple[int, int, int], levels: Levels) -> list[Array]:
    of_test, of_step, carry, _ = parts(leaves, counts)

    def kinds(which: int) -> Callable[[tuple], tuple]:
        return lambda mapped: (*parts(mapped, counts)[which], *parts(mapped, counts)[2])

    go, advance = over(levels, test, of_test, kinds(0)), over(levels, body, of_step, kinds(1))
    if not levels:
        return jax.lax.while_loop(lambda carry: go(*carry)[0], lambda carry: advance(*carry), list(carry))

    def step(state: tuple[Array, list[Array]]) -> tuple[Array, list[Array]]:
        on, old = state
        new = [jnp.where(on, x, y) for x, y in zip(advance(*old), old, strict=True)]
        return go(*new)[0], new

    return jax.lax.while_loop(lambda state: jnp.any(state[0]), step, (go(*carry)[0], list(carry)))[1]


_while = loop("while_last", _run)
