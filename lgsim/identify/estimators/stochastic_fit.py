"""Stochastic gradient descent on random batches of the records, for many records and unknowns."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array
from jaxtyping import Float, Int, Key

from lgsim.identify.estimators.estimator import RESULTS, Estimate, Estimator, Resimulation, SummedCostEstimator
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.integrators.method import Method
from lgsim.support import check
from lgsim.xla import control_flow


class StochasticFit(Estimator):
    """Any optimizer of optax on random batches of the records, each step with the gradient of the batch's cost.

    The cost is that of another estimator, whose uncertainty at the end is given. Coordinates stay within their bounds.

    Attributes:
        estimator: The estimator whose cost it is: ``TorqueFit`` or ``SimulationFit``, of which the first of
            ``gap_deviations`` counts.
        optimizer: An optimizer such as ``optax.adam(1e-2)``, with schedules and all.
        steps: Number of steps.
        batch: Number of samples or windows in each step.
        seed: Seed of the choice of samples or windows.
    """

    estimator: SummedCostEstimator
    optimizer: optax.GradientTransformation
    steps: int = eqx.field(static=True, default=1000)
    batch: int = eqx.field(static=True, default=32)
    seed: int = eqx.field(static=True, default=0)

    def __check_init__(self) -> None:
        check.count("steps", self.steps)
        check.count("batch", self.batch)

    def run(self, parameters: Parameters, samples: Any) -> Estimate:
        pieces = self.estimator.pieces(parameters, samples)
        lower, upper = parameters.bounds()
        batch = min(self.batch, pieces.count)

        def cost(unknowns: tuple[Array, ...], chosen: Int[Array, " batch"]) -> Float[Array, ""]:
            r = parameters.prior_residuals(unknowns[0])
            return pieces.cost(unknowns, chosen) * (pieces.count / batch) + r @ r / 2

        def step(
            carry: tuple[tuple[Array, ...], Any], key: Key[Array, ""]
        ) -> tuple[tuple[tuple[Array, ...], Any], tuple[Float[Array, ""], Float[Array, " p"]]]:
            unknowns, state = carry
            chosen = jax.random.choice(key, pieces.count, (batch,), replace=False)
            value, slope = jax.value_and_grad(cost)(unknowns, chosen)
            update, state = self.optimizer.update(slope, state, unknowns)
            x, *others = jax.tree.map(jnp.add, unknowns, update)
            return ((jnp.clip(x, lower, upper), *others), state), (value, x)

        keys = jax.random.split(jax.random.key(self.seed), self.steps)
        begin = pieces.start, self.optimizer.init(pieces.start)
        (unknowns, _), (costs, path) = control_flow.scan(step, begin, keys)
        finite = jnp.all(jnp.isfinite(unknowns[0]))
        return pieces.conclude(unknowns, costs, path, RESULTS.where(finite, RESULTS.successful, RESULTS.nonfinite))

    def check(self, parameters: Parameters, samples: Any) -> int:
        return self.estimator.check(parameters, samples)

    def columns(self, parameters: Parameters, samples: Any) -> list[str]:
        return self.estimator.columns(parameters, samples)

    def residuals(
        self, parameters: Parameters, x: Float[Array, " p"], samples: Any
    ) -> tuple[Float[Array, "n columns"], Float[Array, "n columns"]]:
        return self.estimator.residuals(parameters, x, samples)

    @property
    def integration(self) -> Method | None:
        return self.estimator.integration

    def resimulated(
        self, parameters: Parameters, estimate: Estimate, samples: Any, substeps: Int[Array, ""]
    ) -> Resimulation:
        return self.estimator.resimulated(parameters, estimate, samples, substeps)

    def deviations(
        self, parameters: Parameters, x: Float[Array, " p"], covariance: Float[Array, "p p"], samples: Any
    ) -> Float[Array, "n columns"]:
        return self.estimator.deviations(parameters, x, covariance, samples)
