"""The error that the steps of a method leave in a motion, estimated from the same motion with other steps.

Let e(h) be the error at the step h and y(h) the motion. Of a method of order p, ``e(h) = C h^p`` up to higher powers,
so that ``y(h) - y(h/2)`` is ``(1 - 2^-p) e(h)``, and ``y(2h) - y(h)`` is ``(2^p - 1) e(h)``. The ratio of the two gives
the order that a motion really shows. Where it is none that the method can have, a longer step says nothing about a
shorter one, and only shorter steps are believed.

Source: Richardson, The approximate arithmetical solution by finite differences of physical problems, Philosophical
Transactions A 210, 1911; Hairer, Norsett, Wanner, Solving ODEs I, II.4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from lgsim.integrators.step_grids import Advance, Difference, Gaps, compare
from lgsim.lie.action import Point
from lgsim.support.printable import printable
from lgsim.support.verdict import RESOLVED

BLOCKS = 256
"""Parts of a motion's time in each of which the largest distance counts."""

SHORT = 2048
"""The number of steps up to which a motion is compared with steps of dt/2, which is dear and tells most."""

HEAD = 128
"""The steps of a longer motion, the first ones, that are compared with steps of dt/2: fast parts die out there."""

FLOORS = 30.0
"""A distance of two motions below so many times what rounding leaves at least may be rounding alone."""

_PROPORTION = 0.5
"""The smallest power of the tolerance that the error of adaptive steps is taken to fall with, instead of 1."""

_GROWN = 1e3
"""The growth of a small distance from which on it counts as exponential."""

FASTEST = 0.2
"""The largest rate of a motion of the machine, times the step; what grows faster is a fault of the method."""

_ORDER_GAP = 0.7
"""How far an observed order may be from the method's for an error that longer steps tell."""


@dataclass(frozen=True)
class StepError:
    """How far the steps put a motion off its exact solution: an estimate that comes with the numbers.

    It is calibrated by ``benchmarks/verdicts.py``: in at least 97 of 100 resolved motions the error is at most three
    times the estimate. Each number is the largest error of the second half of the time up to its state, so that no zero
    crossing makes it small. It holds for the equations as they are, not for masses and friction that are not the
    machine's; rounding is part of it.

    Attributes:
        error: The estimate at the saved states, in the components of an algebra vector, (times, dim): for a machine
            those of the configuration (nv), of the velocity (nv) and of the states of actuators. Infinite where
            nothing is known.
        size: What the motion does in each component, by which its errors are measured, (dim,).
        names: The name of each component.
        units: The unit of each component.
        places: The number of components, the first ones, that are a configuration.
        order: The order at which the motion converges, NaN where rounding or large errors hide it.
        claimed: The order of the method.
        resolved: Whether the errors are small relative to the motion: at most ``RESOLVED`` of it, those of the
            configuration at all times, those of velocities and forces in the mean.
        reason: Empty, or why the motion is not resolved and what helps.
        rate: For motions that are not resolved, the rate at which neighboring ones part, the largest Lyapunov exponent,
            1/s; NaN where they do not or it was not looked for.
        until: Time until which the motion is resolved, s; that of the last state where it is resolved.
    """

    error: Float[np.ndarray, "times dim"]
    size: Float[np.ndarray, " dim"]
    names: tuple[str, ...]
    units: tuple[str, ...]
    places: int
    order: float
    claimed: int
    resolved: bool
    reason: str
    rate: float
    until: float

    def __getitem__(self, part: slice | np.ndarray) -> StepError:
        """The errors at some of the states."""
        return replace(self, error=self.error[part])

    @property
    def columns(self) -> dict[str, Float[np.ndarray, " times"]]:
        """The errors at the states by the name of their component, with unit, for tables."""
        named = zip(self.names, self.units, self.error.T, strict=True)
        return {f"step error of {name} [{unit}]": error for name, unit, error in named}

    @property
    def largest(self) -> tuple[float, float, str, str]:
        """(error, size, unit, name) of the configuration's component whose error is the largest share of its size."""
        worst = self.error[:, : self.places].max(axis=0, initial=0.0)
        at = int(np.argmax(worst / self.size[: self.places]))
        return float(worst[at]), float(self.size[at]), self.units[at], self.names[at]

    def __str__(self) -> str:
        """A line: "3e-07 rad (of 1.2)", or why it cannot be told."""
        if not self.resolved:
            return printable(f"not resolved: {self.reason}")
        error, size, unit, _ = self.largest
        return f"{error:.1g} {unit} (of {size:.2g})".replace("  ", " ")


@dataclass(frozen=True)
class Scale:
    """The sizes by which a motion's errors are measured.

    Attributes:
        size: What the motion does in each component, (dim,).
        magnitude: The largest number in each component, (dim,), which is rounded.
        eps: The rounding unit of its dtype.
        places: The number of components of the configuration.
    """

    size: Float[np.ndarray, " dim"]
    magnitude: Float[np.ndarray, " dim"]
    eps: float
    names: tuple[str, ...]
    units: tuple[str, ...]
    places: int


class Timeline:
    """Nodes of a motion in blocks of time, and the largest gaps of blocks.

    Args:
        time: Times of the nodes after the start, (nodes,), s.
        steps: Number of steps up to each of them, (nodes,).
    """

    def __init__(self, time: Float[np.ndarray, " nodes"], steps: Float[np.ndarray, " nodes"]):
        self.nodes, self.blocks = len(time), min(len(time), BLOCKS)
        self.ends = np.arange(1, self.blocks + 1) * self.nodes // self.blocks
        self.node_time, self.time, self.steps = time, time[self.ends - 1], steps[self.ends - 1]

    @classmethod
    def even(cls, nodes: int, steps: int, dt: float) -> Timeline:
        """Nodes after each ``steps`` steps of dt, s."""
        count = steps * np.arange(1.0, nodes + 1)
        return cls(dt * count, count)

    def block(self, node: np.ndarray) -> np.ndarray:
        """The block of each node >= 1."""
        return np.searchsorted(self.ends, node)

    def recent(self, gaps: Gaps) -> Float[np.ndarray, "blocks dim"]:
        """The largest gap in the second half of the time up to each block; infinite where there is none."""
        largest = np.full((self.blocks, gaps.gap.shape[1]), -np.inf)
        np.maximum.at(largest, self.block(gaps.node), np.where(np.isnan(gaps.gap), np.inf, gaps.gap))
        for b in range(self.blocks - 2, -1, -1):  # a block without a node has that of the next one
            if largest[b, 0] == -np.inf:
                largest[b] = largest[b + 1]
        told = np.flatnonzero(largest[:, 0] != -np.inf)
        largest[told[-1] + 1 if len(told) else 0 :] = largest[told[-1]] if gaps.whole and len(told) else np.inf
        return np.stack([largest[b // 2 : b + 1].max(axis=0) for b in range(self.blocks)])

    def at_nodes(self, x: Float[np.ndarray, "blocks dim"]) -> Float[np.ndarray, "times dim"]:
        """Numbers of blocks at the start, where they are zero, and at all nodes."""
        return np.concatenate([np.zeros_like(x[:1]), x[self.block(np.arange(1, self.nodes + 1))]])


def share(x: Float[np.ndarray, "blocks dim"], scale: Scale) -> Float[np.ndarray, " blocks"]:
    """Errors as the largest share of the sizes."""
    return (x / scale.size).max(axis=1)


def rounding(line: Timeline, scale: Scale) -> Float[np.ndarray, "blocks dim"]:
    """What rounding leaves in a motion at least: the sum of the roundings of all steps, at random."""
    return scale.eps * np.sqrt(line.steps)[:, None] * scale.magnitude


def _observed_order(longer: Float[np.ndarray, " n"], shorter: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """The order p of ``longer = 2^p shorter``; NaN where either is no finite positive number."""
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.log2(longer / shorter)
    return np.where(np.isfinite(order), order, np.nan)


@dataclass(frozen=True)
class Estimate:
    """Errors in blocks of time.

    Attributes:
        error: The estimate, (blocks, dim).
        order: The order that was seen, NaN where none was.
        sure: Whether the order is one that the method can have, or does not matter.
    """

    error: Float[np.ndarray, "blocks dim"]
    order: float
    sure: bool


def by_shorter_steps(
    line: Timeline, scale: Scale, claimed: int, shorter: Gaps, ratio: float, longer: Gaps | None
) -> Estimate:
    """The error from a motion with steps shorter by a ratio, where any order down to 1 gives nearly the same.

    Args:
        claimed: The order of the method.
        shorter: Between the motion and the one with shorter steps.
        ratio: dt over those steps.
        longer: Between the motion and the one with steps of 2 dt, for the order where the ratio is 2.
    """
    gap, floor = line.recent(shorter), rounding(line, scale)
    order = np.full(line.blocks, float(min(claimed, 2)))
    seen = np.nan
    if longer is not None and ratio == 2:
        before = line.recent(longer)
        found = _observed_order(share(before, scale), share(gap, scale))
        linear = (share(before, scale) < 0.1) & (share(gap, scale) > FLOORS * share(floor, scale)) & ~np.isnan(found)
        order = np.where(linear, np.clip(found, 1, claimed), order)
        seen = _typical(found, share(gap, scale), linear)
    error = gap / (1 - ratio ** -order[:, None])
    return Estimate(np.maximum(error, floor), seen, True)


def _by_longer_steps(line: Timeline, scale: Scale, claimed: int, coarse: Gaps, coarser: Gaps) -> Estimate:
    """The error from motions with steps of 2 dt and 4 dt, which is sure where these show the method's order.

    Args:
        coarse: Between the motion and the one with steps of 2 dt.
        coarser: Between that one and the one with steps of 4 dt.
    """
    gap, before, floor = line.recent(coarse), line.recent(coarser), rounding(line, scale)
    D, least = share(gap, scale), FLOORS * share(floor, scale)
    found = _observed_order(share(before, scale), D)
    fits = (np.abs(found - claimed) < _ORDER_GAP) & (D < 0.1)
    counts = (D >= 0.1 * D.max()) & (D > least)
    order = np.where(np.isnan(found), 1.0, np.clip(found, 0.5, claimed))[:, None]
    error = np.maximum(gap / (2**order - 1), np.minimum(gap, FLOORS * floor))
    return Estimate(np.maximum(error, floor), _typical(found, D, counts & fits), bool(np.all(fits[counts])))


def estimate(
    line: Timeline, scale: Scale, claimed: int, advance: Advance, difference: Difference, states: Point,
    divisible: bool = True,
) -> Estimate:  # fmt: skip
    """The error of the steps of a motion, from the motions with other steps that its length asks for.

    Short ones are compared with steps of dt/2 (and of 2 dt, for the order). Long ones with steps of 2 dt and 4 dt,
    which take 3/4 of the motion's own time, and where these do not show the method's order with steps of 5/6 dt.

    Args:
        claimed: The order of the method.
        states: The motion's states at its nodes (nodes + 1, ...).
        divisible: Whether the steps may have other ends than those of the motion; not where each has its own force.
    """
    size = scale.size
    if not divisible or line.steps[-1] <= SHORT:
        half, _ = compare(advance, difference, states, (2, 1), size)
        double = compare(advance, difference, states, (1, 2), size)[0] if divisible else None
        return by_shorter_steps(line, scale, claimed, half, 2.0, double)
    coarse, twice = compare(advance, difference, states, (1, 2), size)
    found = Estimate(np.zeros((line.blocks, len(size))), float("nan"), False)
    if coarse.whole:
        coarser, _ = compare(advance, difference, twice, (1, 4), size, every=2)
        found = _by_longer_steps(line, scale, claimed, coarse, coarser)
    if not found.sure:
        fine, _ = compare(advance, difference, states, (6, 5), size)
        found = by_shorter_steps(line, scale, claimed, fine, 6 / 5, None)
    head, _ = compare(advance, difference, states, (2, 1), size, until=max(1, HEAD * line.nodes // int(line.steps[-1])))
    # zero at the end, so that it says nothing of what comes after
    node, gap = np.append(head.node, line.nodes), np.append(head.gap, np.zeros((1, len(size))), axis=0)
    first = by_shorter_steps(line, scale, claimed, head._replace(node=node, gap=gap), 2.0, None)
    return replace(found, error=np.maximum(found.error, first.error))


def parting_rate(line: Timeline, scale: Scale, neighbors: Gaps, apart: float) -> float:
    """The rate at which a neighboring motion parts, the largest Lyapunov exponent over the time that it takes, 1/s.

    Args:
        neighbors: Between the motion and one from a start that is ``apart`` times the sizes away.
        apart: That distance.

    Returns:
        The slope of the logarithm of the distance over time, NaN where it does not grow by some powers of ten.
    """
    distance = (neighbors.gap / scale.size).max(axis=1, initial=0.0)
    linear = np.isfinite(distance) & (distance > 0) & np.logical_and.accumulate(~(distance > 0.1))
    if linear.sum() < 3 or not distance[linear].max() >= apart * min(_GROWN, 0.05 / apart):
        return float("nan")
    return float(np.polyfit(line.node_time[neighbors.node[linear] - 1], np.log(distance[linear]), 1)[0])


def verdict(
    line: Timeline, scale: Scale, claimed: int, found: Estimate, neighbor_rate: Callable[[], float]
) -> StepError:
    """What the estimate says of a motion.

    Args:
        claimed: The order of the method.
        neighbor_rate: Gives ``parting_rate``, where it is needed.
    """
    places, rest = (found.error / scale.size)[:, : scale.places], (found.error / scale.size)[:, scale.places :]
    worst = places.max(axis=1)
    # velocities may be off for a few steps, where something fast dies out that the configuration does not feel
    if not np.sqrt(np.mean(np.max(rest, axis=1, initial=0.0) ** 2)) <= RESOLVED:
        worst = share(found.error, scale)
    bad = ~(worst <= RESOLVED)
    good = int(np.argmax(bad)) if bad.any() else len(bad)
    until = float(line.time[good - 1]) if good else 0.0
    reason, rate = "", float("nan")
    if bad.any():
        rate, step, end = neighbor_rate(), line.time[-1] / max(line.steps[-1], 1.0), line.time[-1]
        # faster growth is that of a method beyond its limit of stability
        if rate * step < FASTEST and rate * until > 1:
            reason = f"digits hold until {until:.3g} s of {end:.4g} s: neighboring motions part at {rate:.2g} 1/s"
        else:
            rate = float("nan")
            off = worst[np.isfinite(worst)].max(initial=0.0)
            far = np.isinf(worst).any() or off > 1
            reason = f"{'all' if far else f'{100 * off:.2g} %'} of the motion may be error of the steps"
            reason += f" from {until:.3g} s on" if until > 0 else ""
    return StepError(
        line.at_nodes(found.error), scale.size, scale.names, scale.units, scale.places, found.order, claimed,
        not bad.any(), reason, rate, until,
    )  # fmt: skip


def by_tolerances(
    line: Timeline, scale: Scale, factor: float, loose: Gaps | None, looser: Gaps | None, tight: Gaps | None
) -> Estimate:
    """The error of adaptive steps, which is proportional to their tolerance, from other tolerances.

    Args:
        factor: The ratio of two tolerances that follow one another.
        loose: Between the motion and the one whose tolerance is ``factor`` times larger.
        looser: Between that one and the next one.
        tight: Between the motion and the one whose tolerance is ``factor`` times smaller; in place of the others.
    """
    floor = rounding(line, scale)
    if tight is not None:
        return Estimate(np.maximum(line.recent(tight) / (1 - factor**-_PROPORTION), floor), float("nan"), True)
    assert loose is not None and looser is not None
    gap, before = line.recent(loose), line.recent(looser)
    D = share(gap, scale)
    found = _observed_order(share(before, scale), D) / np.log2(factor)
    fits = (np.abs(found - 1) < _PROPORTION) & (D < 0.1)
    counts = (D >= 0.1 * D.max()) & (D > FLOORS * share(floor, scale))
    power = np.where(np.isnan(found), _PROPORTION, np.clip(found, _PROPORTION, 1))[:, None]
    error = np.maximum(gap / (factor**power - 1), np.minimum(gap, FLOORS * floor))
    return Estimate(np.maximum(error, floor), _typical(found, D, counts & fits), bool(np.all(fits[counts])))


def _typical(order: np.ndarray, gap: np.ndarray, counts: Bool[np.ndarray, " blocks"]) -> float:
    """The median of the orders where they count and the gap is not small; NaN where it is nowhere."""
    counts = counts & (gap >= 0.1 * gap[counts].max(initial=0.0))
    return float(np.median(order[counts])) if counts.any() else float("nan")
