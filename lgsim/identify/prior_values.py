"""Parameters that the records do not determine: found by their information, and left at the prior."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from lgsim.identify.consistent_set import ConsistentSet, consistent_set, newton_minimum, weighted_sum
from lgsim.identify.estimators.estimator import Estimate
from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.estimators.uncertainty import has_information, rank_tolerance
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.verdict import SHARE, OuterEstimate, outer_estimate

_SHARES = (SHARE, 0.999)
"""Shares of the prior from which directions return to it, the first one that hardly changes the cost."""
_ROOM = 0.1
"""Least principal value of the relative pseudo-inertia of a body that returns without a barrier, and its weight: above
the values at which a body counts as degenerate.
"""
_ROOT = 0.75
"""Without a prior, a value counts as undecided below this power of the share of directions without information."""
_LIGHT = 1e-6
"""Weight of changes of the other parameters, relative to their information: they take up what bodies do not."""
_ROUNDED = 1e-9
"""What is left of a coordinate that returned to the prior, relative to where it was."""
_RISE = 0.1
"""Largest increase of the cost, far below its uncertainty."""


def seen_by(parameters: Parameters, outer: OuterEstimate, samples: Any) -> OuterEstimate:
    """The estimate without the information of coordinates that are seen by rounding and noise only.

    Their information does not exceed rounding, or, for parameters of joints without a prior, their standard error
    exceeds ``Block.largest``.
    """
    A = np.asarray(outer.information, float)
    size = np.full(len(A), np.inf)
    if isinstance(samples, TorqueSamples):
        used = np.where(np.asarray(samples.weight) > 0, np.abs(np.asarray(samples.signals)), 0)
        torque = np.max(used.reshape(-1, used.shape[-1]), axis=0) * np.abs(np.asarray(parameters.plant.scale))
        for block, own in zip(parameters.blocks, parameters.slices, strict=True):
            if block.prior_deviation is None:
                size[own] = block.largest(parameters.plant, torque)
    above = np.diagonal(A) >= np.where(size > 0, size, np.inf) ** -2.0
    seen = above & np.asarray(has_information(np.diagonal(A).astype(outer.information.dtype)))
    return outer._replace(information=jnp.asarray(np.where(seen & seen[:, None], A, 0), outer.information.dtype))


class Knowledge(NamedTuple):
    """Information about the linear coordinates (p, p) each.

    Attributes:
        data: From the records, and from further prior knowledge such as ``TotalMass``.
        own: From the priors of the blocks.
        share: Share of the information below which a direction has none, in the dtype of the estimate.
    """

    data: Float[np.ndarray, "p p"]
    own: Float[np.ndarray, "p p"]
    share: float

    def least(self, power: float = 1.0) -> Float[np.ndarray, "p p"]:
        """Information far below the rest, for directions that have none, by a power of its share."""
        size = np.diagonal(self.data + self.own)
        return np.diag(np.where(size > 0, self.share**power * size, 1))


def knowledge(parameters: Parameters, outer: OuterEstimate) -> Knowledge:
    """The information of an estimate, see ``Knowledge``."""
    A, P = (np.asarray(part, float) for part in (outer.information, outer.prior))
    own = np.diag(parameters.prior_deviations(np.full(len(A), np.inf)) ** -2.0)
    return Knowledge(A + P - own, own, 100 * rank_tolerance(outer.information.dtype) ** 2)


def undecided_values(slopes: Float[np.ndarray, "values p"], known: Knowledge) -> Bool[np.ndarray, " values"]:
    """The values about which the records alone say less than the priors alone, and not much more with all priors.

    Args:
        slopes: Derivatives of the values with respect to the linear coordinates.
    """
    data, own, least = known.data, known.own, known.least()
    alone = np.stack([data + least, own + known.least(_ROOT), data + own + least])
    s = 1 / np.sqrt(np.diagonal(alone, axis1=1, axis2=2))
    rows = (slopes * s[:, None]).swapaxes(1, 2)
    variance = np.sum(rows * np.linalg.solve(s[:, :, None] * alone * s[:, None], rows), axis=1)
    dead = ~(np.diagonal(data + own) > 0)
    return (variance[0] >= variance[1]) & (variance[2] >= variance[1] / 4) | np.any(slopes[:, dead] != 0, axis=1)


def left_at_prior(
    parameters: Parameters, estimate: Estimate, slopes: Float[np.ndarray, "values p"], samples: Any
) -> Estimate:
    """The estimate with the prior's values along all directions that the records do not determine.

    The predictions of the records stay. Of all consistent bodies on these directions it has the smallest changes of the
    ten inertial parameters, relative to their size.

    Args:
        slopes: Derivatives of the values with respect to x.
    """
    outer = seen_by(parameters, outer_estimate(parameters, estimate), samples)
    T, known = np.asarray(outer.map, float), knowledge(parameters, outer)
    data, weak = known.data, known.own + known.least()
    x = np.asarray(estimate.x, float)
    inside = consistent_set(parameters, x)
    bodies, K = inside.of_bodies, slopes @ T
    K = K[np.any(K[:, bodies], axis=1)]
    metric = (K / np.sum(K**2, axis=1)[:, None]).T @ K
    metric += np.diag(np.where(bodies, 0, np.diagonal(weak) + _LIGHT * np.diagonal(data)))
    slope = T.T @ known.own @ x
    for share in _SHARES:
        y = np.clip(_nearest_to_prior(inside, metric, _directions(data, weak, share)), inside.lower, inside.upper)
        d = y - inside.point
        if d @ data @ d / 2 - slope @ d <= _RISE:
            y[np.abs(y) <= _ROUNDED * np.abs(inside.point)] = 0
            break
    else:
        return estimate
    new = x.copy()
    for block, own in zip(parameters.blocks, parameters.slices, strict=True):
        if np.any(d[own]):
            new[own] = block.from_linear(y[own])
    if np.array_equal(new, x):
        return estimate
    moved = eqx.tree_at(lambda e: e.x, estimate, jnp.asarray(new, estimate.x.dtype))
    R = np.asarray(outer_estimate(parameters, moved).map, float) @ np.linalg.inv(T)
    back = np.linalg.inv(R)

    def turned(part: Any, by: Float[np.ndarray, "p p"]) -> Any:
        return None if part is None else jnp.asarray(by @ np.asarray(part, float) @ by.T, estimate.x.dtype)

    return moved._replace(
        covariance=turned(estimate.covariance, R), information=turned(estimate.information, back.T),
        score_covariance=turned(estimate.score_covariance, back.T),
    )  # fmt: skip


def _directions(
    data: Float[np.ndarray, "p p"], weak: Float[np.ndarray, "p p"], share: float
) -> Float[np.ndarray, "p k"]:
    """A basis of the directions along which the priors contribute at least a share of the information."""
    total = data + weak
    s = 1 / np.sqrt(np.diagonal(total))
    values, vectors = np.linalg.eigh(s[:, None] * total * s)
    half = s[:, None] * vectors / np.sqrt(values)
    shares, turned = np.linalg.eigh(half.T @ weak @ half)
    return half @ turned[:, shares >= share]


def _nearest_to_prior(
    inside: ConsistentSet, metric: Float[np.ndarray, "p p"], directions: Float[np.ndarray, "p k"]
) -> Float[np.ndarray, " p"]:
    """The consistent point nearest to the prior on the given directions through the estimate."""

    def along(N: Float[np.ndarray, "p k"]) -> Float[np.ndarray, " p"]:
        y = inside.point
        for _ in range(2):  # the second time for the rounding of large values
            y = y - N @ np.linalg.solve(N.T @ metric @ N, N.T @ metric @ y)
        return y

    if not directions.size:
        return inside.point
    N = directions / np.sqrt(np.einsum("pk,pq,qk->k", directions, metric, directions))
    y = along(N)
    if inside.has_room(y, _ROOM):
        return y
    # coordinates at a bound stay there
    held = inside.held & ~inside.of_bodies
    _, values, V = np.linalg.svd(N[held], full_matrices=True)
    N = N @ V[int(np.sum(values > 1e-9 * np.max(values, initial=0.0))) :].T
    free = inside._replace(lower=np.where(held, -np.inf, inside.lower), upper=np.where(held, np.inf, inside.upper))
    if not N.size:
        return inside.point
    y = along(N)
    if free.has_room(y, _ROOM):
        return y

    def objective(z: Float[np.ndarray, " k"]) -> Any:
        y = inside.point + N @ z
        value, g, H = weighted_sum((1.0, (y @ metric @ y / 2, metric @ y, metric)), (_ROOM, free.barrier(y)))
        return value, N.T @ g, N.T @ H @ N

    return inside.point + N @ newton_minimum(objective, np.zeros(N.shape[1]))
