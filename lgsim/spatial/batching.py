"""Batches on the last axis: what makes a recursion over bodies vector code.

A recursion takes one body after another, so the axis along which there is vector work is the batch, and it has to come
last. ``jax.vmap`` alone puts it first wherever an array is indexed or broadcast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap

from lgsim.spatial.lowering import kernel


def batch_last(core: Callable[..., Any]) -> Callable[..., Any]:
    """``core`` as one function that a batch enters by its last axis, whatever axis ``jax.vmap`` maps over.

    ``core`` takes and returns pytrees of arrays whose own axes come first; any number of batch axes follows, the same
    number for all its arguments, of full length or of length 1, and full in what it returns. A derivative is that of
    ``core`` by JAX, in every order and mode.
    """
    fast = custom_vmap(kernel(core))

    @fast.def_vmap
    def _(size: int, batched: Any, *args: Any) -> tuple[Any, Any]:
        last = jax.tree.map(lambda x, b: jnp.moveaxis(x, 0, -1) if b else x[..., None], args, tuple(batched))
        # a result that no mapped argument enters has a batch of length 1
        full = jax.tree.map(lambda x: jnp.broadcast_to(x, (*x.shape[:-1], size)), fast(*last))
        out = jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), full)
        return out, jax.tree.map(lambda _: True, out)

    whole = jax.custom_jvp(fast)

    @whole.defjvp
    def _(primals: tuple, tangents: tuple) -> tuple[Any, Any]:
        return jax.jvp(core, primals, tangents)

    return whole
