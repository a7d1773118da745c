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
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from lgsim.lie.action import Point
from lgsim.simulation.accuracy.error_estimate import ErrorEstimate
from lgsim.simulation.accuracy.step_grids import Advance, Difference, Gaps, compare
from lgsim.support.printable import printable
from lgsim.support.verdict import RESOLVED

BLOCKS = 256
"""Parts of a motion's time in each of which the largest distance counts."""

SHORT = 2048
"""The number of steps up to which a motion is compared with steps of dt/2, which is dear and tells most."""

HEAD = 128
"""The steps of a longer motion, the first ones, that are compared with steps of dt/2: fast parts die out there."""

RESTS = 1e5
"""The number of rounding units, of 1 rad, 1 m, 1 rad/s ..., that count as no motion."""

_FLOORS = 30.0
"""A distance of two motions below so many times what rounding leaves at least may be rounding alone."""

_GROWN = 1e3
"""The growth of a small distance from which on it counts as exponential."""

_FASTEST = 0.2
"""The largest rate of a motion of the machine, times the step; what grows faster is a fault of the method."""

_ORDER_GAP = 0.7
"""How far an observed order may be from the method's for an error that longer steps tell."""


@dataclass(frozen=True, kw_only=True)
class StepError(ErrorEstimate):
    """How far the steps put a motion off its exact solution: an estimate that comes with the numbers.

    It is calibrated by ``benchmarks/verdicts.py``: in at least 97 of 100 resolved motions the error is at most three
    times the estimate. Each number is the largest error of the second half of the time up to its state, so that no zero
    crossing makes it small. It holds for the equations as they are, not for masses and friction that are not the
    machine's; rounding is part of it. The motion is resolved where errors of the configuration are within the tolerance
    at all times, and those of velocities and forces in the mean.

    Attributes:
        value: The estimate at the saved states, in the components of an algebra vector, (times, dim): for a machine
            those of the configuration (nv), of the velocity (nv) and of the states of actuators. Infinite where
            nothing is known.
        tolerance: The fraction ``RESOLVED`` of the size, (dim,).
        order: The order at which the motion converges, NaN where rounding or large errors hide it.
        reason: Empty, or why the motion is not resolved and what helps.
        size: What the motion does in each component, by which its errors are measured, (dim,).
        names: The name of each component.
        units: The unit of each component.
        places: The number of components, the first ones, that are a configuration.
        claimed: The order of the method.
        rate: For motions that are not resolved, the rate at which neighboring ones part, the largest Lyapunov exponent,
            1/s; NaN where they do not or it was not looked for.
        until: Time until which the motion is resolved, s; that of the last state where it is resolved.
    """

    value: Float[np.ndarray, "times dim"]
    tolerance: Float[np.ndarray, " dim"]
    order: float
    size: Float[np.ndarray, " dim"]
    names: tuple[str, ...]
    units: tuple[str, ...]
    places: int
    claimed: int
    rate: float
    until: float

    def __getitem__(self, part: slice | np.ndarray) -> StepError:
        """The errors at some of the states."""
        return replace(self, value=self.value[part])

    @property
    def columns(self) -> dict[str, Float[np.ndarray, " times"]]:
        """The errors at the states by the name of their component, with unit, for tables."""
        named = zip(self.names, self.units, self.value.T, strict=True)
        return {f"step error of {name} [{unit}]": error for name, unit, error in named}

    @property
    def largest(self) -> tuple[float, float, str, str]:
        """(error, size, unit, name) of the configuration's component whose error is the largest share of its size."""
        worst = self.value[:, : self.places].max(axis=0, initial=0.0)
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
        dtype: The type of its numbers.
        places: The number of components of the configuration.
    """

    size: Float[np.ndarray, " dim"]
    magnitude: Float[np.ndarray, " dim"]
    dtype: np.dtype
    names: tuple[str, ...]
    units: tuple[str, ...]
    places: int

    @property
    def eps(self) -> float:
        """The rounding unit."""
        return float(np.finfo(self.dtype).eps)


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


class Motion(NamedTuple):
    """A motion whose error is sought.

    Attributes:
        states: The states at its nodes (nodes + 1, ...), the start first.
        order: The order of the method; of adaptive steps 1, that of the tolerance.
        move: ``move(xi, y)``: the state y moved by an algebra vector.
    """

    states: Point
    line: Timeline
    scale: Scale
    order: int
    difference: Difference
    move: Callable[[Float[jax.Array, " dim"], Point], Point]

    def shares(self, x: Float[np.ndarray, "blocks dim"]) -> Float[np.ndarray, " blocks"]:
        """Errors as the largest share of the sizes."""
        return (x / self.scale.size).max(axis=1)

    @property
    def rounding(self) -> Float[np.ndarray, "blocks dim"]:
        """What rounding leaves in a motion at least: the sum of the roundings of all steps, at random."""
        return self.scale.eps * np.sqrt(self.line.steps)[:, None] * self.scale.magnitude

    @property
    def apart(self) -> float:
        """The distance from the start to a neighboring one, as a share of the sizes."""
        return float(np.sqrt(self.scale.eps))

    def neighbor(self) -> Point:
        """A start near that of the motion, along no axis of symmetry."""
        away = self.apart * self.scale.size * np.random.default_rng(0).choice([-1.0, 1.0], len(self.scale.size))
        start = jax.tree.map(lambda x: jnp.asarray(x[0]), self.states)
        return self.move(jnp.asarray(away, self.scale.dtype), start)


class BlockErrors(NamedTuple):
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
    motion: Motion, shorter: Gaps, ratio: float, longer: Gaps | None = None, order: float | None = None
) -> BlockErrors:
    """The error from a motion with steps shorter by a ratio, where any order down to 1 gives nearly the same.

    Args:
        shorter: Between the motion and the one with shorter steps.
        ratio: dt over those steps.
        longer: Between the motion and the one with steps of 2 dt, which gives the order; the ratio is then 2.
        order: The order where none is seen; by default that of the method, 2 at most.
    """
    gap, floor = motion.line.recent(shorter), motion.rounding
    orders = np.full(motion.line.blocks, float(min(motion.order, 2) if order is None else order))
    seen = np.nan
    if longer is not None:
        before = motion.line.recent(longer)
        B, D = motion.shares(before), motion.shares(gap)
        found = _observed_order(B, D)
        linear = (B < 0.1) & (D > _FLOORS * motion.shares(floor)) & ~np.isnan(found)
        orders = np.where(linear, np.clip(found, 1, motion.order), orders)
        seen = _typical(found, D, linear)
    error = gap / (1 - ratio ** -orders[:, None])
    return BlockErrors(np.maximum(error, floor), seen, True)


def by_longer_steps(
    motion: Motion, coarse: Gaps, coarser: Gaps, ratio: float = 2.0, order_gap: float = _ORDER_GAP, order: float = 1.0
) -> BlockErrors:
    """The error from two motions with steps, or tolerances, longer by a ratio each; sure where they show the order.

    Args:
        coarse: Between the motion and the one with the longer steps.
        coarser: Between that one and the one with the longest steps.
        ratio: Of steps, or tolerances, that follow one another.
        order_gap: How far the observed order may be from the motion's.
        order: The order where none is seen.
    """
    gap, before, floor = motion.line.recent(coarse), motion.line.recent(coarser), motion.rounding
    D = motion.shares(gap)
    found = _observed_order(motion.shares(before), D) / np.log2(ratio)
    fits = (np.abs(found - motion.order) < order_gap) & (D < 0.1)
    counts = (D >= 0.1 * D.max()) & (D > _FLOORS * motion.shares(floor))
    orders = np.where(np.isnan(found), order, np.clip(found, 0.5, motion.order))[:, None]
    error = np.maximum(gap / (ratio**orders - 1), np.minimum(gap, _FLOORS * floor))
    return BlockErrors(np.maximum(error, floor), _typical(found, D, counts & fits), bool(np.all(fits[counts])))


def motion_error(motion: Motion, advance: Advance, divisible: bool = True) -> StepError:
    """The error of the steps of a motion, from the motions with other steps that its length asks for.

    Short ones are compared with steps of dt/2 (and of 2 dt, for the order). Long ones with steps of 2 dt and 4 dt,
    which take 3/4 of the motion's own time, and where these do not show the method's order with steps of 5/6 dt.

    Args:
        divisible: Whether the steps may have other ends than those of the motion; not where each has its own force.
    """

    def neighbor_rate() -> float:
        size, start = motion.scale.size, motion.neighbor()
        return parting_rate(motion, compare(advance, motion.difference, motion.states, (1, 1), size, start=start)[0])

    return verdict(motion, _block_errors(motion, advance, divisible), neighbor_rate)


def _block_errors(motion: Motion, advance: Advance, divisible: bool) -> BlockErrors:
    states, difference, size = motion.states, motion.difference, motion.scale.size
    steps = int(motion.line.steps[-1])
    if not divisible or steps <= SHORT:
        half, _ = compare(advance, difference, states, (2, 1), size)
        double = compare(advance, difference, states, (1, 2), size)[0] if divisible else None
        return by_shorter_steps(motion, half, 2.0, double)
    coarse, twice = compare(advance, difference, states, (1, 2), size)
    found = None
    if coarse.whole:
        coarser, _ = compare(advance, difference, twice, (1, 4), size, every=2)
        found = by_longer_steps(motion, coarse, coarser)
    if found is None or not found.sure:
        fine, _ = compare(advance, difference, states, (6, 5), size)
        found = by_shorter_steps(motion, fine, 6 / 5)
    head, _ = compare(advance, difference, states, (2, 1), size, until=max(1, HEAD * motion.line.nodes // steps))
    # zero at the end, so that it says nothing of what comes after
    node, gap = np.append(head.node, motion.line.nodes), np.append(head.gap, np.zeros((1, len(size))), axis=0)
    first = by_shorter_steps(motion, head._replace(node=node, gap=gap), 2.0)
    return found._replace(error=np.maximum(found.error, first.error))


def parting_rate(motion: Motion, neighbors: Gaps) -> float:
    """The rate at which a neighboring motion parts, the largest Lyapunov exponent over the time that it takes, 1/s.

    Args:
        neighbors: Between the motion and one from its neighboring start.

    Returns:
        The slope of the logarithm of the distance over time, NaN where it does not grow by some powers of ten.
    """
    distance = (neighbors.gap / motion.scale.size).max(axis=1, initial=0.0)
    linear = np.isfinite(distance) & (distance > 0) & np.logical_and.accumulate(~(distance > 0.1))
    if linear.sum() < 3 or not distance[linear].max() >= motion.apart * min(_GROWN, 0.05 / motion.apart):
        return float("nan")
    return float(np.polyfit(motion.line.node_time[neighbors.node[linear] - 1], np.log(distance[linear]), 1)[0])


def verdict(motion: Motion, found: BlockErrors, neighbor_rate: Callable[[], float] = lambda: float("nan")) -> StepError:
    """What the errors in blocks say of a motion.

    Args:
        neighbor_rate: Gives ``parting_rate``, where it is needed.
    """
    line, scale = motion.line, motion.scale
    shares = found.error / scale.size
    worst = shares[:, : scale.places].max(axis=1)
    # velocities may be off for a few steps, where something fast dies out that the configuration does not feel
    if not np.sqrt(np.mean(np.max(shares[:, scale.places :], axis=1, initial=0.0) ** 2)) <= RESOLVED:
        worst = shares.max(axis=1)
    bad = ~(worst <= RESOLVED)
    good = int(np.argmax(bad)) if bad.any() else len(bad)
    until = float(line.time[good - 1]) if good else 0.0
    reason, rate = "", float("nan")
    if bad.any():
        rate, step, end = neighbor_rate(), line.time[-1] / max(line.steps[-1], 1.0), line.time[-1]
        # faster growth is that of a method beyond its limit of stability
        if rate * step < _FASTEST and rate * until > 1:
            reason = f"digits hold until {until:.3g} s of {end:.4g} s: neighboring motions part at {rate:.2g} 1/s"
        else:
            rate = float("nan")
            off = worst[np.isfinite(worst)].max(initial=0.0)
            far = np.isinf(worst).any() or off > 1
            reason = f"{'all' if far else f'{100 * off:.2g} %'} of the motion may be error of the steps"
            reason += f" from {until:.3g} s on" if until > 0 else ""
    return StepError(
        value=line.at_nodes(found.error), tolerance=RESOLVED * scale.size, order=found.order, reason=reason,
        size=scale.size, names=scale.names, units=scale.units, places=scale.places, claimed=motion.order,
        rate=rate, until=until,
    )  # fmt: skip


def _observed_order(longer: Float[np.ndarray, " n"], shorter: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """The order p of ``longer = 2^p shorter``; NaN where either is no finite positive number."""
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.log2(longer / shorter)
    return np.where(np.isfinite(order), order, np.nan)


def _typical(order: np.ndarray, gap: np.ndarray, counts: Bool[np.ndarray, " blocks"]) -> float:
    """The median of the orders where they count and the gap is not small; NaN where it is nowhere."""
    counts = counts & (gap >= 0.1 * gap[counts].max(initial=0.0))
    return float(np.median(order[counts])) if counts.any() else float("nan")
