"""The one interface of all ways to find a plant from records."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from lgsim.identify.unknowns.parameters import Parameters


class RESULTS(eqx.Enumeration):
    """How the search of an estimator ended; the text says what to do."""

    successful = ""
    max_iterations = (
        "All iterations were used while the cost still fell. Give more iterations, a better prior or fewer unknowns."
    )
    stalled = (
        "No step lowers the cost though its gradient is not small. The prior may be far off, or the records may not "
        "belong to this machine."
    )
    nonfinite = "The cost is not finite at the prior. Look at the records and at the model's numbers."


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
        status: ``RESULTS.successful``, or what went wrong.
        starts: First states of the windows of estimators that simulate, else None.
    """

    x: Array
    covariance: Array
    information: Array
    noise: Array
    costs: Array
    path: Array
    iterations: Array
    status: RESULTS
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


class FitRounds(eqx.Module):
    """The rounds of an estimator on records that are prepared; pure functions of arrays."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many."""

    @abstractmethod
    def opening(self) -> Any:
        """What the first round starts from."""

    @abstractmethod
    def descent(self, carry: Any, number: Array) -> Any:
        """The method of a round, number from 0: with ``more``, ``step`` and ``end``."""

    @abstractmethod
    def begin(self, carry: Any, number: Array) -> tuple[Any, Any]:
        """(the method of a round, its first state)."""

    @abstractmethod
    def close(self, carry: Any, found: Any) -> Any:
        """What the next round starts from."""

    @abstractmethod
    def conclude(self, carry: Any, found: Any) -> Estimate:
        """The estimate, of what all rounds found (rounds, ...)."""

    def whole(self) -> Estimate:
        """All rounds in one go."""

        def once(carry: Any, number: Array) -> tuple[Any, Any]:
            descent, state = self.begin(carry, number)
            found = descent.end(jax.lax.while_loop(descent.more, descent.step, state))
            return self.close(carry, found), found

        return self.conclude(*jax.lax.scan(once, self.opening(), jnp.arange(self.count)))


class StepwiseEstimator(Estimator):
    """An estimator that works in rounds of iterations."""

    @abstractmethod
    def in_rounds(self, parameters: Parameters, samples: Any) -> FitRounds:
        """Its rounds; a pure function of arrays."""


class SummedCost(eqx.Module):
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
    def conclude(self, unknowns: tuple[Array, ...], costs: Array, path: Array, status: RESULTS) -> Estimate:
        """The estimate at the unknowns with its uncertainty."""


class SummedCostEstimator(Estimator):
    """An estimator whose cost is a sum over pieces of the records."""

    @abstractmethod
    def pieces(self, parameters: Parameters, samples: Any) -> SummedCost:
        """The records in pieces."""
