"""Base parameters by weighted linear least squares of recorded joint torques."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim._compile.linalg.levenberg_marquardt import Solution
from lgsim._compile.xla import control_flow
from lgsim.identify.estimators.estimator import RESULTS, Estimate
from lgsim.identify.estimators.loss import Loss, SquaredLoss
from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.estimators.torque_fit import (
    TorqueEstimator,
    estimate_noise,
    initial_noise,
    noise_floor,
    torque_estimate,
    with_priors,
)
from lgsim.identify.estimators.torque_objective import torque_objective
from lgsim.identify.estimators.uncertainty import scaled_spectrum
from lgsim.identify.unknowns.base_parameters import BaseParameters
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import NumbersLike


class LinearFit(TorqueEstimator):
    """Weighted linear least squares for the base parameters; the other coordinates stay at the prior.

    The signals must be affine in the coordinates (``StandardParameters``, ``JointParameter("damping")`` and other joint
    parameters). One step reaches the minimum; it is repeated as the noise of the joints, and with a robust loss the
    weights, are estimated. The result may be physically inconsistent, and bounds are not enforced; use ``TorqueFit``
    with ``Inertias`` for both.

    Attributes:
        base: The base parameters of the same unknowns, by ``base_parameters(parameters)``.
        noise: Standard deviations of the signals (nv,); None to estimate them.
        noise_updates: Number of steps, each followed by an estimate of the noise.
        lags: Treatment of correlated noise in the covariance, as in ``TorqueFit``.
    """

    base: BaseParameters
    loss: Loss = SquaredLoss()
    noise: NumbersLike | None = None
    noise_updates: int = eqx.field(static=True, default=3)
    lags: int | None = eqx.field(static=True, default=None)

    def run(self, parameters: Parameters, samples: TorqueSamples) -> Estimate:
        """Estimate the unknowns; a pure function of arrays, for ``jit`` and ``vmap``.

        Raises:
            ValueError: the signals are not affine in a coordinate, or the base parameters belong to other unknowns.
        """
        linear = parameters.linear_indices
        if linear is None:
            raise ValueError(
                "blocks: expected coordinates in which the signals are affine; use StandardParameters, or TorqueFit"
            )
        if not tuple(np.sort(linear)) == self.base.indices:
            raise ValueError(
                "base: expected the base parameters of the same unknowns, got others; use base_parameters(parameters)"
            )
        at = np.argsort(linear)[list(self.base.independent)]
        objective = torque_objective(parameters, samples, self.loss)
        free, floor = jnp.zeros(parameters.size, bool).at[at].set(True), noise_floor(samples)

        def once(
            carry: tuple[Float[Array, " p"], Float[Array, " nv"]], _: None
        ) -> tuple[tuple[Float[Array, " p"], Float[Array, " nv"]], tuple[Float[Array, ""], Float[Array, " p"]]]:
            x, noise = carry
            data = with_priors(parameters, x, objective.normal_equations(x, noise))
            inverse = scaled_spectrum(data.hessian, free)[0]
            after = x - inverse @ data.gradient
            # not a second decomposition of the same matrix: two at once under vmap can block XLA's threads
            again = (
                noise
                if self.noise is not None
                else estimate_noise(parameters, objective, after, noise, free, floor, inverse)
            )
            return (after, again), (data.cost, x)

        start = jnp.zeros(parameters.size, parameters.dtype), initial_noise(self.noise, samples)
        (x, noise), (costs, path) = control_flow.scan(once, start, None, length=self.noise_updates)
        data = objective.normal_equations(x, noise)
        status = RESULTS.where(jnp.isfinite(data.cost), RESULTS.successful, RESULTS.nonfinite)
        found = Solution(x, None, data, ~free, costs, path, jnp.array(self.noise_updates), status)
        return torque_estimate(parameters, objective, x, noise, self.lags, found)
