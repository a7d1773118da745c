"""The verdict of a fit: convergence, active bounds, combinations that are not identifiable, and remarks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim._compile.xla import compiled_fast
from lgsim.identify.estimators.estimator import RESULTS, Estimate
from lgsim.identify.estimators.uncertainty import has_information, rank_tolerance, scaled_spectrum
from lgsim.identify.feedback import FALSE_ALARM
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.support.messages import counted
from lgsim.support.verdict import NAMED, Outcome, Verdict, converged, first_names

WORSE = 1.3
"""The largest ratio of held-out to training error that passes without a remark."""
SHARE = 0.5
"""A combination counts as not identifiable if the prior contributes at least this fraction of its information."""
LAST = 10
"""Number of iterations that the diagnosis of an unconverged fit covers."""
FREEDOM = 20
"""Number of degrees of freedom of an estimate of the noise below which intervals of the normal distribution are too
narrow: those of Student's t are 6 % wider.
"""
WHITE = 2.0
"""Residuals count as white up to this whiteness statistic."""


class OuterEstimate(NamedTuple):
    """The estimate in coordinates without bounds.

    Attributes:
        map: The derivative of x with respect to these coordinates (p, p).
        covariance: Covariance of these coordinates (p, p), all of them free.
        information: Information from the records (p, p).
        prior: Information from the priors (p, p).
    """

    map: Float[Array, "p p"]
    covariance: Float[Array, "p p"]
    information: Float[Array, "p p"]
    prior: Float[Array, "p p"]


@compiled_fast
def outer_estimate(parameters: Parameters, estimate: Estimate) -> OuterEstimate:
    """Express the estimate in the coordinates of ``Parameters.outer_map``.

    A constrained estimate is the projection of the unconstrained one, in the metric of the information, on the set of
    physically consistent parameters. A projection on a convex set does not increase distances. Hence the unconstrained
    covariance, centered at the constrained estimate, has at least its nominal coverage.
    """
    T = parameters.outer_map(estimate.x)
    r = jax.jacfwd(parameters.prior_residuals)(jnp.zeros_like(estimate.x))
    information, prior = T.T @ estimate.information @ T, r.T @ r
    inverse = scaled_spectrum(information + prior, jnp.ones(estimate.x.shape, bool))[0]
    if estimate.score_covariance is not None:
        inverse = inverse @ (T.T @ estimate.score_covariance @ T + prior) @ inverse
    return OuterEstimate(T, inverse, information, prior)


def bounds_met(parameters: Parameters, estimate: Estimate, outer: OuterEstimate) -> list[str]:
    """The active bounds as text: bounds of single coordinates, and limits of physical consistency."""
    x, (lower, upper) = np.asarray(estimate.x), (np.asarray(b) for b in parameters.bounds())
    found = [
        f"{name} at its {side} bound"
        for name, value, low, high in zip(parameters.names, x, lower, upper, strict=True)
        for side in (("lower",) if value <= low else ("upper",) if value >= high else ())
    ]
    return found + parameters.edges(x, np.asarray(outer.covariance))


def undetermined_combinations(names: list[str], outer: OuterEstimate) -> list[tuple[str, float]]:
    """Combinations of unknowns that the prior dominates, with the prior's share of the information, largest first.

    The combinations are independent in the metric of the total information; those with a share below ``SHARE`` are left
    out. The share is NaN where neither records nor priors give information.
    """
    information, prior = np.asarray(outer.information), np.asarray(outer.prior)
    total = information + prior
    size = np.sqrt(np.maximum(np.diag(total), 0))
    dead = ~np.asarray(has_information(jnp.asarray(np.diag(total))))
    found = [(names[i], float("nan")) for i in np.flatnonzero(dead)]
    own = np.flatnonzero(~dead)
    if not own.size:
        return found
    scaled = total[np.ix_(own, own)] / np.outer(size[own], size[own])
    values, vectors = np.linalg.eigh(scaled)
    blind = np.sqrt(np.maximum(values, 0) / values[-1]) <= rank_tolerance(total.dtype)
    units = size[own][:, None]
    found += [(_combination(v, names, own), float("nan")) for v in _sparse(vectors[:, blind] / units)]
    half = vectors[:, ~blind] / np.sqrt(values[~blind])
    share, turned = np.linalg.eigh(half.T @ (prior[np.ix_(own, own)] / np.outer(size[own], size[own])) @ half)
    decided = share >= SHARE
    alone = share > 0.999
    directions = half @ turned / units
    found += [(_combination(v, names, own), 1.0) for v in _sparse(directions[:, alone])]
    rest = np.flatnonzero(decided & ~alone)[::-1]
    return found + [(_combination(directions[:, k], names, own), float(share[k])) for k in rest]


def _sparse(basis: Float[np.ndarray, "p k"]) -> Float[np.ndarray, "k p"]:
    """A sparse basis of the same space: each vector has a pivot entry in which the others vanish."""
    rows = basis.T.copy()
    for k in range(len(rows)):
        i, j = np.unravel_index(np.argmax(np.abs(rows[k:])), rows[k:].shape)
        rows[[k, k + i]] = rows[[k + i, k]]
        rows[k] /= rows[k, j]
        others = np.arange(len(rows)) != k
        rows[others] -= rows[others, j][:, None] * rows[k]
    return rows


def _combination(vector: Float[np.ndarray, " own"], names: list[str], own: np.ndarray) -> str:
    """Format the largest terms of a combination with their factors."""
    v = vector / vector[np.argmax(np.abs(vector))]
    order = [i for i in np.argsort(-np.abs(v)) if abs(v[i]) > 0.05]
    if len(order) == 1:
        return names[own[order[0]]]
    terms = [names[own[order[0]]], *(f"{v[i]:+.2g} {names[own[i]]}" for i in order[1:NAMED])]
    return " ".join(terms) + (" ..." if len(order) > NAMED else "")


def fit_verdict(fit: Any) -> Verdict:
    """The verdict of a fit."""
    estimate = fit.estimate
    if bool(estimate.result == RESULTS.nonfinite) or not np.all(np.isfinite(estimate.x)):
        return _not_finite(fit)
    remarks, misfits = tuple(_remarks(fit)), fit.goodness.misfits if fit.goodness is not None else []
    unknown = []
    if np.all(np.isfinite(fit.data_information.estimate.information)):
        unknown = undetermined_combinations(fit.parameters.names, fit.outer)
    shares = [f"{name}: {'no information' if np.isnan(s) else f'prior {100 * s:.0f} %'}" for name, s in unknown]
    count = f"{len(unknown)} of {fit.parameters.size} combinations"
    unseen = f"{count} not identifiable from these records ({first_names(shares)})"
    if bool(estimate.result == RESULTS.interrupted):
        done = counted(int(estimate.iterations), "iteration")
        said = (
            f"stopped by the user after {done}, the best point so far is returned; to resume, call fit again with a"
            " checkpoint"
        )
        return Verdict(Outcome.STOPPED, said, remarks=remarks)
    if fit.message:
        # a flat valley is a reason to fail
        return Verdict(
            Outcome.FAILED, f"failed: {_diagnosis(fit)}", undetermined=tuple(unknown),
            remarks=(*misfits, *((unseen,) if unknown else ()), *remarks),
        )  # fmt: skip
    traded = [
        f"{label} from {low:.3g} to {high:.3g}{unit and f' {unit}'}"
        for name, (low, high) in fit.profiles.items()
        for label, _, unit in [name.partition(", ")]
    ]
    if traded:
        remarks += (f"only the prior separates from bodies: {first_names(traded)}",)
    bounds = bounds_met(fit.parameters, estimate, fit.outer)
    found = converged(bounds, "bound", unknown, unseen, remarks)
    if not misfits:
        return found
    sentence = f"does not fit: {'; '.join(misfits[:NAMED])}; check columns, signs, units and the model"
    return replace(found, outcome=Outcome.DOES_NOT_FIT, sentence=f"{sentence}; {found.sentence}")


def _not_finite(fit: Any) -> Verdict:
    """The verdict for a cost that is not finite, with the first sample that causes it."""
    x = fit.estimate.x
    where = jnp.where(jnp.all(jnp.isfinite(x)), x, jnp.zeros_like(x))
    rows = np.asarray(fit.residuals_at(where))
    bad = np.argwhere(~np.isfinite(rows))
    if not len(bad):
        return Verdict(Outcome.FAILED, f"failed: {RESULTS[RESULTS.nonfinite]}")
    row, column = map(int, bad[0])
    name = fit.estimator.columns(fit.parameters, fit.samples)[column]
    others = f"{len(np.unique(bad[:, 0])) - 1} other samples"
    what = f"failed at sample {row}: the prediction of {name} is not finite, nor is it for {others}"
    return Verdict(Outcome.FAILED, what, sample=row)


def _diagnosis(fit: Any) -> str:
    """Diagnose an unconverged fit: which unknown still moves, and by how much the predictions change."""
    estimate = fit.estimate
    path, costs = np.asarray(estimate.path), np.asarray(estimate.costs)
    done = min(int(estimate.iterations), len(costs))
    back = min(LAST, max(done - 1, 0))
    moved = np.asarray(estimate.x) - path[done - back] if back else np.zeros(path.shape[1])
    count = len(fit.residuals())
    change = np.sqrt(max(moved @ np.asarray(estimate.information) @ moved, 0) / (count * len(estimate.noise)))
    text = f"{fit.message} "
    if not np.any(moved) or not np.isfinite(change):
        return text.strip()
    most = int(np.argmax(np.abs(moved)))
    fall = costs[done - back] - costs[done - 1] if done else 0.0
    return (
        f"{text}In the last {counted(back, 'iteration')} {fit.parameters.names[most]} moved by {moved[most]:+.2g},"
        f" the cost decreased by {fall:.2g}, and the predictions changed by {change:.2g} of the noise (rms)"
    )


def _remarks(fit: Any) -> list[str]:
    """Reasons to use the estimates with caution."""
    explained = fit.goodness.summary() if fit.goodness is not None else ""
    found, ratio = [explained] if explained else [], held_out_ratio(fit)
    if ratio is not None and not ratio <= WORSE:
        found.append(f"held-out error is {ratio:.2g}x the training error")
    bias = fit.data_information.bias
    if bias is not None:
        sensor = fit.estimator.columns(fit.parameters, fit.samples)[bias.feedback.column]
        found.append(
            f"the input {bias.input} contains the noise of {sensor} (correlation {bias.feedback.statistic:.2g} standard"
            f" deviations, below {bias.feedback.limit:.2g} in {1 - FALSE_ALARM:.1%} of records with independent noise),"
            f" which shifts the estimate by about {bias.shift:.2g} standard errors; add a reference signal that excites"
            " the loop, or use TorqueFit, or an instrument that does not depend on the sensor"
        )
    rounding = fit.estimator.rounding(fit.estimator.padded(fit.samples))
    values = fit.estimator.check(fit.parameters, fit.samples)
    # as many values as unknowns leave no residuals, whatever the noise
    if rounding is not None and np.all(fit.rmse() <= np.asarray(rounding)) and values > fit.parameters.size:
        exact = f"the records are exact{_digits(fit)}: the residuals are rounding errors"
        return [*found, exact]
    if fit.goodness is not None:
        found += fit.goodness.remarks
        freedom = (values - fit.parameters.size) / len(fit.goodness.columns)
        if freedom < FREEDOM and np.all(np.isnan(fit.goodness.normalized)):
            found.append(
                f"the noise of each signal is estimated from only {max(freedom, 0):.2g} values beyond the unknowns:"
                " intervals are too narrow"
            )
    white = fit.whiteness()[1]
    if white > WHITE:
        counts = fit.data_information.estimate.score_covariance is not None
        found.append(
            f"residuals are not white (statistic {white:.2g}, 1 for white"
            f" noise){', which the standard errors account for' if counts else ': standard errors are too small'}"
        )
    return found


def _digits(fit: Any) -> str:
    """The decimal digits to which a fit reproduces its records, such as " to at least 9 digits"; "" if unknown.

    The records may be exact to more: normal equations resolve residuals to half of the digits, by chance to all.
    """
    if fit.goodness is None or not np.any(fit.goodness.levels):
        return ""
    level = fit.goodness.levels
    error = np.max(fit.rmse()[level > 0] / level[level > 0])
    least = float(np.finfo(fit.estimate.noise.dtype).eps)
    return f" to at least {int(-np.log10(max(error, least)))} digits"


def held_out_ratio(fit: Any) -> float | None:
    """The ratio of held-out to training error, in units of each column's noise; None without held-out records."""
    if fit.validation is None:
        return None
    noise = np.asarray(fit.estimate.noise)
    own, other = fit.rmse() / noise, fit.rmse(fit.validation) / noise
    return float(np.sqrt(np.mean(other**2) / np.mean(own**2)))
