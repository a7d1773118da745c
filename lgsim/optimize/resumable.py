"""A solution in pieces: it shows its iterations, can be interrupted, and goes on from a file."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from lgsim.lie.action import Point
from lgsim.optimize.problem import Problem
from lgsim.optimize.solver import RESULTS, History, IterativeSolver, Solution, Solver
from lgsim.support import checkpoint
from lgsim.support.checkpoint import CheckpointError
from lgsim.support.version import own_version

PIECE = 0.2
"""Seconds that a piece should take: so often progress is shown and Ctrl-C heard."""
KEEP = 5.0
"""Seconds between two checkpoints."""


class Iteration(NamedTuple):
    """One row of the ``History``, as plain numbers; ``number`` counts from 1."""

    number: int
    cost: float
    gradient: float
    feasibility: float
    step: float
    regularization: float


Progress = Callable[[Iteration], Any]
"""``progress(iteration)`` is called after each iteration, or after several at once for each of them."""


def in_pieces(
    problem: Problem, us: Array, ys: Point | None, solver: Solver, progress: Progress | None, path: str | Path | None
) -> Solution:
    """See ``solve``: what it does where it is given ``progress`` or ``checkpoint``.

    Raises:
        TypeError: the solver runs in one piece, or an argument is traced.
        CheckpointError: the file belongs to another problem, guess or solver.
    """
    if not isinstance(solver, IterativeSolver):
        raise TypeError(
            f"solver: {type(solver).__name__} runs in one piece; without progress and checkpoint it can be taken"
        )
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((problem, us, ys, solver))):
        raise TypeError("progress, checkpoint: expected a problem of numbers; inside of jit and vmap leave both out")
    place = None if path is None else Path(path)
    if place is not None and not place.absolute().parent.is_dir():
        raise CheckpointError(f"{place}: there is no such folder for the checkpoint")
    mark = "" if place is None else checkpoint.fingerprint(problem, us, ys, solver, own_version())
    state = _begin(problem, us, ys, solver)
    if place is not None and place.exists():
        state = checkpoint.read(place, mark, state)
    shown, count, kept = int(state.i), 1, time.perf_counter()
    interrupted = compiled = False
    try:
        while _unfinished(state, solver):
            start = time.perf_counter()
            state = jax.block_until_ready(_advance(problem, state, solver, jnp.array(count)))
            now = time.perf_counter()
            # the first piece compiles and tells nothing
            if compiled:
                count = _paced(count, now - start)
            compiled = True
            if place is not None and now - kept > KEEP:
                checkpoint.write(place, mark, state)
                kept = now
            last, shown = shown, int(state.i)
            if progress is not None:
                for row in rows(state.history, last, shown):
                    progress(row)
    except KeyboardInterrupt:
        interrupted = _unfinished(state, solver)
    if place is not None:
        checkpoint.write(place, mark, state)
    result = _finish(problem, state, solver)
    return eqx.tree_at(lambda r: r.result, result, RESULTS.interrupted) if interrupted else result


def _unfinished(state: Any, solver: IterativeSolver) -> bool:
    return not bool(state.done) and int(state.i) < solver.iteration_limit


def _paced(count: int, seconds: float) -> int:
    """How many iterations the next piece should have, of what those of the last one took."""
    if seconds > 2 * PIECE:
        return max(1, count // 2)
    return 2 * count if seconds < PIECE / 2 else count


def rows(history: History, first: int, stop: int) -> list[Iteration]:
    """The iterations from one place on, before another."""
    columns = [np.asarray(getattr(history, name)[first:stop]).tolist() for name in Iteration._fields[1:]]
    return [Iteration(first + i + 1, *numbers) for i, numbers in enumerate(zip(*columns, strict=True))]


@eqx.filter_jit
def _begin(problem: Problem, us: Array, ys: Point | None, solver: IterativeSolver) -> Any:
    return solver.begin(problem, us, ys)


@eqx.filter_jit
def _advance(problem: Problem, state: Any, solver: IterativeSolver, iterations: Array) -> Any:
    return solver.advance(problem, state, iterations)


@eqx.filter_jit
def _finish(problem: Problem, state: Any, solver: IterativeSolver) -> Solution:
    return solver.finish(problem, state)
