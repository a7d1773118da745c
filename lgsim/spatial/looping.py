"""What loops share that keep a batch on the last axis: how a batch enters, and their derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir

Levels = tuple[tuple[int, tuple[bool, ...]], ...]
"""(size, which leaves have it) of each batch, the innermost first; each is on the last axis of what it holds."""


def parts(leaves: Sequence[Any], counts: tuple[int, int, int]) -> tuple[tuple, tuple, tuple, tuple]:
    """(constants of the first function, those of the second, carry, entries) of a loop's leaves, or of what is said of
    each of them.
    """
    ends = counts[0], counts[0] + counts[1], sum(counts)
    first, second, carry, entries = (slice(*pair) for pair in zip((0, *ends), (*ends, None), strict=True))
    return tuple(leaves[first]), tuple(leaves[second]), tuple(leaves[carry]), tuple(leaves[entries])


def over(
    levels: Levels, jaxpr: ClosedJaxpr, consts: Sequence[Array], kinds: Callable[[tuple], Sequence[bool]]
) -> Callable[..., list[Array]]:
    """The program with these constants in all batches.

    Args:
        levels: The batches.
        jaxpr: The program.
        consts: Its constants.
        kinds: From the flags of a level those of the constants and of the arguments.
    """

    def f(*args: Array) -> list[Array]:
        found = jaxpr_as_fun(ClosedJaxpr(jaxpr.jaxpr, list(args[: len(consts)])))(*args[len(consts) :])
        return [jnp.asarray(x) for x in found]  # a literal comes as JAX's own kind of number

    for size, mapped in levels:
        axes = tuple(-1 if each else None for each in kinds(mapped))
        f = jax.vmap(f, in_axes=axes, out_axes=-1, axis_size=size)
    return partial(f, *consts)


def loop(name: str, run: Callable[..., list[Array]]) -> Primitive:
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
    return primitive
