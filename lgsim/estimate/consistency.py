"""Consistency of an estimate: the errors and residuals are those that its own covariances expect."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array
from jax.scipy.linalg import solve_triangular
from jaxtyping import Float
from scipy.special import gammaincinv

from lgsim.lie.action import Point
from lgsim.support.messages import counted

CONFIDENCE = 0.99
"""The probability with which residuals of a consistent filter lie within all bands."""
OBSERVED = 0.99
"""A direction whose deviation is above this share of that without readings counts as not observed."""


class StreamConsistency(NamedTuple):
    """The residuals of one stream.

    Attributes:
        name: The name of its measurement.
        count: The number of readings.
        mean_nis: The mean squared normalized residual by component; 1 is expected.
        band: The range of ``mean_nis`` of a consistent filter.
    """

    name: str
    count: int
    mean_nis: float
    band: tuple[float, float]

    @property
    def is_consistent(self) -> bool:
        """True if the mean is within its band."""
        return self.band[0] <= self.mean_nis <= self.band[1]

    @property
    def text(self) -> str:
        """One line for people."""
        readings = counted(self.count, "reading")
        mean = f"'{self.name}': mean squared residual {self.mean_nis:.3g} of the expected one in {readings}"
        if self.is_consistent:
            return f"{mean}, within [{self.band[0]:.3g}, {self.band[1]:.3g}]"
        more = self.mean_nis > self.band[1]
        reason = (
            "the deviations are too small: noise is larger than stated, or the model is wrong"
            if more
            else "the deviations are too large: noise is smaller than stated"
        )
        return f"{mean}, {'above' if more else 'below'} [{self.band[0]:.3g}, {self.band[1]:.3g}]; {reason}"


class Verdict(NamedTuple):
    """Properties of an estimate that can be judged without the truth.

    Attributes:
        finite: Whether the last state and all residuals are finite.
        streams: The residuals of each stream that had readings.
        unobserved: Directions of the error, by names of components, about which no reading is informative.
    """

    finite: bool
    streams: tuple[StreamConsistency, ...]
    unobserved: tuple[str, ...]

    @property
    def is_consistent(self) -> bool:
        """True if the estimate is finite and the residuals of every stream are within their band."""
        return self.finite and all(stream.is_consistent for stream in self.streams)

    @property
    def summary(self) -> str:
        """The outcome as a phrase."""
        if not self.finite:
            return "diverged: a state or residual is not finite"
        return "consistent" if self.is_consistent else "not consistent"

    @property
    def faults(self) -> list[str]:
        """A line for each stream whose residuals are outside of their band, and each direction not observed."""
        lines = [stream.text for stream in self.streams if not stream.is_consistent]
        return lines + [f"not observed: {direction}" for direction in self.unobserved]

    @property
    def text(self) -> str:
        """The verdict for people: one line for each stream and each direction that was not observed."""
        lines = [stream.text for stream in self.streams] + [f"not observed: {each}" for each in self.unobserved]
        return "\n  ".join([self.summary, *(lines if self.finite else [])])


def chi_square_quantile(probability: float, n: int) -> float:
    """The value below which a chi-square number with n degrees of freedom is with this probability."""
    return float(2 * gammaincinv(n / 2, probability))


def judged(
    finite: bool,
    nis: dict[str, np.ndarray],
    dims: dict[str, int],
    names: tuple[str, ...],
    factor: np.ndarray,
    unread: np.ndarray,
) -> Verdict:
    """The verdict on a filtered record.

    The squared normalized residuals of n readings with m components sum up to a chi-square number with n m degrees of
    freedom, if the filter is consistent. The directions not observed are those in which the covariance P is that
    without readings, P0: eigenvectors of ``P0^-1 P`` with eigenvalues near 1.

    Source: Bar-Shalom, Li and Kirubarajan 2001, Estimation with applications to tracking and navigation, sec. 5.4.

    Args:
        finite: True if the last state is finite.
        nis: Of each stream the squared normalized residuals; NaN where there was no reading.
        dims: Of each stream the number of components.
        names: The names of the components of the error.
        factor: A factor of P at the end.
        unread: A factor of P0 at the end.
    """
    # a reading whose residual is infinite has diverged; NaN means that there was none
    count = {name: int(np.isfinite(values).sum()) for name, values in nis.items()}
    finite = finite and not any(np.isinf(values).any() for values in nis.values())
    tail = (1 - CONFIDENCE) / max(sum(n > 0 for n in count.values()), 1)
    streams = []
    for name, values in nis.items():
        n = count[name] * dims[name]
        if n:
            low, high = (chi_square_quantile(p, n) / n for p in (tail / 2, 1 - tail / 2))
            streams.append(StreamConsistency(name, count[name], float(np.nansum(values) / n), (low, high)))
    return Verdict(finite, tuple(streams), unobserved(factor, unread, names) if finite else ())


def unobserved(factor: np.ndarray, unread: np.ndarray, names: tuple[str, ...]) -> tuple[str, ...]:
    """The directions of the error in which the deviation is what it would be without readings, by names."""
    uncertain = np.diagonal(unread) > 0
    if not uncertain.all():
        # what was known exactly needs no reading
        factor, unread = factor[np.ix_(uncertain, uncertain)], unread[np.ix_(uncertain, uncertain)]
        names = tuple(np.array(names)[uncertain])
    if not len(names):
        return ()
    axes, shares, _ = np.linalg.svd(np.linalg.solve(unread, factor))
    return tuple(
        _named(unread @ axis, names, unread) for axis, share in zip(axes.T, shares, strict=True) if share > OBSERVED
    )


def _named(direction: np.ndarray, names: tuple[str, ...], unread: np.ndarray) -> str:
    """A direction as a sum of its large components, in units of their deviations without readings."""
    parts = direction / np.sqrt(np.sum(unread**2, axis=1))
    parts = parts / np.abs(parts).max()
    if parts[np.argmax(np.abs(parts))] < 0:
        parts = -parts
    large = np.argsort(-np.abs(parts))
    return " ".join(f"{parts[i]:+.2g} {names[i]}" for i in large if abs(parts[i]) > 0.1).removeprefix("+1 ")


def nees(estimate: Any, truth: Point) -> Float[Array, " k"]:
    """The squared errors of the estimates, normalized by their covariances; chi-square if the filter is consistent.

    Args:
        estimate: An ``Estimate`` or any object with ``means``, ``factors`` and ``error``.
        truth: The true states at its times, with a leading axis k.
    """

    def one(mean: Point, factor: Array, true: Point) -> Array:
        whitened = solve_triangular(factor, estimate.error.difference(mean, true))
        return whitened @ whitened

    return jax.vmap(one)(estimate.means, estimate.factors, truth)
