"""Primitives for nested batches: loops, and functions of one state that ``jax.vmap`` keeps as one unit.

``batch_last`` has the same number of batch axes for all operands. Here each level of ``jax.vmap`` records which
operands it maps; an operand that no level maps is stored once for all entries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import Array
from jax.core import ShapedArray

from lgsim._compile.xla.batch_primitive import as_function_of
from lgsim._compile.xla.expansion import register_definition
from lgsim._compile.xla.jax_internals import (
    ClosedJaxpr,
    Primitive,
    define_primitive,
    is_symbolic_zero,
    jaxpr_as_fun,
    one_by_one,
    register_lowering,
)
from lgsim._compile.xla.partition import Axes, BatchAxes

Result = TypeVar("Result")

_KEPT = 64
"""Number of cached programs of a primitive called outside of ``jit``."""

Levels = tuple[tuple[Any, tuple[bool, ...]], ...]
"""(size, flags of the leaves that have it) of each batch, the innermost first; batches are on the last axes.

A size is an integer or a symbolic dimension of ``jax.export``."""


def split_leaves(leaves: Sequence[Any], counts: tuple[int, int, int]) -> tuple[tuple, tuple, tuple, tuple]:
    """(constants of the first function, of the second, carry, entries) from a loop's leaves, or from their flags."""
    ends = counts[0], counts[0] + counts[1], sum(counts)
    first, second, carry, entries = (slice(*pair) for pair in zip((0, *ends), (*ends, None), strict=True))
    return tuple(leaves[first]), tuple(leaves[second]), tuple(leaves[carry]), tuple(leaves[entries])


def in_batches(
    levels: Levels, jaxpr: ClosedJaxpr, consts: Sequence[Array], kinds: Callable[[tuple], Sequence[bool]]
) -> Callable[..., list[Array]]:
    """The function ``jaxpr`` of one entry, with these constants, mapped over all batches.

    Args:
        levels: The batches, the innermost first.
        jaxpr: The program of one entry.
        kinds: ``kinds(flags)`` selects, from the flags of a level, those of the constants and of the arguments.
    """

    def f(*args: Array) -> list[Array]:
        found = jaxpr_as_fun(ClosedJaxpr(jaxpr.jaxpr, list(args[: len(consts)])))(*args[len(consts) :])
        return [jnp.asarray(x) for x in found]  # a literal has a type of JAX's own

    for size, mapped in levels:
        axes = tuple(-1 if each else None for each in kinds(mapped))
        f = jax.vmap(f, in_axes=axes, out_axes=-1, axis_size=size)
    return partial(f, *consts)


def levels_primitive(
    name: str,
    run: Callable[..., list[Array]],
    shapes: Callable[..., list[tuple]],
    lowerings: Mapping[str | None, Callable[..., list[Array]]],
    first: bool = False,
) -> Primitive:
    """A primitive that computes ``run(*leaves, counts, levels, **rest)``, for leaves as in ``split_leaves``.

    Its parameter ``levels`` has the flags of each batch but not its size: a device may have a part of it.

    Args:
        run: The function.
        shapes: (shape, dtype) of the results for leaves of these shapes, without tracing ``run``.
        lowerings: Replacements of ``run`` by platform, None for all others.
        first: Return batches on the first axis, as ``batch_last`` does: a function and its rule of ``custom_jvp`` must
            agree on it.
    """

    def of_leaves(f: Callable[..., Result]) -> Callable[..., Result]:
        def sized(*leaves: Any, levels: tuple[tuple[bool, ...], ...], **rest: Any) -> Result:
            return f(*leaves, levels=tuple(zip(_sizes(leaves, levels), levels, strict=True)), **rest)

        return sized

    def batching_rule(leaves: Any, axes: Any, *, counts: tuple, levels: tuple, **rest: Any) -> tuple[list, list[int]]:
        size = next(x.shape[axis] for x, axis in zip(leaves, axes, strict=True) if axis is not None)
        # after the first step, each entry has its own carry
        mapped = [axis is not None or sum(counts[:2]) <= i < sum(counts) for i, axis in enumerate(axes)]

        def last(x: Any, axis: int | None, each: bool) -> Array:
            if axis is not None:
                return jnp.moveaxis(x, axis, -1)
            x = jnp.asarray(x)
            return jnp.broadcast_to(x[..., None], (*x.shape, size)) if each else x

        given = map(last, leaves, axes, mapped)
        out = primitive.bind(*given, counts=counts, levels=(*levels, tuple(mapped)), **rest)
        if first:
            return [jnp.moveaxis(x, -1, 0) for x in out], [0] * len(out)
        return out, [x.ndim - 1 for x in out]

    def batch_axes(operands: Any, results: Any, *, levels: tuple, **rest: Any) -> BatchAxes:
        def axes(x: Any, batches: list[int]) -> Axes:
            return (None,) * (x.ndim - len(batches)) + tuple(batches)

        each = [[k for k, mapped in enumerate(levels) if mapped[i]] for i in range(len(operands))]
        return BatchAxes([*map(axes, operands, each)], [axes(x, [*range(len(levels))]) for x in results])

    def jvp_rule(leaves: Any, changes: Any, **rest: Any) -> tuple[list[Array], list[Array]]:
        moving = [i for i, change in enumerate(changes) if not is_symbolic_zero(change)]

        of_moving = as_function_of(moving, leaves, lambda leaves: whole(*leaves, **rest))
        return jax.jvp(of_moving, tuple(leaves[i] for i in moving), tuple(changes[i] for i in moving))

    @lru_cache(_KEPT)
    def compiled(rest: tuple) -> Callable[..., list[Array]]:
        return jax.jit(partial(primitive.bind, **dict(rest)))

    def impl(*leaves: Any, **rest: Any) -> list[Array]:
        # op by op, since the primitive itself would call this function again
        f = partial(whole, **rest) if one_by_one() else compiled(tuple(rest.items()))
        return f(*leaves)

    whole, kinds = of_leaves(run), of_leaves(shapes)
    primitive = define_primitive(
        name,
        impl=impl,
        abstract_eval=lambda *leaves, **rest: [ShapedArray(*each) for each in kinds(*leaves, **rest)],
        lowering=whole,
        batching_rule=batching_rule,
        batch_axes=batch_axes,
        computes=True,
        jvp_rule=jvp_rule,
    )
    for platform, lowering in lowerings.items():
        register_lowering(primitive, of_leaves(lowering), platform)
    register_definition(primitive, whole)
    return primitive


def _sizes(leaves: Sequence[Any], levels: tuple[tuple[bool, ...], ...]) -> list[int]:
    """The size of each batch, from a leaf that has it."""
    found = []
    for k, mapped in enumerate(levels):
        i = mapped.index(True)
        further = sum(later[i] for later in levels[k + 1 :])
        found.append(leaves[i].shape[leaves[i].ndim - 1 - further])
    return found
