"""Loops over time that keep a batch on the last axis."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.extend.core import ClosedJaxpr

from lgsim.spatial.looping import Levels, loop, over, parts

LANES = 16
"""Batches from this size on are large enough for vector instructions: what precedes a step is done within the loop."""


def scan_last(
    step: Callable[[Any, Any], tuple[Any, Any]],
    carry: Any,
    xs: Any,
    *,
    prepare: Callable[[Any], Any] | None = None,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """``jax.lax.scan(step, carry, xs)``, in a batch without a transpose for each step.

    Under ``jax.vmap`` a loop of JAX holds the batch on the first axis, native functions hold it on the last one, and a
    step that calls them spends more time on turning matrices than on multiplying them.

    Args:
        step: ``step(carry, x) -> (carry, y)``, or ``step(carry, prepare(x))``.
        carry: The first one.
        xs: With the leading axis of the loop.
        prepare: What a step needs of x and no carry. For one problem, and off the CPU, of all x at once before the
            loop; in a batch on CPU within the loop, so that what it gives stays in the cache.
        reverse: From the last x to the first.
    """
    first = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), xs)
    carry, xs = jax.tree.map(jnp.asarray, (carry, xs))
    made, ready = _traced(prepare or (lambda x: x), first)
    body, out = _traced(step, carry, ready)
    starts, entries = jax.tree.leaves(carry), jax.tree.leaves(xs)
    found = _scan.bind(
        *map(jnp.asarray, (*made.consts, *body.consts)), *starts, *entries,
        made=made, body=body, counts=(len(made.consts), len(body.consts), len(starts)), reverse=reverse,
        prepared=prepare is not None, levels=(),
    )  # fmt: skip
    return jax.tree.unflatten(jax.tree.structure(out), found)


def _traced(f: Callable[..., Any], *args: Any) -> tuple[ClosedJaxpr, Any]:
    return jax.make_jaxpr(f, return_shape=True)(*args)


def _run(
    *leaves: Array, made: Any, body: Any, counts: tuple[int, int, int], reverse: bool, prepared: bool, levels: Levels
) -> list[Array]:
    to_make, to_step, starts, entries = parts(leaves, counts)

    def of_entries(mapped: tuple) -> tuple:
        some = parts(mapped, counts)
        return *some[0], *some[3]

    def of_step(mapped: tuple) -> tuple:
        return *parts(mapped, counts)[1], *[True] * (len(starts) + len(made.out_avals))

    make, advance = over(levels, made, to_make, of_entries), over(levels, body, to_step, of_step)
    lanes = prod(size for size, _ in levels)
    before = prepared and (lanes < LANES or jax.default_backend() != "cpu")
    if before:
        entries = jax.vmap(make)(*entries)

    def step(carry: list[Array], x: tuple) -> tuple[list[Array], list[Array]]:
        out = advance(*carry, *(x if before else make(*x)))
        return list(out[: len(carry)]), list(out[len(carry) :])

    last, ys = jax.lax.scan(step, list(starts), tuple(entries), reverse=reverse)
    return [*last, *ys]


_scan = loop("scan_last", _run)
