"""Integration error of a motion, estimated from the same motion with other steps (Richardson extrapolation).

Let e(h) be the error at the step h and y(h) the motion. For a method of order p, ``e(h) = C h^p`` up to higher powers,
so that ``y(h) - y(h/2)`` is ``(1 - 2^-p) e(h)``, and ``y(2h) - y(h)`` is ``(2^p - 1) e(h)``. The ratio of the two gives
the observed order of convergence. Where the method cannot have that order, longer steps give no estimate, and only
shorter ones are used.
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
from jaxtyping import Bool, Float, Int

from lgsim.lie.action import Point
from lgsim.simulation.accuracy.error_estimate import ErrorEstimate
from lgsim.simulation.accuracy.step_grids import PARTED, Advance, Difference, Gaps, compare
from lgsim.support.printable import printable
from lgsim.support.verdict import RESOLVED

BLOCKS = 256
"""Number of time blocks of a motion; the largest distance in each block counts."""

SHORT = 2048
"""The number of steps up to which a motion is compared with steps of dt/2, the most expensive and most reliable way."""

HEAD = 128
"""The number of initial steps of a longer motion that are compared with steps of dt/2, where fast transients decay."""

RESTS = 100.0
"""The displacement that counts as rest, in units of the accumulated random rounding of 1 rad, 1 m, 1 rad/s, 1 m/s."""

_FLOORS = 30.0
"""A distance below this multiple of the smallest rounding error may be rounding only."""

_GROWN = 1e3
"""The growth of a small distance that counts as exponential."""

_FASTEST = 0.2
"""The largest rate of a physical motion, times the step; faster growth is an instability of the method."""

_ORDER_GAP = 0.7
"""The largest difference between the observed order and the method's for which longer steps give an estimate."""


@dataclass(frozen=True, kw_only=True)
class StepError(ErrorEstimate):
    """The estimated integration error of a motion, with its convergence in the step size.

    It is calibrated by ``benchmarks/verdicts.py``: in at least 97 of 100 motions that have converged the true error is
    at most 3x the estimate. Each value is the largest error over the second half of the time up to its state, so that
    no zero crossing makes it small. Rounding and its growth at an unstable equilibrium are included. Model errors, such
    as wrong masses or friction, are not. A motion has converged (``resolved``) if the errors of its configuration are
    within the tolerance at all times, and those of its velocities and forces are in the mean.

    Attributes:
        value: The estimate at the saved states, in the components of an algebra vector, (times, dim): for a model
            those of the configuration (nv), of the velocity (nv) and of the actuator states. Infinite where it is
            unknown.
        tolerance: The fraction ``RESOLVED`` of the size, (dim,).
        order: The observed order of convergence, NaN where rounding or large errors hide it.
        reason: Why the motion has not converged, with a remedy; empty if it has.
        size: The extent of the motion in each component, relative to which its errors are measured, (dim,); one for
            all rotations of a group joint, and one for its translations. A component at rest, or one that moves by less
            than the error of another one in its tree, has the size of those. Infinite for states that jump.
        names: The name of each component.
        units: The unit of each component.
        places: The number of leading components that belong to the configuration.
        claimed: The order of the method.
        rate: For a chaotic motion that has not converged, the largest Lyapunov exponent, the rate at which neighboring
            motions diverge, 1/s; otherwise NaN.
        until: Time of the last state up to which the motion has converged, s.
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
        """The errors at a selection of the states."""
        return replace(self, value=self.value[part])

    @property
    def columns(self) -> dict[str, Float[np.ndarray, " times"]]:
        """The errors at the states by the name of their component, with unit, for tables."""
        named = zip(self.names, self.units, self.value.T, strict=True)
        return {f"step error of {name} [{unit}]": error for name, unit, error in named}

    @property
    def largest(self) -> tuple[float, float, str, str]:
        """(error, size, unit, name) of the configuration component with the largest relative error."""
        worst = self.value[:, : self.places].max(axis=0, initial=0.0)
        at = int(np.argmax(worst / self.size[: self.places]))
        return float(worst[at]), float(self.size[at]), self.units[at], self.names[at]

    def __str__(self) -> str:
        """A line such as "3e-07 rad (of 1.2) in q elbow", or why the motion has not converged."""
        if not self.resolved:
            return printable(f"not converged: {self.reason}")
        error, size, unit, name = self.largest
        return printable(f"{error:.1g} {unit} (of {size:.2g}) in {name}".replace("  ", " "))


@dataclass(frozen=True)
class Scale:
    """The sizes relative to which a motion's errors are measured.

    Attributes:
        size: The extent of the motion in each component, (dim,).
        span: The extent of all coupled components of the same kind, (dim,).
        magnitude: The largest absolute value in each component, (dim,), which sets the rounding.
        dtype: The dtype of the states.
        places: The number of components of the configuration.
        part: Equal labels for components that share a size, (dim,).
        coupled: Equal labels for components of one kind that affect each other, (dim,).
    """

    size: Float[np.ndarray, " dim"]
    span: Float[np.ndarray, " dim"]
    magnitude: Float[np.ndarray, " dim"]
    dtype: np.dtype
    names: tuple[str, ...]
    units: tuple[str, ...]
    places: int
    part: Int[np.ndarray, " dim"]
    coupled: Int[np.ndarray, " dim"]

    @property
    def eps(self) -> float:
        """The rounding unit."""
        return float(np.finfo(self.dtype).eps)

    @property
    def apart(self) -> float:
        """The distance from the initial state to a neighboring one, relative to the sizes."""
        return float(np.sqrt(self.eps))

    @property
    def reach(self) -> Float[np.ndarray, " dim"]:
        """The distances beyond half of which two motions are not compared any more."""
        unit = np.maximum(self.magnitude, 1.0)
        return np.where(self.span <= self.apart * unit, unit, self.span)  # a motion that is near rest may leave it

    def judged(self, error: Float[np.ndarray, "blocks dim"]) -> Float[np.ndarray, " dim"]:
        """The sizes relative to which errors are judged: the span for a component that moves by less than the error of
        another one that is coupled with it and converged.
        """
        worst = error.max(axis=0)
        known = np.where(worst <= RESOLVED * self.size, worst, 0.0)
        other = (self.coupled == self.coupled[:, None]) & (self.part != self.part[:, None])
        return np.where(self.size < np.where(other, known, 0.0).max(axis=1), self.span, self.size)


def largest_of(x: Float[np.ndarray, " n"], label: Int[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """The largest value among those with the same label."""
    most = np.zeros(label.max(initial=-1) + 1)
    np.maximum.at(most, label, x)
    return most[label]


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
        """The largest gap in the second half of the time up to each block; infinite without one."""
        largest = np.full((self.blocks, gaps.gap.shape[1]), -np.inf)
        np.maximum.at(largest, self.block(gaps.node), np.where(np.isnan(gaps.gap), np.inf, gaps.gap))
        for b in range(self.blocks - 2, -1, -1):  # a block without a node takes the value of the next one
            if largest[b, 0] == -np.inf:
                largest[b] = largest[b + 1]
        told = np.flatnonzero(largest[:, 0] != -np.inf)
        largest[told[-1] + 1 if len(told) else 0 :] = largest[told[-1]] if gaps.whole and len(told) else np.inf
        return np.stack([largest[b // 2 : b + 1].max(axis=0) for b in range(self.blocks)])

    def at_nodes(self, x: Float[np.ndarray, "blocks dim"]) -> Float[np.ndarray, "times dim"]:
        """Values of blocks at the initial state, where they are zero, and at all nodes."""
        return np.concatenate([np.zeros_like(x[:1]), x[self.block(np.arange(1, self.nodes + 1))]])


class Motion(NamedTuple):
    """A motion whose integration error is estimated.

    Attributes:
        states: The states at its nodes (nodes + 1, ...), starting with the initial state.
        order: The order of the method; 1 for adaptive steps, the power of the tolerance.
        move: ``move(xi, y)``: the state y moved by an algebra vector.
    """

    states: Point
    line: Timeline
    scale: Scale
    order: int
    difference: Difference
    move: Callable[[Float[jax.Array, " dim"], Point], Point]

    def shares(self, x: Float[np.ndarray, "blocks dim"]) -> Float[np.ndarray, " blocks"]:
        """The largest error of each block relative to the sizes."""
        return (x / self.scale.size).max(axis=1)

    @property
    def rounding(self) -> Float[np.ndarray, "blocks dim"]:
        """The smallest possible rounding error: the accumulated random rounding of all steps."""
        return self.scale.eps * np.sqrt(self.line.steps)[:, None] * self.scale.magnitude

    @property
    def apart(self) -> float:
        """The distance from the initial state to a neighboring one, relative to the sizes."""
        return self.scale.apart

    def neighbor(self, distance: Float[np.ndarray, " dim"] | None = None) -> Point:
        """An initial state that is perturbed along no axis of symmetry, by ``apart`` or by another distance."""
        away = self.apart * self.scale.span if distance is None else distance
        away = np.where(np.isfinite(away), away, 0.0) * np.random.default_rng(0).choice([-1.0, 1.0], len(away))
        start = jax.tree.map(lambda x: jnp.asarray(x[0]), self.states)
        return self.move(jnp.asarray(away, self.scale.dtype), start)

    def with_growth(self, found: BlockErrors, gaps: Callable[[Point], Gaps | None]) -> tuple[Motion, BlockErrors]:
        """The motion and its errors with the growth of the initial state's rounding, which other steps need not show.

        A component that moves by less than this growth is at rest. Where no state moves at all, the initial state is
        an equilibrium to the last digit, and nothing grows.

        Args:
            gaps: Returns the gaps between the motion and that from another initial state, or None.
        """
        if all(np.all(np.asarray(x) == np.asarray(x)[0]) for x in jax.tree.leaves(self.states)):
            return self, found
        middle = self.line.blocks // 2
        half, reach = found.error[middle], self.scale.reach
        exact = (half <= _FLOORS * self.rounding[middle]) | (self.scale.size <= self.apart * reach)
        if not (exact | (found.error[-1] > _GROWN * half)).any():
            return self, found  # the errors of the steps are larger, and do not grow
        grown = gaps(self.neighbor(RESTS * self.scale.eps * self.scale.magnitude))
        if grown is None:
            return self, found
        lost = np.logical_or.accumulate(~(grown.gap <= PARTED * reach).all(axis=1))
        largest = grown.gap[~lost].max(axis=0, initial=0.0) / RESTS
        recent = self.line.recent(grown._replace(gap=np.where(lost[:, None], np.inf, grown.gap))) / RESTS
        scale = replace(self.scale, size=np.where(self.scale.size < largest, reach, self.scale.size))
        return self._replace(scale=scale), found._replace(error=np.maximum(found.error, recent))


class BlockErrors(NamedTuple):
    """Errors in blocks of time.

    Attributes:
        error: The estimate, (blocks, dim).
        order: The observed order of convergence; NaN if it is unknown.
        sure: True if the method can have that order, or if the order does not matter.
    """

    error: Float[np.ndarray, "blocks dim"]
    order: float
    sure: bool


def by_shorter_steps(
    motion: Motion, shorter: Gaps, ratio: float, longer: Gaps | None = None, order: float | None = None
) -> BlockErrors:
    """The error from a motion with shorter steps, where any order down to 1 gives nearly the same estimate.

    Args:
        shorter: Gaps between the motion and the one with shorter steps.
        ratio: dt divided by those steps.
        longer: Gaps between the motion and the one with steps of 2 dt, which gives the order; the ratio is then 2.
        order: The order to assume if none is observed; by default that of the method, at most 2.
    """
    gap, floor = motion.line.recent(shorter), motion.rounding
    orders = np.full(motion.line.blocks, float(min(motion.order, 2) if order is None else order))
    seen = np.nan
    if longer is not None:
        before = motion.line.recent(longer)
        B, D = motion.shares(before), motion.shares(gap)
        found = _observed_order(B, D)
        # blocks in the asymptotic range: errors small, and above rounding
        linear = (B < 0.1) & (D > _FLOORS * motion.shares(floor)) & ~np.isnan(found)
        orders = np.where(linear, np.clip(found, 1, motion.order), orders)
        seen = _typical(found, D, linear)
    # |y(h) - y(h/r)| = (1 - r^-p) e(h)
    error = gap / (1 - ratio ** -orders[:, None])
    return BlockErrors(np.maximum(error, floor), seen, True)


def by_longer_steps(
    motion: Motion, coarse: Gaps, coarser: Gaps, ratio: float = 2.0, order_gap: float = _ORDER_GAP, order: float = 1.0
) -> BlockErrors:
    """The error from two motions with longer steps, or larger tolerances; sure where they show the expected order.

    Args:
        coarse: Gaps between the motion and the one with the longer steps.
        coarser: Gaps between that one and the one with the longest steps.
        ratio: The ratio of successive steps, or tolerances.
        order_gap: The largest accepted difference between the observed order and the motion's.
        order: The order to assume if none is observed.
    """
    gap, before, floor = motion.line.recent(coarse), motion.line.recent(coarser), motion.rounding
    D = motion.shares(gap)
    found = _observed_order(motion.shares(before), D) / np.log2(ratio)
    fits = (np.abs(found - motion.order) < order_gap) & (D < 0.1)
    counts = (D >= 0.1 * D.max()) & (D > _FLOORS * motion.shares(floor))
    orders = np.where(np.isnan(found), order, np.clip(found, 0.5, motion.order))[:, None]
    # |y(r h) - y(h)| = (r^p - 1) e(h), not below rounding
    error = np.maximum(gap / (ratio**orders - 1), np.minimum(gap, _FLOORS * floor))
    return BlockErrors(np.maximum(error, floor), _typical(found, D, counts & fits), bool(np.all(fits[counts])))


def motion_error(motion: Motion, advance: Advance, divisible: bool = True) -> StepError:
    """The integration error of a motion, from motions with other steps that depend on its length.

    Short motions are compared with steps of dt/2, and of 2 dt for the order. Long ones are compared with steps of 2 dt
    and 4 dt, or of 6/7 dt where these do not show the method's order. All are compared with steps of 6/7 or 8/5 dt too:
    a vibration whose period divides dt looks alike with dt and with all its halves and doubles.

    Args:
        divisible: True if the ends of the steps may be moved; False if each step has its own force.
    """

    def neighbors(start: Point) -> Gaps:
        return compare(advance, motion.difference, motion.states, (1, 1), motion.scale.reach, start=start)[0]

    motion, errors = motion.with_growth(_block_errors(motion, advance, divisible), neighbors)
    return verdict(motion, errors, lambda: parting_rate(motion, neighbors(motion.neighbor())))


def _block_errors(motion: Motion, advance: Advance, divisible: bool) -> BlockErrors:
    def gaps(steps: tuple[int, int], until: int | None = None) -> Gaps:
        return compare(advance, motion.difference, motion.states, steps, motion.scale.reach, until=until)[0]

    if not divisible:
        return by_shorter_steps(motion, gaps((2, 1)), 2.0)
    steps = int(motion.line.steps[-1])
    if steps <= SHORT:
        found = by_shorter_steps(motion, gaps((2, 1)), 2.0, gaps((1, 2)))
        return _larger(found, motion, gaps((7, 6)), 7 / 6)
    found = _from_longer_steps(motion, advance)
    if found is None or not found.sure:
        found = by_shorter_steps(motion, gaps((7, 6)), 7 / 6)
    else:
        found = _larger(found, motion, gaps((5, 8)), 5 / 8)
    head = gaps((2, 1), max(1, HEAD * motion.line.nodes // steps))
    # zero at the end, so that it does not affect the blocks after it
    node, gap = np.append(head.node, motion.line.nodes), np.append(head.gap, np.zeros((1, head.gap.shape[1])), axis=0)
    first = by_shorter_steps(motion, head._replace(node=node, gap=gap), 2.0)
    return found._replace(error=np.maximum(found.error, first.error))


def _larger(found: BlockErrors, motion: Motion, other: Gaps, ratio: float) -> BlockErrors:
    """Errors, or those of another comparison where they are larger.

    Args:
        other: Gaps between the motion and the one with other steps; empty if they have no node in common.
        ratio: dt divided by those steps, which may be longer.
    """
    if not len(other.node):
        return found
    order = min(motion.order, 2) if np.isnan(found.order) else max(found.order, 1.0)
    # at most the gap: errors of motions with jumps have no order, and a vibration that both miss differs by its size
    error = motion.line.recent(other) / max(abs(1 - ratio**-order), 1.0)
    return found._replace(error=np.maximum(found.error, error))


def _from_longer_steps(motion: Motion, advance: Advance) -> BlockErrors | None:
    """The errors from steps of 2 dt and 4 dt; None where those of 2 dt lead to another motion."""
    states, difference, reach = motion.states, motion.difference, motion.scale.reach
    coarse, twice = compare(advance, difference, states, (1, 2), reach)
    if not coarse.whole:
        return None
    return by_longer_steps(motion, coarse, compare(advance, difference, twice, (1, 4), reach, every=2)[0])


def parting_rate(motion: Motion, neighbors: Gaps) -> float:
    """The rate at which a neighboring motion diverges: the largest Lyapunov exponent over the time of the growth, 1/s.

    Args:
        neighbors: Gaps between the motion and the one from a perturbed initial state.

    Returns:
        The slope of the logarithm of the distance over time; NaN if the distance does not grow by powers of ten.
    """
    distance = (neighbors.gap / motion.scale.span).max(axis=1, initial=0.0)
    linear = np.isfinite(distance) & (distance > 0) & np.logical_and.accumulate(~(distance > 0.1))
    if linear.sum() < 3 or not distance[linear].max() >= motion.apart * min(_GROWN, 0.05 / motion.apart):
        return float("nan")
    return float(np.polyfit(motion.line.node_time[neighbors.node[linear] - 1], np.log(distance[linear]), 1)[0])


def verdict(motion: Motion, found: BlockErrors, neighbor_rate: Callable[[], float] = lambda: float("nan")) -> StepError:
    """The error estimate and the convergence of a motion from its errors in blocks of time.

    Args:
        neighbor_rate: Returns ``parting_rate``; called only where it is needed.
    """
    line, scale = motion.line, motion.scale
    size = scale.judged(found.error)
    shares = found.error / size
    judged = scale.places
    worst = shares[:, :judged].max(axis=1)
    # velocities may be wrong for a few steps while a fast transient decays that the configuration does not show
    if not np.sqrt(np.mean(np.max(shares[:, scale.places :], axis=1, initial=0.0) ** 2)) <= RESOLVED:
        judged, worst = shares.shape[1], shares.max(axis=1)
    bad = ~(worst <= RESOLVED)
    good = int(np.argmax(bad)) if bad.any() else len(bad)
    until = float(line.time[good - 1]) if good else 0.0
    reason, rate = "", float("nan")
    if bad.any():
        rate, step, end = neighbor_rate(), line.time[-1] / max(line.steps[-1], 1.0), line.time[-1]
        # faster growth is the instability of the method
        if rate * step < _FASTEST and rate * until > 1:
            reason = f"accurate until {until:.3g} s of {end:.4g} s: Lyapunov exponent {rate:.2g} 1/s"
        else:
            rate = float("nan")
            off = worst[np.isfinite(worst)].max(initial=0.0)
            far = np.isinf(worst).any() or off > 1
            reason = f"estimated integration error {'as large as' if far else f'{100 * off:.2g} % of'} the motion"
            reason += f" from {until:.3g} s on" if until > 0 else ""
            reason += f", at {scale.names[_largest(shares[:, :judged])]}"
    return StepError(
        value=line.at_nodes(found.error), tolerance=RESOLVED * size, order=found.order, reason=reason,
        size=size, names=scale.names, units=scale.units, places=scale.places, claimed=motion.order,
        rate=rate, until=until,
    )  # fmt: skip


def _largest(shares: Float[np.ndarray, "blocks dim"]) -> int:
    """The component with the largest error that is known, relative to its size."""
    return int(np.argmax(np.where(np.isfinite(shares), shares, 0.0).max(axis=0)))


def _observed_order(longer: Float[np.ndarray, " n"], shorter: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """The order p of ``longer = 2^p shorter``; NaN where either is not finite and positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.log2(longer / shorter)
    return np.where(np.isfinite(order), order, np.nan)


def _typical(order: np.ndarray, gap: np.ndarray, counts: Bool[np.ndarray, " blocks"]) -> float:
    """The median of the orders over the blocks that count and whose gap is not small; NaN if there are none."""
    counts = counts & (gap >= 0.1 * gap[counts].max(initial=0.0))
    return float(np.median(order[counts])) if counts.any() else float("nan")
