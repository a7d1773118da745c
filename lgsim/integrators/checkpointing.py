"""A counted loop with a choice of what reverse mode keeps: ``lax.scan``, nested under ``jax.checkpoint``.

Nothing here is a ``while_loop``, so forward mode, reverse mode and any order of both work with every policy, and the
body is compiled once whatever the length.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Int

from lgsim.xla import save_marked_values

Carry = TypeVar("Carry")
Output = TypeVar("Output")
Index = Int[Array, ""]
Body = Callable[[Carry, Index], tuple[Carry, Output]]
"""``body(carry, k)`` for k = 0 .. length - 1, as in ``lax.scan``; carry and output are pytrees of arrays."""
Loop = Callable[[Body, Any, int], tuple[Any, Any]]
"""``loop(body, carry, length) -> (carry, outputs)``, each output with the leading axis ``length``."""

# inside a scan nothing can be merged across the boundary anyway
_remat = partial(jax.checkpoint, prevent_cse=False)
_remat_step = partial(_remat, policy=save_marked_values)


def checkpoint_policy(checkpoint: str | int | None) -> Loop:
    """The loop of a ``checkpoint`` argument.

    Args:
        checkpoint: None for ``store_all``, "step" for ``store_steps``, an integer k for ``StoreEvery(k)``, "recursive"
            for ``store_recursively``.

    Returns:
        The loop, equal for equal arguments, so that it can be static in a compiled function.

    Raises:
        ValueError: the argument is none of these.
    """
    named: dict[Any, Loop] = {None: store_all, "step": store_steps, "recursive": store_recursively}
    if isinstance(checkpoint, int) and not isinstance(checkpoint, bool) and checkpoint >= 1:
        return StoreEvery(checkpoint)
    if checkpoint in named:
        return named[checkpoint]
    raise ValueError(f'checkpoint: expected None, "step", "recursive" or a positive integer, got {checkpoint!r}')


def store_all(body: Body[Carry, Output], carry: Carry, length: int) -> tuple[Carry, Output]:
    """Run a loop that keeps every intermediate value: no evaluation twice, memory of length times the work of a step.

    Args:
        body: ``body(carry, k)`` gives the next carry and an output.
        carry: the first carry.
        length: the number of steps.

    Returns:
        The last carry and the outputs, each with the leading axis ``length``.
    """
    return jax.lax.scan(body, carry, jnp.arange(length))


def store_steps(body: Body[Carry, Output], carry: Carry, length: int) -> tuple[Carry, Output]:
    """Run a loop that keeps the carry at every step and evaluates each step again backwards; memory of length carries.

    What the field marks with ``save_in_checkpoint`` is kept as well and not evaluated again. Arguments and result are
    those of ``store_all``.
    """
    return jax.lax.scan(_remat_step(body), carry, jnp.arange(length))


@dataclass(frozen=True)
class StoreEvery:
    """A loop that keeps the carry at every ``block``-th step: memory of length/block + block carries, one more
    evaluation.

    Attributes:
        block: the number of steps between two carries that are kept.
    """

    block: int

    def __call__(self, body: Body[Carry, Output], carry: Carry, length: int) -> tuple[Carry, Output]:
        """Run the loop; arguments and result are those of ``store_all``."""
        return _nest(body, carry, length, [math.ceil(length / self.block), min(self.block, length)])


def store_recursively(body: Body[Carry, Output], carry: Carry, length: int) -> tuple[Carry, Output]:
    """Run a loop with checkpoints within checkpoints: memory of about 8 log_8(length) carries, log_8(length) more
    evaluations. Arguments and result are those of ``store_all``.
    """
    levels = max(1, math.ceil(math.log(length, 8)))
    factors, rest = [], length
    for left in range(levels, 0, -1):
        factors.append(math.ceil(round(rest ** (1 / left), 9)))
        rest = math.ceil(rest / factors[-1])
    return _nest(body, carry, length, factors)


def _nest(body: Body[Carry, Output], carry: Carry, length: int, factors: list[int]) -> tuple[Carry, Output]:
    """Scans of scans over ``prod(factors) >= length`` indices; those beyond the length are skipped by a real branch."""
    total = math.prod(factors)
    run = body if total == length else partial(_skip_beyond, body, length)
    for depth in range(len(factors), 0, -1):
        remat = _remat_step if depth == len(factors) else _remat
        run = partial(_level, remat(run), factors[depth - 1], math.prod(factors[depth:]))
    carry, outputs = run(carry, jnp.zeros((), int))
    return carry, jax.tree.map(lambda a: a.reshape((total, *a.shape[len(factors) :]))[:length], outputs)


def _level(inner: Body[Carry, Output], count: int, stride: int, carry: Carry, start: Index) -> tuple[Carry, Output]:
    """One scan of the nest: ``inner`` at the indices start, start + stride, ..."""
    return jax.lax.scan(lambda c, i: inner(c, start + i * stride), carry, jnp.arange(count))


def _skip_beyond(body: Body[Carry, Output], length: int, carry: Carry, index: Index) -> tuple[Carry, Output]:
    """``body`` at indices below the length; beyond it the carry as it is and an output of zeros."""
    outputs = jax.eval_shape(body, carry, index)[1]
    return jax.lax.cond(
        index < length,
        body,
        lambda c, _: (c, jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), outputs)),
        carry,
        index,
    )
