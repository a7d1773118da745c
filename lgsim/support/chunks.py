"""Long work in chunks: it shows its progress, ends early where its state is whole, and goes on from a file."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import jax

from lgsim.support.checkpoint import Checkpoint

State = TypeVar("State")

SECONDS = 0.2
"""Seconds that a chunk of ``paced`` work should take: so often progress is shown and Ctrl-C acts."""


def run_in_chunks(
    state: State,
    advance: Callable[[State], State],
    done: Callable[[State], bool],
    *,
    progress: Callable[[State, State], Any] | None = None,
    checkpoint: Checkpoint | None = None,
) -> tuple[State, bool]:
    """Advance a state chunk by chunk until it is done.

    The state is whole between two chunks and nowhere else: there it is kept and shown, and there it ends early. Ctrl-C
    (``KeyboardInterrupt``) within ``advance`` gives the state before that chunk, within ``progress`` the one after it.
    Every other error goes through; what was done before it is kept in the checkpoint.

    Args:
        state: The first state; if the checkpoint's file exists, the state in that file takes its place.
        advance: ``advance(state)`` computes the state one chunk later. It changes no state that it is given, and
            returns when its numbers are there.
        done: ``done(state)`` says whether no chunk is left.
        progress: ``progress(before, after)`` is called with the states around each chunk.
        checkpoint: The file that keeps the state, now and then and at the end.

    Returns:
        The last whole state, and whether an interruption ended the work before it was done.

    Raises:
        CheckpointError: the checkpoint's file belongs to other work, or is no checkpoint.
        OSError: the checkpoint cannot be written; the file that was there before is as it was.
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
        # an error in the first chunk leaves no file behind: the work may have to be put right before it can go on
        if checkpoint is not None and state is not first:
            with suppress(OSError):
                checkpoint.write(state)
        raise
    if checkpoint is not None:
        checkpoint.write(state)
    return state, interrupted


def paced(advance: Callable[[State, int], State], seconds: float = SECONDS) -> Callable[[State], State]:
    """Work whose chunks take about the same time, from work that is done in any number of steps.

    The first chunk has one step. The number of steps doubles after a chunk that took less than half of ``seconds`` and
    halves after one that took more than twice as long; the first chunk, which compiles, changes nothing.

    Args:
        advance: ``advance(state, steps)`` computes the state so many steps later.
        seconds: The time that a chunk should take, s.

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
