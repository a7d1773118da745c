"""An estimated integration error and the tolerance that it is compared with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

Real = Float[np.ndarray, "..."]


@dataclass(frozen=True)
class ErrorEstimate:
    """An estimated integration error, entry by entry, in the unit of the values.

    Attributes:
        value: Estimated absolute error; NaN or infinite where it is unknown.
        tolerance: The error up to which a value counts as converged in the step size.
        order: The observed order of convergence; NaN where rounding or large errors hide it.
        reason: Why the values have not converged in the step size, with a remedy; empty if they have.
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
        """True if all values have converged in the step size."""
        return not self.reason

    @property
    def shares(self) -> Real:
        """The errors as fractions of their tolerances; zero where there is no error, infinite where it is unknown."""
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.divide(self.value, self.tolerance)
        return np.where(self.value == 0, 0.0, np.where(np.isnan(share), np.inf, share))
