"""The one interface of all ways to find a plant from records."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import equinox as eqx
from jax import Array

from lgsim.identify.gauss_newton import STATUS
from lgsim.identify.parameters import Parameters


class Estimate(NamedTuple):
    """What an estimator finds; arrays alone.

    Attributes:
        x: Coordinates (p,).
        covariance: Of x (p, p), zero along what the records do not show.
        information: Second derivatives of half the squared residuals in standard deviations (p, p), without priors.
        noise: Standard deviation of each column of the residuals.
        costs: Of each iteration, NaN after the last one.
        path: Coordinates at each iteration.
        iterations: How many were done.
        status: ``STATUS.successful`` or what went wrong.
        starts: First states of the windows of estimators that simulate, else None.
    """

    x: Array
    covariance: Array
    information: Array
    noise: Array
    costs: Array
    path: Array
    iterations: Array
    status: STATUS
    starts: Array | None = None


class Estimator(eqx.Module):
    """A way to find the coordinates of a plant from records of one kind, such as ``Samples`` or ``Records``."""

    @abstractmethod
    def run(self, parameters: Parameters, samples: Any) -> Estimate:
        """A pure function of arrays, for ``jit`` and ``vmap``."""

    @abstractmethod
    def check(self, parameters: Parameters, samples: Any) -> int:
        """The count of numbers with a weight in the records.

        Raises:
            TypeError: the records are of another kind, or of another dtype than the model.
            ValueError: a shape is wrong, or a number with a weight is not finite.
        """

    @abstractmethod
    def columns(self, parameters: Parameters, samples: Any) -> list[str]:
        """What the columns of the residuals are."""

    @abstractmethod
    def residuals(self, parameters: Parameters, x: Array, samples: Any) -> tuple[Array, Array]:
        """(what the plant at x gives less what was recorded, its weights), each (n, columns), in the records' units."""

    @abstractmethod
    def deviations(self, parameters: Parameters, x: Array, covariance: Array, samples: Any) -> Array:
        """Standard deviations (n, columns) of what the plant gives, that come from the uncertain x alone."""
