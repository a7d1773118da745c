"""The consistent parameters as a convex set: intervals of numbers that trade with bodies, and parameters that stay.

Joint torques are affine in the coordinates y of ``Block.linear``. There, physical consistency is a linear matrix
inequality ``1 + sum_k y_k B_k > 0`` of each body. This module uses numpy, without compilation.

Source: Wensing, Kim, Slotine 2018, Linear matrix inequalities for physically consistent inertial parameter
identification, IEEE RA-L 3(1), for the inequalities; Boyd and Vandenberghe 2004, Convex Optimization, ch. 11, for the
barrier method.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from lgsim.identify.estimators.estimator import Estimate
from lgsim.identify.estimators.uncertainty import rank_tolerance
from lgsim.identify.unknowns.body_blocks import BARRIER
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.verdict import SHARE, OuterEstimate

HALF_CHI_SQUARE = 1.920729410347062
"""Half the 95 % quantile of chi-square with one degree of freedom: the increase of the cost at a profile's ends."""
_WEAK = 1e-4
"""Information of the changes of bodies, relative to their prior size, that keeps the sets bounded: far below data."""
_STEPS, _LEVELS, _GAP = 60, 12, 1e-3
"""Largest numbers of Newton steps and of barriers, each a tenth of the one before, and the relative error at the end.
"""
_ROUNDING = float(np.finfo(float).eps)
"""Share of the curvature that is added for each coordinate, against rounding."""
_OPEN = 0.1
"""Sensitivity of an end to the limit of the weak information, relative to the one of an end without other limits, 1/2,
above which the end is open.
"""

Values = tuple[Any, Any, Any]
"""Value, gradient (p,) and Hessian (p, p); the value is infinite outside of the domain."""


class ConsistentSet(NamedTuple):
    """The set of consistent parameters within bounds, in linear coordinates y (p,).

    Attributes:
        point: The estimate, on the boundary where a bound is active.
        pencils: Coordinates of each body, and the matrices B of its inequality (n, n, k).
        lower: Lower bounds, infinite for coordinates of bodies.
        upper: Upper bounds.
    """

    point: Float[np.ndarray, " p"]
    pencils: list[tuple[np.ndarray, Float[np.ndarray, "n n k"]]]
    lower: Float[np.ndarray, " p"]
    upper: Float[np.ndarray, " p"]

    @property
    def of_bodies(self) -> Bool[np.ndarray, " p"]:
        """The coordinates of bodies."""
        own = np.zeros(len(self.point), bool)
        for part, _ in self.pencils:
            own[part] = True
        return own

    @property
    def held(self) -> Bool[np.ndarray, " p"]:
        """The coordinates of the estimate at a bound."""
        return (self.point <= self.lower) | (self.point >= self.upper)

    def has_room(self, y: Float[np.ndarray, " p"], least: float) -> bool:
        """True within the bounds, if no principal value of a matrix is below the least one."""
        bodies = (np.linalg.eigvalsh(np.eye(len(B)) + B @ y[part])[0] >= least for part, B in self.pencils)
        return bool(np.all((y >= self.lower) & (y <= self.upper))) and all(bodies)

    def barrier(self, y: Float[np.ndarray, " p"]) -> Values:
        """The logarithmic barrier of the set."""
        value, g, H = 0.0, np.zeros(len(y)), np.zeros((len(y), len(y)))
        for part, B in self.pencils:
            try:
                L = np.linalg.cholesky(np.eye(len(B)) + B @ y[part])
            except np.linalg.LinAlgError:
                return np.inf, g, H
            W = np.linalg.inv(L)
            C = np.einsum("ai,ijk,bj->abk", W, B, W).reshape(-1, len(part))
            value -= 2 * np.sum(np.log(np.diagonal(L)))
            g[part] -= np.eye(len(B)).reshape(-1) @ C
            H[np.ix_(part, part)] += C.T @ C
        for side, bound in ((1, self.lower), (-1, self.upper)):
            own = np.flatnonzero(np.isfinite(bound))
            gap = side * (y - bound)[own]
            if np.any(gap <= 0):
                return np.inf, g, H
            value -= np.sum(np.log(gap))
            g[own] -= side / gap
            H[own, own] += 1 / gap**2
        return value, g, H


def consistent_set(parameters: Parameters, x: Float[np.ndarray, " p"]) -> ConsistentSet:
    """The consistent set about the coordinates x of an estimate."""
    lower, upper = (np.array(bound, float) for bound in parameters.bounds())
    point, pencils = np.array(x, float), []
    for block, own in zip(parameters.blocks, parameters.slices, strict=True):
        point[own] = block.linear(point[own])
        places = np.arange(own.start, own.stop)
        for k, B in enumerate(block.pencils(own.stop - own.start)):
            pencils.append((places[k * B.shape[-1] : (k + 1) * B.shape[-1]], B))
            lower[pencils[-1][0]], upper[pencils[-1][0]] = -np.inf, np.inf
    return ConsistentSet(point, pencils, lower, upper)


def newton_minimum(
    objective: Callable[[Float[np.ndarray, " p"]], Values], y: Float[np.ndarray, " p"]
) -> Float[np.ndarray, " p"]:
    """The minimum of a convex function from a point in its domain, by Newton's method with step halving."""
    _, g, H = objective(y)
    for _ in range(_STEPS):
        D = 1 / np.sqrt(np.diagonal(H))
        scaled = D[:, None] * H * D + _ROUNDING * len(D) * np.eye(len(D))
        step, length = -D * np.linalg.solve(scaled, D * g), 1.0
        decrease = -g @ step
        if not decrease > _GAP / 10:
            break
        # by slopes, since values of a large cost are rounded: not far beyond the minimum along the step
        while not ((trial := objective(y + length * step))[0] < np.inf and trial[1] @ step <= decrease / 2):
            length /= 2
            if length < _GAP**2:
                return y
        y, (_, g, H) = y + length * step, trial
    return y


def profile(
    inside: ConsistentSet, information: Float[np.ndarray, "p p"], center: Float[np.ndarray, " p"], k: int
) -> tuple[float, float]:
    """The ends of coordinate k in the set, where the cost ``1/2 (y - center) . H (y - center)`` is at most 1.92 above
    its minimum; infinite where the cost does not reach this value.

    Args:
        information: The matrix H, without the prior of the bodies.
    """
    size = np.where(np.diagonal(information) > 0, np.diagonal(information), 1)
    weak = np.where(inside.of_bodies, _WEAK, _WEAK**2 * size)

    def cost(y: Float[np.ndarray, " p"]) -> Values:
        g = information @ (y - center)
        return (y - center) @ g / 2, g, information

    def domain(y: Float[np.ndarray, " p"]) -> Values:
        d = y - inside.point
        return weighted_sum(
            (1.0, inside.barrier(y)), (1.0, _log_barrier(1.0, (d @ (weak * d) / 2, weak * d, np.diag(weak))))
        )

    margin = np.minimum(_GAP / np.sqrt(size), (inside.upper - inside.lower) / 4)
    y = np.clip(inside.point, inside.lower + margin, inside.upper - margin)
    for level in range(_LEVELS // 2):
        y = newton_minimum(lambda y, t=10.0**level: weighted_sum((t, cost(y)), (1.0, domain(y))), y)
    limit = cost(y)[0] + HALF_CHI_SQUARE

    def end(side: int) -> float:
        toward, found, terms = np.zeros(len(y)), y, 2 + sum(len(B) for _, B in inside.pencils) + 2 * len(y)
        toward[k] = -side * np.sqrt(size[k])
        for level in range(_LEVELS):
            t = 10.0**level
            found = newton_minimum(
                lambda y, t=t: weighted_sum(
                    (1.0, _log_barrier(limit, cost(y))), (1.0, domain(y)), (t, (toward @ y, toward, 0 * information))
                ),
                found,
            )
            reach = abs(toward @ (found - inside.point))
            if terms / t < _GAP * (1 + reach):
                break
        bound = (inside.lower if side < 0 else inside.upper)[k]
        if abs(found[k] - bound) * np.sqrt(size[k]) <= terms / t:
            return float(bound)
        d = found - inside.point
        # an end that only the weak information limits is proportional to the root of its limit
        return side * np.inf if _OPEN * reach < 1 / (1 - d @ (weak * d) / 2) / t else float(found[k])

    return end(-1), end(1)


def _log_barrier(limit: float, part: Values) -> Values:
    """The barrier that keeps a function below a limit."""
    value, g, H = part
    left = limit - value
    return (np.inf, g, H) if left <= 0 else (-np.log(left), g / left, H / left + np.outer(g, g) / left**2)


def weighted_sum(*parts: tuple[float, Values]) -> Values:
    """The weighted sum of functions."""
    value, g, H = (sum(weight * part[i] for weight, part in parts) for i in range(3))
    return value, g, H


def profiles_against_bodies(
    parameters: Parameters, estimate: Estimate, outer: OuterEstimate
) -> dict[int, tuple[float, float]]:
    """Profiles of the parameters that share their direction with bodies, so that only the bodies' prior separates them.

    These are the coordinates that are not bodies' and of whose information the prior of bodies contributes at least
    ``SHARE``. The profile minimizes the cost over all consistent bodies, without their prior.

    Returns:
        For each such coordinate the ends of its profile minus the estimate.
    """
    x = np.asarray(estimate.x, float)
    inside = consistent_set(parameters, x)
    bodies = inside.of_bodies
    T, A, P = (np.asarray(part, float) for part in (outer.map, outer.information, outer.prior))
    removed = np.where(bodies, parameters.prior_deviations(np.full(len(x), np.inf)) ** -2.0, 0)
    data = A + P - np.diag(removed)
    tolerance = rank_tolerance(estimate.x.dtype)
    found = [
        k
        for k in np.flatnonzero(~bodies & (np.diagonal(A) > 0) & np.any(bodies)).tolist()
        if _marginal(data, k) <= max((1 - SHARE) * _marginal(A + P, k), tolerance * data[k, k])
    ]
    if not found:
        return {}
    # the gradient of the data balances the prior of the bodies, and at bounds a pressure that is unknown but for the
    # directions without information, along which the data have no gradient
    balance = np.where(bodies, T.T @ (x * removed), 0) + _barrier_slope(parameters, inside)
    s = 1 / np.sqrt(np.where(np.diagonal(data) > 0, np.diagonal(data), 1))
    values, vectors = np.linalg.eigh(s[:, None] * data * s)
    # with room for rounding, which a division by a vanishing value would amplify
    blind = values <= 100 * tolerance**2 * values[-1]
    pressure = np.eye(len(x))[:, inside.held]
    g, N = s * balance, vectors[:, blind]
    g = g + pressure @ np.linalg.lstsq(N.T @ pressure, -N.T @ g, rcond=None)[0]
    center = inside.point + s * (vectors[:, ~blind] @ ((vectors[:, ~blind].T @ g) / values[~blind]))
    if estimate.score_covariance is not None:
        scores = T.T @ np.asarray(estimate.score_covariance, float) @ T
        data = (
            data
            - A
            + (A * s @ np.linalg.pinv(s[:, None] * scores * s, rcond=100 * tolerance**2, hermitian=True) @ (A * s).T)
        )
    ends = {k: profile(inside, data, center, k) for k in found}
    return {k: (low - inside.point[k], high - inside.point[k]) for k, (low, high) in ends.items()}


def _barrier_slope(parameters: Parameters, inside: ConsistentSet) -> Float[np.ndarray, " p"]:
    """The gradient of ``Block.barrier`` of the bodies without a prior, which keeps them inside of the set."""
    free, point = (
        inside._replace(lower=np.full_like(inside.lower, -np.inf), upper=np.full_like(inside.upper, np.inf)),
        inside.point,
    )
    slope = free.barrier(point)[1] - free.barrier(0 * point)[1]
    for block, own in zip(parameters.blocks, parameters.slices, strict=True):
        slope[own] *= BARRIER * (block.has_edge and block.prior_deviation is None)
    return slope


def _marginal(information: Float[np.ndarray, "p p"], k: int) -> float:
    """The information of coordinate k while the others are free."""
    others = np.arange(len(information)) != k
    s = 1 / np.sqrt(np.where(np.diagonal(information) > 0, np.diagonal(information), 1))[others]
    row = s * information[k, others]
    inner = np.linalg.pinv(s[:, None] * information[np.ix_(others, others)] * s, rcond=_WEAK**2, hermitian=True)
    return float(max(information[k, k] - row @ inner @ row, 0))
