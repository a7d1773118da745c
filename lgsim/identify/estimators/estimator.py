"""Interface of the estimators, in one call or iteration by iteration."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from lgsim._compile.linalg.levenberg_marquardt import LevenbergMarquardt, Solution, State
from lgsim._compile.xla import control_flow
from lgsim.identify.goodness import Signals
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.integrators.method import Method

NEGLIGIBLE = 1e-3
"""Decrease of a cost, half a sum of squared residuals in units of the noise, that is far below its uncertainty."""


class RESULTS(eqx.Enumeration):
    """Termination codes of an estimator; the text names a remedy."""

    successful = ""
    max_iterations = (
        "The maximum number of iterations was reached while the cost still decreased. Increase max_iterations,"
        " improve the prior or reduce the unknowns."
    )
    stalled = (
        "No step decreases the cost although its gradient is not small. The prior may be far off, or the records may"
        " not belong to this model."
    )
    nonfinite = "The cost is not finite at the prior. Check the records and the model's parameters."
    unobservable = (
        "The sensors do not determine the initial state of a window, so that there is no covariance. Set"
        " start_deviation, use longer windows, or add a sensor that sees all joints and actuator states."
    )
    nonfinite_derivative = (
        "The cost is finite, but a derivative of the simulated readings is not. Check the model's parameters for a"
        " value at which they are not differentiable."
    )
    noise_not_settled = (
        "Noise not settled: its estimate still changed after the last round. Increase noise_updates, give the noise, or"
        " add records: an unknown may explain the noise of a signal, or a strong prior may compete with it."
    )
    interrupted = (
        "The iterations were interrupted; the best point so far is returned. To resume, call fit again with a"
        " checkpoint."
    )


class Estimate(NamedTuple):
    """The result of an estimator; contains only arrays.

    Attributes:
        x: Coordinates of the unknowns (p,).
        covariance: Covariance of x (p, p), zero along directions that are not identifiable.
        information: Hessian of half the squared normalized residuals (p, p), without priors.
        noise: Standard deviation of each column of the residuals (columns,), in the records' units.
        costs: Cost at the start of each iteration (rows,), NaN after the last one.
        path: Coordinates at the start of each iteration (rows, p), x after the last one.
        result: ``RESULTS.successful`` or the reason for the failure.
        starts: Initial states of the windows (windows, state) of estimators that simulate, else None.
        score_covariance: Covariance of the records' part of the gradient (p, p); None if it equals ``information``, as
            for white noise.
    """

    x: Float[Array, " p"]
    covariance: Float[Array, "p p"]
    information: Float[Array, "p p"]
    noise: Float[Array, " columns"]
    costs: Float[Array, " iterations"]
    path: Float[Array, "iterations p"]
    iterations: Int[Array, ""]
    result: RESULTS
    starts: Float[Array, "windows state"] | None = None
    score_covariance: Float[Array, "p p"] | None = None


class Resimulation(NamedTuple):
    """The motion of an estimate, simulated again, with its normal equations after elimination of the initial states.

    Attributes:
        residuals: Predicted minus recorded values, in the records' units, (n, columns).
        weights: Their weights, (n, columns).
        cost: The cost of the estimator.
        gradient: Gradient of the cost with respect to the coordinates, with free initial states, (p,).
        hessian: Gauss-Newton Hessian of the cost with free initial states, (p, p).
        prior_hessian: The contribution of the priors to it.
        score_covariance: Covariance of the records' part of the gradient for noise with the correlation of the
            residuals, (p, p).
        is_white: True if no residuals are significantly larger than their stated noise at any frequency.
        log_determinant: Logarithm of the determinant of the Hessian with respect to the initial states.
        factors: The factorization that eliminates the initial states.
    """

    residuals: Float[Array, "n columns"]
    weights: Float[Array, "n columns"]
    cost: Float[Array, ""]
    gradient: Float[Array, " p"]
    hessian: Float[Array, "p p"]
    prior_hessian: Float[Array, "p p"]
    score_covariance: Float[Array, "p p"]
    is_white: Bool[Array, ""]
    log_determinant: Float[Array, ""]
    factors: Any


class Estimator(eqx.Module):
    """An algorithm that estimates the unknowns from records of one type, ``TorqueSamples`` or ``SensorRecords``."""

    @abstractmethod
    def run(self, parameters: Parameters, samples: Any) -> Estimate:
        """Estimate the unknowns from records; a pure function of arrays, for ``jit`` and ``vmap``."""

    @abstractmethod
    def check(self, parameters: Parameters, samples: Any) -> int:
        """Validate the records and return the number of values with a weight.

        Raises:
            TypeError: the records have another type, or another dtype than the model.
            ValueError: a shape is wrong, or a value with a weight is not finite.
        """

    def within_record(self, parameters: Parameters, samples: Any) -> Parameters:
        """The unknowns with bounds that follow from the records; unchanged by default."""
        return parameters

    @abstractmethod
    def columns(self, parameters: Parameters, samples: Any) -> list[str]:
        """Names of the columns of the residuals."""

    @abstractmethod
    def residuals(
        self, parameters: Parameters, x: Float[Array, " p"], samples: Any
    ) -> tuple[Float[Array, "n columns"], Float[Array, "n columns"]]:
        """Predicted minus recorded values of the plant at x, in the records' units, and their weights."""

    @abstractmethod
    def deviations(
        self, parameters: Parameters, x: Float[Array, " p"], covariance: Float[Array, "p p"], samples: Any
    ) -> Float[Array, "n columns"]:
        """Standard deviations of the predictions at x due to the covariance of x, in the records' units."""

    def padded(self, samples: Any) -> Any:
        """Records of which other numbers of samples share the compiled programs: with samples of weight zero."""
        return samples

    def signals(self, parameters: Parameters, samples: Any) -> Signals | None:
        """The recorded signals, to judge the residuals by; None if they are unknown."""
        return None

    def rounding(self, samples: Any) -> Float[Array, " columns"] | None:
        """Residuals that rounding errors explain, in the records' units; None if unknown."""
        return None

    @property
    def integration(self) -> Method | None:
        """The integration method of the simulations; None if the estimator does not simulate."""
        return None

    def resimulated(
        self, parameters: Parameters, estimate: Estimate, samples: Any, substeps: Int[Array, ""]
    ) -> Resimulation:
        """Simulate an estimate from its initial states with the step divided by a factor.

        Raises:
            TypeError: the estimator does not simulate.
        """
        raise TypeError(f"{type(self).__name__} does not simulate, so that it has no step size")

    def moved_starts(
        self,
        parameters: Parameters,
        samples: Any,
        estimate: Estimate,
        factors: Any,
        dx: Float[Array, " p"],
        z: Float[Array, "windows state"],
    ) -> Float[Array, "windows state"]:
        """The initial states that minimize the cost after a change dx of the coordinates, plus a draw of their noise.

        Args:
            factors: ``Resimulation.factors`` at the estimate.
            z: Standard normal numbers (windows, state), which the factors correlate; zero for no noise.
        """
        raise TypeError(f"{type(self).__name__} does not simulate, so that it has no initial states")

    def inputs(self, parameters: Parameters, samples: Any) -> tuple[list[str], Float[np.ndarray, "sets steps n"]]:
        """Names and values of the inputs that drive the simulation, constant over each step; none by default."""
        return [], np.zeros((1, 0, 0))


class Iteration(NamedTuple):
    """One iteration of an estimator, as plain numbers.

    Attributes:
        number: Number of the iteration, from 1, counted over all rounds.
        cost: Cost after the iteration.
        damping: Damping of the next iteration of the round.
        round: Number of the round, from 1.
        rounds: The largest number of rounds.
    """

    number: int
    cost: float
    damping: float
    round: int
    rounds: int


class RoundStart(NamedTuple):
    """The starting point of a round.

    Attributes:
        x: Coordinates of the unknowns (p,).
        rest: Further unknowns of the search, such as initial states, or None.
        noise: Assumed noise of each column (columns,).
        noise_before: Assumed noise in the previous round.
    """

    x: Float[Array, " p"]
    rest: Any
    noise: Float[Array, " columns"]
    noise_before: Float[Array, " columns"]


class RoundState(NamedTuple):
    """State of an estimator between two iterations; contains everything that the next one needs.

    Attributes:
        round: Number of the round, from 0; the number of rounds after the last one.
        iterations: Number of iterations so far, in all rounds.
        carry: Data from the previous rounds for this one.
        state: State of the minimization of this round.
        found: Solution of the previous round, with the costs and the path of all of them.
        ended: True after the last round.
    """

    round: Int[Array, ""]
    iterations: Int[Array, ""]
    carry: RoundStart
    state: State
    found: Solution
    ended: Bool[Array, ""]


class FitRounds(eqx.Module):
    """The rounds of an estimator on prepared records; pure functions of arrays."""

    @property
    @abstractmethod
    def count(self) -> int:
        """The largest number of rounds."""

    @property
    def recorded(self) -> int:
        """Number of rounds for all of whose iterations there are rows of costs and coordinates."""
        return self.count

    def ended(self, start: RoundStart, number: Int[Array, ""], found: Solution) -> Bool[Array, ""]:
        """True if no further round is needed.

        Args:
            start: The start of a further round.
            number: Number of rounds so far.
            found: Solution of the last one.
        """
        return number >= self.count

    @abstractmethod
    def opening(self) -> RoundStart:
        """The starting point of the first round."""

    @abstractmethod
    def descent(self, start: RoundStart, number: Int[Array, ""]) -> LevenbergMarquardt:
        """The minimization method of a round, numbered from 0."""

    @abstractmethod
    def noise_after(self, start: RoundStart, found: Solution) -> Float[Array, " columns"]:
        """The noise estimate after a round."""

    @abstractmethod
    def estimate(self, end: RoundStart, found: Solution) -> Estimate:
        """The estimate, from the start of a further round and the solution of the last one with the costs of all."""

    def close(self, start: RoundStart, found: Solution) -> RoundStart:
        """The start of the next round, from the solution of a round."""
        return RoundStart(found.x, found.rest, self.noise_after(start, found), start.noise)

    def conclude(self, end: RoundStart, found: Solution) -> Estimate:
        """The estimate, from the start of a further round and the solution of ``search``."""
        path = jnp.where(jnp.isnan(found.costs)[:, None], found.x[None], found.path)
        return self.estimate(end, found._replace(path=path))

    def search(self) -> tuple[RoundStart, Solution]:
        """Run all rounds as one program.

        Returns:
            The start of a further round, and the solution of the last one with costs and coordinates of all of them.
        """

        def once(now: tuple[RoundStart, Solution, Array, Array]) -> tuple[RoundStart, Solution, Array, Array]:
            start, every, number, _ = now
            found = self.descent(start, number).find(start.x, start.rest)
            start = self.close(start, found)
            return start, _append(every, found), number + 1, self.ended(start, number + 1, found)

        start, zero = self.opening(), jnp.zeros((), int)
        descent = self.descent(start, zero)
        blank = self._blank(descent.end(descent.begin(start.x, start.rest)))
        return control_flow.while_loop(lambda now: ~now[3], once, (start, blank, zero, jnp.array(False)))[:2]

    def run(self) -> Estimate:
        """The estimate after all rounds, as one program."""
        return self.conclude(*self.search())

    def begin(self) -> RoundState:
        """The state before the first iteration."""
        start, zero = self.opening(), jnp.zeros((), int)
        descent = self.descent(start, zero)
        state = descent.begin(start.x, start.rest)
        return RoundState(zero, zero, start, state, self._blank(descent.end(state)), jnp.array(False))

    def advance(self, now: RoundState) -> RoundState:
        """The state after one more iteration; a finished round moves on to the start of the next."""

        def iterate(now: RoundState) -> RoundState:
            state = self.descent(now.carry, now.round).step(now.state)
            # the evaluation of the starting point does not count as an iteration
            done = jnp.where(now.state.i >= 0, now.iterations + 1, now.iterations)
            return now._replace(state=state, iterations=done)

        def close(now: RoundState) -> RoundState:
            found = self.descent(now.carry, now.round).end(now.state)
            start, number = self.close(now.carry, found), now.round + 1
            # after the last round the state is not used
            state = self.descent(start, jnp.minimum(number, self.count - 1)).begin(start.x, start.rest)
            ended = self.ended(start, number, found)
            return RoundState(number, now.iterations, start, state, _append(now.found, found), ended)

        return control_flow.cond(now.state.unfinished, iterate, close, now)

    def _blank(self, found: Solution) -> Solution:
        """The solution before the first round, with empty rows for the iterations of ``recorded`` rounds."""
        rows, x = self.recorded * found.costs.size, found.x
        costs, path = jnp.full(rows, jnp.nan, x.dtype), jnp.zeros((rows, x.size), x.dtype)
        return found._replace(costs=costs, path=path, iterations=jnp.zeros_like(found.iterations))


def _append(every: Solution, found: Solution) -> Solution:
    """The solution of a round, with the costs and coordinates of earlier rounds before its own.

    Iterations beyond the last row are counted and not recorded.
    """
    index, rows = jnp.arange(found.costs.size), every.costs.size
    row = jnp.where(index < found.iterations, every.iterations + index, rows)
    return found._replace(
        costs=every.costs.at[row].set(found.costs, mode="drop"), path=every.path.at[row].set(found.path, mode="drop"),
        iterations=every.iterations + found.iterations,
    )  # fmt: skip


class StepwiseEstimator(Estimator):
    """An estimator that runs in rounds of iterations."""

    @abstractmethod
    def in_rounds(self, parameters: Parameters, samples: Any) -> FitRounds:
        """The rounds on given records; a pure function of arrays."""

    def run(self, parameters: Parameters, samples: Any) -> Estimate:
        return self.in_rounds(parameters, samples).run()
