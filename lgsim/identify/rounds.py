"""Iterations in rounds: each round is one descent, and what it finds, such as the noise, changes the next."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from lgsim.identify.estimator import Estimate, Estimator
from lgsim.identify.parameters import Parameters


class Rounds(eqx.Module):
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
    def in_rounds(self, parameters: Parameters, samples: Any) -> Rounds:
        """Its rounds; a pure function of arrays."""
