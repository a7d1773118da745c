"""Parameter identification from records, in one compiled call or iteration by iteration with checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float

from lgsim._compile.xla import compiled, compiled_fast, strongly_typed
from lgsim.dynamics.joint_inertia import describe_missing_inertia
from lgsim.identify import model_files
from lgsim.identify.actuator_record import MissingStage, from_record, to_record
from lgsim.identify.consistent_set import profiles_against_bodies
from lgsim.identify.data_information import DataInformation, data_information
from lgsim.identify.estimators.estimator import (
    RESULTS,
    Estimate,
    Estimator,
    Iteration,
    Resimulation,
    RoundState,
    StepwiseEstimator,
)
from lgsim.identify.estimators.torque_fit import TorqueFit
from lgsim.identify.estimators.uncertainty import Identifiability, identifiability, undetermined, whiteness
from lgsim.identify.goodness import Goodness, goodness
from lgsim.identify.prior_values import knowledge, left_at_prior, seen_by, undecided_values
from lgsim.identify.step_error import FitStepError, fit_step_error
from lgsim.identify.unknowns.coupled_plant import MOTOR_UNITS, CoupledPlant
from lgsim.identify.unknowns.parameters import Parameters, value_names
from lgsim.identify.unknowns.plant import FRICTION_PARTS, Plant
from lgsim.identify.verdict import OuterEstimate, bounds_met, fit_verdict, outer_estimate
from lgsim.multibody.model import Model
from lgsim.simulation.simulate import method_name
from lgsim.support.check import is_traced
from lgsim.support.checkpoint import Checkpoint
from lgsim.support.chunks import run_in_chunks
from lgsim.support.files import write_whole
from lgsim.support.fingerprint import fingerprint
from lgsim.support.messages import counted
from lgsim.support.verdict import Verdict

_FORMAT = "lgsim fit 1"
_SIGNALS = ("scale", "offset", "stribeck", "stribeck_speed", *FRICTION_PARTS)
JOINT_FORCES, ROUNDING = TorqueFit(), 1e-12
SMALL = 500_000
"""The number of recorded values up to which rarely run programs are compiled with fewer optimizations."""
_NORMAL_95 = 1.959963984540054
"""The 97.5 % quantile of the normal distribution: half the width of a 95 % interval, in standard deviations."""


@dataclass(frozen=True)
class Fit:
    """An identified plant with the uncertainty of its parameters.

    Attributes:
        estimate: The estimated coordinates with their covariance, as arrays.
        samples: The records that were fitted.
        validation: Held-out records for comparison, or None.
    """

    parameters: Parameters
    estimate: Estimate
    samples: Any
    validation: Any = None
    estimator: Estimator = JOINT_FORCES

    def __repr__(self) -> str:
        unknowns = counted(self.parameters.size, "unknown")
        done = counted(int(self.estimate.iterations), "iteration")
        ended = self.message or "successful"
        return f"Fit({unknowns} by {type(self.estimator).__name__}, {done}: {ended})\nsummary() prints the parameters."

    @property
    def message(self) -> str:
        """The reason for a failure with a remedy; empty if the fit converged."""
        return RESULTS[self.estimate.result]

    @cached_property
    def verdict(self) -> Verdict:
        """The outcome: converged, with active bounds and combinations that are not identifiable; stopped; or failed."""
        return fit_verdict(self)

    @cached_property
    def plant(self) -> Plant:
        """The plant at the estimated coordinates."""
        return _Programs.plant_at(self.parameters, self.estimate.x)

    @property
    def model(self) -> Model:
        """The model with the estimated parameters."""
        return self.plant.model

    @cached_property
    def values(self) -> dict[str, float]:
        """The estimated physical parameters by name and unit."""
        return self._values_at(self.estimate.x)

    @cached_property
    def prior(self) -> dict[str, float]:
        """The same physical parameters at the prior, by name and unit."""
        return self._values_at(jnp.zeros_like(self.estimate.x))

    def _values_at(self, x: Float[Array, " p"]) -> dict[str, float]:
        found = _values_and_slopes(self.parameters, eqx.tree_at(lambda e: e.x, self.estimate, x))[0]
        return dict(zip(value_names(self.parameters.values, x), found.tolist(), strict=True))

    @cached_property
    def deviations(self) -> dict[str, float]:
        """Standard errors of ``values``, in their units.

        They are infinite for a parameter that is not identifiable and has no prior.

        Where a bound or the limit of physical consistency is active, these are the standard errors without it: a
        parameter at its bound still has uncertainty. ``intervals`` end at the bounds. For a parameter that only the
        prior of bodies separates from them, they are half of its interval divided by 1.96.
        """
        estimate = self.data_information.estimate
        _, J, lost = (np.asarray(x) for x in _values_and_slopes(self.parameters, estimate))
        variance = np.einsum("ip,pq,iq->i", J, np.asarray(estimate.covariance), J)
        if bool(np.all(np.isfinite(estimate.x))):
            outer = self.outer
            if bounds_met(self.parameters, estimate, outer):
                K = J @ np.asarray(outer.map)
                variance = np.maximum(variance, np.einsum("ip,pq,iq->i", K, np.asarray(outer.covariance), K))
        without = np.isinf(self.parameters.prior_deviations(np.full(J.shape[1], np.inf)))
        infinite = np.any(np.abs(J[:, lost]) > ROUNDING, axis=1)
        infinite |= np.isin(list(self.values), self.not_identifiable) & np.any(J[:, without], axis=1)
        found = {
            name: float("inf") if unknown else float(np.sqrt(max(s, 0)))
            for name, s, unknown in zip(self.values, variance, infinite, strict=True)
        }
        # of an interval without an end, infinite
        return found | {name: (high - low) / 2 / _NORMAL_95 for name, (low, high) in self.profiles.items()}

    @cached_property
    def outer(self) -> OuterEstimate:
        """The estimate in coordinates without bounds, without the information of parameters that are not seen."""
        return seen_by(self.parameters, outer_estimate(self.parameters, self.data_information.estimate), self.samples)

    @cached_property
    def not_identifiable(self) -> tuple[str, ...]:
        """Names of ``values`` about which the records alone say less than the priors, whose deviations hardly decrease.

        They stay at the prior as far as the consistency of bodies permits. Without a prior, friction and offset count
        as not identifiable if their standard errors exceed the largest recorded torque of the joint, other parameters
        of a joint if it hardly moves.
        """
        if not np.all(np.isfinite(self.estimate.information)):
            return ()
        slopes = np.asarray(_values_and_slopes(self.parameters, self.estimate)[1], float)
        lost = undecided_values(slopes @ np.asarray(self.outer.map, float), knowledge(self.parameters, self.outer))
        return tuple(name for name, one in zip(self.values, lost, strict=True) if one)

    @cached_property
    def profiles(self) -> dict[str, tuple[float, float]]:
        """Ends of the profiles of parameters that only the prior of bodies separates from these, by name."""
        if self.message or self.estimate.starts is not None:
            return {}
        found = profiles_against_bodies(self.parameters, self.estimate, self.outer)
        if not found:
            return {}
        _, J, _ = _values_and_slopes(self.parameters, self.estimate)
        ends = {}
        for (name, value), row in zip(self.values.items(), np.asarray(J), strict=True):
            own = np.flatnonzero(row)
            if len(own) == 1 and own[0] in found:
                low, high = sorted(float(value + row[own[0]] * end) for end in found[int(own[0])])
                ends[name] = min(low, value), max(high, value)
        return ends

    @cached_property
    def intervals(self) -> dict[str, tuple[float, float]]:
        """Confidence intervals of ``values`` with at least 95 % coverage; one-sided for a parameter at its bound.

        They extend 1.96 standard errors to either side and are cut at the bounds of the parameter, at zero for masses
        and moments of inertia. Along weakly determined combinations of a simulated fit they extend to the ends of the
        profiles of the cost. A parameter of a drive that only the prior of bodies separates from them, such as an
        armature, has the interval of its profile over all consistent bodies, without their prior, by joint torques.
        """
        limits = self.parameters.value_limits()
        tracks = self.data_information.profiles
        ends = [self._values_at(jnp.asarray(x, self.estimate.x.dtype)) for track in tracks for x in track.ends]
        out = {}
        for name, value in self.values.items():
            low, high = limits.get(name, (-np.inf, np.inf))
            reach = _NORMAL_95 * self.deviations[name]
            sides = [value - reach, value + reach, *(at[name] for at in ends)]
            own = max(min(sides), min(low, value)), min(max(sides), max(high, value))
            out[name] = self.profiles.get(name, own)
        return out

    @cached_property
    def identifiability(self) -> Identifiability:
        """The combinations of the unknowns that are identifiable from the records, without priors."""
        return identifiability(self.data_information.estimate.information, self.parameters.names)

    @cached_property
    def data_information(self) -> DataInformation:
        """The estimate with the information and the covariance that the records support, by ``data_information``."""
        e = self.estimate
        if self._resimulated is None:
            return DataInformation(e, [], None)
        slopes = np.asarray(_values_and_slopes(self.parameters, e)[1])

        def moved_starts(at: Estimate, *given: Any) -> Array:
            return _Programs.moved_starts(self.estimator, self.parameters, self.samples, at, *given)

        return data_information(self, slopes, self._resimulate, moved_starts)

    @cached_property
    def _resimulated(self) -> Resimulation | None:
        """The motion of a finite estimate, simulated again; None if the estimator does not simulate."""
        e = self.estimate
        finite = e.starts is not None and all(bool(np.all(np.isfinite(a))) for a in (e.x, e.starts, e.information))
        return self._resimulate(e) if finite and self.estimator.integration is not None else None

    def _resimulate(self, estimate: Estimate, substeps: int = 1) -> Resimulation:
        k = jnp.asarray(substeps, jnp.int32)
        return _Programs.resimulated(self.estimator, self.parameters, estimate, self.samples, k)

    @cached_property
    def goodness(self) -> Goodness | None:
        """The share of each recorded signal that the fit explains; None if a residual is not finite."""
        signals = self.estimator.signals(self.parameters, self.samples)
        residuals, weights = self._fitted
        if signals is None or not np.all(np.isfinite(residuals[weights > 0])):
            return None
        columns = self.estimator.columns(self.parameters, self.samples)
        return goodness(signals, columns, residuals, weights, np.asarray(self.estimate.noise))

    @cached_property
    def step_error(self) -> FitStepError | None:
        """Estimated integration error of the simulated signals relative to their noise.

        None if the estimator does not simulate.

        The windows are simulated again with dt/2 and dt/4 by one program.
        """
        method, starts = self.estimator.integration, self.estimate.starts
        if method is None or starts is None:
            return None
        found = [self._resimulated or self._resimulate(self.estimate)]
        found += [self._resimulate(self.estimate, k) for k in (2, 4)]
        return fit_step_error(
            method_name(method), method.order, self.samples.step,
            self.estimator.columns(self.parameters, self.samples), found, self.estimate,
            float(np.max(np.abs(np.asarray(starts)))),
        )  # fmt: skip

    def residuals(self, samples: Any = None) -> Float[Array, "n columns"]:
        """Predicted minus recorded signals, in the records' units, by default for the fitted records."""
        return self._residuals(self.estimate.x, samples)[0]

    def rmse(self, samples: Any = None) -> Float[np.ndarray, " columns"]:
        """Weighted root mean square of each column of ``residuals(samples)``."""
        r, w = self._fitted if samples is None else map(np.asarray, self._residuals(self.estimate.x, samples))
        total = np.sum(w, axis=0)
        return np.sqrt(np.sum(np.where(w > 0, r, 0) ** 2 * w, axis=0) / np.where(total > 0, total, 1))

    def residuals_at(self, x: Float[Array, " p"]) -> Float[Array, "n columns"]:
        """``residuals`` of the fitted records at the coordinates x."""
        return self._residuals(x)[0]

    def signal_deviations(self, samples: Any = None) -> Float[Array, "n columns"]:
        """Standard deviations of the predicted signals due to the parameter covariance, in the records' units."""
        given = self.samples if samples is None else samples
        padded, covariance = self.estimator.padded(given), self.data_information.estimate.covariance
        found = _Programs.deviations(self.estimator, self.parameters, self.estimate.x, covariance, padded)
        return _without_padding(found, given, padded)

    def whiteness(self) -> tuple[Float[np.ndarray, "lags columns"], float]:
        """Autocorrelations of the residuals of the fitted records, and the whiteness statistic.

        A sample without weight counts as the mean of its column; a column without weights does not enter the statistic.
        """
        r, w = self._fitted
        used = w > 0
        mean = np.sum(np.where(used, r, 0), axis=0) / np.maximum(np.sum(used, axis=0), 1)
        return whiteness(np.where(used, r, mean[None]))

    @cached_property
    def _fitted(self) -> tuple[Float[np.ndarray, "n columns"], Float[np.ndarray, "n columns"]]:
        """Residuals of the fitted records and their weights."""
        r, w = self._residuals(self.estimate.x)
        return np.asarray(r), np.asarray(w)

    def _residuals(
        self, x: Float[Array, " p"], samples: Any = None
    ) -> tuple[Float[Array, "n columns"], Float[Array, "n columns"]]:
        if samples is None and x is self.estimate.x and self._resimulated is not None:
            return self._resimulated.residuals, self._resimulated.weights
        given = self.samples if samples is None else samples
        padded = self.estimator.padded(given)
        r, w = _Programs.by_size("residuals", padded)(self.estimator, self.parameters, x, padded)
        return _without_padding(r, given, padded), _without_padding(w, given, padded)

    def save(self, path: str | Path) -> Path:
        """Write an ``.npz`` file atomically.

        It holds ``names``, ``values``, ``prior``, ``deviations`` and ``intervals`` of the parameters, coordinates ``x``
        with their ``covariance`` and ``information``. For the ``columns`` it holds ``noise``, ``rmse`` and the
        ``explained`` share of the variance. It also holds the initial states ``starts`` of simulated windows, actuator
        states included, and the plant with its actuators, which ``load_plant`` reads.

        Raises:
            ValueError: the name does not end in .npz.
        """
        path = Path(path)
        if path.suffix != ".npz":
            raise ValueError(f"{path}: expected a name that ends in .npz, got {path.suffix or 'no ending'!r}")
        plant, estimate, data = self.plant, self.estimate, self.data_information.estimate
        arrays = {
            "names": np.array(list(self.values)), "values": np.array(list(self.values.values())),
            "prior": np.array(list(self.prior.values())), "deviations": np.array(list(self.deviations.values())),
            "intervals": np.array(list(self.intervals.values())),
            "x": estimate.x, "covariance": data.covariance, "information": data.information,
            "columns": np.array(self.estimator.columns(self.parameters, self.samples)), "noise": estimate.noise,
            "costs": estimate.costs, "rmse": self.rmse(),
        }  # fmt: skip
        if self.goodness is not None:
            arrays["explained"] = self.goodness.explained
        if self.validation is not None:
            arrays["rmse_held_out"] = self.rmse(self.validation)
        parts = {f"signal.{name}": getattr(plant, name) for name in _SIGNALS}
        arrays |= {name: part for name, part in parts.items() if part is not None}
        if estimate.starts is not None:
            arrays["starts"] = estimate.starts
        about = {"message": self.message, "verdict": str(self.verdict), "coordinates": self.parameters.names}
        if isinstance(plant, Plant) and plant.actuators is not None:
            about["actuators"], numbers = to_record(plant.actuators)
            arrays |= numbers
        if isinstance(plant, CoupledPlant):
            about["motors"] = list(plant.motors)
            arrays |= {f"motors.{name}": getattr(plant, name) for name in ("coupling", *MOTOR_UNITS)}
        write_whole(path, model_files.to_bytes(_FORMAT, about, plant.model, arrays))
        return path

    def summary(self) -> str:
        """The verdict, and a table of the parameters with their standard errors, residuals and integration error."""
        width = max(len(name) for name in self.values)
        lines = [f"verdict: {self.verdict}", f"{'':{width}}  {'prior':>12}  {'estimate':>12}  {'std. error':>12}"]
        for name, value in self.values.items():
            shown = "not identifiable" if name in self.not_identifiable else f"{self.deviations[name]:12.3g}"
            lines.append(f"{name:{width}}  {self.prior[name]:12.6g}  {value:12.6g}  {shown}")
        if np.all(np.isfinite(self.estimate.information)):
            seen, size = self.identifiability, self.parameters.size
            lines.append(f"{seen.rank} of {size} combinations of the unknowns are identifiable from the records")
        names = self.estimator.columns(self.parameters, self.samples)
        if self.goodness is not None:
            shares = ", ".join(self.goodness.line(i) for i in range(len(names)))
            lines.append(f"explained variance: {shares}")
        fits = ", ".join(f"{n} {r:.3g}" for n, r in zip(names, self.rmse(), strict=True))
        lines.append(f"residuals (rms): {fits}")
        if self.validation is not None:
            others = ", ".join(f"{n} {r:.3g}" for n, r in zip(names, self.rmse(self.validation), strict=True))
            lines.append(f"residuals of held-out records (rms): {others}")
        if self.step_error is not None:
            lines.append(self.step_error.summary())
        return "\n".join(lines)


def _without_padding(rows: Float[Array, "n columns"], given: Any, padded: Any) -> Float[Array, "m columns"]:
    """The rows that belong to the given records."""
    # on the host, where another length compiles nothing
    return rows if padded is given else jax.device_put(np.asarray(rows)[: len(given)])


Progress = Callable[[Iteration], Any]
"""Callback ``progress(iteration)``, called after each iteration."""


def fit(
    parameters: Parameters,
    samples: Any,
    estimator: Estimator | None = None,
    validation: Any = None,
    *,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
) -> Fit:
    """Identify the parameters of a plant from records.

    Compiles once for each structure and number of tiles of samples. Under ``jax.vmap``, for many models or records in
    one call, use ``estimator.run``.

    Args:
        samples: Records of the estimator's type: ``TorqueSamples`` of joint torques, or ``SensorRecords``.
        estimator: Estimator, by default ``TorqueFit()``.
        validation: Held-out records, compared but not fitted.
        progress: Called with each ``Iteration``, for example ``print``. Its exceptions propagate, except that Ctrl-C
            (``KeyboardInterrupt``) stops the iterations and returns the best plant so far.
        checkpoint: A file that stores the estimator's state every few seconds and at the end. If it exists, the
            estimator resumes from it, with the same result as without interruption. A fit whose cost is not finite
            removes it.

            With progress or checkpoint each iteration is compiled separately, and the result agrees with that of one
                program to rounding; neither is available inside ``jit`` and ``vmap``.

    Returns:
        The plant with its uncertainty.

    Raises:
        ValueError: a shape is wrong, a value with a weight is not finite, the prior violates its bounds, or there are
            fewer values than unknowns.
        TypeError: an argument has the wrong type or dtype; or progress or checkpoint is given, and the estimator is not
            iterative or an argument is traced.
        CheckpointError: the checkpoint belongs to other parameters, records or another estimator, or the file cannot be
            written.
        OSError: the checkpoint cannot be written, for example because the disk is full.
    """
    estimator = JOINT_FORCES if estimator is None else estimator
    in_chunks = progress is not None or checkpoint is not None
    if in_chunks and is_traced(parameters, samples, estimator):
        raise TypeError(
            "progress, checkpoint: expected concrete arrays, got traced ones; leave both out inside jit and vmap"
        )
    checked(parameters, samples, estimator, validation)
    parameters = estimator.within_record(parameters, samples)
    if in_chunks:
        estimate = _run_in_chunks(estimator, parameters, samples, progress, checkpoint)
    else:
        estimate = _Programs.run(estimator, parameters, estimator.padded(samples))
    if isinstance(estimator, TorqueFit) and not is_traced(estimate) and bool(estimate.result == RESULTS.successful):
        slopes = np.asarray(_values_and_slopes(parameters, estimate)[1], float)
        estimate = left_at_prior(parameters, estimate, slopes, samples)
    return Fit(parameters, estimate, samples, validation, estimator)


def checked(parameters: Parameters, samples: Any, estimator: Estimator, validation: Any) -> None:
    """Validate the arguments of ``fit``.

    Raises:
        ValueError, TypeError: see ``fit``.
    """
    if not isinstance(parameters, Parameters):
        raise TypeError(f"parameters: expected Parameters, got {type(parameters).__name__}")
    if not isinstance(estimator, Estimator):
        raise TypeError(f"estimator: expected an estimator such as TorqueFit(), got {type(estimator).__name__}")
    used = estimator.check(parameters, samples)
    if estimator.integration is not None and not is_traced(parameters):
        model = parameters.plant.model
        # not at zero, where axes of a wrist may be collinear
        generic = model.retract(model.neutral(), jnp.linspace(0.3, 0.7, model.nv, dtype=model.dtype))
        missing = describe_missing_inertia(model, generic)
        if missing:
            raise ValueError(f"parameters: the prior model cannot be simulated, since {missing}")
    if validation is not None:
        estimator.check(parameters, validation)
    used += len(jax.eval_shape(parameters.prior_residuals, jnp.zeros(parameters.size, parameters.dtype)))
    if used < parameters.size:
        raise ValueError(
            f"samples: expected at least {parameters.size} values with a weight for as many unknowns, got {used}"
        )
    parameters.bounds()


def _run_in_chunks(
    estimator: Estimator,
    parameters: Parameters,
    samples: Any,
    progress: Progress | None,
    path: str | Path | None,
) -> Estimate:
    """Run ``fit`` iteration by iteration, with ``progress`` or ``checkpoint``."""
    if not isinstance(estimator, StepwiseEstimator):
        raise TypeError(f"estimator: {type(estimator).__name__} is not iterative; leave out progress and checkpoint")
    given, kept = (parameters, samples, estimator), None
    if path is not None:
        kept = Checkpoint(path, fingerprint(*given), owner="problem, record or estimator")
    samples = estimator.padded(samples)
    rounds = _Programs.by_size("in_rounds", samples)(estimator, parameters, samples)
    rows: list[Iteration] = []

    def advance(now: RoundState) -> RoundState:
        rows.clear()
        before, now = int(now.iterations), _Programs.advance(rounds, now)
        if int(now.iterations) > before:
            numbers = int(now.iterations), float(now.state.cost), float(now.state.mu), int(now.round) + 1
            rows.append(Iteration(*numbers, rounds.count))
        return now if bool(now.state.unfinished) else _Programs.advance(rounds, now)

    state, interrupted = run_in_chunks(
        _Programs.begin(rounds),
        advance,
        lambda now: bool(now.ended),
        progress=None if progress is None else lambda before, after: [progress(row) for row in rows],
        checkpoint=kept,
    )
    while not bool(state.ended):
        # after an interruption, the remaining rounds return their starting point
        state = _Programs.advance(rounds, state._replace(state=state.state._replace(done=jnp.array(True))))
    estimate = _Programs.conclude(rounds, state.carry, state.found)
    if kept is not None and bool(estimate.result == RESULTS.nonfinite):
        # a search without a finite cost cannot go on, and must not stop the next one
        kept.path.unlink(missing_ok=True)
    return eqx.tree_at(lambda e: e.result, estimate, RESULTS.interrupted) if interrupted else estimate


def _method(name: str, finish: Callable[[Any], Any] = lambda found: found) -> Callable[..., Any]:
    """Call the method of this name on the first argument."""

    def call(owner: Any, *given: Any) -> Any:
        return finish(getattr(owner, name)(*given))

    call.__name__ = name
    return call


class _Programs:
    """The compiled programs of fits: methods of an estimator, its rounds, and the parameters.

    Programs that iterate over the records are compiled with full optimization, short and rarely run ones without.
    """

    run = staticmethod(compiled(_method("run")))
    resimulated = staticmethod(compiled(_method("resimulated")))
    moved_starts = staticmethod(compiled_fast(_method("moved_starts")))
    deviations = staticmethod(compiled(_method("deviations")))
    plant_at = staticmethod(compiled_fast(_method("plant_at")))
    begin = staticmethod(compiled_fast(_method("begin", strongly_typed)))
    advance = staticmethod(compiled_fast(_method("advance", strongly_typed)))
    conclude = staticmethod(compiled_fast(_method("conclude")))

    @staticmethod
    def by_size(name: str, samples: Any) -> Callable[..., Any]:
        """The program of a method whose total time, compilation included, is shorter for records of this size."""
        size = sum(leaf.size for leaf in jax.tree.leaves(samples) if eqx.is_array(leaf))
        return _by_compiler(name, compiled_fast if size <= SMALL else compiled)


@cache
def _by_compiler(name: str, compiler: Callable[..., Any]) -> Callable[..., Any]:
    return compiler(_method(name))


@compiled_fast
def _values_and_slopes(
    parameters: Parameters, estimate: Estimate
) -> tuple[Float[Array, " values"], Float[Array, "values p"], Bool[Array, " p"]]:
    """Physical parameters, their derivatives with respect to x, and a mask of the coordinates that are not
    identifiable.
    """

    def values(x: Float[Array, " p"]) -> tuple[Float[Array, " values"], Float[Array, " values"]]:
        found = parameters.value_array(x)
        return found, found

    J, found = jax.jacfwd(values, has_aux=True)(estimate.x)
    r = jax.jacfwd(parameters.prior_residuals)(estimate.x)
    return found, J, undetermined(estimate.information + r.T @ r)


def load_plant(path: str | Path) -> Plant:
    """Read the plant, with the parameters of its signals, from a file of ``Fit.save``.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: the file does not contain a fit.
        MissingStage: a ValueError: the file contains an actuator stage whose class is not imported.
    """
    try:
        return model_files.read(Path(path), _FORMAT, "fit", _plant, MissingStage)
    except MissingStage as error:
        raise MissingStage(f"{path}: {error}") from error


def _plant(about: dict[str, Any], model: Model, arrays: dict[str, np.ndarray]) -> Plant:
    signals: Any = {name: arrays[f"signal.{name}"] for name in _SIGNALS if f"signal.{name}" in arrays}
    actuators = from_record(about["actuators"], arrays) if "actuators" in about else None
    if "motors" not in about:
        return Plant(model, **signals, actuators=actuators)
    plant = CoupledPlant(model, {str(name): {} for name in about["motors"]}, signals["scale"], signals["offset"])
    for name in ("coupling", *MOTOR_UNITS):
        plant = eqx.tree_at(lambda p, name=name: getattr(p, name), plant, jnp.asarray(arrays[f"motors.{name}"]))
    return plant
