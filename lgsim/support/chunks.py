"""Long computations in chunks, with progress, safe interruption, and resumption from a checkpoint."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import jax

from lgsim.support.checkpoint import Checkpoint

State = TypeVar("State")

SECONDS = 0.2
"""Target duration of a chunk of ``paced`` work, s: the interval of progress reports and of Ctrl-C."""


def run_in_chunks(
    state: State,
    advance: Callable[[State], State],
    done: Callable[[State], bool],
    *,
    progress: Callable[[State, State], Any] | None = None,
    checkpoint: Checkpoint | None = None,
) -> tuple[State, bool]:
    """Advance a state chunk by chunk until it is done.

    The state is consistent only between two chunks: there it is saved and reported, and there the work may end early.
    Ctrl-C (``KeyboardInterrupt``) within ``advance`` gives the state before that chunk, within ``progress`` the one
    after it. Every other error is passed on; the work done before it is kept in the checkpoint.

    Args:
        state: The initial state; if the checkpoint's file exists, it is replaced by the state in that file.
        advance: ``advance(state)`` computes the state one chunk later. It does not modify its argument, and returns
            when its results are available.
        done: ``done(state)`` is True if no chunk is left.
        progress: ``progress(before, after)`` is called with the states around each chunk.
        checkpoint: The file that stores the state, at intervals and at the end.

    Returns:
        The last consistent state, and True if an interruption ended the work before it was done.

    Raises:
        CheckpointError: the checkpoint's file belongs to another computation, or is not a checkpoint.
        OSError: the checkpoint cannot be written; the previous file is unchanged.
    """
    if checkpoint is not None:
        state = checkpoint.read(state)
    interrupted, first = False, state
    try:
        while not done(state):
            before, state = state, advance(state)
            if checkpoint is not None:
                checkpoint.write_if_due(state)
            if progress is not None:
                progress(before, state)
    except KeyboardInterrupt:
        interrupted = not done(state)
    except BaseException:
        # an error in the first chunk leaves no file behind: the work may have to be corrected first
        if checkpoint is not None and state is not first:
            with suppress(OSError):
                checkpoint.write(state)
        raise
    if checkpoint is not None:
        checkpoint.write(state)
    return state, interrupted


def paced(advance: Callable[[State, int], State], seconds: float = SECONDS) -> Callable[[State], State]:
    """Chunks of about equal duration, from work that can be done in any number of steps.

    The first chunk has one step. The number of steps doubles after a chunk that took less than half of ``seconds`` and
    halves after one that took more than twice that; the first chunk, which compiles, does not count.

    Args:
        advance: ``advance(state, steps)`` computes the state so many steps later.
        seconds: The target duration of a chunk, s.

    Returns:
        The ``advance`` of ``run_in_chunks``; it waits for the arrays of the state.
    """
    steps, compiled = 1, False

    def chunk(state: State) -> State:
        nonlocal steps, compiled
        start = time.perf_counter()
        state = jax.block_until_ready(advance(state, steps))
        elapsed = time.perf_counter() - start
        if compiled and elapsed > 2 * seconds:
            steps = max(1, steps // 2)
        elif compiled and elapsed < seconds / 2:
            steps *= 2
        compiled = True
        return state

    return chunk
