"""Base parameters by linear least squares."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.identify.estimators.estimator import RESULTS, Estimate
from lgsim.identify.estimators.loss import Loss, SquaredLoss
from lgsim.identify.estimators.normal_equations import normal_equations
from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.estimators.torque_fit import OfJointForces, again_noise, concluded, first_noise, with_beliefs
from lgsim.identify.estimators.uncertainty import visible
from lgsim.identify.unknowns.base_parameters import BaseParameters
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.linalg.levenberg_marquardt import Solution


class LinearFit(OfJointForces):
    """Weighted linear least squares of the base parameters; the other coordinates stay at the prior.

    The coordinates must be numbers in which the signals are affine (``StandardParameters``, ``Drive("damping")`` and
    other numbers of joints): one step to the minimum, repeated as the noise of the joints, and with a robust loss the
    weights, become known. The result may be a machine that cannot exist, and bounds are not kept; ``TorqueFit`` with
    ``Inertias`` keeps to both.

    Attributes:
        base: Of ``base_parameters(parameters)``.
        loss, noise, rounds, lags: See ``TorqueFit``.
    """

    base: BaseParameters
    loss: Loss = SquaredLoss()
    noise: Any = None
    rounds: int = eqx.field(static=True, default=3)
    lags: int = eqx.field(static=True, default=0)

    def run(self, parameters: Parameters, samples: TorqueSamples) -> Estimate:
        linear = parameters.linear
        if linear is None:
            raise ValueError(
                "blocks: their coordinates are no numbers of the plant; take StandardParameters, or TorqueFit"
            )
        if not tuple(np.sort(linear)) == self.base.places:
            raise ValueError("base: belongs to other unknowns; take base_parameters(parameters)")
        at = np.argsort(linear)[list(self.base.independent)]
        records = normal_equations(parameters, samples, self.loss)
        kept = jnp.zeros(parameters.size, bool).at[at].set(True)

        def once(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
            x, noise = carry
            data = with_beliefs(parameters, x, records.normal(x, noise))
            inverse = visible(data.hessian, kept)[0]
            after = x - inverse @ data.gradient
            # not a second decomposition of the same matrix: two at once, mapped over data sets, can block XLA's threads
            again = noise if self.noise is not None else again_noise(parameters, records, after, noise, kept, inverse)
            return (after, again), (data.cost, x)

        start = jnp.zeros(parameters.size, parameters.dtype), first_noise(self.noise, samples)
        (x, noise), (costs, path) = jax.lax.scan(once, start, None, length=self.rounds)
        data = records.normal(x, noise)
        status = RESULTS.where(jnp.isfinite(data.cost), RESULTS.successful, RESULTS.nonfinite)
        found = Solution(x, None, data, ~kept, costs, path, jnp.array(self.rounds), status)
        return concluded(parameters, records, x, noise, self.lags, found)
