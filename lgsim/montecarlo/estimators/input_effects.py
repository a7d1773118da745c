"""Effects of random inputs on outputs: rank correlations, partial rank correlations, coefficients of regression."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from lgsim.montecarlo.study import flat_names

Inputs = Shaped[np.ndarray, "n inputs"]
"""Samples of the random numbers."""
Outputs = Shaped[np.ndarray, "n outputs"]
"""Samples of the entries of outputs."""
Effects = Float[np.ndarray, "inputs outputs"]
_DEPENDENT = 1e-9
"""Eigenvalue of a correlation matrix below which inputs are linearly dependent."""

_ROUNDING = 64 * np.finfo(float).eps
"""Rounding of a fraction of a variance."""


class InputEffects(NamedTuple):
    """Correlations of each random number with each entry of the outputs; NaN for constants.

    Attributes:
        inputs: Names of the random numbers.
        outputs: Names of the entries of the outputs, such as "final_v[0]".
        samples: Number of samples of each entry, (outputs,).
        rank: Rank correlations, (inputs, outputs), see ``rank_correlations``.
        partial_rank: Partial rank correlations, (inputs, outputs), see ``partial_rank_correlations``.
        regression: Standardized coefficients of a linear regression, (inputs, outputs), see ``regression``.
        explained: Fraction of the variance that this regression explains (R^2), (outputs,).
    """

    inputs: list[str]
    outputs: list[str]
    samples: Int[np.ndarray, " outputs"]
    rank: Effects
    partial_rank: Effects
    regression: Effects
    explained: Float[np.ndarray, " outputs"]


def input_effects(
    inputs: Mapping[str, Shaped[np.ndarray, " n"]],
    outputs: Mapping[str, Shaped[np.ndarray, "n ..."]],
    known: Mapping[str, Bool[np.ndarray, " n"]],
) -> InputEffects:
    """Correlate inputs with the entries of outputs.

    Args:
        inputs: Samples of the random numbers, by name.
        outputs: Samples of the outputs, by name.
        known: True for the samples that have a value of the output, by its name.
    """
    x, groups, parts = np.stack(list(inputs.values()), axis=1).astype(float), {}, []
    for name in outputs:
        groups.setdefault(known[name].tobytes(), []).append(name)
    # outputs with values of the same samples share the ranks of the inputs
    for group in groups.values():
        mask = known[group[0]]
        own, count = x[mask], int(mask.sum())
        y = np.concatenate([outputs[name][mask].reshape(count, -1) for name in group], axis=1, dtype=float)
        coefficients, explained = regression(own, y)
        counts = np.full(y.shape[1], count)
        parts.append((counts, rank_correlations(own, y), partial_rank_correlations(own, y), coefficients, explained))
    grouped = [
        entry for group in groups.values() for name in group for entry in flat_names(name, outputs[name].shape[1:])
    ]
    names = [entry for name, y in outputs.items() for entry in flat_names(name, y.shape[1:])]
    order = [grouped.index(entry) for entry in names]
    found = (np.concatenate(each, axis=-1)[..., order] for each in zip(*parts, strict=True))
    return InputEffects(list(inputs), names, *found)


def rank_correlations(inputs: Inputs, outputs: Outputs) -> Effects:
    """Spearman's rank correlations of each input with each output; NaN for constants.

    They are 1 or -1 for any increasing or decreasing dependence.

    Source: Spearman, The proof and measurement of association between two things, American Journal of Psychology 15(1),
    1904.
    """
    a, b = _standardized(_ranks(inputs)), _standardized(_ranks(outputs))
    return np.where(np.outer(a.any(axis=0), b.any(axis=0)), a.T @ b, np.nan)


def partial_rank_correlations(inputs: Inputs, outputs: Outputs) -> Effects:
    """Rank correlations without the linear effect of the ranks of all other inputs (PRCC).

    They are NaN for constants, for inputs that are linearly dependent on the others, and with too few samples.

    Source: Iman, Helton, An investigation of uncertainty and sensitivity analysis techniques for computer models, Risk
    Analysis 8(1), 1988.
    """
    a, b = _standardized(_ranks(inputs)), _standardized(_ranks(outputs))
    coefficients, remaining, explained = _regression(a, b)
    rest = b.any(axis=0) - explained
    rest = np.where(rest < _ROUNDING, _ROUNDING, rest)
    return coefficients * np.sqrt(remaining[:, None] / (rest + coefficients**2 * remaining[:, None]))


def regression(inputs: Inputs, outputs: Outputs) -> tuple[Effects, Float[np.ndarray, " outputs"]]:
    """The standardized coefficients of the linear regression of each output on all inputs, and its R^2.

    A coefficient is the change of the output per standard deviation of the input with the others fixed, in standard
    deviations of the output. NaN as for ``partial_rank_correlations``.
    """
    coefficients, _, explained = _regression(_standardized(inputs), _standardized(outputs))
    return coefficients, explained


def _ranks(x: Shaped[np.ndarray, "n columns"]) -> Float[np.ndarray, "n columns"]:
    """The ranks of the values of each column; equal values have their mean rank."""
    found = np.zeros(x.shape)
    for k in range(x.shape[1]):
        _, places, counts = np.unique(x[:, k], return_inverse=True, return_counts=True)
        found[:, k] = (np.cumsum(counts) - (counts - 1) / 2)[places]
    return found


def _standardized(x: Shaped[np.ndarray, "n columns"]) -> Float[np.ndarray, "n columns"]:
    """Columns with a mean of 0 and a norm of 1; constant ones are 0."""
    if not len(x):
        return x.astype(float)
    gaps = np.where(np.ptp(x, axis=0) > 0, x - x.mean(axis=0), 0.0)
    size = np.linalg.norm(gaps, axis=0)
    return gaps / np.where(size > 0, size, 1.0)


def _regression(a: Inputs, b: Outputs) -> tuple[Effects, Float[np.ndarray, " inputs"], Float[np.ndarray, " outputs"]]:
    """Coefficients of the regression of b on a, variances of a without the effect of the other inputs, and R^2.

    Args:
        a: Standardized inputs.
        b: Standardized outputs.
    """
    values, vectors = np.linalg.eigh(a.T @ a)
    kept, D = values > _DEPENDENT, a.T @ b
    unique = np.sum(vectors[:, ~kept] ** 2, axis=1) < _DEPENDENT
    inverse = vectors[:, kept] / values[kept] @ vectors[:, kept].T
    coefficients, valid = inverse @ D, len(a) > a.shape[1] + 1
    with np.errstate(divide="ignore", invalid="ignore"):
        remaining = np.where(unique, 1 / np.diag(inverse), np.nan)
    known = np.outer(unique, b.any(axis=0)) & valid
    explained = np.where(b.any(axis=0) & valid, np.sum(D * coefficients, axis=0), np.nan)
    return np.where(known, coefficients, np.nan), remaining, explained
