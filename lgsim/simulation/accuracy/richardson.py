"""Richardson's estimate of an error: what differences between steps of h, h/2 and h/4 say of that of h."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

_LEAST_RATIO = 1.25
"""Differences that shrink by less when the step is halved show no convergence."""
_OFF_ORDER = 3.0
"""Factor of errors whose order is more than one below the method's."""
_UNKNOWN_FACTOR = 2.0
"""The error over the difference where no order is seen: that of order one."""


class Convergence(NamedTuple):
    """How numbers converge, one by one.

    Attributes:
        order: The order that is seen, NaN where none is.
        factor: The error of h over the difference of h and h/2.
    """

    order: Float[np.ndarray, " m"]
    factor: Float[np.ndarray, " m"]

    @classmethod
    def unknown(cls, count: int) -> Convergence:
        """That of numbers of which only h and h/2 are known, or which are no continuous ones."""
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
        floor: The size of differences that are those of rounding.

    Source: Richardson, The approximate arithmetical solution by finite differences, Philosophical Transactions of the
    Royal Society A 210, 1911; Hairer, Norsett, Wanner, Solving ordinary differential equations I, II.4.
    """
    rounding = np.maximum(first, second) <= floor
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(second > 0, first / second, np.inf)
        seen = np.log2(ratio)
    # without convergence the error is not bounded by any difference: that of the larger one, with some reserve
    lost = _LEAST_RATIO / (_LEAST_RATIO - 1) / np.clip(ratio, 0.05, 1)
    tame = np.clip(ratio, _LEAST_RATIO, max(2.0**order, _LEAST_RATIO))
    factor = np.where(ratio < _LEAST_RATIO, lost, tame / (tame - 1))
    factor = np.where(rounding, _UNKNOWN_FACTOR, factor * np.where(seen < order - 1, _OFF_ORDER, 1.0))
    return Convergence(np.where(rounding, np.nan, seen), factor)
