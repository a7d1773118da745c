"""Optimal experiments: motions within a machine's limits that show its unknown numbers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Key

from lgsim._compile.xla import compiled
from lgsim.dynamics.distances.distance import distance
from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.estimators.torque_objective import torque_residual_jacobian
from lgsim.identify.estimators.uncertainty import identifiability
from lgsim.identify.experiment.constrained_maximum import SearchHistory, maximize
from lgsim.identify.experiment.criteria import Criterion, DOptimal, SignalNoise
from lgsim.identify.experiment.fourier import Fourier, check_joints
from lgsim.identify.recording.coordinates import dof_names
from lgsim.identify.unknowns.base_parameters import random_states
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import NumbersLike, Plant
from lgsim.multibody.model import Model
from lgsim.simulation.trajectory import Trajectory
from lgsim.support.messages import counted
from lgsim.support.verdict import Outcome, Verdict, converged, first_names

FINE = 8
"""Factor by which the times at which the limits are looked at in the end are denser than the design's."""

TOLERANCE = 1e-3
"""Fraction of a limit by which the search may break it; the limits that it sees are tighter by as much."""

ROUNDING = 1e-12
"""Fraction of the largest sensitivity below which another is rounding of zero."""

RANK_TOLERANCE = 1e-7
"""Relative singular value of the sensitivities below which no motion shows a combination."""


def _pairs(given: Any) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Names of solids and of the others as tuples, which are static."""
    if given is None:
        return None
    sides = given if isinstance(given, tuple | list) else ()
    plain = [tuple(side) for side in sides if isinstance(side, tuple | list)]
    count = len(plain[0]) if plain else 0
    named = all(isinstance(name, str) for side in plain for name in side)
    if len(sides) != 2 or len(plain) != 2 or not named or count == 0 or len(plain[1]) != count:
        raise ValueError(
            f"pairs: expected names of solids and as many of the others, such as (('hand',), ('table',)), got {given!r}"
        )
    return plain[0], plain[1]


class ExcitationLimits(eqx.Module):
    """The limits of a motion; of joints one number or (nv,).

    Positions, velocities and efforts have the limits of the model unless others are given.

    Attributes:
        lower: Smallest positions, rad or m.
        upper: Largest positions, rad or m.
        velocity: Largest |v|, rad/s or m/s.
        acceleration: Largest |a|, rad/s^2 or m/s^2.
        effort: Largest joint force, N m or N, of the prior plant.
        pairs: Names of solids that must stay apart and names of the others, see ``lgsim.distance``; static.
        clearance: The distance that they must keep, m.
    """

    lower: NumbersLike | None = None
    upper: NumbersLike | None = None
    velocity: NumbersLike | None = None
    acceleration: NumbersLike = np.inf
    effort: NumbersLike | None = None
    pairs: tuple[tuple[str, ...], tuple[str, ...]] | None = eqx.field(static=True, converter=_pairs, default=None)
    clearance: ArrayLike = 0.0

    def joint_limits(self, model: Model) -> dict[str, Float[Array, " nv"]]:
        """The limits of all joints of a model: "lower", "upper", "velocity", "acceleration", "effort".

        Raises:
            ValueError: a shape is wrong, or a lower limit is not below the upper one.
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
        parameters: The unknowns that it is to show.
        coefficients: Coefficients of the series (nv, size).
        initial_criterion: The criterion of the motion that the search began with.
        criterion: The criterion reached: logarithm of the information for each unknown.
        margins: By limit the least distance to it, in its unit; not negative but for rounding.
        verdict: How it ended: converged, at the limits that the motion touches, with the combinations of the unknowns
            that no motion shows, or failed, where its iterations were used up and a better motion may be near.
    """

    parameters: Parameters
    series: Fourier
    coefficients: Float[Array, "nv size"]
    initial_criterion: float
    criterion: float
    margins: dict[str, float]
    history: SearchHistory
    verdict: Verdict

    @property
    def gain(self) -> float:
        """The factor by which the information for each unknown has grown over that of the first motion."""
        return float(np.exp(self.criterion - self.initial_criterion))

    def motion(
        self, t: ArrayLike
    ) -> tuple[Float[Array, "*times nv"], Float[Array, "*times nv"], Float[Array, "*times nv"]]:
        """(q, v, a) at times t, s; the motion repeats after each period."""
        return self.series.motion(self.coefficients, jnp.asarray(t, self.coefficients.dtype))

    def trajectory(self, rate: float = 1000.0, periods: float = 1.0) -> Trajectory:
        """The motion with the joint forces of the prior plant, at even times, to be replayed.

        Args:
            rate: Samples for each second, Hz.
        """
        time = np.arange(round(periods * self.series.period * rate) + 1) / rate
        plant = self.parameters.plant
        t = jnp.asarray(time, self.coefficients.dtype)
        arrays = (np.asarray(x) for x in _motion_with_forces(plant, self.series, self.coefficients, t))
        return Trajectory(plant.model, time, *arrays, method="excitation", dt=1 / rate)

    def save(self, path: str | Path, rate: float = 1000.0) -> Path:
        """Write ``trajectory(rate)`` as ``.csv``, ``.npz`` or ``.parquet``, whole or not at all.

        Raises:
            ValueError: the ending is another one.
        """
        return self.trajectory(rate).save(path)


class ExcitationProblem(eqx.Module):
    """The design of a motion: a criterion and limits as functions of the coefficients of a series (nv, size).

    Attributes:
        parameters: The unknowns that the motion is to show, linearized at the prior.
        limits: The limits that the motion must keep, by default those of the model.
        criterion: The criterion that is to be large, by default ``DOptimal()``.
        noise: The noise of the signals, by default ``SignalNoise()``.
        points: Number of even times of a period at which all is computed; at least ten for each harmonic.
        joint_limits: The limits of joints by name (nv,).
        identifiable_basis: Combinations of the coordinates that some motion shows (p, r). Coordinates are counted in
            standard deviations of their blocks' priors, and where there is none, so that joint forces are as sensitive
            to each: ``AOptimal`` and ``EOptimal`` depend on that, ``DOptimal`` does not.

    Raises:
        ValueError: a joint has not one number for each degree of freedom, there are too few points, or a limit is
            wrong.
    """

    parameters: Parameters
    series: Fourier
    limits: ExcitationLimits
    criterion: Criterion
    noise: SignalNoise
    points: int = eqx.field(static=True)
    joint_limits: dict[str, Float[Array, " nv"]]
    identifiable_basis: Float[Array, "p r"]

    def __init__(
        self,
        parameters: Parameters,
        series: Fourier,
        limits: ExcitationLimits | None = None,
        criterion: Criterion | None = None,
        noise: SignalNoise | None = None,
        points: int | None = None,
    ) -> None:
        check_joints(parameters.plant.model)
        self.parameters, self.series = parameters, series
        self.limits = ExcitationLimits() if limits is None else limits
        self.criterion = DOptimal() if criterion is None else criterion
        self.noise = SignalNoise() if noise is None else noise
        self.points = 20 * series.harmonics if points is None else points
        if self.points < 10 * series.harmonics:
            raise ValueError(f"points: expected at least {10 * series.harmonics}, ten for each harmonic, got {points}")
        self.joint_limits = self.limits.joint_limits(parameters.plant.model)
        self.identifiable_basis = jnp.asarray(_identifiable_basis(parameters), parameters.dtype)

    @property
    def grid_fraction(self) -> float:
        """The fraction of symmetric limits that q, v and a must keep at the points to keep the limits between them.

        Source: Ehlich and Zeller 1964, Schwankung von Polynomen zwischen Gitterpunkten: a trigonometric polynomial of
        degree K is at most ``1 / cos(pi K / n)`` times as large between n even points as at them.
        """
        return float(np.cos(np.pi * self.series.harmonics / self.points))

    def information(self, coefficients: Float[Array, "nv size"]) -> Float[Array, "r r"]:
        """The information of one period about ``identifiable_basis``, for a sample at each of the points."""
        q, v, a = self.series.motion(coefficients, self.times())
        x = jnp.zeros(self.parameters.size, self.parameters.dtype)
        signals, J = torque_residual_jacobian(self.parameters, x, TorqueSamples(q, v, a, jnp.zeros_like(v)))
        J = (J @ self.identifiable_basis[None]) / self.noise.deviations(signals)[None, :, None]
        return jnp.einsum("tjp,tjq->pq", J, J)

    def criterion_value(self, coefficients: Float[Array, "nv size"]) -> Float[Array, ""]:
        """The criterion of a motion, logarithm of the information for each unknown."""
        return self.criterion(self.information(coefficients))

    def times(self, fine: int = 1) -> Float[Array, " n"]:
        """Times of a period, s: the points, or a multiple of their number."""
        n = fine * self.points
        return jnp.arange(n, dtype=self.parameters.dtype) * (self.series.period / n)

    def margins(self, coefficients: Float[Array, "nv size"], fine: int = 1) -> dict[str, Float[Array, "n _"]]:
        """Distances to the limits by name, (n, nv) or (n, pairs), in their units; negative where a limit is broken.

        Args:
            fine: Factor by which the times are denser than the points.
        """
        q, v, a = self.series.motion(coefficients, self.times(fine))
        plant, limit = self.parameters.plant, {name: x[None] for name, x in self.joint_limits.items()}
        tau = plant.joint_forces(q, v, a)
        out = {
            "lower": q - limit["lower"], "upper": limit["upper"] - q, "velocity": limit["velocity"] - jnp.abs(v),
            "acceleration": limit["acceleration"] - jnp.abs(a), "effort": limit["effort"] - jnp.abs(tau),
        }  # fmt: skip
        if self.limits.pairs is not None:
            out["clearance"] = distance(plant.model, q, *self.limits.pairs) - self.limits.clearance
        return out

    def constraints(
        self, coefficients: Float[Array, "nv size"], fraction: Float[Array, ""]
    ) -> Float[Array, " constraints"]:
        """Values c at the points, where c <= 0 if the motion keeps to a fraction of the limits, as parts of them."""
        rows = self.constraint_rows(coefficients, fraction)
        return jnp.concatenate([row.reshape(-1) for row in rows.values()])

    def constraint_rows(
        self, coefficients: Float[Array, "nv size"], fraction: Float[Array, ""]
    ) -> dict[str, Float[Array, "n _"]]:
        """``constraints`` by the names of the limits, (n, nv) or (n, pairs)."""
        q, v, a = self.series.motion(coefficients, self.times())
        plant, limit = self.parameters.plant, {name: x[None] for name, x in self.joint_limits.items()}
        _, half = _middle_and_half_range(limit)
        upper, lower = (q - limit["upper"]) / half + (1 - fraction), (limit["lower"] - q) / half + (1 - fraction)
        sizes = {"velocity": v, "acceleration": a, "effort": plant.joint_forces(q, v, a)}
        rows = {"upper": upper, "lower": lower}
        rows |= {name: jnp.abs(x) / limit[name] - fraction for name, x in sizes.items()}
        if self.limits.pairs is not None:
            gap = distance(plant.model, q, *self.limits.pairs) - self.limits.clearance
            # a length that makes meters a number like the others
            rows["clearance"] = (1 - fraction) - gap / 0.1
        return rows

    def limits_met(self, coefficients: Float[Array, "nv size"], fraction: float) -> tuple[str, ...]:
        """The limits that a motion touches where it keeps to a fraction of them, by name and joint or pair."""
        rows = _constraint_rows(self, coefficients, jnp.asarray(fraction, coefficients.dtype))
        dofs = dof_names(self.parameters.plant.model)
        pairs = [" and ".join(pair) for pair in zip(*(self.limits.pairs or ()), strict=True)]
        found = []
        for name, values in rows.items():
            highest = np.max(np.asarray(values), axis=0)
            owners = dofs if name != "clearance" else pairs
            found += [f"{name} of {own}" for own, c in zip(owners, highest, strict=True) if c >= -2 * TOLERANCE]
        return tuple(found)

    def unseen_combinations(self) -> tuple[tuple[str, float], ...]:
        """The combinations of the unknowns that no motion shows, each with the prior's share: 1, or NaN without one."""
        names = self.parameters.names
        known = np.isfinite(self.parameters.prior_deviations(np.full(len(names), np.inf)))
        return tuple(
            (", ".join(parts), 1.0 if all(known[names.index(part)] for part in parts) else float("nan"))
            for parts in identifiability(_state_information(self.parameters), names).unidentifiable
        )

    def random_coefficients(self, key: Key[Array, ""], size: float = 0.5) -> Float[Array, "nv size"]:
        """Random coefficients about the middle of the joints, of motions that reach a fraction ``size`` of a limit.

        Clearance and forces are not looked at.
        """
        middle, half = _middle_and_half_range(self.joint_limits)
        c = jax.random.normal(key, (middle.size, self.series.size), self.parameters.dtype).at[:, 0].set(0)
        q, v, a = self.series.motion(c, self.times())
        sizes = ((q, half), (v, self.joint_limits["velocity"]), (a, self.joint_limits["acceleration"]))
        parts = [jnp.abs(x) / most[None] for x, most in sizes]
        most = jnp.max(jnp.stack(parts), axis=(0, 1))
        return (c * (size / most)[:, None]).at[:, 0].set(middle)


def design_excitation(
    problem: ExcitationProblem,
    *,
    key: Key[Array, ""] | None = None,
    start: Float[ArrayLike, "nv size"] | None = None,
    iterations: int = 300,
    outer_iterations: int = 8,
) -> OptimalExcitation:
    """The motion with the most information that a search from a random one, or from ``start``, finds.

    An augmented Lagrangian for the limits around quasi-Newton steps (L-BFGS of scipy) with exact gradients; a local
    maximum. Limits of position, velocity and acceleration hold at all times. Those of forces and clearance hold at
    points ``FINE`` times as dense as the design's: where one is broken in between, the search goes on with tighter
    limits.

    Args:
        key: The random key of the first motion, ``jax.random.key(0)`` if None.
        start: Coefficients of the first motion instead.
        iterations: Largest number of quasi-Newton iterations in each outer one.
        outer_iterations: Largest number of updates of the multipliers, and of the limits.

    Raises:
        ValueError: no motion within the limits was found; its message names the limit. Or ``start`` has a wrong shape.
        ModuleNotFoundError: scipy is missing.
    """
    if start is None:
        found = problem.random_coefficients(jax.random.key(0) if key is None else key)
    else:
        found = jnp.asarray(start)
    shape = (problem.parameters.plant.model.nv, problem.series.size)
    if found.shape != shape:
        raise ValueError(f"start: expected shape {shape}, got {found.shape}")
    initial = float(_judge(problem, found)[0])
    fraction, dtype = problem.grid_fraction - TOLERANCE, found.dtype
    margins: dict[str, float] = {}
    for _ in range(outer_iterations):
        x, history = maximize(
            eqx.Partial(_flat_criterion, problem, shape),
            eqx.Partial(_flat_constraints, problem, shape),
            np.asarray(found, float).reshape(-1),
            fraction,
            iterations=iterations,
            outer_iterations=outer_iterations,
            tolerance=TOLERANCE,
        )
        found = jnp.asarray(x.reshape(shape), dtype)
        reached, rows = _judge(problem, found)
        margins = {name: float(np.min(m)) for name, m in rows.items()}
        if min(margins.values()) >= 0:
            verdict = _verdict(problem, found, fraction, history, iterations)
            return OptimalExcitation(
                problem.parameters, problem.series, found, initial, float(reached), margins, history, verdict
            )
        fraction *= 0.98
    worst = min(margins, key=lambda name: margins[name])
    raise ValueError(
        f"limits: no motion within them was found; {worst} is broken by {-margins[worst]:.3g}. Start from a smaller"
        " motion (start=), allow more iterations, or look whether the machine can stand still within them"
    )


def _verdict(
    problem: ExcitationProblem,
    coefficients: Float[Array, "nv size"],
    fraction: float,
    history: SearchHistory,
    iterations: int,
) -> Verdict:
    """How the search for a motion within the limits ended."""
    bounds, unseen = problem.limits_met(coefficients, fraction), problem.unseen_combinations()
    if not history.settled:
        said = (
            f"failed: all {counted(iterations, 'iteration')} of the last search were used, and the motion, which keeps"
            f" the limits, may still get better: the criterion is {history.values[-1]:.4g}"
        )
        if len(history.values) > 1:
            said += f", {history.values[-1] - history.values[-2]:+.2g} by that search"
        return Verdict(Outcome.FAILED, f"{said}. Give more iterations, or go on from here (start=)", bounds, unseen)
    count = f"{len(unseen)} of {problem.parameters.size} combinations"
    named = first_names([name for name, _ in unseen])
    return converged(bounds, "limit", unseen, f"{count} shown by no motion ({named})")


@compiled
def _motion_with_forces(
    plant: Plant, series: Fourier, coefficients: Float[Array, "nv size"], t: Float[Array, " n"]
) -> tuple[Float[Array, "n nv"], Float[Array, "n nv"], Float[Array, "n nv"]]:
    """(q, v, joint forces) at times."""
    q, v, a = series.motion(coefficients, t)
    return q, v, plant.joint_forces(q, v, a)


_constraint_rows = compiled(ExcitationProblem.constraint_rows)


@compiled
def _judge(
    problem: ExcitationProblem, coefficients: Float[Array, "nv size"]
) -> tuple[Float[Array, ""], dict[str, Float[Array, "n _"]]]:
    """(the criterion, the margins at the fine times) of a motion."""
    return problem.criterion_value(coefficients), problem.margins(coefficients, FINE)


def _flat_criterion(problem: ExcitationProblem, shape: tuple[int, int], x: Float[Array, " n"]) -> Float[Array, ""]:
    return problem.criterion_value(x.reshape(shape))


def _flat_constraints(
    problem: ExcitationProblem, shape: tuple[int, int], x: Float[Array, " n"], fraction: Float[Array, ""]
) -> Float[Array, " m"]:
    return problem.constraints(x.reshape(shape), fraction)


def _middle_and_half_range(
    limit: dict[str, Float[Array, "*one nv"]],
) -> tuple[Float[Array, "*one nv"], Float[Array, "*one nv"]]:
    """(middle, half of the range) of the joints; the place next to zero, and 1, where a side has no limit."""
    low, high = limit["lower"], limit["upper"]
    bounded = jnp.isfinite(low) & jnp.isfinite(high)
    span = jnp.where(bounded, high, 1) - jnp.where(bounded, low, -1)
    return jnp.where(bounded, low + span / 2, jnp.clip(0, low, high)), span / 2


def _identifiable_basis(parameters: Parameters) -> Float[np.ndarray, "p r"]:
    """A basis of the combinations that random states show, orthonormal in scaled coordinates."""
    J = _random_sensitivities(parameters)
    size = np.sqrt(np.mean(J * J, axis=0))
    seen = size > ROUNDING * np.max(size)
    scale = np.where(seen, parameters.prior_deviations(1 / np.where(seen, size, 1)), 0)
    _, singular, rows = np.linalg.svd(J * scale, full_matrices=False)
    return scale[:, None] * rows[singular > RANK_TOLERANCE * singular[0]].T


def _random_sensitivities(parameters: Parameters) -> Float[np.ndarray, "n p"]:
    """The derivatives of the signals by the coordinates at random states."""
    q, v, a = random_states(parameters.plant.model)
    J = _sensitivities(parameters, TorqueSamples(q, v, a, jnp.zeros_like(v)))
    return np.asarray(J).reshape(-1, parameters.size)


def _state_information(parameters: Parameters) -> Float[np.ndarray, "p p"]:
    """What random states tell of the coordinates."""
    J = _random_sensitivities(parameters)
    return J.T @ J


@compiled
def _sensitivities(parameters: Parameters, states: TorqueSamples) -> Float[Array, "n nv p"]:
    return torque_residual_jacobian(parameters, jnp.zeros(parameters.size, parameters.dtype), states)[1]
