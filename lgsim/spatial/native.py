"""Short formulas as one native function each: the value, and its derivative applied from either side.

On CPU a derivative by JAX is many small operations, each of which costs a call; a formula of some dozen products then
takes longer than the dynamics of a whole machine.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import jax
from jax import Array
from jax.custom_derivatives import SymbolicZero

from lgsim.spatial.batching import batch_last, linear_last


def native(core: Callable[..., Array]) -> Callable[..., Array]:
    """``core`` of arrays, one value for each entry of a batch, as ``batch_last`` takes it.

    So is its derivative, in both modes; derivatives of higher order are those of ``core`` by JAX.
    """

    @cache
    def derivative(moving: tuple[int, ...]) -> Callable:
        def some(args: tuple) -> Callable:
            def of(*moved: Array) -> Array:
                given = dict(zip(moving, moved, strict=True))
                return core(*(given.get(i, x) for i, x in enumerate(args)))

            return of

        def along(args: tuple, changes: tuple) -> Array:
            return jax.jvp(some(args), tuple(args[i] for i in moving), changes)[1]

        def back(args: tuple, y: Array) -> tuple:
            return jax.vjp(some(args), *(args[i] for i in moving))[1](y)

        # full: else a cotangent would be summed over those that share an argument
        return linear_last(along, back, full=True)

    def rule(args: tuple, changes: tuple) -> tuple[Array, Array]:
        moving = tuple(i for i, dx in enumerate(changes) if not isinstance(dx, SymbolicZero))
        return whole(*args), derivative(moving)(args, tuple(changes[i] for i in moving))

    whole = batch_last(core, rule)
    return whole
