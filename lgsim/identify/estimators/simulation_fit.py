"""Parameter estimation from simulation errors: multiple shooting on Lie groups with Gauss-Newton steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Bool, Float, Int

from lgsim._compile.linalg.levenberg_marquardt import LevenbergMarquardt, Solution
from lgsim.identify.estimators.estimator import (
    NEGLIGIBLE,
    RESULTS,
    Estimate,
    FitRounds,
    Resimulation,
    RoundStart,
    StepwiseEstimator,
)
from lgsim.identify.estimators.loss import Loss, SquaredLoss
from lgsim.identify.estimators.multiple_shooting import (
    Shooting,
    linearize,
    linearize_keeping,
    plant_space,
    window_jacobian,
    window_residuals,
)
from lgsim.identify.estimators.noise_spectrum import score_covariance
from lgsim.identify.estimators.records import SensorRecords, Windows, cut_windows
from lgsim.identify.estimators.structured_descent import (
    Elimination,
    StructuredStep,
    draw_tangents,
    eliminate,
    state_sensitivities,
    substitute,
)
from lgsim.identify.estimators.torque_fit import noise_settled
from lgsim.identify.estimators.uncertainty import covariance
from lgsim.identify.goodness import Signals, sensor_signals
from lgsim.identify.recording.coordinates import dof_names
from lgsim.identify.unknowns.coupled_plant import refuse_couplings
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import NumbersLike
from lgsim.integrators.method import Method
from lgsim.integrators.methods import MK4
from lgsim.support import check

_DRAWS = 8
"""Number of draws by which the noise that the unknowns absorb is computed."""


class SimulationFit(StepwiseEstimator):
    """Weighted nonlinear least squares of simulated readings over the coordinates of any blocks and the initial states.

    The records are cut into windows. The unknowns are the coordinates x of the plant and the initial state s_w of each
    window, in the tangent space:

    ``min 1/2 sum_w sum_k rho(|(h(y_wk) - measured_wk) / deviation|^2) + 1/2 sum_w |(y_w,end - s_w+1) / gap|^2 + 1/2
    |prior_residuals(x)|^2``. Here y_w is the motion from s_w, and minus is ``difference`` on the group. Short windows
    make the problem nearly linear in the states, so that it converges from a poor guess and through unstable motion.
    Gaps that are small relative to the sensor noise join the windows to one motion. Levenberg-Marquardt steps eliminate
    the states by a Schur complement.

    Attributes:
        window_steps: Number of steps of a window; None: one window for each data set.
        gap_deviations: Standard deviations of the gaps, rad or m; for velocities they are divided by the duration of a
            window. There is one round of iterations for each; a round starts from the previous solution. They are at
            least the root of the rounding unit, 3.5e-4 in float32.
        known_start: True to start each data set exactly at its guess.
        start_deviation: Standard deviations (2 nv,), or one for all, of the initial state of each data set about its
            guess, or None. States that are not observable from the sensors need it.
        estimate_noise: True to estimate the standard deviations of the sensors' columns from the residuals after each
            round by ``loss.deviation``, and to repeat the last round with them until they settle.
        noise_updates: The largest number of these repetitions. They end if the noise changes by less than a hundredth
            of its own standard error.
        loss: The loss of the squared normalized residuals.
        guess_halfwidth: Number of nodes on either side whose positions are used for the guesses of the states.
        max_iterations: Maximum number of iterations of each round; each simulates all records once, with derivatives.
        tolerance: As in ``LevenbergMarquardt``; by default a thousandth of a squared residual.
        tile: Number of windows whose Jacobians are in memory at once; None: all.

    Source: Bock 1983, Recent advances in parameter identification techniques for O.D.E., for multiple shooting.
    """

    window_steps: int | None = eqx.field(static=True, default=None)
    gap_deviations: tuple[float, ...] = (1e-2, 1e-5)
    known_start: bool = eqx.field(static=True, default=False)
    start_deviation: NumbersLike | None = None
    estimate_noise: bool = eqx.field(static=True, default=False)
    noise_updates: int = eqx.field(static=True, default=50)
    loss: Loss = SquaredLoss()
    method: Method = MK4
    guess_halfwidth: int = eqx.field(static=True, default=5)
    max_iterations: int = eqx.field(static=True, default=30)
    tolerance: ArrayLike | None = None
    tile: int | None = eqx.field(static=True, default=None)

    def __check_init__(self) -> None:
        check.count("max_iterations", self.max_iterations)
        check.count("noise_updates", self.noise_updates)
        if self.window_steps is not None:
            check.count("window_steps", self.window_steps)

    def check(self, parameters: Parameters, samples: Any) -> int:
        refuse_couplings(parameters.plant)
        if not isinstance(samples, SensorRecords):
            kind = type(samples).__name__
            raise TypeError(
                f"samples: expected SensorRecords, got {kind}; create them with SensorRecords.from_recording"
            )
        return int(np.sum(np.asarray(samples.broadcast(parameters.plant.model).weights) > 0))

    def in_rounds(self, parameters: Parameters, samples: SensorRecords) -> GapRounds:
        model = parameters.plant.model
        records = samples.broadcast(model)
        windows = cut_windows(records, parameters.plant, self.window_steps, self.guess_halfwidth)
        space = plant_space(parameters.plant)
        steps = next(iter(windows.weights.values())).shape[1] - 1
        size = jnp.ones(space.dim, model.dtype).at[model.nv : 2 * model.nv].divide(steps * records.dt)
        start = None
        if self.start_deviation is not None:
            start = jnp.broadcast_to(jnp.asarray(self.start_deviation, model.dtype), (space.dim,))
        chained = len(windows.start) > len(next(iter(records.channels.values())).values)
        gaps = self.gap_deviations if chained else self.gap_deviations[-1:]
        # below, the rounding of states is beyond the gaps, which then shifts the estimate
        least = float(np.sqrt(np.finfo(model.dtype).eps))
        gaps = jnp.stack([size * jnp.maximum(gap, least) for gap in gaps])
        shooting = Shooting(
            parameters, records.channels, records.dt, self.method, self.loss, gaps[-1], start, self.known_start,
            self.tile, records.substeps,
        )  # fmt: skip
        x = jnp.zeros(parameters.size, parameters.dtype)
        return GapRounds(self, windows, shooting, gaps, records.weights, x, parameters.bounds())

    def columns(self, parameters: Parameters, samples: SensorRecords) -> list[str]:
        model = parameters.plant.model
        return [label for channel in samples.channels.values() for label in channel.sensor.labels(model)]

    def signals(self, parameters: Parameters, samples: SensorRecords) -> Signals:
        return sensor_signals(parameters.plant.model, samples, self.estimate_noise, self.loss)

    def residuals(
        self, parameters: Parameters, x: Float[Array, " p"], samples: SensorRecords
    ) -> tuple[Float[Array, "nodes columns"], Float[Array, "nodes columns"]]:
        rounds = self.in_rounds(parameters, samples).with_known_plant(x)
        return rounds.residuals(x, rounds.search()[0].rest), rounds.weights.reshape(-1, rounds.weights.shape[-1])

    @property
    def integration(self) -> Method:
        return self.method

    def resimulated(
        self, parameters: Parameters, estimate: Estimate, samples: SensorRecords, substeps: Int[Array, ""]
    ) -> Resimulation:
        rounds = self.in_rounds(parameters, samples)
        x, starts = estimate.x, estimate.starts
        assert starts is not None
        factors = estimate.noise / column_deviations(rounds.shooting)
        shooting = _scale_deviations(rounds.shooting, factors)
        linear, kept = linearize_keeping(shooting, rounds.windows, x, starts, substeps)
        assert kept is not None
        hessian, gradient, states = eliminate(linear, jnp.zeros_like(linear.gs))
        p, slopes = x.size, kept.slopes
        total = slopes[..., :p]
        dx, ds = draw_tangents(states, hessian, _DRAWS)
        absorbed = jnp.einsum("wkmp,dp->wkmd", total, dx)
        if states.diagonal.shape[1]:
            absorbed = absorbed + jnp.einsum("wkmn,dwn->wkmd", slopes[..., p:], ds)
            total = total + jnp.einsum("wkmn,wnp->wkmp", slopes[..., p:], state_sensitivities(states))
        series = (_at_nodes(a, rounds.weights) for a in (total, kept.scores, kept.weights, absorbed))
        C, white = score_covariance(*series)
        diagonals = jnp.diagonal(states.diagonal, axis1=1, axis2=2)
        return Resimulation(
            by_nodes(kept.residuals * column_deviations(shooting)[None, None], rounds.weights),
            rounds.weights.reshape(-1, rounds.weights.shape[-1]), linear.cost, gradient, hessian, linear.prior_hessian,
            C, white, 2 * jnp.sum(jnp.log(diagonals)), states,
        )  # fmt: skip

    def moved_starts(
        self,
        parameters: Parameters,
        samples: SensorRecords,
        estimate: Estimate,
        factors: Elimination,
        dx: Float[Array, " p"],
        z: Float[Array, "windows state"],
    ) -> Float[Array, "windows state"]:
        starts = estimate.starts
        assert starts is not None
        n = factors.diagonal.shape[1]
        if not n:
            return starts
        count = len(starts) // next(iter(samples.broadcast(parameters.plant.model).channels.values())).weight.shape[0]
        if self.known_start:
            z = z * (np.arange(len(starts)) % count > 0)[:, None]
        forward = factors.forward.at[..., -1].add(-z[:, :n])
        ds = substitute(factors._replace(forward=forward), dx)
        return jax.vmap(plant_space(parameters.plant).move)(ds, starts)

    def inputs(self, parameters: Parameters, samples: SensorRecords) -> tuple[list[str], np.ndarray]:
        plant, records = parameters.plant, samples.broadcast(parameters.plant.model)
        given = records.signals if plant.actuators is None else records.commands
        if given is None:
            return super().inputs(parameters, samples)
        names = dof_names(plant.model) if plant.actuators is None else [f"command {i}" for i in range(given.shape[-1])]
        return names, np.asarray(given)

    def deviations(
        self, parameters: Parameters, x: Float[Array, " p"], covariance: Float[Array, "p p"], samples: SensorRecords
    ) -> Float[Array, "nodes columns"]:
        rounds = self.in_rounds(parameters, samples).with_known_plant(x)
        end, last = rounds.search()
        now, starts, normal = rounds.shooting, end.rest, last.normal
        n, p = normal.gs.shape[1], x.size
        following = jnp.roll(starts, -1, axis=0)
        J = jax.vmap(lambda w, y0, y1: window_jacobian(now, w, x, y0, y1, n)[0])(rounds.windows, starts, following)
        total = J[..., :p]
        if n:
            states = state_sensitivities(eliminate(normal, jnp.zeros_like(normal.gs))[2])
            total = total + jnp.einsum("wkmn,wnp->wkmp", J[..., p:], states)
        variance = jnp.maximum(jnp.einsum("wkmp,pq,wkmq->wkm", total, covariance, total), 0)
        return by_nodes(jnp.sqrt(variance) * column_deviations(now)[None, None], rounds.weights)


class GapRounds(FitRounds):
    """Rounds with different gaps, whose noise values are factors of the sensors' standard deviations.

    Attributes:
        shooting: The settings of the last round.
        gaps: Standard deviations of the gaps of each round (rounds, n); further rounds with estimates of the noise
            have the last ones.
        weights: Weights of the records (sets, nodes, columns).
        x: Starting coordinates of the plant (p,).
        bounds: Their lower and upper bounds.
    """

    fit: SimulationFit
    windows: Windows
    shooting: Shooting
    gaps: Float[Array, "rounds n"]
    weights: Float[Array, "sets nodes columns"]
    x: Float[Array, " p"]
    bounds: tuple[Float[Array, " p"], Float[Array, " p"]]

    @property
    def count(self) -> int:
        return len(self.gaps) + (self.fit.noise_updates if self.fit.estimate_noise else 0)

    @property
    def recorded(self) -> int:
        return len(self.gaps) + int(self.fit.estimate_noise)

    def ended(self, start: RoundStart, number: Int[Array, ""], found: Solution) -> Bool[Array, ""]:
        failed = ~(found.result == RESULTS.successful)
        return (number >= self.count) | (number >= self.recorded) & (failed | self.settled(start))

    def settled(self, start: RoundStart) -> Bool[Array, ""]:
        """True if the noise of no column changed in the previous round."""
        return noise_settled(start.noise_before, start.noise, self.floor, jnp.sum(self.weights, axis=(0, 1)))

    @property
    def floor(self) -> Float[Array, " columns"]:
        """The smallest estimate of the noise: exact records have no residuals to estimate it from."""
        least = 10.0 ** (-0.4 * np.finfo(self.x.dtype).precision)
        return jnp.full(self.weights.shape[-1], least, self.x.dtype)

    def with_known_plant(self, x: Float[Array, " p"]) -> GapRounds:
        """The rounds with fixed plant coordinates x, in which only initial states are unknown."""
        return replace(self, x=x, bounds=(x, x))

    def residuals(
        self, x: Float[Array, " p"], starts: Float[Array, "windows state"], substeps: Int[Array, ""] | None = None
    ) -> Float[Array, "rows columns"]:
        """Readings minus measurements, in the records' units, of the plant at x from given initial states.

        Args:
            starts: Initial states of the windows.
            substeps: Number of integration steps within each step; None for one.
        """
        plant = self.shooting.parameters.plant_at(x)
        r = jax.vmap(lambda w, s: window_residuals(self.shooting, plant, w, s, substeps).residuals)(
            self.windows, starts
        )
        return by_nodes(r * column_deviations(self.shooting)[None, None], self.weights)

    def opening(self) -> RoundStart:
        one = jnp.ones(self.weights.shape[-1], self.x.dtype)
        return RoundStart(self.x, self.windows.start, one, one)

    def descent(self, start: RoundStart, number: Int[Array, ""]) -> LevenbergMarquardt:
        gaps = self.gaps[jnp.minimum(number, len(self.gaps) - 1)]
        now = _scale_deviations(self.shooting._replace(gap_deviations=gaps), start.noise)
        space, tolerance = plant_space(self.shooting.parameters.plant), self.fit.tolerance
        count = sum(w.size for w in self.windows.weights.values())

        def moved(ds: Float[Array, "windows n"], starts: Array) -> Array:
            return jax.vmap(space.move)(ds, starts) if ds.shape[1] else starts

        # each trial is linearized at once: most are accepted, and a simulation costs little less than its derivatives
        return LevenbergMarquardt(
            lambda x, s: linearize(now, self.windows, x, s), None, *self.bounds, self.fit.max_iterations,
            2e-3 / count if tolerance is None else tolerance, moved, StructuredStep(), results=RESULTS,
            negligible=NEGLIGIBLE,
        )  # fmt: skip

    def noise_after(self, start: RoundStart, found: Solution) -> Float[Array, " columns"]:
        if not self.fit.estimate_noise:
            return start.noise
        return jnp.maximum(start.noise * found.normal.deviations, self.floor)

    def estimate(self, end: RoundStart, found: Solution) -> Estimate:
        """The estimate at a solution, with its covariance after elimination of the initial states."""
        linear, noise = found.normal, end.noise_before * column_deviations(self.shooting)
        schur, _, _ = eliminate(linear, jnp.zeros_like(linear.gs))
        blocks = (linear.gx, linear.gs, linear.xx, linear.xs, linear.ss, linear.near)
        defined = jnp.all(jnp.stack([jnp.all(jnp.isfinite(a)) for a in blocks]))
        cause = RESULTS.where(defined, RESULTS.unobservable, RESULTS.nonfinite_derivative)
        known = jnp.all(jnp.isfinite(schur)) | (found.result == RESULTS.nonfinite)
        result = RESULTS.where(known, found.result, cause)
        if self.fit.estimate_noise:
            fine = self.settled(end) | ~(result == RESULTS.successful)
            result = RESULTS.where(fine, result, RESULTS.noise_not_settled)
        return Estimate(
            found.x, covariance(schur, ~found.held), schur - linear.prior_hessian, noise, found.costs, found.path,
            found.iterations, result, found.rest,
        )  # fmt: skip


def column_deviations(shooting: Shooting) -> Float[Array, " columns"]:
    """Standard deviations of the columns of all channels, in the records' units."""
    return jnp.concatenate([c.deviation for c in shooting.channels.values()])


def by_nodes(
    rows: Float[Array, "windows k columns"], like: Float[Array, "sets nodes columns"]
) -> Float[Array, "rows columns"]:
    """Rearrange values at the nodes of windows to one row for each node of all data sets.

    Args:
        rows: Values by window.
        like: An array of the records, for its shape.
    """
    return _at_nodes(rows, like).reshape(-1, like.shape[-1])


def _at_nodes(
    rows: Float[Array, "windows k *shape"], like: Float[Array, "sets nodes columns"]
) -> Float[Array, "sets nodes *shape"]:
    """Values at the nodes of windows as those of data sets; arguments as in ``by_nodes``."""
    sets, nodes, _ = like.shape
    k = rows.shape[1] - 1
    window = np.minimum(np.arange(nodes) // k, len(rows) // sets - 1)
    return rows.reshape(sets, -1, *rows.shape[1:])[:, window, np.arange(nodes) - k * window]


def _scale_deviations(shooting: Shooting, factor: Float[Array, " columns"]) -> Shooting:
    """The settings with the standard deviations of all sensor columns multiplied by factors."""
    out, first = {}, 0
    for name, channel in shooting.channels.items():
        size = channel.deviation.size
        out[name] = eqx.tree_at(lambda c: c.deviation, channel, channel.deviation * factor[first : first + size])
        first += size
    return shooting._replace(channels=out)
