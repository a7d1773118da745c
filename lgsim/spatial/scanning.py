"""Loops over time that keep a batch on the last axis."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir

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


_scan = Primitive("scan_last")
_scan.multiple_results = True


def _run(
    *leaves: Array, made: Any, body: Any, counts: tuple, reverse: bool, prepared: bool, levels: tuple
) -> list[Array]:
    to_make, to_step, starts, entries = _parts(leaves, counts)
    held = len(to_make), len(to_step)

    def over(f: Callable[..., Any], kinds: Callable[[tuple], tuple]) -> Callable[..., Any]:
        """``f`` in the batches that came, each of which is on the last axis of what it holds."""
        for size, mapped in levels:
            axes = tuple(-1 if each else None for each in kinds(mapped))
            f = jax.vmap(f, in_axes=axes, out_axes=-1, axis_size=size)
        return f

    def with_consts(jaxpr: Any, count: int) -> Callable[..., Any]:
        return lambda *args: jaxpr_as_fun(ClosedJaxpr(jaxpr.jaxpr, list(args[:count])))(*args[count:])

    def of_entries(mapped: tuple) -> tuple:
        some = _parts(mapped, counts)
        return (*some[0], *some[3])

    def of_step(mapped: tuple) -> tuple:
        return (*_parts(mapped, counts)[1], *[True] * (len(starts) + len(made.out_avals)))

    make = over(with_consts(made, held[0]), of_entries)
    advance = over(with_consts(body, held[1]), of_step)
    lanes = prod(size for size, _ in levels)
    before = prepared and (lanes < LANES or jax.default_backend() != "cpu")
    if before:
        entries = jax.vmap(lambda *x: make(*to_make, *x))(*entries)

    def step(carry: list[Array], x: tuple) -> tuple[list[Array], list[Array]]:
        ready = x if before else make(*to_make, *x)
        out = advance(*to_step, *carry, *ready)
        return list(out[: len(carry)]), list(out[len(carry) :])

    last, ys = jax.lax.scan(step, list(starts), tuple(entries), reverse=reverse)
    return [*last, *ys]


def _parts(leaves: Any, counts: tuple) -> tuple:
    """(constants of ``prepare``, those of ``step``, carry, entries)."""
    ends = counts[0], counts[0] + counts[1], sum(counts)
    return tuple(leaves[: ends[0]]), tuple(leaves[ends[0] : ends[1]]), tuple(leaves[ends[1] : ends[2]]), tuple(
        leaves[ends[2] :]
    )


def _batched(leaves: Any, axes: Any, *, counts: tuple, levels: tuple, **rest: Any) -> tuple[list[Array], list[int]]:
    size = next(x.shape[axis] for x, axis in zip(leaves, axes, strict=True) if axis is not None)

    def last(i: int, x: Any, axis: int | None) -> Array:
        if axis is not None:
            return jnp.moveaxis(x, axis, -1)
        x = jnp.asarray(x)
        # a carry is different for each entry after the first step
        return jnp.broadcast_to(x[..., None], (*x.shape, size)) if sum(counts[:2]) <= i < sum(counts) else x

    given = [last(i, x, axis) for i, (x, axis) in enumerate(zip(leaves, axes, strict=True))]
    mapped = tuple(axis is not None or sum(counts[:2]) <= i < sum(counts) for i, axis in enumerate(axes))
    out = _scan.bind(*given, counts=counts, levels=(*levels, (size, mapped)), **rest)
    return out, [x.ndim - 1 for x in out]


def _moved(leaves: Any, changes: Any, **rest: Any) -> tuple[list[Array], list[Array]]:
    return jax.jvp(partial(_run, **rest), tuple(leaves), tuple(map(ad.instantiate_zeros, changes)))


@_scan.def_abstract_eval
def _(*leaves: Any, **rest: Any) -> list[Any]:
    kinds = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in leaves]
    return [ShapedArray(x.shape, x.dtype) for x in jax.eval_shape(partial(_run, **rest), *kinds)]


_scan.def_impl(lambda *leaves, **rest: jax.jit(partial(_run, **rest))(*leaves))
mlir.register_lowering(_scan, mlir.lower_fun(_run, multiple_results=True))
batching.primitive_batchers[_scan] = _batched
ad.primitive_jvps[_scan] = _moved
