"""Profiles of the cost of a simulated fit along weakly determined combinations of its unknowns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float

from lgsim.identify.estimators.estimator import Estimate, Resimulation
from lgsim.identify.estimators.uncertainty import has_information, rank_tolerance

RISE = 1.92
"""Rise of the cost, half a sum of squares, at the ends of a 95 % interval: half the quantile of chi-square, 3.84."""
WIDE = 0.5
"""A combination is followed if its interval extends to this fraction of a parameter, or of its prior value."""
WALKS, _DOUBLINGS, _ITERATIONS = 3, 4, 10
"""The largest number of combinations, of doublings of the distance, and of Gauss-Newton steps at each distance."""
_NORMAL_95 = 1.96
_SETTLED = 0.05
"""Change of the cost below which the steps at a distance end."""


class Profile(NamedTuple):
    """The profile of the cost along a combination.

    Attributes:
        direction: The change of x by one standard error (p,).
        ends: Coordinates at both ends of the interval, or where the search ended.
        is_open: True if the cost does not rise by ``RISE`` on one side.
    """

    direction: Float[np.ndarray, " p"]
    ends: list[Float[np.ndarray, " p"]]
    is_open: bool


class Walk(NamedTuple):
    """Evaluation of the cost at displaced coordinates and initial states.

    Attributes:
        best: The evaluation at the estimate.
        estimate: The estimate.
        resimulated: Evaluation at an estimate.
        moved_starts: Initial states that follow displaced coordinates, as ``Estimator.moved_starts``.
    """

    best: Resimulation
    estimate: Estimate
    resimulated: Callable[[Estimate], Resimulation]
    moved_starts: Callable[..., Array]

    @property
    def still(self) -> Float[np.ndarray, "windows state"]:
        """No draw of the initial states."""
        starts = self.estimate.starts
        assert starts is not None
        return np.zeros(starts.shape)

    def at(self, dx: Float[np.ndarray, " p"], z: Float[np.ndarray, "windows state"]) -> Resimulation:
        """The evaluation at coordinates moved by dx, with initial states that follow, plus a draw of their noise."""
        return self.moved(self.estimate, self.best, dx, z)[1]

    def moved(
        self, start: Estimate, point: Resimulation, dx: Float[np.ndarray, " p"], z: Float[np.ndarray, "windows state"]
    ) -> tuple[Estimate, Resimulation]:
        """The same from another point."""
        step = jnp.asarray(dx, start.x.dtype)
        starts = self.moved_starts(start, point.factors, step, jnp.asarray(z, start.x.dtype))
        there = start._replace(x=start.x + step, starts=starts)
        return there, self.resimulated(there)


def profiles(
    fit: Any, walk: Walk, hessian: Float[np.ndarray, "p p"], value_slopes: Float[np.ndarray, "values p"]
) -> list[Profile]:
    """Profiles along the combinations whose intervals are wide, the widest first.

    The other coordinates and the initial states minimize the cost at each distance. A side is followed to 16 times the
    distance at which a quadratic cost would rise by ``RISE``.

    Args:
        hessian: Hessian of the cost, without the information that noise adds.
        value_slopes: Derivatives of ``Fit.values`` with respect to the coordinates.

    Source: Venzon and Moolgavkar 1988, A method for computing profile-likelihood-based confidence intervals, Appl.
    Stat. 37(1); Raue et al. 2009, Structural and practical identifiability analysis by the profile likelihood,
    Bioinformatics 25(15).
    """
    return [_profile(fit, walk, direction) for direction in _weakest(fit, hessian, value_slopes)]


def _weakest(
    fit: Any, hessian: Float[np.ndarray, "p p"], slopes: Float[np.ndarray, "values p"]
) -> list[Float[np.ndarray, " p"]]:
    """Changes of x by one standard error along combinations to follow."""
    diagonal = np.diagonal(hessian)
    seen = np.flatnonzero(np.asarray(has_information(diagonal)))
    if not seen.size:
        return []
    scale = np.sqrt(diagonal[seen])
    values, vectors = np.linalg.eigh(hessian[np.ix_(seen, seen)] / np.outer(scale, scale))
    # combinations without any information are known as such
    seen_values = np.sqrt(np.maximum(values, 0) / values[-1]) > rank_tolerance(fit.estimate.x.dtype)
    directions = np.zeros((int(np.sum(seen_values)), len(diagonal)))
    directions[:, seen] = (vectors[:, seen_values] / np.sqrt(values[seen_values])).T / scale
    size = np.maximum(*(np.abs(np.array(list(v.values()))) for v in (fit.values, fit.prior)))
    size = np.where(size > 0, size, np.finfo(float).tiny)
    width = np.max(_NORMAL_95 * np.abs(slopes @ directions.T) / size[:, None], axis=0)
    return [directions[i] for i in np.argsort(-width)[:WALKS] if width[i] > WIDE]


def _profile(fit: Any, walk: Walk, direction: Float[np.ndarray, " p"]) -> Profile:
    """The profile of the cost along a direction, one standard error long."""
    H = np.asarray(walk.best.hessian, float)
    row = H @ direction
    row = row / (row @ direction)
    lower, upper = (np.asarray(b, float) for b in fit.parameters.bounds())
    origin, cost = np.asarray(walk.estimate.x, float), float(walk.best.cost)
    free = (origin > lower) & (origin < upper)
    ends, is_open = [], False
    for side in (1.0, -1.0):
        here, point, before, closed = walk.estimate, walk.best, (origin, 0.0), False
        for doubling in range(_DOUBLINGS + 1):
            reach = side * _NORMAL_95 * 2.0**doubling
            for _ in range(_ITERATIONS):
                x, last = np.asarray(here.x, float), float(point.cost)
                dx = np.where(
                    free, _constrained(point, np.where(free, row, 0), float(reach - row @ (x - origin)), free), 0
                )
                with np.errstate(divide="ignore", invalid="ignore"):
                    # shortened as a whole, so that it ends at a bound and stays in the valley
                    room = np.where(dx > 0, (upper - x) / dx, np.where(dx < 0, (lower - x) / dx, np.inf))
                dx = np.clip(x + min(1.0, np.min(room)) * dx, lower, upper) - x
                here, point = walk.moved(here, point, dx, walk.still)
                if not abs(float(point.cost) - last) > _SETTLED:
                    break
            x, rise = np.asarray(here.x, float), float(point.cost) - cost
            at_bound = bool(np.any(free & ((x <= lower) | (x >= upper))))
            if not rise < RISE:
                # the square root of the rise is about linear in the distance
                a, b = np.sqrt(max(before[1], 0.0)), np.sqrt(rise) if np.isfinite(rise) else np.inf
                part = (np.sqrt(RISE) - a) / (b - a) if np.isfinite(b) else 0.0
                before = (before[0] + part * (x - before[0]), RISE)
            elif np.all(np.isfinite(x)):
                before = (x, rise)
            closed = at_bound or not rise < RISE
            if closed:
                break
        ends.append(before[0])
        is_open |= not closed
    return Profile(direction, ends, is_open)


def _constrained(
    point: Resimulation, row: Float[np.ndarray, " p"], step: float, free: Bool[np.ndarray, " p"]
) -> Float[np.ndarray, " p"]:
    """The Gauss-Newton step of free coordinates with ``row . dx = step``, of minimal norm where the cost is flat."""
    H, g = np.asarray(point.hessian, float), np.asarray(point.gradient, float)
    if not (np.all(np.isfinite(H)) and np.all(np.isfinite(g))):
        return np.zeros_like(row)
    diagonal = np.diagonal(H)
    scale = np.where(free & (diagonal > 0), 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0)
    scaled = scale * row
    size = float(np.linalg.norm(scaled))
    if not size > 0:
        return np.zeros_like(row)
    A = np.block([[scale[:, None] * H * scale, scaled[:, None] / size], [scaled[None] / size, np.zeros((1, 1))]])
    return scale * np.linalg.lstsq(A, np.concatenate([-scale * g, [step / size]]), rcond=None)[0][:-1]
