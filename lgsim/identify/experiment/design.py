"""Optimal experiment design: excitation trajectories within joint limits for parameter identification."""

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
"""Oversampling factor of the final check of the limits, relative to the design's points."""

TOLERANCE = 1e-3
"""Fraction of a limit by which the search may violate it; the search uses limits that are tighter by as much."""

ROUNDING = 1e-12
"""Sensitivities below this fraction of the largest one count as rounding."""

RANK_TOLERANCE = 1e-7
"""Relative singular value of the sensitivities below which a combination is not identifiable from any motion."""


def _pairs(given: Any) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Geometry names as tuples, which are static."""
    if given is None:
        return None
    sides = given if isinstance(given, tuple | list) else ()
    plain = [tuple(side) for side in sides if isinstance(side, tuple | list)]
    count = len(plain[0]) if plain else 0
    named = all(isinstance(name, str) for side in plain for name in side)
    if len(sides) != 2 or len(plain) != 2 or not named or count == 0 or len(plain[1]) != count:
        raise ValueError(
            f"pairs: expected two tuples of equally many geometry names, such as (('hand',), ('table',)), got {given!r}"
        )
    return plain[0], plain[1]


class ExcitationLimits(eqx.Module):
    """The limits of a motion; for joints one value or (nv,).

    Positions, velocities and efforts have the joint limits of the model by default.

    Attributes:
        lower: Lower position limits, rad or m.
        upper: Upper position limits, rad or m.
        velocity: Maximum |v|, rad/s or m/s.
        acceleration: Maximum |a|, rad/s^2 or m/s^2.
        effort: Maximum joint torque, N m or N, of the prior plant.
        pairs: Pairs for collision avoidance: geometry names and as many names of the others, see ``lgsim.distance``;
            static.
        clearance: The minimum distance of the pairs, m.
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
                raise ValueError(
                    f"lower, upper: expected a lower limit below the upper one, got {low:g} and {high:g} for {name}"
                )
        return out


@dataclass(frozen=True)
class OptimalExcitation:
    """An excitation trajectory.

    Attributes:
        parameters: The unknowns of the design.
        coefficients: Coefficients of the series (nv, size).
        initial_criterion: The criterion of the initial motion.
        criterion: The final criterion: logarithm of the information per unknown.
        margins: By limit the smallest distance to it, in its unit; nonnegative up to rounding.
        verdict: The outcome: converged, with active limits and combinations that are not identifiable; or failed, if
            the maximum number of iterations was reached and a better motion may exist.
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
        """The factor by which the information per unknown increased relative to the initial motion."""
        return float(np.exp(self.criterion - self.initial_criterion))

    def motion(
        self, t: ArrayLike
    ) -> tuple[Float[Array, "*times nv"], Float[Array, "*times nv"], Float[Array, "*times nv"]]:
        """(q, v, a) at times t, s; the motion repeats after each period."""
        return self.series.motion(self.coefficients, jnp.asarray(t, self.coefficients.dtype))

    def trajectory(self, rate: float = 1000.0, periods: float = 1.0) -> Trajectory:
        """Sample the motion, with the joint torques of the prior plant, uniformly for execution on a robot.

        Args:
            rate: Sampling rate, Hz.
        """
        time = np.arange(round(periods * self.series.period * rate) + 1) / rate
        plant = self.parameters.plant
        t = jnp.asarray(time, self.coefficients.dtype)
        arrays = (np.asarray(x) for x in _motion_with_forces(plant, self.series, self.coefficients, t))
        return Trajectory(plant.model, time, *arrays, method="excitation", dt=1 / rate)

    def save(self, path: str | Path, rate: float = 1000.0) -> Path:
        """Write ``trajectory(rate)`` as ``.csv``, ``.npz`` or ``.parquet``, atomically.

        Raises:
            ValueError: the file extension is not supported.
        """
        return self.trajectory(rate).save(path)


class ExcitationProblem(eqx.Module):
    """The design of a motion: a criterion and limits as functions of the coefficients of a series (nv, size).

    Attributes:
        parameters: The unknowns of the design, linearized at the prior.
        limits: The limits of the motion, by default those of the model.
        criterion: The criterion to be maximized, by default ``DOptimal()``.
        noise: The noise of the signals, by default ``SignalNoise()``.
        points: Number of uniform times of a period for the evaluation; at least ten for each harmonic.
        joint_limits: The limits of joints by name (nv,).
        identifiable_basis: Combinations of the coordinates that are identifiable from some motion (p, r). Coordinates
            are scaled by the standard deviations of their blocks' priors, or without a prior to equal sensitivity of
            the joint torques: ``AOptimal`` and ``EOptimal`` depend on the scale, ``DOptimal`` does not.

    Raises:
        ValueError: a joint does not have one coordinate for each degree of freedom, there are too few points, or a
            limit is invalid.
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
        """The fraction of symmetric limits on q, v and a at the points that guarantees the limits between them.

        Source: Ehlich and Zeller 1964, Schwankung von Polynomen zwischen Gitterpunkten: a trigonometric polynomial of
        degree K is at most ``1 / cos(pi K / n)`` times as large between n even points as at them.
        """
        return float(np.cos(np.pi * self.series.harmonics / self.points))

    def information(self, coefficients: Float[Array, "nv size"]) -> Float[Array, "r r"]:
        """The information of one period with respect to ``identifiable_basis``, for one sample at each point."""
        q, v, a = self.series.motion(coefficients, self.times())
        x = jnp.zeros(self.parameters.size, self.parameters.dtype)
        signals, J = torque_residual_jacobian(self.parameters, x, TorqueSamples(q, v, a, jnp.zeros_like(v)))
        J = (J @ self.identifiable_basis[None]) / self.noise.deviations(signals)[None, :, None]
        return jnp.einsum("tjp,tjq->pq", J, J)

    def criterion_value(self, coefficients: Float[Array, "nv size"]) -> Float[Array, ""]:
        """The criterion of a motion, the logarithm of the information per unknown."""
        return self.criterion(self.information(coefficients))

    def times(self, fine: int = 1) -> Float[Array, " n"]:
        """Times of a period, s: the points, or a multiple of their number."""
        n = fine * self.points
        return jnp.arange(n, dtype=self.parameters.dtype) * (self.series.period / n)

    def margins(self, coefficients: Float[Array, "nv size"], fine: int = 1) -> dict[str, Float[Array, "n _"]]:
        """Distances to the limits by name, (n, nv) or (n, pairs), in their units; negative where a limit is violated.

        Args:
            fine: Oversampling factor relative to the points.
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
        """Relative constraint values c at the points; c <= 0 if the motion stays within a fraction of the limits."""
        rows = self.constraint_rows(coefficients, fraction)
        return jnp.concatenate([row.reshape(-1) for row in rows.values()])

    def constraint_rows(
        self, coefficients: Float[Array, "nv size"], fraction: Float[Array, ""] | float, fine: int = 1
    ) -> dict[str, Float[Array, "n _"]]:
        """``constraints`` by the names of the limits, (n, nv) or (n, pairs); ``fine`` as for ``margins``."""
        q, v, a = self.series.motion(coefficients, self.times(fine))
        plant, limit = self.parameters.plant, {name: x[None] for name, x in self.joint_limits.items()}
        _, half = _middle_and_half_range(limit)
        upper, lower = (q - limit["upper"]) / half + (1 - fraction), (limit["lower"] - q) / half + (1 - fraction)
        sizes = {"velocity": v, "acceleration": a, "effort": plant.joint_forces(q, v, a)}
        rows = {"upper": upper, "lower": lower}
        rows |= {name: jnp.abs(x) / limit[name] - fraction for name, x in sizes.items()}
        if self.limits.pairs is not None:
            gap = distance(plant.model, q, *self.limits.pairs) - self.limits.clearance
            # a length scale that makes distances dimensionless
            rows["clearance"] = (1 - fraction) - gap / 0.1
        return rows

    def limits_met(self, coefficients: Float[Array, "nv size"], fraction: float) -> tuple[str, ...]:
        """The active limits of a motion within a fraction of the limits, by name and joint or pair."""
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
        """The combinations of the unknowns that are not identifiable from any motion, with the prior's share: 1, or NaN
        without a prior.
        """
        names = self.parameters.names
        known = np.isfinite(self.parameters.prior_deviations(np.full(len(names), np.inf)))
        return tuple(
            (", ".join(parts), 1.0 if all(known[names.index(part)] for part in parts) else float("nan"))
            for parts in identifiability(_state_information(self.parameters), names).unidentifiable
        )

    def random_coefficients(self, key: Key[Array, ""], size: float = 0.5) -> Float[Array, "nv size"]:
        """Random coefficients about the middle of the joint ranges, of motions that reach a fraction ``size`` of a
        limit.

        Clearance and joint torques are not considered.
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
    """Maximize the information of a motion, from a random motion or from ``start``.

    An augmented Lagrangian for the limits around quasi-Newton steps (L-BFGS of scipy) with exact gradients; it finds a
    local maximum. Limits of position, velocity and acceleration hold at all times. Those of torques and clearance hold
    at ``FINE`` times as many points as in the design: if one is violated in between, the search continues with tighter
    limits.

    Args:
        key: The random key of the initial motion, ``jax.random.key(0)`` if None.
        start: Coefficients of the initial motion instead.
        iterations: Maximum number of quasi-Newton iterations in each outer one.
        outer_iterations: Maximum number of updates of the multipliers, and of the limits.

    Raises:
        ValueError: no motion within the limits was found, with the violated limit in the message; or ``start`` has a
            wrong shape.
        ModuleNotFoundError: scipy is not installed.
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
        excess = (float(np.max(row)) for row in _fine_rows(problem, found).values())
        fraction -= max(TOLERANCE, *excess)
    worst = min(margins, key=lambda name: margins[name])
    raise ValueError(
        f"limits: no motion within the limits was found, {worst} is violated by {-margins[worst]:.3g}. Start from a"
        " smaller motion (start=), increase iterations, or check that the model can stand still within the limits"
    )


def _verdict(
    problem: ExcitationProblem,
    coefficients: Float[Array, "nv size"],
    fraction: float,
    history: SearchHistory,
    iterations: int,
) -> Verdict:
    """The verdict of the search for a motion within the limits."""
    bounds, unseen = problem.limits_met(coefficients, fraction), problem.unseen_combinations()
    if not history.settled:
        said = (
            f"failed: the last search used all {counted(iterations, 'iteration')}. The motion is within the limits,"
            f" but may not be optimal: the criterion is {history.values[-1]:.4g}"
        )
        if len(history.values) > 1:
            said += f", {history.values[-1] - history.values[-2]:+.2g} by that search"
        return Verdict(Outcome.FAILED, f"{said}. Increase iterations, or continue from here (start=)", bounds, unseen)
    count = f"{len(unseen)} of {problem.parameters.size} combinations"
    named = first_names([name for name, _ in unseen])
    return converged(bounds, "limit", unseen, f"{count} not identifiable from any motion ({named})")


@compiled
def _motion_with_forces(
    plant: Plant, series: Fourier, coefficients: Float[Array, "nv size"], t: Float[Array, " n"]
) -> tuple[Float[Array, "n nv"], Float[Array, "n nv"], Float[Array, "n nv"]]:
    """(q, v, joint torques) at times."""
    q, v, a = series.motion(coefficients, t)
    return q, v, plant.joint_forces(q, v, a)


_constraint_rows = compiled(ExcitationProblem.constraint_rows)


@compiled
def _fine_rows(problem: ExcitationProblem, coefficients: Float[Array, "nv size"]) -> dict[str, Float[Array, "n _"]]:
    """Relative violations of the whole limits at the fine times."""
    return problem.constraint_rows(coefficients, 1.0, FINE)


@compiled
def _judge(
    problem: ExcitationProblem, coefficients: Float[Array, "nv size"]
) -> tuple[Float[Array, ""], dict[str, Float[Array, "n _"]]]:
    """The criterion, and the margins at the fine times, of a motion."""
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
    """Center and half range of the joints; for a one-sided limit the position closest to zero, and 1."""
    low, high = limit["lower"], limit["upper"]
    bounded = jnp.isfinite(low) & jnp.isfinite(high)
    span = jnp.where(bounded, high, 1) - jnp.where(bounded, low, -1)
    return jnp.where(bounded, low + span / 2, jnp.clip(0, low, high)), span / 2


def _identifiable_basis(parameters: Parameters) -> Float[np.ndarray, "p r"]:
    """A basis of the combinations that are identifiable from random states, orthonormal in scaled coordinates."""
    J = _random_sensitivities(parameters)
    size = np.sqrt(np.mean(J * J, axis=0))
    seen = size > ROUNDING * np.max(size)
    scale = np.where(seen, parameters.prior_deviations(1 / np.where(seen, size, 1)), 0)
    _, singular, rows = np.linalg.svd(J * scale, full_matrices=False)
    return scale[:, None] * rows[singular > RANK_TOLERANCE * singular[0]].T


def _random_sensitivities(parameters: Parameters) -> Float[np.ndarray, "n p"]:
    """The derivatives of the signals with respect to the coordinates at random states."""
    q, v, a = random_states(parameters.plant.model)
    J = _sensitivities(parameters, TorqueSamples(q, v, a, jnp.zeros_like(v)))
    return np.asarray(J).reshape(-1, parameters.size)


def _state_information(parameters: Parameters) -> Float[np.ndarray, "p p"]:
    """The information matrix of the coordinates at random states."""
    J = _random_sensitivities(parameters)
    return J.T @ J


@compiled
def _sensitivities(parameters: Parameters, states: TorqueSamples) -> Float[Array, "n nv p"]:
    return torque_residual_jacobian(parameters, jnp.zeros(parameters.size, parameters.dtype), states)[1]
