"""The information that the records of a simulated fit contain, without what noise in initial states adds to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.identify.estimators.estimator import Estimate, Resimulation
from lgsim.identify.estimators.uncertainty import covariance, rank_tolerance
from lgsim.identify.feedback import NoiseFeedback, noise_feedback
from lgsim.identify.profile import Profile, Walk, profiles

NOISE_SHARE = 0.1
"""A combination counts as not identifiable if the noise of initial states adds this fraction of its information.

The square of a noisy amplitude is beyond ten times its mean once in 600 records (one amplitude) to 20 000 (two).
"""
BIAS = 0.5
"""The largest shift of an estimate by noise in its inputs, in standard errors, that passes without a remark."""
_FEW, _MANY, _SUSPECT = 2, 16, 0.005
"""Numbers of draws of the initial states, at first and if a share of noise is above the third number."""
_STEP = 0.1
"""Half the distance of difference quotients along a combination, in standard errors."""


class LoopBias(NamedTuple):
    """The shift of an estimate by sensor noise that a controller feeds back.

    Attributes:
        feedback: The correlation of an input with sensor noise.
        input: Name of the input.
        shift: Predicted shift of the estimate, in standard errors.
    """

    feedback: NoiseFeedback
    input: str
    shift: float


class DataInformation(NamedTuple):
    """The estimate as far as the records determine it.

    Attributes:
        estimate: The estimate with information zero along combinations that the records do not decide, and with the
            covariance of its score.
        profiles: Profiles of the cost along weakly determined combinations.
        bias: The shift by sensor noise in the inputs, if it is beyond ``BIAS``.
    """

    estimate: Estimate
    profiles: list[Profile]
    bias: LoopBias | None


def data_information(
    fit: Any,
    value_slopes: Float[np.ndarray, "values p"],
    resimulated: Callable[[Estimate], Resimulation],
    moved_starts: Callable[..., Array],
) -> DataInformation:
    """Compute the information at an estimate, outside of ``jit``.

    The derivatives of a motion with respect to the parameters depend on its initial states. At an optimum these contain
    noise, whose motion adds apparent information. Draws of that noise, added once more in pairs of both signs,
    add the same information once more, which is subtracted: ``I - (mean(I(s + d), I(s - d)) - I(s))``. Where it is more
    than ``NOISE_SHARE`` of the information, nothing is left.

    With free initial states, an unstable motion fits noise by its start. If inputs depend on the noise, the estimate is
    shifted by ``C grad(log det H_ss) / 2``, where H_ss is the Hessian with respect to the initial states. For
    independent inputs the shift is zero.

    Args:
        value_slopes: Derivatives of ``Fit.values`` with respect to the coordinates.
        resimulated: ``Estimator.resimulated`` of the fit, compiled, of an estimate.
        moved_starts: ``Estimator.moved_starts`` of the fit, compiled.

    Source: Cox and Reid 1987, Parameter orthogonality and approximate conditional inference, J. R. Stat. Soc. B 49(1),
    and Forssell and Ljung 2000, Identification of unstable systems using output error and Box-Jenkins model structures,
    IEEE Trans. Autom. Control 45(1), for the shift.
    """
    estimate, parameters = fit.estimate, fit.parameters
    best = resimulated(estimate)
    walk = Walk(best, estimate, resimulated, moved_starts)
    prior = np.asarray(best.prior_hessian, float)
    information = np.asarray(best.hessian, float) - prior
    kept, share = _without_noise(walk, information)
    bias = _loop_bias(fit, walk, kept + prior)
    if bias is not None:
        kept = _without(kept, bias[1][:, None], estimate.x.dtype)
    tracks = profiles(fit, walk, kept + prior, value_slopes)
    lost = [track.direction for track in tracks if track.is_open]
    if lost:
        kept = _without(kept, np.stack(lost, axis=1), estimate.x.dtype)
    changed = share or bias is not None or bool(lost)
    if not changed and bool(best.is_white):
        return DataInformation(estimate, tracks, None)
    x = np.asarray(estimate.x)
    lower, upper = (np.asarray(b) for b in parameters.bounds())
    information = jnp.asarray(kept, estimate.x.dtype)
    scores = None if bool(best.is_white) else best.score_covariance
    free = jnp.asarray((x > lower) & (x < upper))
    total = None if scores is None else scores + best.prior_hessian
    C = covariance(information + best.prior_hessian, free, total)
    out = estimate._replace(information=information, covariance=C, score_covariance=scores)
    return DataInformation(out, tracks, None if bias is None else bias[0])


def _without_noise(walk: Walk, information: Float[np.ndarray, "p p"]) -> tuple[Float[np.ndarray, "p p"], bool]:
    """(information without that of noise in the initial states, True if a combination is lost)."""
    half, inverse = _roots(information, walk.estimate.x.dtype)
    if not walk.best.factors.diagonal.shape[1] or not half.shape[1]:
        return information, False
    rng, total, count = np.random.default_rng(0), np.zeros_like(information), 0
    shares = vectors = np.zeros((half.shape[1], half.shape[1]))
    for draws in (_FEW, _MANY - _FEW):
        for _ in range(draws):
            z = rng.standard_normal(walk.still.shape)
            pair = [np.asarray(walk.at(np.zeros(len(information)), s * z).hessian, float) for s in (1, -1)]
            total += (pair[0] + pair[1]) / 2 - np.asarray(walk.best.hessian, float)
        count += draws
        shares, vectors = np.linalg.eigh(inverse.T @ (total / count) @ inverse)
        if not np.max(shares, initial=0.0) > _SUSPECT:
            return information, False
    left = np.where(shares > NOISE_SHARE, 0.0, 1 - np.maximum(shares, 0))
    rows = half @ vectors
    return (rows * left) @ rows.T, bool(np.any(shares > NOISE_SHARE))


def _roots(
    information: Float[np.ndarray, "p p"], dtype: jnp.dtype
) -> tuple[Float[np.ndarray, "p k"], Float[np.ndarray, "p k"]]:
    """(R, S) with ``R R^T = information`` and ``S^T R = 1``, on the combinations with information."""
    diagonal = np.diagonal(information)
    if not np.any(diagonal > 0):
        return np.zeros((len(diagonal), 0)), np.zeros((len(diagonal), 0))
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    seen = np.sqrt(np.maximum(values, 0) / values[-1]) > rank_tolerance(dtype)
    root, vectors = np.sqrt(values[seen]), vectors[:, seen]
    return scale[:, None] * vectors * root, vectors / root / scale[:, None]


def _without(
    information: Float[np.ndarray, "p p"], directions: Float[np.ndarray, "p k"], dtype: jnp.dtype
) -> Float[np.ndarray, "p p"]:
    """The information without any along some directions D of x: ``H - H D (D^T H D)^-1 D^T H``.

    It is computed from a root of H, since a difference of matrices would leave information by rounding.
    """
    R = _roots(information, dtype)[0]
    vectors, sizes, _ = np.linalg.svd(R.T @ directions, full_matrices=False)
    Q = vectors[:, sizes > rank_tolerance(dtype) * np.max(sizes, initial=0.0)]
    R = R - (R @ Q) @ Q.T
    return R @ R.T


def _loop_bias(
    fit: Any, walk: Walk, hessian: Float[np.ndarray, "p p"]
) -> tuple[LoopBias, Float[np.ndarray, " p"]] | None:
    """The shift of the estimate by sensor noise in the inputs and its direction in x; None if it is insignificant."""
    names, inputs = fit.estimator.inputs(fit.parameters, fit.samples)
    if not names:
        return None
    sets, steps, _ = inputs.shape
    r, used = (np.asarray(a).reshape(sets, steps + 1, -1) for a in (walk.best.residuals, walk.best.weights > 0))
    feedback = noise_feedback(inputs, r, used)
    if feedback is None or feedback.statistic <= feedback.limit:
        return None
    _, inverse = _roots(hessian, walk.estimate.x.dtype)
    slopes = []
    for direction in _STEP * inverse.T:
        ends = [float(walk.at(sign * direction, walk.still).log_determinant) for sign in (1, -1)]
        slopes.append((ends[0] - ends[1]) / (2 * _STEP))
    g = np.array(slopes) / 2
    shift = float(np.linalg.norm(g))
    if not shift > BIAS:
        return None
    return LoopBias(feedback, names[feedback.input], shift), inverse @ g / shift
