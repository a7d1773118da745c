"""Loops and choices that keep a batch on the last axis.

``jax.vmap`` puts the batch of a loop of JAX on the first axis; native functions hold it on the last one. The loops here
are primitives of their own that a batch enters by the last axis, with the derivatives of JAX's loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir

from lgsim.xla.batching import batch_last
from lgsim.xla.expansion import register_definition

Levels = tuple[tuple[int, tuple[bool, ...]], ...]
"""(size, which leaves have it) of each batch, the innermost first; each is on the last axis of what it holds."""


def split_leaves(leaves: Sequence[Any], counts: tuple[int, int, int]) -> tuple[tuple, tuple, tuple, tuple]:
    """(constants of the first function, those of the second, carry, entries) of a loop's leaves, or of what is said of
    each of them.
    """
    ends = counts[0], counts[0] + counts[1], sum(counts)
    first, second, carry, entries = (slice(*pair) for pair in zip((0, *ends), (*ends, None), strict=True))
    return tuple(leaves[first]), tuple(leaves[second]), tuple(leaves[carry]), tuple(leaves[entries])


def in_batches(
    levels: Levels, jaxpr: ClosedJaxpr, consts: Sequence[Array], kinds: Callable[[tuple], Sequence[bool]]
) -> Callable[..., list[Array]]:
    """The function of one entry ``jaxpr``, with these constants, mapped over all batches.

    Args:
        levels: The batches, the innermost first.
        jaxpr: The program of one entry.
        consts: Its constants.
        kinds: ``kinds(flags)`` picks, from the flags of a level, those of the constants and of the arguments.
    """

    def f(*args: Array) -> list[Array]:
        found = jaxpr_as_fun(ClosedJaxpr(jaxpr.jaxpr, list(args[: len(consts)])))(*args[len(consts) :])
        return [jnp.asarray(x) for x in found]  # a literal comes as JAX's own kind of number

    for size, mapped in levels:
        axes = tuple(-1 if each else None for each in kinds(mapped))
        f = jax.vmap(f, in_axes=axes, out_axes=-1, axis_size=size)
    return partial(f, *consts)


def loop_primitive(name: str, run: Callable[..., list[Array]]) -> Primitive:
    """A primitive that is ``run(*leaves, counts, levels, **rest)``, of leaves as ``parts`` takes them."""
    primitive = Primitive(name)
    primitive.multiple_results = True

    def batched(leaves: Any, axes: Any, *, counts: tuple, levels: Levels, **rest: Any) -> tuple[list, list[int]]:
        size = next(x.shape[axis] for x, axis in zip(leaves, axes, strict=True) if axis is not None)
        # a carry is different for each entry after the first step
        mapped = [axis is not None or sum(counts[:2]) <= i < sum(counts) for i, axis in enumerate(axes)]

        def last(x: Any, axis: int | None, each: bool) -> Array:
            if axis is not None:
                return jnp.moveaxis(x, axis, -1)
            x = jnp.asarray(x)
            return jnp.broadcast_to(x[..., None], (*x.shape, size)) if each else x

        given = map(last, leaves, axes, mapped)
        out = primitive.bind(*given, counts=counts, levels=(*levels, (size, tuple(mapped))), **rest)
        return out, [x.ndim - 1 for x in out]

    def moved(leaves: Any, changes: Any, **rest: Any) -> tuple[list[Array], list[Array]]:
        return jax.jvp(partial(run, **rest), tuple(leaves), tuple(map(ad.instantiate_zeros, changes)))

    def shapes(*leaves: Any, **rest: Any) -> list[ShapedArray]:
        kinds = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in leaves]
        return [ShapedArray(x.shape, x.dtype) for x in jax.eval_shape(partial(run, **rest), *kinds)]

    primitive.def_abstract_eval(shapes)
    primitive.def_impl(lambda *leaves, **rest: jax.jit(partial(run, **rest))(*leaves))
    mlir.register_lowering(primitive, mlir.lower_fun(run, multiple_results=True))
    batching.primitive_batchers[primitive] = batched
    ad.primitive_jvps[primitive] = moved
    register_definition(primitive, run)
    return primitive


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
        carry: The carry of the first step, a pytree of arrays.
        xs: A pytree of arrays whose leading axis is that of the loop.
        prepare: ``prepare(x)`` is what a step needs of x without the carry. For one problem, and off the CPU, it is
            computed of all x at once before the loop; in a batch on CPU within the loop, so that it stays in the cache.
        reverse: Whether the loop runs from the last x to the first.

    Returns:
        The last carry, and what the steps gave, stacked along a new leading axis.
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


def _run_scan(
    *leaves: Array, made: Any, body: Any, counts: tuple[int, int, int], reverse: bool, prepared: bool, levels: Levels
) -> list[Array]:
    to_make, to_step, starts, entries = split_leaves(leaves, counts)

    def of_entries(mapped: tuple) -> tuple:
        some = split_leaves(mapped, counts)
        return *some[0], *some[3]

    def of_step(mapped: tuple) -> tuple:
        return *split_leaves(mapped, counts)[1], *[True] * (len(starts) + len(made.out_avals))

    make, advance = in_batches(levels, made, to_make, of_entries), in_batches(levels, body, to_step, of_step)
    lanes = prod(size for size, _ in levels)
    before = prepared and (lanes < LANES or jax.default_backend() != "cpu")
    if before:
        entries = jax.vmap(make)(*entries)

    def step(carry: list[Array], x: tuple) -> tuple[list[Array], list[Array]]:
        out = advance(*carry, *(x if before else make(*x)))
        return list(out[: len(carry)]), list(out[len(carry) :])

    last, ys = jax.lax.scan(step, list(starts), tuple(entries), reverse=reverse)
    return [*last, *ys]


_scan = loop_primitive("scan_last", _run_scan)


@batch_last
def where_last(condition: Array, x: Any, y: Any) -> Any:
    """The tree x where the condition holds, else the tree y; one condition () for all leaves of an entry of a batch."""
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


def _run_while(*leaves: Array, test: Any, body: Any, counts: tuple[int, int, int], levels: Levels) -> list[Array]:
    of_test, of_step, carry, _ = split_leaves(leaves, counts)

    def kinds(which: int) -> Callable[[tuple], tuple]:
        return lambda mapped: (*split_leaves(mapped, counts)[which], *split_leaves(mapped, counts)[2])

    go, advance = in_batches(levels, test, of_test, kinds(0)), in_batches(levels, body, of_step, kinds(1))
    if not levels:
        return jax.lax.while_loop(lambda carry: go(*carry)[0], lambda carry: advance(*carry), list(carry))

    def step(state: tuple[Array, list[Array]]) -> tuple[Array, list[Array]]:
        on, old = state
        new = [jnp.where(on, x, y) for x, y in zip(advance(*old), old, strict=True)]
        return go(*new)[0], new

    return jax.lax.while_loop(lambda state: jnp.any(state[0]), step, (go(*carry)[0], list(carry)))[1]


_while = loop_primitive("while_last", _run_while)
