"""A counted loop with a choice of what reverse mode keeps: ``lax.scan``, nested under ``jax.checkpoint``.

Nothing here is a ``while_loop``, so forward mode, reverse mode and any order of both work with every policy, and the
body is compiled once whatever the length.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from lgsim.xla import save_marked_values

Body = Callable[[Any, Array], tuple[Any, Any]]
"""``body(carry, k)`` for k = 0 .. length - 1, as in ``lax.scan``."""
Loop = Callable[[Body, Any, int], tuple[Any, Any]]
"""``loop(body, carry, length) -> (carry, stacked outputs)``."""

# inside a scan nothing can be merged across the boundary anyway
_remat = partial(jax.checkpoint, prevent_cse=False)
_remat_step = partial(_remat, policy=save_marked_values)


def store_all(body: Body, carry: Any, length: int) -> tuple[Any, Any]:
    """Keep every intermediate value: no evaluation twice, memory proportional to length times the work of a step."""
    return jax.lax.scan(body, carry, jnp.arange(length))


def store_steps(body: Body, carry: Any, length: int) -> tuple[Any, Any]:
    """Keep the state at every step and evaluate each step again backwards: memory proportional to length.

    What the field marks with ``keep`` is kept as well and not evaluated again.
    """
    return jax.lax.scan(_remat_step(body), carry, jnp.arange(length))


def store_every(block: int) -> Loop:
    """Keep the state at every ``block``-th step: memory length/block + block states, one more evaluation."""
    return lambda body, carry, length: _nested(body, carry, length, [math.ceil(length / block), min(block, length)])


def store_recursively(body: Body, carry: Any, length: int) -> tuple[Any, Any]:
    """Checkpoints within checkpoints: memory about 8 log_8(length) states, log_8(length) more evaluations."""
    levels = max(1, math.ceil(math.log(length, 8)))
    factors, rest = [], length
    for left in range(levels, 0, -1):
        factors.append(math.ceil(round(rest ** (1 / left), 9)))
        rest = math.ceil(rest / factors[-1])
    return _nested(body, carry, length, factors)


def _nested(body: Body, carry: Any, length: int, factors: list[int]) -> tuple[Any, Any]:
    """Scans of scans over ``prod(factors) >= length`` indices; those beyond the length are skipped by a real branch."""
    total = math.prod(factors)
    run = body if total == length else partial(_skip_beyond, body, length)
    for depth in range(len(factors), 0, -1):
        remat = _remat_step if depth == len(factors) else _remat
        run = partial(_level, remat(run), factors[depth - 1], math.prod(factors[depth:]))
    carry, outputs = run(carry, jnp.zeros((), int))
    return carry, jax.tree.map(lambda a: a.reshape((total, *a.shape[len(factors) :]))[:length], outputs)


def _level(inner: Body, count: int, stride: int, carry: Any, start: Array) -> tuple[Any, Any]:
    return jax.lax.scan(lambda c, i: inner(c, start + i * stride), carry, jnp.arange(count))


def _skip_beyond(body: Body, length: int, carry: Any, index: Array) -> tuple[Any, Any]:
    outputs = jax.eval_shape(body, carry, index)[1]
    return jax.lax.cond(
        index < length,
        body,
        lambda c, _: (c, jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), outputs)),
        carry,
        index,
    )
