"""Parameters from the error of simulation: multiple shooting on the group with Gauss-Newton steps."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.identify.estimators.estimator import (
    RESULTS,
    Estimate,
    FitRounds,
    StepwiseEstimator,
    SummedCost,
    SummedCostEstimator,
)
from lgsim.identify.estimators.loss import Loss, SquaredLoss
from lgsim.identify.estimators.minimizers import Minimizer, StructuredGaussNewton
from lgsim.identify.estimators.multiple_shooting import Linear, Shooting, linearize, part_cost, residuals, slopes
from lgsim.identify.estimators.records import SensorRecords, Windows, windows
from lgsim.identify.estimators.structured_descent import eliminate, state_sensitivities
from lgsim.identify.estimators.uncertainty import covariance
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.integrators.method import Method
from lgsim.integrators.methods import MK4
from lgsim.linalg.levenberg_marquardt import LevenbergMarquardt, Solution, State
from lgsim.simulation.rollout import state_space


class SimulationFit(SummedCostEstimator, StepwiseEstimator):
    """Weighted nonlinear least squares of simulated readings in the coordinates of any blocks and the first states.

    The records are cut into windows. The unknowns are the coordinates x of the plant and the first state s_w of each
    window, in the tangent space:

    ``min 1/2 sum_w sum_k rho(|(h(y_wk) - measured_wk) / deviation|^2) + 1/2 sum_w |(y_w,end - s_w+1) / gap|^2
    + 1/2 |beliefs(x)|^2``, y_w being the motion from s_w, minus being ``difference`` on the group. Short windows make
    the problem nearly linear in the states, so that it converges from far and through unstable motion; gaps that are
    small against the sensors make the windows one motion. Levenberg-Marquardt steps eliminate the states by a Schur
    complement.

    Attributes:
        steps: Steps of a window; None: one window for each data set.
        gaps: Standard deviations of the gaps, rad or m; of velocities they are over the duration of a window. One round
            of iterations for each, each starting where the one before ended.
        known_start: Whether each data set starts at its guess exactly.
        start_deviation: Belief about the first state of each data set: standard deviations (2 nv,) about its guess, or
            None. States that no sensor shows need it.
        estimate_noise: Whether the deviations of the sensors' columns are estimated from the residuals after each round
            and the last round repeated with them.
        loss: Of the squared residuals of the sensors.
        method: Of integration.
        reach: Nodes on either side from whose positions first guesses of the states are made.
        minimiser: ``ChainSteps()``, or a solver of optimistix.
        tile: Windows whose Jacobians are in memory at once; None: all.

    Source: Bock 1983, Recent advances in parameter identification techniques for O.D.E., for multiple shooting.
    """

    steps: int | None = eqx.field(static=True, default=None)
    gaps: tuple[float, ...] = (1e-2, 1e-5)
    known_start: bool = eqx.field(static=True, default=False)
    start_deviation: Any = None
    estimate_noise: bool = eqx.field(static=True, default=False)
    loss: Loss = SquaredLoss()
    method: Method = MK4
    reach: int = eqx.field(static=True, default=5)
    minimiser: Minimizer = StructuredGaussNewton()
    tile: int | None = eqx.field(static=True, default=None)

    def check(self, parameters: Parameters, samples: Any) -> int:
        if not isinstance(samples, SensorRecords):
            raise TypeError(f"samples: expected Records, got {type(samples).__name__}; Records.of makes them")
        self.minimiser.check(parameters)
        return samples.whole(parameters.plant.model).count()

    def run(self, parameters: Parameters, samples: SensorRecords) -> Estimate:
        cut, rounds = self.prepared(parameters, samples)
        x = jnp.zeros(parameters.size, parameters.dtype)
        reached, factors = self.descend(rounds, cut, x, cut.start, parameters.bounds())
        return concluded(reached, factors * units(rounds[0])[0, 0])

    def prepared(self, parameters: Parameters, samples: SensorRecords) -> tuple[Windows, list[Shooting]]:
        """(windows, what is solved in each round)."""
        model = parameters.plant.model
        records = samples.whole(model)
        cut = windows(records, model, self.steps, self.reach)
        space = state_space(model)
        steps = next(iter(cut.weights.values())).shape[1] - 1
        size = jnp.ones(space.dim, model.dtype).at[model.nv : 2 * model.nv].divide(steps * records.dt)
        belief = None
        if self.start_deviation is not None:
            belief = jnp.broadcast_to(jnp.asarray(self.start_deviation, model.dtype), (space.dim,))
        chained = len(cut.start) > len(next(iter(records.channels.values())).values)
        gaps = self.gaps if chained else self.gaps[-1:]
        return cut, [
            Shooting(
                parameters, records.channels, records.dt, self.method, self.loss, size * gap, belief, self.known_start,
                self.tile,
            )
            for gap in (*gaps, *(gaps[-1:] if self.estimate_noise else ()))
        ]  # fmt: skip

    def descend(
        self, rounds: list[Shooting], cut: Windows, x: Array, starts: Array, bounds: tuple[Array, Array]
    ) -> tuple[Solution, Array]:
        """Where the last round ends, with the costs of all of them, and its factors of the columns' deviations."""
        gaps = jnp.stack([s.deviations for s in rounds])

        def once(carry: tuple[Array, Array, Array], gap: Array) -> tuple[Any, tuple[Solution, Array]]:
            x, starts, factor = carry
            now = scaled(rounds[0]._replace(deviations=gap), factor)
            reached = self.minimiser.find(now, cut, x, starts, bounds)
            again = factor * spread(reached.normal) if self.estimate_noise else factor
            return (reached.x, reached.rest, again), (reached, factor)

        columns = sum(c.deviation.size for c in rounds[0].channels.values())
        _, (every, factors) = jax.lax.scan(once, (x, starts, jnp.ones(columns, x.dtype)), gaps)
        return joined(every), factors[-1]

    def in_rounds(self, parameters: Parameters, samples: SensorRecords) -> FitRounds:
        if not isinstance(self.minimiser, StructuredGaussNewton):
            raise TypeError(
                f"minimiser: expected ChainSteps() for single iterations, got {type(self.minimiser).__name__}; take fit"
            )
        cut, rounds = self.prepared(parameters, samples)
        return GapRounds(self, self.minimiser, cut, rounds[0], jnp.stack([s.deviations for s in rounds]))

    def pieces(self, parameters: Parameters, samples: SensorRecords) -> SummedCost:
        cut, rounds = self.prepared(parameters, samples)
        space = state_space(parameters.plant.model)
        x, ds = jnp.zeros(parameters.size, parameters.dtype), jnp.zeros((len(cut.start), space.dim), parameters.dtype)
        return Stretches(start=(x, ds), shooting=rounds[0], windows=cut)

    def columns(self, parameters: Parameters, samples: SensorRecords) -> list[str]:
        model = parameters.plant.model
        return [label for channel in samples.channels.values() for label in channel.sensor.labels(model)]

    def residuals(self, parameters: Parameters, x: Array, samples: SensorRecords) -> tuple[Array, Array]:
        cut, rounds = self.prepared(parameters, samples)
        reached, _ = self.descend(rounds, cut, x, cut.start, (x, x))
        plant = parameters.put(x)
        r, _ = jax.vmap(lambda w, s: residuals(rounds[0], plant, w, s))(cut, reached.rest)
        channels = samples.whole(parameters.plant.model).channels.values()
        weight = jnp.concatenate([c.weight for c in channels], axis=-1)
        return of_nodes(r * units(rounds[0]), weight), weight.reshape(-1, weight.shape[-1])

    def deviations(self, parameters: Parameters, x: Array, covariance: Array, samples: SensorRecords) -> Array:
        cut, rounds = self.prepared(parameters, samples)
        reached, _ = self.descend(rounds, cut, x, cut.start, (x, x))
        now, starts = rounds[-1], reached.rest
        n, p = reached.normal.gs.shape[1], x.size
        J = jax.vmap(lambda w, y0, y1: slopes(now, w, x, y0, y1, n)[0])(cut, starts, jnp.roll(starts, -1, axis=0))
        total = J[..., :p]
        if n:
            states = state_sensitivities(eliminate(reached.normal, jnp.zeros_like(reached.normal.gs))[2])
            total = total + jnp.einsum("wkmn,wnp->wkmp", J[..., p:], states)
        out = jnp.sqrt(jnp.maximum(jnp.einsum("wkmp,pq,wkmq->wkm", total, covariance, total), 0)) * units(now)
        channels = samples.whole(parameters.plant.model).channels.values()
        return of_nodes(out, jnp.concatenate([c.weight for c in channels], axis=-1))


class GapRounds(FitRounds):
    """Rounds with gaps of other sizes; they carry (x, starts, factors of the deviations, those of the round before)."""

    fit: SimulationFit
    minimiser: StructuredGaussNewton
    windows: Windows
    shooting: Shooting
    gaps: Array

    @property
    def count(self) -> int:
        return len(self.gaps)

    def opening(self) -> tuple[Array, ...]:
        parameters = self.shooting.parameters
        columns = sum(c.deviation.size for c in self.shooting.channels.values())
        one = jnp.ones(columns, parameters.dtype)
        return jnp.zeros(parameters.size, parameters.dtype), self.windows.start, one, one

    def descent(self, carry: tuple[Array, ...], number: Array) -> LevenbergMarquardt:
        now = scaled(self.shooting._replace(deviations=self.gaps[number]), carry[2])
        return self.minimiser.descent(now, self.windows, self.shooting.parameters.bounds())

    def begin(self, carry: tuple[Array, ...], number: Array) -> tuple[LevenbergMarquardt, State]:
        descent = self.descent(carry, number)
        return descent, descent.begin(carry[0], carry[1])

    def close(self, carry: tuple[Array, ...], found: Solution) -> tuple[Array, ...]:
        factor = carry[2]
        again = factor * spread(found.normal) if self.fit.estimate_noise else factor
        return found.x, found.rest, again, factor

    def conclude(self, carry: tuple[Array, ...], found: Solution) -> Estimate:
        return concluded(joined(found), carry[3] * units(self.shooting)[0, 0])


def joined(rounds: Solution) -> Solution:
    """The last of some rounds (rounds, ...), with the costs and the points of all."""
    last = jax.tree.map(lambda a: a[-1], rounds)
    path = rounds.path.reshape(-1, last.x.size)
    return last._replace(costs=rounds.costs.reshape(-1), path=path, iterations=jnp.sum(rounds.iterations))


class Stretches(SummedCost):
    """Windows with the gaps to those after them."""

    shooting: Shooting
    windows: Windows
    start: tuple[Array, ...]

    @property
    def count(self) -> int:
        return len(self.windows.start)

    def cost(self, unknowns: tuple[Array, ...], chosen: Array) -> Array:
        x, ds = unknowns
        after = jnp.where(chosen + 1 < self.count, chosen + 1, 0)
        some, following = (self.starts(ds, at) for at in (chosen, after))
        part = jax.tree.map(lambda a: a[chosen], self.windows)
        return part_cost(self.shooting, part, x, some, following)

    def starts(self, ds: Array, at: Array) -> Array:
        """First states of windows ``at`` for tangents of all of them."""
        moves = 1 - self.windows.first if self.shooting.known else jnp.ones_like(self.windows.first)
        space = state_space(self.shooting.parameters.plant.model)
        return jax.vmap(space.move)(ds[at] * moves[at][:, None], self.windows.start[at])

    def conclude(self, unknowns: tuple[Array, ...], costs: Array, path: Array, status: RESULTS) -> Estimate:
        x, ds = unknowns
        starts = self.starts(ds, jnp.arange(self.count))
        linear = linearize(self.shooting, self.windows, x, starts)
        steps, free = jnp.array(len(costs)), jnp.zeros(x.shape, bool)
        return concluded(Solution(x, starts, linear, free, costs, path, steps, status), units(self.shooting)[0, 0])


def units(shooting: Shooting) -> Array:
    """Deviations of all columns (1, 1, columns)."""
    return jnp.concatenate([c.deviation for c in shooting.channels.values()])[None, None]


def of_nodes(rows: Array, like: Array) -> Array:
    """What is given by windows (windows, steps + 1, columns), by nodes of all sets in one row (nodes, columns)."""
    sets, nodes, columns = like.shape
    k = rows.shape[1] - 1
    window = np.minimum(np.arange(nodes) // k, len(rows) // sets - 1)
    return rows.reshape(sets, -1, k + 1, columns)[:, window, np.arange(nodes) - k * window].reshape(-1, columns)


def scaled(shooting: Shooting, factor: Array) -> Shooting:
    """The problem with deviations of all columns of the sensors times factors."""
    out, first = {}, 0
    for name, channel in shooting.channels.items():
        size = channel.deviation.size
        out[name] = eqx.tree_at(lambda c: c.deviation, channel, channel.deviation * factor[first : first + size])
        first += size
    return shooting._replace(channels=out)


def spread(linear: Linear) -> Array:
    """Root mean squares of the residuals of each column, 1 where there is none."""
    squares, weight = linear.squares
    mean = squares / jnp.where(weight > 0, weight, 1)
    return jnp.where(mean > 0, jnp.sqrt(jnp.where(mean > 0, mean, 1)), 1)


def concluded(reached: Solution, noise: Array) -> Estimate:
    """The estimate with its uncertainty: states are eliminated, so that theirs is counted."""
    linear = reached.normal
    schur, _, _ = eliminate(linear, jnp.zeros_like(linear.gs))
    status = RESULTS.where(jnp.all(jnp.isfinite(schur)), reached.result, RESULTS.nonfinite)
    return Estimate(
        reached.x, covariance(schur, ~reached.held), schur - linear.beliefs, noise, reached.costs, reached.path,
        reached.iterations, status, reached.rest,
    )  # fmt: skip
