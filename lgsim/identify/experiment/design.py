"""Motions that show the unknown numbers of a machine: optimal experiments within its limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.dynamics.frame_distance import Capsule, frame_distance
from lgsim.identify.estimators.normal_equations import linearized
from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.experiment.constrained_maximum import Progress, maximize
from lgsim.identify.experiment.criteria import AbsoluteNoise, Criterion, DOptimal, Noise
from lgsim.identify.experiment.fourier import Fourier, check_joints, motion
from lgsim.identify.unknowns.base_parameters import random_states
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.multibody.model import Model
from lgsim.simulation.trajectory import Trajectory

FINE = 8
"""Times between two of the design's at which the limits are looked at in the end."""

TOLERANCE = 1e-3
"""Part of a limit by which the search may break it; the limits that it sees are tighter by as much."""

ROUNDING = 1e-12
"""Part of the largest sensitivity below which another is rounding of zero."""

VISIBLE = 1e-7
"""Relative singular value of the sensitivities below which no motion shows a combination."""


class ExcitationLimits(eqx.Module):
    """What a motion must keep to; of joints one number or (nv,).

    Positions, velocities and efforts have the limits of the model unless others are given.

    Attributes:
        lower, upper: Positions, rad or m.
        velocity: Largest |v|, rad/s or m/s.
        acceleration: Largest |a|, rad/s^2 or m/s^2.
        effort: Largest joint force, N m or N, of the prior plant.
        pairs: Capsules that must stay apart, see ``lgsim.frame_distance``.
        clearance: By how much, m.
    """

    lower: Any = None
    upper: Any = None
    velocity: Any = None
    acceleration: Any = np.inf
    effort: Any = None
    pairs: Sequence[tuple[Capsule, Capsule]] = ()
    clearance: Any = 0.0

    def of(self, model: Model) -> dict[str, Array]:
        """All limits of joints (nv,) by name.

        Raises:
            ValueError: a shape is wrong, or a joint has no room.
        """
        own = {
            "lower": model.lower, "upper": model.upper, "velocity": model.velocity_limit, "acceleration": np.inf,
            "effort": model.effort_limit,
        }  # fmt: skip
        out = {}
        for name, standard in own.items():
            given = getattr(self, name)
            array = jnp.asarray(standard if given is None else given, model.dtype)
            if array.shape not in ((), (model.nv,)):
                raise ValueError(f"{name}: expected a number or shape ({model.nv},), got {array.shape}")
            out[name] = jnp.broadcast_to(array, (model.nv,))
        for name, low, high in zip(model.joint_names, out["lower"], out["upper"], strict=False):
            if not low < high:
                raise ValueError(f"lower, upper: {name} has no room between {low:g} and {high:g}")
        return out


@dataclass(frozen=True)
class OptimalExcitation:
    """A motion that shows the unknowns.

    Attributes:
        parameters: What it is to show.
        series: Its form.
        coefficients: (nv, size).
        start: The criterion of the motion that the search began with.
        criterion: The criterion reached: logarithm of the information for each unknown.
        margins: By limit the least room that is left, in its unit; not negative but for rounding.
        progress: Of the search.
    """

    parameters: Parameters
    series: Fourier
    coefficients: Array
    start: float
    criterion: float
    margins: dict[str, float]
    progress: Progress

    @property
    def gain(self) -> float:
        """By how much the information for each unknown has grown over that of the first motion."""
        return float(np.exp(self.criterion - self.start))

    def motion(self, t: Any) -> tuple[Array, Array, Array]:
        """(q, v, a) at times t, (..., nv) each; it repeats after each period."""
        return motion(self.series, self.coefficients, jnp.asarray(t, self.coefficients.dtype))

    def trajectory(self, rate: float = 1000.0, periods: float = 1.0) -> Trajectory:
        """The motion with the joint forces of the prior plant, at even times, to be replayed.

        Args:
            rate: Hz.
            periods: How many.
        """
        time = np.arange(round(periods * self.series.period * rate) + 1) / rate
        q, v, a = self.motion(time)
        plant = self.parameters.plant
        arrays = (np.asarray(x) for x in (q, v, plant.forces(q, v, a)))
        return Trajectory(plant.model, time, *arrays, method="excitation", dt=1 / rate)

    def save(self, path: str | Path, rate: float = 1000.0) -> Path:
        """Write ``trajectory(rate)`` as ``.csv``, ``.npz`` or ``.parquet``, whole or not at all."""
        return self.trajectory(rate).save(path)


class ExcitationProblem(eqx.Module):
    """The problem: a criterion and the limits as functions of the coefficients (nv, size).

    Attributes:
        parameters: What the motion is to show, linearised at the prior.
        series: Form of the motion.
        limits: See ``Limits``.
        criterion: What is made large.
        noise: Of the signals.
        points: Even times of a period at which all is computed; at least ten for each harmonic.
        limit: The limits of joints by name, (nv,) each.
        visible: Combinations of the coordinates that some motion shows (p, r). Coordinates are counted in standard
            deviations of their blocks' priors, and where there is none, so that joint forces are as sensitive to each:
            ``AOptimal`` and ``EOptimal`` depend on that, ``DOptimal`` does not.
    """

    parameters: Parameters
    series: Fourier
    limits: ExcitationLimits
    criterion: Criterion
    noise: Noise
    points: int = eqx.field(static=True)
    limit: dict[str, Array]
    visible: Array

    def __init__(
        self, parameters: Parameters, series: Fourier, limits: ExcitationLimits | None = None,
        criterion: Criterion | None = None, noise: Noise | None = None, points: int | None = None,
    ):  # fmt: skip
        check_joints(parameters.plant.model)
        self.parameters, self.series = parameters, series
        self.limits = ExcitationLimits() if limits is None else limits
        self.criterion = DOptimal() if criterion is None else criterion
        self.noise = AbsoluteNoise() if noise is None else noise
        self.points = 20 * series.harmonics if points is None else points
        if self.points < 10 * series.harmonics:
            raise ValueError(f"points: expected at least {10 * series.harmonics}, ten for each harmonic, got {points}")
        self.limit = self.limits.of(parameters.plant.model)
        self.visible = jnp.asarray(_visible(parameters), parameters.dtype)

    @property
    def room(self) -> float:
        """The part of symmetric limits of q, v and a that holds between the points if it holds at them.

        Source: Ehlich and Zeller 1964, Schwankung von Polynomen zwischen Gitterpunkten: a trigonometric polynomial of
        degree K is at most ``1 / cos(pi K / n)`` times as large between n even points as at them.
        """
        return float(np.cos(np.pi * self.series.harmonics / self.points))

    def information(self, coefficients: Array) -> Array:
        """The information (r, r) of one period, for a sample at each of the points."""
        q, v, a = motion(self.series, coefficients, self.times())
        x = jnp.zeros(self.parameters.size, self.parameters.dtype)
        signals, J = linearized(self.parameters, x, TorqueSamples(q, v, a, jnp.zeros_like(v)))
        J = (J @ self.visible[None]) / self.noise.deviations(signals)[None, :, None]
        return jnp.einsum("tjp,tjq->pq", J, J)

    def value(self, coefficients: Array) -> Array:
        """The criterion."""
        return self.criterion(self.information(coefficients))

    def times(self, fine: int = 1) -> Array:
        """The points of a period, or more of them."""
        n = fine * self.points
        return jnp.arange(n, dtype=self.parameters.dtype) * (self.series.period / n)

    def margins(self, coefficients: Array, fine: int = 1) -> dict[str, Array]:
        """Room left at the points, by limit, (n, nv) or (n, pairs); negative where one is broken."""
        q, v, a = motion(self.series, coefficients, self.times(fine))
        plant, limit = self.parameters.plant, {name: x[None] for name, x in self.limit.items()}
        tau = plant.forces(q, v, a)
        out = {
            "lower": q - limit["lower"], "upper": limit["upper"] - q, "velocity": limit["velocity"] - jnp.abs(v),
            "acceleration": limit["acceleration"] - jnp.abs(a), "effort": limit["effort"] - jnp.abs(tau),
        }  # fmt: skip
        if self.limits.pairs:
            out["clearance"] = frame_distance(plant.model, q, self.limits.pairs) - self.limits.clearance
        return out

    def violations(self, coefficients: Array, room: Array) -> Array:
        """Conditions c <= 0 as parts of the limits, tightened to the part ``room`` of them; flat."""
        q, v, a = motion(self.series, coefficients, self.times())
        plant, limit = self.parameters.plant, {name: x[None] for name, x in self.limit.items()}
        _, half = _middle(limit)
        rows = [(q - limit["upper"]) / half + (1 - room), (limit["lower"] - q) / half + (1 - room)]
        sizes = {"velocity": v, "acceleration": a, "effort": plant.forces(q, v, a)}
        rows += [jnp.abs(x) / limit[name] - room for name, x in sizes.items()]
        if self.limits.pairs:
            gap = frame_distance(plant.model, q, self.limits.pairs) - self.limits.clearance
            # a length that makes metres a number like the others
            rows.append((1 - room) - gap / 0.1)
        return jnp.concatenate([row.reshape(-1) for row in rows])

    def guess(self, key: Array, size: float = 0.5) -> Array:
        """Random coefficients about the middle of the joints, of motions that reach a part of a limit.

        Clearance and forces are not looked at.
        """
        middle, half = _middle(self.limit)
        c = jax.random.normal(key, (middle.size, self.series.size), self.parameters.dtype).at[:, 0].set(0)
        q, v, a = motion(self.series, c, self.times())
        sizes = ((q, half), (v, self.limit["velocity"]), (a, self.limit["acceleration"]))
        parts = [jnp.abs(x) / most[None] for x, most in sizes]
        most = jnp.max(jnp.stack(parts), axis=(0, 1))
        return (c * (size / most)[:, None]).at[:, 0].set(middle)


def design_excitation(
    problem: ExcitationProblem,
    *,
    key: Array | None = None,
    start: Array | None = None,
    iterations: int = 300,
    rounds: int = 8,
) -> OptimalExcitation:
    """The motion with the most information that a search from a random one, or from ``start``, finds.

    An augmented Lagrangian for the limits around quasi-Newton steps (L-BFGS of scipy) with exact gradients; a local
    maximum. Limits of position, velocity and acceleration hold at all times. Those of forces and clearance hold at
    points ``FINE`` times as dense as the design's: where one is broken in between, the search goes on with tighter
    limits.

    Args:
        problem: What is sought.
        key: Of the first motion, ``jax.random.key(0)`` if None.
        start: Its coefficients (nv, size) instead.
        iterations: Of quasi-Newton, in each round.
        rounds: Of the augmented Lagrangian, and of tighter limits, at most.

    Raises:
        ValueError: no motion within the limits was found; its message names the limit.
        ImportError: scipy is missing.
    """
    first = problem.guess(jax.random.key(0) if key is None else key) if start is None else jnp.asarray(start)
    shape = (problem.parameters.plant.model.nv, problem.series.size)
    if first.shape != shape:
        raise ValueError(f"start: expected shape {shape}, got {first.shape}")
    begin = float(_value(problem, first))
    room, found, progress = problem.room - TOLERANCE, first, Progress()
    margins: dict[str, float] = {}
    for _ in range(rounds):
        value, conditions = (partial(f, problem, shape) for f in (_objective, _conditions))
        x, progress = maximize(
            value,
            conditions,
            np.asarray(found, float).reshape(-1),
            room,
            iterations=iterations,
            rounds=rounds,
            tolerance=TOLERANCE,
        )
        found = jnp.asarray(x.reshape(shape), first.dtype)
        margins = {name: float(np.min(m)) for name, m in _margins(problem, found).items()}
        if min(margins.values()) >= 0:
            return OptimalExcitation(
                problem.parameters, problem.series, found, begin, float(_value(problem, found)), margins, progress
            )
        room *= 0.98
    worst = min(margins, key=lambda name: margins[name])
    raise ValueError(
        f"limits: no motion within them was found; {worst} is broken by {-margins[worst]:.3g}. Start from a smaller"
        " motion (start=), allow more iterations, or look whether the machine can stand still within them"
    )


@eqx.filter_jit
def _value(problem: ExcitationProblem, coefficients: Array) -> Array:
    return problem.value(coefficients)


@eqx.filter_jit
def _margins(problem: ExcitationProblem, coefficients: Array) -> dict[str, Array]:
    return problem.margins(coefficients, FINE)


def _objective(problem: ExcitationProblem, shape: tuple[int, int], x: Array) -> Array:
    return problem.value(x.reshape(shape))


def _conditions(problem: ExcitationProblem, shape: tuple[int, int], x: Array, room: Array) -> Array:
    return problem.violations(x.reshape(shape), room)


def _middle(limit: dict[str, Array]) -> tuple[Array, Array]:
    """(middle, half of the range) of the joints; the place next to zero, and 1, where a side has no limit."""
    low, high = limit["lower"], limit["upper"]
    bounded = jnp.isfinite(low) & jnp.isfinite(high)
    span = jnp.where(bounded, high, 1) - jnp.where(bounded, low, -1)
    return jnp.where(bounded, low + span / 2, jnp.clip(0, low, high)), span / 2


def _visible(parameters: Parameters) -> np.ndarray:
    """(p, r): a basis of the combinations that random states show, orthonormal in scaled coordinates."""
    states = random_states(parameters.plant.model)
    J = np.asarray(_sensitivities(parameters, states)).reshape(-1, parameters.size)
    size = np.sqrt(np.mean(J * J, axis=0))
    felt = size > ROUNDING * np.max(size)
    scale = np.where(felt, parameters.scales(1 / np.where(felt, size, 1)), 0)
    _, singular, rows = np.linalg.svd(J * scale, full_matrices=False)
    return scale[:, None] * rows[singular > VISIBLE * singular[0]].T


@eqx.filter_jit
def _sensitivities(parameters: Parameters, states: TorqueSamples) -> Array:
    return linearized(parameters, jnp.zeros(parameters.size, parameters.dtype), states)[1]
