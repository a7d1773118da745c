"""Estimators iteration by iteration: what shows its progress, stops anywhere and goes on to the same numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from lgsim.identify.estimators.estimator import Estimate, Estimator, FitRounds, StepwiseEstimator
from lgsim.identify.fit import JOINT_FORCES, Fit, checked
from lgsim.identify.unknowns.parameters import Parameters


class Iteration(NamedTuple):
    """One iteration.

    Attributes:
        number: From 1, counted through all rounds.
        cost: After it.
        damping: Of the next one.
        round: From 1.
    """

    number: int
    cost: float
    damping: float
    round: int


class Stage(NamedTuple):
    """All that the next iteration needs, as arrays.

    Attributes:
        round: From 0; the number of rounds at the end.
        iterations: How many were done.
        carry: What the rounds before found.
        state: Of the descent of this round.
        found: What each round ended with (rounds, ...).
    """

    round: Array
    iterations: Array
    carry: Any
    state: Any
    found: Any


class Search:
    """The same as ``fit``, one iteration after the other.

    Keep ``stage``, a pytree of arrays, and a search of the same parameters, samples and estimator goes on from it to
    the same numbers, bit for bit.

    Args:
        parameters, samples, estimator, validation: As for ``fit``.

    Attributes:
        stage: Where the search is.

    Raises:
        TypeError: as ``fit``, and where the estimator has no iterations of its own.
        ValueError: as ``fit``.
    """

    def __init__(
        self, parameters: Parameters, samples: Any, estimator: Estimator | None = None, validation: Any = None
    ) -> None:
        own = JOINT_FORCES if estimator is None else estimator
        checked(parameters, samples, own, validation)
        if not isinstance(own, StepwiseEstimator):
            raise TypeError(f"estimator: expected one with iterations, got {type(own).__name__}; take fit")
        self._parts = parameters, samples, validation, own
        self._rounds: FitRounds = _prepared(own, parameters, samples)
        self.stage: Stage = _first(self._rounds)

    @property
    def done(self) -> bool:
        """Whether no iteration is left."""
        return int(self.stage.round) >= self._rounds.count

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return self._rounds.count

    def step(self) -> Iteration:
        """Do one iteration.

        Raises:
            RuntimeError: none is left.
        """
        if self.done:
            raise RuntimeError("search: no iteration is left; result() gives the fit")
        stage = self.stage
        if _more(stage.state):
            stage = _stepped(self._rounds, stage)
        state = stage.state
        row = Iteration(int(stage.iterations), float(state.cost), float(state.mu), int(stage.round) + 1)
        self.stage = stage if _more(state) else _turned(self._rounds, stage)
        return row

    def result(self) -> Fit:
        """What was found.

        Raises:
            RuntimeError: iterations are left.
        """
        if not self.done:
            raise RuntimeError("search: expected all iterations to be done; call step() until done")
        parameters, samples, validation, estimator = self._parts
        return Fit(parameters, _concluded(self._rounds, self.stage), samples, validation, estimator)


def _more(state: Any) -> bool:
    return not bool(state.done) and int(state.i) < len(state.costs)


@eqx.filter_jit
def _prepared(estimator: StepwiseEstimator, parameters: Parameters, samples: Any) -> FitRounds:
    return estimator.in_rounds(parameters, samples)


@eqx.filter_jit
def _first(rounds: FitRounds) -> Stage:
    carry, zero = rounds.opening(), jnp.array(0)
    descent, state = rounds.begin(carry, zero)
    every = jax.tree.map(lambda x: jnp.zeros((rounds.count, *x.shape), x.dtype), descent.end(state))
    return Stage(zero, zero, carry, state, every)


@eqx.filter_jit
def _stepped(rounds: FitRounds, stage: Stage) -> Stage:
    state = rounds.descent(stage.carry, stage.round).step(stage.state)
    return stage._replace(state=state, iterations=stage.iterations + 1)


@eqx.filter_jit
def _turned(rounds: FitRounds, stage: Stage) -> Stage:
    found = rounds.descent(stage.carry, stage.round).end(stage.state)
    every = jax.tree.map(lambda all, one: all.at[stage.round].set(one), stage.found, found)
    carry, following = rounds.close(stage.carry, found), stage.round + 1
    # past the last round the state counts for nothing
    _, state = rounds.begin(carry, jnp.minimum(following, rounds.count - 1))
    return Stage(following, stage.iterations, carry, state, every)


@eqx.filter_jit
def _concluded(rounds: FitRounds, stage: Stage) -> Estimate:
    return rounds.conclude(stage.carry, stage.found)
