"""Identification by steps along gradients of random parts of the records, for many records and unknowns."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from lgsim.identify.estimators.estimator import RESULTS, Estimate, Estimator, SummedCostEstimator
from lgsim.identify.unknowns.parameters import Parameters


class StochasticFit(Estimator):
    """Any optimiser of optax on random parts of the records, each step with the gradient of some pieces.

    The cost is that of another estimator, whose uncertainty at the end is given. Coordinates stay within their bounds.

    Attributes:
        of: Whose cost it is: ``TorqueFit`` or ``SimulationFit``, of which the first of ``gaps`` counts.
        optimiser: Such as ``optax.adam(1e-2)``, with schedules and all.
        steps: Number of steps.
        batch: Pieces in each.
        seed: Of the choice of pieces.
    """

    of: SummedCostEstimator
    optimiser: optax.GradientTransformation
    steps: int = eqx.field(static=True, default=1000)
    batch: int = eqx.field(static=True, default=32)
    seed: int = eqx.field(static=True, default=0)

    def run(self, parameters: Parameters, samples: Any) -> Estimate:
        pieces = self.of.pieces(parameters, samples)
        lower, upper = parameters.bounds()
        batch = min(self.batch, pieces.count)

        def cost(unknowns: tuple[Array, ...], chosen: Array) -> Array:
            r = parameters.beliefs_at(unknowns[0])
            return pieces.cost(unknowns, chosen) * (pieces.count / batch) + r @ r / 2

        def step(carry: tuple[Any, Any], key: Array) -> tuple[tuple[Any, Any], tuple[Array, Array]]:
            unknowns, state = carry
            chosen = jax.random.choice(key, pieces.count, (batch,), replace=False)
            value, slope = jax.value_and_grad(cost)(unknowns, chosen)
            update, state = self.optimiser.update(slope, state, unknowns)
            x, *others = jax.tree.map(jnp.add, unknowns, update)
            return ((jnp.clip(x, lower, upper), *others), state), (value, x)

        keys = jax.random.split(jax.random.key(self.seed), self.steps)
        begin = pieces.start, self.optimiser.init(pieces.start)
        (unknowns, _), (costs, path) = jax.lax.scan(step, begin, keys)
        finite = jnp.all(jnp.isfinite(unknowns[0]))
        return pieces.conclude(unknowns, costs, path, RESULTS.where(finite, RESULTS.successful, RESULTS.nonfinite))

    def check(self, parameters: Parameters, samples: Any) -> int:
        return self.of.check(parameters, samples)

    def columns(self, parameters: Parameters, samples: Any) -> list[str]:
        return self.of.columns(parameters, samples)

    def residuals(self, parameters: Parameters, x: Array, samples: Any) -> tuple[Array, Array]:
        return self.of.residuals(parameters, x, samples)

    def deviations(self, parameters: Parameters, x: Array, covariance: Array, samples: Any) -> Array:
        return self.of.deviations(parameters, x, covariance, samples)
