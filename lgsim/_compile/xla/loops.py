"""Loops and conditionals that keep a batch on the last axis.

``jax.vmap`` puts the batch of a JAX loop on the first axis; native functions have it on the last one. These loops are
primitives whose batch is on the last axis, with the derivatives of JAX's loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.export import is_symbolic_dim

from lgsim._compile.xla import control_flow
from lgsim._compile.xla.batch_levels import Levels, in_batches, levels_primitive, split_leaves
from lgsim._compile.xla.batch_primitive import batch_last
from lgsim._compile.xla.hints import traced_platform
from lgsim._compile.xla.jax_internals import ClosedJaxpr, varies
from lgsim._compile.xla.straight_line import straight_line

LANES = 16
"""Batch size from which vector instructions pay off: ``prepare`` is then computed inside of the loop."""


def scan_last(
    step: Callable[[Any, Any], tuple[Any, Any]],
    carry: Any,
    xs: Any,
    *,
    prepare: Callable[[Any], Any] | None = None,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """``jax.lax.scan(step, carry, xs)`` that needs no transpose in each step of a batch.

    Under ``jax.vmap`` a JAX loop has the batch on the first axis, native functions on the last one. A step that calls
    them would spend more time on transposes than on products of matrices.

    Args:
        step: ``step(carry, x) -> (carry, y)``, or ``step(carry, prepare(x))``.
        carry: The carry of the first step, a pytree of arrays.
        xs: A pytree of arrays whose leading axis is that of the loop.
        prepare: ``prepare(x)`` is the part of a step that does not need the carry. For one problem, and off the CPU, it
            is computed for all x at once before the loop; for a batch on CPU inside of the loop, to stay in the cache.
        reverse: Run the loop from the last x to the first.

    Returns:
        The last carry, and the outputs of the steps stacked along a new leading axis.

    Raises:
        TypeError: the carry that a step returns has other shapes or dtypes than the initial one.
    """
    first = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), xs)
    carry, xs = jax.tree.map(jnp.asarray, (carry, xs))
    made, ready = _traced(straight_line(prepare or (lambda x: x)), first)
    body, out = _traced(straight_line(step), carry, ready)
    starts, entries = jax.tree.leaves(carry), jax.tree.leaves(xs)
    _check_carry(starts, body.out_avals)
    if varies(starts, entries, made.consts, body.consts):
        whole = step if prepare is None else (lambda carry, x: step(carry, prepare(x)))
        return control_flow.scan(whole, carry, xs, reverse=reverse)
    found = _scan.bind(
        *map(jnp.asarray, (*made.consts, *body.consts)), *starts, *entries,
        made=made, body=body, counts=(len(made.consts), len(body.consts), len(starts)), reverse=reverse,
        prepared=prepare is not None, levels=(),
    )  # fmt: skip
    return jax.tree.unflatten(jax.tree.structure(out), found)


def _check_carry(starts: Sequence[Array], found: Sequence[Any]) -> None:
    """Check that a step preserves the types of the carry.

    Raises:
        TypeError: it does not.
    """
    for x, y in zip(starts, found, strict=False):
        if x.shape != y.shape or (x.dtype != y.dtype and not x.weak_type):
            raise TypeError(f"step: expected a carry of {x.dtype}{list(x.shape)}, got {y.dtype}{list(y.shape)}")


def _traced(f: Callable[..., Any], *args: Any) -> tuple[ClosedJaxpr, Any]:
    return jax.make_jaxpr(f, return_shape=True)(*args)


def _run_scan(
    *leaves: Array, made: Any, body: Any, counts: tuple[int, int, int], reverse: bool, prepared: bool, levels: Levels,
    platform: str | None = None,
) -> list[Array]:  # fmt: skip
    to_make, to_step, starts, entries = split_leaves(leaves, counts)

    def of_entries(mapped: tuple) -> tuple:
        some = split_leaves(mapped, counts)
        return *some[0], *some[3]

    def of_step(mapped: tuple) -> tuple:
        return *split_leaves(mapped, counts)[1], *[True] * (len(starts) + len(made.out_avals))

    make, advance = in_batches(levels, made, to_make, of_entries), in_batches(levels, body, to_step, of_step)
    lanes = prod(size for size, _ in levels)
    few = not is_symbolic_dim(lanes) and lanes < LANES
    before = prepared and (few or (platform or traced_platform()) != "cpu")
    if before:
        entries = jax.vmap(make)(*entries)

    def step(carry: list[Array], x: tuple) -> tuple[list[Array], list[Array]]:
        out = advance(*carry, *(x if before else make(*x)))
        return list(out[: len(carry)]), list(out[len(carry) :])

    last, ys = control_flow.scan(step, list(starts), tuple(entries), reverse=reverse)
    return [*last, *ys]


def _scan_shapes(*leaves: Any, body: Any, counts: tuple[int, int, int], levels: Levels, **rest: Any) -> list[tuple]:
    length = split_leaves(leaves, counts)[3][0].shape[0]
    leading = [()] * counts[2] + [(length,)] * (len(body.out_avals) - counts[2])
    sizes = tuple(size for size, _ in levels)
    return [((*axes, *x.shape, *sizes), x.dtype) for axes, x in zip(leading, body.out_avals, strict=True)]


_scan = levels_primitive(
    "scan_last",
    _run_scan,
    _scan_shapes,
    {None: partial(_run_scan, platform="other"), "cpu": partial(_run_scan, platform="cpu")},
)


@batch_last
def where_last(condition: Array, x: Any, y: Any) -> Any:
    """The tree x if the condition is true, else the tree y; one condition () for all leaves of an entry of a batch."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), x, y)


def while_last(going: Callable[[Any], Array], step: Callable[[Any], Any], carry: Any) -> Any:
    """``jax.lax.while_loop(going, step, carry)`` without a transpose in each step of a batch; see ``scan_last``.

    In a batch, a finished entry keeps its carry while others continue. As with JAX's loop, forward mode is supported
    and reverse mode is not.

    Raises:
        TypeError: the step returns another structure, other shapes or other dtypes than the carry.
    """
    carry = jax.tree.map(jnp.asarray, carry)
    leaves, structure = jax.tree.flatten(carry)
    test = jax.make_jaxpr(going)(carry)
    body, out = jax.make_jaxpr(step, return_shape=True)(carry)
    if jax.tree.structure(out) != structure:
        raise TypeError(f"step: expected a carry of the structure {structure}, got {jax.tree.structure(out)}")
    _check_carry(leaves, body.out_avals)
    if varies(leaves, test.consts, body.consts):
        return control_flow.while_loop(going, step, carry)
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
        return control_flow.while_loop(lambda carry: go(*carry)[0], lambda carry: advance(*carry), list(carry))

    def step(state: tuple[Array, list[Array]]) -> tuple[Array, list[Array]]:
        on, old = state
        new = [jnp.where(on, x, y) for x, y in zip(advance(*old), old, strict=True)]
        return go(*new)[0], new

    return control_flow.while_loop(lambda state: jnp.any(state[0]), step, (go(*carry)[0], list(carry)))[1]


def _while_shapes(*leaves: Any, body: Any, levels: Levels, **rest: Any) -> list[tuple]:
    return [((*x.shape, *(size for size, _ in levels)), x.dtype) for x in body.out_avals]


_while = levels_primitive("while_last", _run_while, _while_shapes, {})
