"""Integration error of adaptive steps, estimated from a second simulation with other tolerances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.multibody.model import Model
from lgsim.simulation.accuracy.fixed_step_error import known_motion
from lgsim.simulation.accuracy.step_grids import Gaps
from lgsim.simulation.accuracy.trajectory_error import (
    BlockErrors,
    StepError,
    Timeline,
    by_longer_steps,
    by_shorter_steps,
    parting_rate,
    verdict,
)
from lgsim.simulation.rollout import Drive

FACTOR = 10.0
"""The ratio between the larger tolerances: two such simulations take about the time of the original one."""

_TIGHTER = 3.0
"""The ratio to the smaller tolerance, whose simulation takes a quarter more time than the original one."""

_PROPORTION = 0.5
"""The smallest power of the tolerance with which the error is assumed to fall, instead of 1."""

States = Float[np.ndarray, "saved state"]
Again = Callable[..., tuple[States, bool]]
"""``again(factor, start)``: the saved states with tolerances scaled by a factor, from the motion's initial state or
another one, and whether they end as the motion does, at its final time or by an event."""


def check_tolerance(
    model: Model,
    again: Again,
    y0: Float[Array, " state"],
    time: Float[np.ndarray, " saved"],
    known_states: tuple[States, Float[np.ndarray, "between state"]],
    steps: int,
    drive: Drive = None,
) -> StepError | None:
    """The integration error of adaptive steps at the saved states, which is proportional to their tolerance.

    It is estimated from 10 and 100 times the tolerance, and where these are not proportional from a third of it.

    Args:
        time: Times of the saved states, s.
        known_states: The saved states, and others between them.

    Returns:
        The error; None if only the initial state was saved, or if Ctrl-C interrupted the estimate.
    """
    states, between = known_states
    late = time[0] > 0  # the initial state was not saved
    if late:
        time, states = np.append(np.zeros_like(time[:1]), time), np.concatenate([np.asarray(y0)[None], states])
    if len(time) < 2:
        return None
    after = time[1:].astype(float)
    known = known_motion(model, drive, states, Timeline(after, steps * after / after[-1]), 1, between)

    def gaps(one: States, two: States) -> Gaps:
        """The gaps at the times that both motions share; at an event the event states are compared."""
        common = max(min(len(one), len(two)) - 1, 0)
        node = np.append(np.arange(1, common + 1)[: max(common - 1, 0)], len(after))
        # fixed length, so that the difference is compiled once
        x, y = (np.concatenate([x[: len(node) - 1], *[x[-1:]] * (len(after) - len(node) + 1)]) for x in (one, two))
        return Gaps(node, np.abs(np.asarray(known.difference(x, y), float))[: len(node)], True)

    def motion(factor: float, start: Float[Array, " state"] | None = None) -> tuple[States, bool]:
        """The states after the start with another tolerance, and whether they end as the motion does."""
        found, ended = again(factor, start)
        return found[int(not late) :], ended and len(found) > int(not late)

    def block_errors() -> BlockErrors:
        loose, ended = motion(FACTOR)
        between = gaps(states[1:], loose) if ended else None
        if between is not None and (between.gap <= 0.1 * known.scale.size).all():
            looser, ended = motion(FACTOR**2)
            if ended:
                found = by_longer_steps(known, between, gaps(loose, looser), FACTOR, _PROPORTION, _PROPORTION)
                if found.sure:
                    return found
        tight, ended = motion(1 / _TIGHTER)
        unknown = Gaps(np.zeros(0, int), np.zeros((0, len(known.scale.size))), False)
        return by_shorter_steps(known, gaps(states[1:], tight) if ended else unknown, _TIGHTER, order=_PROPORTION)

    def neighbors(start: Float[Array, " state"]) -> Gaps | None:
        found, ended = motion(1.0, start)
        return gaps(states[1:], found) if ended else None

    def neighbor_rate() -> float:
        found = neighbors(known.neighbor())
        return float("nan") if found is None else parting_rate(known, found)

    try:
        error = verdict(*known.with_growth(block_errors(), neighbors), neighbor_rate)
    except KeyboardInterrupt:
        return None
    if not error.resolved and np.isnan(error.rate):
        error = replace(error, reason=f"{error.reason}; take a smaller tolerance")
    return error[int(late) :]
