"""Richardson's error estimate for the step h from differences between solutions with steps h, h/2 and h/4."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

_LEAST_RATIO = 1.25
"""Differences that shrink by less than this factor when the step is halved show no convergence."""
_OFF_ORDER = 3.0
"""Safety factor for errors whose observed order is more than one below the method's."""
_UNKNOWN_FACTOR = 2.0
"""The ratio of error to difference where no order is observed: that of order one."""


class Convergence(NamedTuple):
    """The convergence of several values, entry by entry.

    Attributes:
        order: The observed order; NaN if it is unknown.
        factor: The error of h divided by the difference between h and h/2.
    """

    order: Float[np.ndarray, " m"]
    factor: Float[np.ndarray, " m"]

    @classmethod
    def unknown(cls, count: int) -> Convergence:
        """Unknown convergence, for values known only at h and h/2 or that are not continuous."""
        return cls(np.full(count, np.nan), np.full(count, _UNKNOWN_FACTOR))


def convergence(
    first: Float[np.ndarray, " m"], second: Float[np.ndarray, " m"], order: int, floor: float | Float[np.ndarray, " m"]
) -> Convergence:
    """The order and the factor of the error from the sizes of two differences.

    The error of h is ``first r / (r - 1)``, r being the ratio of the differences or 2^order where that is smaller.

    Args:
        first: The size of the difference between h and h/2.
        second: The size of the difference between h/2 and h/4.
        order: The order of the method.
        floor: The size of differences that may be rounding only.

    Source: Richardson, The approximate arithmetical solution by finite differences, Philosophical Transactions of the
    Royal Society A 210, 1911; Hairer, Norsett, Wanner, Solving ordinary differential equations I, II.4.
    """
    rounding = np.maximum(first, second) <= floor
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(second > 0, first / second, np.inf)
        seen = np.log2(ratio)
    # without convergence no difference bounds the error: take the larger one with a margin
    lost = _LEAST_RATIO / (_LEAST_RATIO - 1) / np.clip(ratio, 0.05, 1)
    tame = np.clip(ratio, _LEAST_RATIO, max(2.0**order, _LEAST_RATIO))
    factor = np.where(ratio < _LEAST_RATIO, lost, tame / (tame - 1))
    factor = np.where(rounding, _UNKNOWN_FACTOR, factor * np.where(seen < order - 1, _OFF_ORDER, 1.0))
    return Convergence(np.where(rounding, np.nan, seen), factor)
