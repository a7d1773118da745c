"""Records as pieces whose costs add up: what stochastic estimation draws from."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import equinox as eqx
from jax import Array

from lgsim.identify.estimator import Estimate, Estimator
from lgsim.identify.gauss_newton import STATUS
from lgsim.identify.parameters import Parameters


class Pieces(eqx.Module):
    """Records as pieces whose costs add up: samples, or windows with the states at their starts.

    Attributes:
        start: All unknowns, the coordinates x first: (x, further arrays).
    """

    start: eqx.AbstractVar[tuple[Array, ...]]

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of pieces."""

    @abstractmethod
    def cost(self, unknowns: tuple[Array, ...], chosen: Array) -> Array:
        """Half the sum of the losses of some pieces, by their numbers (k,)."""

    @abstractmethod
    def conclude(self, unknowns: tuple[Array, ...], costs: Array, path: Array, status: STATUS) -> Estimate:
        """The estimate at the unknowns with its uncertainty."""


class PiecewiseEstimator(Estimator):
    """An estimator whose cost is a sum over pieces of the records."""

    @abstractmethod
    def pieces(self, parameters: Parameters, samples: Any) -> Pieces:
        """The records in pieces."""
