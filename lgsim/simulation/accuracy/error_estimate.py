"""An estimated integration error and the tolerance that it is compared with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

Real = Float[np.ndarray, "..."]


@dataclass(frozen=True)
class ErrorEstimate:
    """An estimated integration error, number by number, in the unit of the numbers.

    Attributes:
        value: Estimate of the size of the error; NaN or infinite where it is unknown.
        tolerance: The error up to which a number is converged in the step size.
        order: The observed order of convergence; NaN where rounding or large errors hide it.
        reason: Empty, or why the whole is not converged in the step size, and what helps.
    """

    value: Real
    tolerance: Real
    order: float | Real
    reason: str = ""

    @property
    def error(self) -> Real:
        """The estimate, ``value``."""
        return self.value

    @property
    def resolved(self) -> bool:
        """Whether the whole is converged in the step size."""
        return not self.reason

    @property
    def shares(self) -> Real:
        """The errors as fractions of their tolerances; zero where there is no error, infinite where it is unknown."""
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.divide(self.value, self.tolerance)
        return np.where(self.value == 0, 0.0, np.where(np.isnan(share), np.inf, share))
