"""Base parameters by weighted linear least squares of recorded joint torques."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from lgsim._compile.linalg.levenberg_marquardt import Solution
from lgsim._compile.xla import control_flow
from lgsim.identify.estimators.estimator import NEGLIGIBLE, RESULTS, Estimate
from lgsim.identify.estimators.loss import Loss, SquaredLoss
from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.estimators.torque_fit import (
    TorqueEstimator,
    counts,
    estimate_noise,
    initial_noise,
    noise_floor,
    noise_settled,
    torque_estimate,
    with_priors,
)
from lgsim.identify.estimators.torque_objective import torque_objective
from lgsim.identify.estimators.uncertainty import scaled_spectrum
from lgsim.identify.goodness import Signals, torque_signals
from lgsim.identify.unknowns.base_parameters import BaseParameters
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import NumbersLike


class LinearFit(TorqueEstimator):
    """Weighted linear least squares for the base parameters; the other coordinates stay at the prior.

    The signals must be affine in the coordinates (``StandardParameters``, ``JointParameter("damping")`` and other joint
    parameters). One step reaches the minimum; it is repeated until the noise of the joints, and with a robust loss the
    weights, have settled, as in ``TorqueFit``. The result may be physically inconsistent, and bounds are not enforced;
    use ``TorqueFit`` with ``Inertias`` for both.

    Attributes:
        base: The base parameters of the same unknowns, by ``base_parameters(parameters)``.
        noise: Standard deviations of the signals (nv,); None to estimate them.
        noise_updates: The largest number of steps, each followed by an estimate of the noise.
        lags: Treatment of correlated noise in the covariance, as in ``TorqueFit``.
    """

    base: BaseParameters
    loss: Loss = SquaredLoss()
    noise: NumbersLike | None = None
    noise_updates: int = eqx.field(static=True, default=50)
    lags: int | None = eqx.field(static=True, default=None)

    def signals(self, parameters: Parameters, samples: TorqueSamples) -> Signals:
        return torque_signals(parameters.plant.model, samples, self.noise, self.loss)

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
        rows, values, one_step = self.noise_updates, counts(samples), isinstance(self.loss, SquaredLoss)

        def once(now: _Steps) -> _Steps:
            x, noise = now.x, now.noise
            data = with_priors(parameters, x, objective.normal_equations(x, noise))
            inverse = scaled_spectrum(data.hessian, free)[0]
            after = x - inverse @ data.gradient
            decrease = data.gradient @ inverse @ data.gradient / 2
            # not a second decomposition of the same matrix: two at once under vmap can block XLA's threads
            again = (
                noise
                if self.noise is not None
                else estimate_noise(parameters, objective, after, noise, free, floor, inverse)
            )
            settled = noise_settled(noise, again, floor, values)
            if not one_step:
                # the robust weights change with x; a decrease that is not finite does not become so
                settled = settled & ~(decrease > NEGLIGIBLE + objective.rounding(noise))
            costs, path = now.costs.at[now.number].set(data.cost), now.path.at[now.number].set(x)
            return _Steps(after, again, costs, path, now.number + 1, settled)

        x, noise = jnp.zeros(parameters.size, parameters.dtype), initial_noise(self.noise, samples)
        costs, path = jnp.full(rows, jnp.nan, x.dtype), jnp.zeros((rows, x.size), x.dtype)
        start = _Steps(x, noise, costs, path, jnp.zeros((), int), jnp.array(False))
        end = control_flow.while_loop(lambda now: ~now.settled & (now.number < rows), once, start)
        data = objective.normal_equations(end.x, end.noise)
        status = RESULTS.where(end.settled, RESULTS.successful, RESULTS.noise_not_settled)
        status = RESULTS.where(jnp.isfinite(data.cost), status, RESULTS.nonfinite)
        path = jnp.where((jnp.arange(rows) < end.number)[:, None], end.path, end.x[None])
        found = Solution(end.x, None, data, ~free, end.costs, path, end.number, status)
        return torque_estimate(parameters, objective, end.x, end.noise, self.lags, found)


class _Steps(NamedTuple):
    """State of ``LinearFit``: coordinates and noise after some steps, the costs and coordinates before each of them."""

    x: Float[Array, " p"]
    noise: Float[Array, " nv"]
    costs: Float[Array, " rows"]
    path: Float[Array, "rows p"]
    number: Int[Array, ""]
    settled: Bool[Array, ""]
