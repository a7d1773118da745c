"""JAX's loops and branches for use inside of ``shard_map``.

Under ``jax.shard_map`` the type of an array includes the axes over which it differs between devices. JAX requires the
same type of a loop carry in all steps, and of the branches of a conditional. A carry that starts as zeros is the same
on all devices and differs after the first step. These functions start with the final type; elsewhere they are JAX's
own functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from lgsim._compile.xla.jax_internals import in_shard_map, varying_axes, varying_over


def scan(step: Callable[[Any, Any], tuple[Any, Any]], carry: Any, xs: Any = None, **options: Any) -> tuple[Any, Any]:
    """``jax.lax.scan``."""
    if not in_shard_map() or any(len(x) == 0 for x in jax.tree.leaves(xs)):
        return jax.lax.scan(step, carry, xs, **options)
    first = jax.tree.map(lambda x: x[0], xs)
    carry, axes = _settled(lambda c: step(c, first)[0], carry)

    def cast(c: Any, x: Any) -> tuple[Any, Any]:
        c, y = step(c, x)
        return _over(c, axes), y

    return jax.lax.scan(cast, carry, xs, **options)


def while_loop(going: Callable[[Any], Any], step: Callable[[Any], Any], carry: Any) -> Any:
    """``jax.lax.while_loop``."""
    if not in_shard_map():
        return jax.lax.while_loop(going, step, carry)
    carry, axes = _settled(step, carry)
    return jax.lax.while_loop(going, lambda c: _over(step(c), axes), carry)


def fori_loop(start: Any, stop: Any, step: Callable[[Any, Any], Any], carry: Any, **options: Any) -> Any:
    """``jax.lax.fori_loop``."""
    if not in_shard_map():
        return jax.lax.fori_loop(start, stop, step, carry, **options)
    carry, axes = _settled(lambda c: step(jnp.asarray(start), c), carry)
    return jax.lax.fori_loop(start, stop, lambda i, c: _over(step(i, c), axes), carry, **options)


def cond(condition: Any, yes: Callable[..., Any], no: Callable[..., Any], *operands: Any) -> Any:
    """``jax.lax.cond``."""
    if not in_shard_map():
        return jax.lax.cond(condition, yes, no, *operands)
    return switch(jnp.where(condition, 1, 0), [no, yes], *operands)


def switch(index: Any, branches: list[Callable[..., Any]], *operands: Any) -> Any:
    """``jax.lax.switch``."""
    if not in_shard_map():
        return jax.lax.switch(index, branches, *operands)
    each = [_axes(branch, *operands) for branch in branches]
    axes = [frozenset().union(*kinds) for kinds in zip(*each, strict=True)]
    return jax.lax.switch(index, [lambda *a, f=f: _over(f(*a), axes) for f in branches], *operands)


Axes = list[frozenset]


def _axes(f: Callable[..., Any], *args: Any) -> Axes:
    """The axes over which each leaf of ``f(*args)`` differs between devices."""
    return [varying_axes(x) for x in jax.make_jaxpr(f)(*args).out_avals]


def _over(tree: Any, axes: Axes) -> Any:
    leaves, structure = jax.tree.flatten(tree)
    # a structure that does not match is left to JAX's own error
    return jax.tree.unflatten(structure, [*map(varying_over, leaves, axes), *leaves[len(axes) :]])


def _settled(step: Callable[[Any], Any], carry: Any) -> tuple[Any, Axes]:
    """The carry with the axes over which it differs after any number of steps, and these axes."""
    carry = jax.tree.map(jnp.asarray, carry)
    axes = [varying_axes(x) for x in jax.tree.leaves(carry)]
    while True:
        found = [a | b for a, b in zip(axes, _axes(step, carry), strict=False)]
        if found == axes:
            return carry, axes
        axes, carry = found, _over(carry, found)
