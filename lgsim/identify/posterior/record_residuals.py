"""Records prepared for a posterior: residuals as functions of the unknowns, or their compressed sums."""

from __future__ import annotations

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim._compile.xla import control_flow
from lgsim.identify.estimators.loss import Loss, SquaredLoss
from lgsim.identify.estimators.multiple_shooting import Shooting, WindowMotion, gap_vectors, window_residuals
from lgsim.identify.estimators.records import SensorRecords, Windows
from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.estimators.simulation_fit import SimulationFit, by_nodes, column_deviations
from lgsim.identify.estimators.torque_objective import TILE, torque_residuals
from lgsim.identify.posterior.noise_models import ResidualSums, RobustSums
from lgsim.identify.posterior.serial_correlation import SerialCorrelation
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import signal_sensitivities
from lgsim.simulation.equations_of_motion import state_space


class PreparedRecords(eqx.Module):
    """Records with residuals as functions of the plant's coordinates x and of initial states s.

    Attributes:
        correlation: Serial correlation of the noise, or None for white noise.
        weights: Weights of the residuals (sets, n, columns).
    """

    parameters: Parameters
    loss: Loss
    correlation: SerialCorrelation | None
    weights: Float[Array, "sets n columns"]

    @property
    def start_shape(self) -> tuple[int, int]:
        """(number of unknown initial states, dimension of each)."""
        return 0, 0

    @abstractmethod
    def residuals(self, x: Float[Array, " p"], s: Float[Array, " _"]) -> Float[Array, "sets n columns"]:
        """Predicted minus recorded values, in the records' units."""

    def start_log_density(self, x: Float[Array, " p"], s: Float[Array, " _"]) -> Float[Array, ""]:
        """The log density of initial states, and of gaps between windows, up to a constant."""
        return jnp.zeros((), x.dtype)

    def sums(
        self, x: Float[Array, " p"], s: Float[Array, " _"], c: Float[Array, " _"]
    ) -> tuple[ResidualSums, Float[Array, ""]]:
        """Sums of the residuals, or of their innovations at coordinates c; and the logarithm of the Jacobian of the
        innovations.
        """
        # values without weight are arbitrary, but must not affect derivatives
        r = jnp.where(self.weights > 0, self.residuals(x, s), 0)
        change = jnp.zeros((), r.dtype)
        if self.correlation is not None:
            r, change = self.correlation.innovations(c, r, self.weights)
        counts = jnp.sum(self.weights, axis=(0, 1))
        squares = jnp.sum(self.weights * r**2, axis=(0, 1))
        if isinstance(self.loss, SquaredLoss):
            return ResidualSums(counts, squares), change
        return RobustSums(counts, squares, r, self.weights, self.loss), change


class TorqueResiduals(PreparedRecords):
    """Residuals of joint torques, from all samples at each evaluation."""

    samples: TorqueSamples

    def residuals(self, x: Float[Array, " p"], s: Float[Array, " _"]) -> Float[Array, "1 n nv"]:
        return torque_residuals(self.parameters, x, self.samples)[None]


class CompressedTorqueResiduals(TorqueResiduals):
    """White residuals of signals that are affine in all unknowns: sums of squares without access to the samples.

    The factor R_j of a QR decomposition of [sensitivities, residuals at the prior] of each signal, including weights,
    gives the weighted sum of squares ``|R_j (d, 1)|^2`` for dynamic parameters changed by d. The cost of an evaluation
    is independent of the number of samples, and no sum of squares is a difference of large numbers.

    Attributes:
        factors: The factors (nv, k + 1, k + 1).
    """

    factors: Float[Array, "nv m m"]

    def sums(
        self, x: Float[Array, " p"], s: Float[Array, " _"], c: Float[Array, " _"]
    ) -> tuple[ResidualSums, Float[Array, ""]]:
        d = self.parameters.affine_change(x)
        r = jnp.einsum("jab,b->ja", self.factors, jnp.concatenate([d, jnp.ones(1, d.dtype)]))
        return ResidualSums(jnp.sum(self.weights, axis=(0, 1)), jnp.sum(r**2, axis=1)), jnp.zeros((), d.dtype)


class SimulatedResiduals(PreparedRecords):
    """Residuals of simulated readings, in windows with unknown initial states."""

    shooting: Shooting
    windows: Windows

    @property
    def free(self) -> np.ndarray:
        """Indices of the windows with unknown initial states."""
        count, sets = len(self.windows.start), self.weights.shape[0]
        every = np.arange(count)
        return every[every % (count // sets) > 0] if self.shooting.known_start else every

    @property
    def start_shape(self) -> tuple[int, int]:
        return len(self.free), state_space(self.parameters.plant.model).dim

    def starts(self, s: Float[Array, " _"]) -> Float[Array, "windows state"]:
        """Initial states of the windows for tangents s at their guesses."""
        space = state_space(self.parameters.plant.model)
        tangents = jnp.zeros((len(self.windows.start), space.dim), s.dtype)
        return jax.vmap(space.move)(tangents.at[self.free].set(s.reshape(self.start_shape)), self.windows.start)

    def tangents(self, starts: Float[Array, "windows state"]) -> Float[Array, " _"]:
        """The tangents s of initial states."""
        space = state_space(self.parameters.plant.model)
        return jax.vmap(space.difference)(self.windows.start, starts)[self.free].reshape(-1)

    def residuals(self, x: Float[Array, " p"], s: Float[Array, " _"]) -> Float[Array, "sets nodes columns"]:
        motions = self._motions(x, s)
        r = motions.residuals * column_deviations(self.shooting)[None, None]
        return by_nodes(r, self.weights).reshape(self.weights.shape)

    def start_log_density(self, x: Float[Array, " p"], s: Float[Array, " _"]) -> Float[Array, ""]:
        space, deviations = state_space(self.parameters.plant.model), self.shooting.start_deviations
        total = jnp.zeros((), x.dtype)
        if deviations is not None and not self.shooting.known_start:
            own = jax.vmap(space.difference)(self.windows.start, self.starts(s)) * self.windows.first[:, None]
            total = total - jnp.sum((own / deviations[None]) ** 2) / 2
        if len(self.windows.start) > self.weights.shape[0] or (space.topology.loops and s.size):
            starts = self.starts(s)
            motions, following = self._motions(x, s), jnp.roll(starts, -1, axis=0)
            total = total - jnp.sum(gap_vectors(self.shooting, self.windows, motions, starts, following) ** 2) / 2
        return total

    def _motions(self, x: Float[Array, " p"], s: Float[Array, " _"]) -> WindowMotion:
        """The motions of all windows."""
        plant = self.parameters.plant_at(x)
        return jax.vmap(lambda w, y: window_residuals(self.shooting, plant, w, y))(self.windows, self.starts(s))


def torque_records(
    parameters: Parameters, samples: TorqueSamples, loss: Loss, correlation: SerialCorrelation | None
) -> TorqueResiduals:
    """Prepare records of joint torques; compressed for affine signals, white noise and a quadratic loss."""
    weights = samples.weight[None]
    indices = parameters.affine_indices
    if indices is None or correlation is not None or not isinstance(loss, SquaredLoss):
        return TorqueResiduals(parameters, loss, correlation, weights, samples)

    def add(R: Float[Array, "nv m m"], tile: TorqueSamples) -> tuple[Float[Array, "nv m m"], None]:
        Y, predicted = signal_sensitivities(parameters.plant, indices, tile.q, tile.v, tile.a, tile.wrenches)
        rows = jnp.concatenate([Y, (predicted - tile.signals)[..., None]], axis=-1)
        used = tile.weight > 0
        rows = jnp.where(used[..., None], rows, 0) * jnp.sqrt(jnp.where(used, tile.weight, 0))[..., None]
        stacked = jnp.concatenate([R, jnp.moveaxis(rows, 1, 0)], axis=1)
        return jnp.linalg.qr(stacked, mode="r"), None

    size = len(indices) + 1
    zero = jnp.zeros((samples.signals.shape[-1], size, size), parameters.dtype)
    factors, _ = control_flow.scan(add, zero, samples.tiles(TILE))
    return CompressedTorqueResiduals(parameters, loss, correlation, weights, samples, factors)


def simulated_records(
    parameters: Parameters, samples: SensorRecords, estimator: SimulationFit, correlation: SerialCorrelation | None
) -> SimulatedResiduals:
    """Prepare records of sensors, in the windows of an estimator, with its smallest gaps."""
    rounds = estimator.in_rounds(parameters, samples)
    return SimulatedResiduals(
        parameters, estimator.loss, correlation, rounds.weights, rounds.shooting, rounds.windows
    )  # fmt: skip
