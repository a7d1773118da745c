"""The one interface of all ways to find a plant from records, and of those that work in iterations."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from lgsim._compile.linalg.levenberg_marquardt import LevenbergMarquardt, Solution, State
from lgsim._compile.xla import control_flow
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.integrators.method import Method


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
    interrupted = (
        "The iterations were interrupted: this is the best point that they had. With a checkpoint, fit again to go on."
    )


class Estimate(NamedTuple):
    """What an estimator finds; arrays alone.

    Attributes:
        x: Coordinates of the unknowns (p,).
        covariance: Covariance of x (p, p), zero along what the records do not show.
        information: Second derivatives of half the squared residuals in standard deviations (p, p), without priors.
        noise: Standard deviation of each column of the residuals (columns,), in the records' units.
        costs: Cost at the start of each iteration (iterations at most,), NaN after the last one.
        path: Coordinates at the start of each iteration (iterations at most, p), x after the last one.
        result: ``RESULTS.successful`` or what went wrong.
        starts: First states of the windows (windows, state) of estimators that simulate, else None.
        score_covariance: Covariance of the records' part of the gradient (p, p); ``information`` where that is None, as
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
    """The motion of an estimate, simulated again by other steps.

    Attributes:
        residuals: What the plant gives less what was recorded, in the records' units, (n, columns).
        weights: Their weights, (n, columns).
        gradient: Gradient of the cost by the coordinates, first states being free to move, (p,).
    """

    residuals: Float[Array, "n columns"]
    weights: Float[Array, "n columns"]
    gradient: Float[Array, " p"]


class Estimator(eqx.Module):
    """A way to find the unknowns of a plant from records of one kind, ``TorqueSamples`` or ``SensorRecords``."""

    @abstractmethod
    def run(self, parameters: Parameters, samples: Any) -> Estimate:
        """The estimate of the unknowns from some records; a pure function of arrays, for ``jit`` and ``vmap``."""

    @abstractmethod
    def check(self, parameters: Parameters, samples: Any) -> int:
        """The count of numbers with a weight in the records.

        Raises:
            TypeError: the records are of another kind, or of another dtype than the model.
            ValueError: a shape is wrong, or a number with a weight is not finite.
        """

    @abstractmethod
    def columns(self, parameters: Parameters, samples: Any) -> list[str]:
        """A name for each column of the residuals."""

    @abstractmethod
    def residuals(
        self, parameters: Parameters, x: Float[Array, " p"], samples: Any
    ) -> tuple[Float[Array, "n columns"], Float[Array, "n columns"]]:
        """(what the plant at x gives less what was recorded, in the records' units; its weights)."""

    @abstractmethod
    def deviations(
        self, parameters: Parameters, x: Float[Array, " p"], covariance: Float[Array, "p p"], samples: Any
    ) -> Float[Array, "n columns"]:
        """Standard deviations of what the plant at x gives, in the records' units, that the covariance of x brings."""

    @property
    def integration(self) -> Method | None:
        """The method by which the estimator simulates; None where it does not."""
        return None

    def resimulated(
        self, parameters: Parameters, estimate: Estimate, samples: Any, substeps: Int[Array, ""]
    ) -> Resimulation:
        """The motion of an estimate from its first states, by steps so many times shorter.

        Raises:
            TypeError: the estimator does not simulate.
        """
        raise TypeError(f"{type(self).__name__} does not simulate, so that it has no steps")


class Iteration(NamedTuple):
    """One iteration of an estimator, as plain numbers.

    Attributes:
        number: Number of the iteration, from 1, counted through all rounds.
        cost: Cost after the iteration.
        damping: Damping of the next iteration of the round.
        round: Number of the round, from 1.
        rounds: Number of rounds in all.
    """

    number: int
    cost: float
    damping: float
    round: int
    rounds: int


class RoundStart(NamedTuple):
    """What a round starts from.

    Attributes:
        x: Coordinates of the unknowns (p,).
        rest: The other unknowns of the search, such as first states, or None.
        noise: What the noise of each column is taken to be (columns,).
        noise_before: The same in the round before.
    """

    x: Float[Array, " p"]
    rest: Any
    noise: Float[Array, " columns"]
    noise_before: Float[Array, " columns"]


class RoundState(NamedTuple):
    """State of an estimator between two iterations: arrays that hold all that the next one needs.

    Attributes:
        round: Number of the round, from 0; the number of rounds after the last one.
        iterations: Number of iterations done, in all rounds.
        carry: What the rounds before give to this one.
        state: State of the descent of this round.
        found: Solution of each round (rounds, ...), zero for those to come.
    """

    round: Int[Array, ""]
    iterations: Int[Array, ""]
    carry: RoundStart
    state: State
    found: Solution


class FitRounds(eqx.Module):
    """The rounds of an estimator on records that are prepared; pure functions of arrays."""

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of rounds."""

    @abstractmethod
    def opening(self) -> RoundStart:
        """What the first round starts from."""

    @abstractmethod
    def descent(self, start: RoundStart, number: Int[Array, ""]) -> LevenbergMarquardt:
        """The method of a round, numbered from 0."""

    @abstractmethod
    def noise_after(self, start: RoundStart, found: Solution) -> Float[Array, " columns"]:
        """The noise after a round that found a solution."""

    @abstractmethod
    def estimate(self, end: RoundStart, found: Solution) -> Estimate:
        """The estimate, from what a further round would start from and the solution by ``concatenate_rounds``."""

    def close(self, start: RoundStart, found: Solution) -> RoundStart:
        """What the next round starts from, after a round that found a solution."""
        return RoundStart(found.x, found.rest, self.noise_after(start, found), start.noise)

    def conclude(self, end: RoundStart, every: Solution) -> Estimate:
        """The estimate, from what a further round would start from and the solutions of all rounds (rounds, ...)."""
        return self.estimate(end, concatenate_rounds(every))

    def search(self) -> tuple[RoundStart, Solution]:
        """(what a further round would start from, the solutions of all rounds (rounds, ...)), as one program."""

        def once(start: RoundStart, number: Array) -> tuple[RoundStart, Solution]:
            found = self.descent(start, number).find(start.x, start.rest)
            return self.close(start, found), found

        return control_flow.scan(once, self.opening(), jnp.arange(self.count))

    def run(self) -> Estimate:
        """The estimate after all rounds, as one program."""
        return self.conclude(*self.search())

    def begin(self) -> RoundState:
        """The state before the first iteration."""
        start, zero = self.opening(), jnp.zeros((), int)
        descent = self.descent(start, zero)
        state = descent.begin(start.x, start.rest)
        every = jax.tree.map(lambda x: jnp.zeros((self.count, *x.shape), x.dtype), descent.end(state))
        return RoundState(zero, zero, start, state, every)

    def advance(self, now: RoundState) -> RoundState:
        """The state after one more iteration of the round, or of one that has ended at the start of the next."""

        def iterate(now: RoundState) -> RoundState:
            state = self.descent(now.carry, now.round).step(now.state)
            # an evaluation of the start is no iteration
            done = jnp.where(now.state.i >= 0, now.iterations + 1, now.iterations)
            return now._replace(state=state, iterations=done)

        def close(now: RoundState) -> RoundState:
            found = self.descent(now.carry, now.round).end(now.state)
            every = jax.tree.map(lambda all, one: all.at[now.round].set(one), now.found, found)
            start, number = self.close(now.carry, found), now.round + 1
            # past the last round the state counts for nothing
            state = self.descent(start, jnp.minimum(number, self.count - 1)).begin(start.x, start.rest)
            return RoundState(number, now.iterations, start, state, every)

        return control_flow.cond(now.state.unfinished, iterate, close, now)


def concatenate_rounds(rounds: Solution) -> Solution:
    """The solution of the last of some rounds (rounds, ...), with the costs and coordinates of all of them in a row."""
    last: Solution = jax.tree.map(lambda a: a[-1], rounds)
    costs = rounds.costs.reshape(-1)
    # those of a round end with NaN
    order = jnp.argsort(jnp.isnan(costs), stable=True)
    costs = costs[order]
    path = rounds.path.reshape(-1, last.x.size)[order]
    path = jnp.where(jnp.isnan(costs)[:, None], last.x[None], path)
    return last._replace(costs=costs, path=path, iterations=jnp.sum(rounds.iterations))


class StepwiseEstimator(Estimator):
    """An estimator that works in rounds of iterations."""

    @abstractmethod
    def in_rounds(self, parameters: Parameters, samples: Any) -> FitRounds:
        """The rounds on some records; a pure function of arrays."""

    def run(self, parameters: Parameters, samples: Any) -> Estimate:
        return self.in_rounds(parameters, samples).run()
