"""Short formulas as one native function each: the value, and its derivative applied from either side.

On CPU a derivative by JAX is many small operations, each of which costs a call; a formula of some dozen products then
takes longer than the dynamics of a whole machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.custom_derivatives import SymbolicZero

from lgsim.spatial.batching import batch_last


def native(core: Callable[..., Array]) -> Callable[..., Array]:
    """``core`` of arrays, one value for each entry of a batch, as ``batch_last`` takes it.

    Its derivative is linear with a transpose of its own, in both modes and any order. JAX takes a transpose only from a
    linear solve, so the derivative J is one: (dx, dy) -> (dx, dy - J dx) is the inverse of (dx, dy) -> (dx, dy + J dx).
    Both are one vector, since JAX transposes a solve only where nothing on its right side is constant.
    """

    @cache
    def products(moving: tuple[int, ...]) -> tuple[Callable, Callable]:
        def along(args: tuple, changes: tuple) -> Array:
            return jax.jvp(_of(core, args, moving), tuple(args[i] for i in moving), changes)[1]

        def back(args: tuple, y: Array) -> tuple:
            return jax.vjp(_of(core, args, moving), *(args[i] for i in moving))[1](y)

        # full: else a cotangent would be summed over those that share an argument
        return batch_last(along, full=True), batch_last(back, full=True)

    def rule(args: tuple, tangents: tuple) -> tuple[Array, Array]:
        moving = tuple(i for i, dx in enumerate(tangents) if not isinstance(dx, SymbolicZero))
        y = whole(*args)
        along, back = products(moving)

        shapes = [args[i].shape for i in moving]
        size = sum(math.prod(shape) for shape in shapes)

        def split(x: Array) -> tuple[tuple, Array]:
            ends = np.cumsum([math.prod(shape) for shape in shapes])
            *dx, dy = jnp.split(x, ends)
            return tuple(part.reshape(shape) for part, shape in zip(dx, shapes, strict=True)), dy.reshape(y.shape)

        def matvec(x: Array) -> Array:
            dx, dy = split(x)
            dy = dy - jax.jvp(_of(core, args, moving), tuple(args[i] for i in moving), dx)[1]
            return jnp.concatenate([x[:size], dy.ravel()])

        def solve(_: Any, x: Array) -> Array:
            dx, dy = split(x)
            return jnp.concatenate([x[:size], (dy + along(args, dx)).ravel()])

        def transposed(_: Any, x: Array) -> Array:
            dy = split(x)[1]
            dx = jnp.concatenate([part.ravel() for part in back(args, dy)])
            return jnp.concatenate([x[:size] + dx, x[size:]])

        change = jnp.concatenate([*(tangents[i].ravel() for i in moving), jnp.zeros(y.size, y.dtype)])
        return y, jax.lax.custom_linear_solve(matvec, change, solve, transposed)[size:].reshape(y.shape)

    whole = batch_last(core, rule)
    return whole


def _of(core: Callable, args: tuple, moving: tuple[int, ...]) -> Callable:
    """``core`` as a function of those arguments that move."""

    def some(*moved: Array) -> Array:
        given = dict(zip(moving, moved, strict=True))
        return core(*(given.get(i, x) for i, x in enumerate(args)))

    return some
