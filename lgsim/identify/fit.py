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
from lgsim.identify import model_files
from lgsim.identify.actuator_record import MissingStage, from_record, to_record
from lgsim.identify.estimators.estimator import (
    RESULTS,
    Estimate,
    Estimator,
    Iteration,
    RoundState,
    StepwiseEstimator,
)
from lgsim.identify.estimators.torque_fit import TorqueFit
from lgsim.identify.estimators.uncertainty import Identifiability, identifiability, undetermined, whiteness
from lgsim.identify.goodness import Goodness, goodness
from lgsim.identify.step_error import FitStepError, fit_step_error
from lgsim.identify.unknowns.parameters import Parameters, value_names
from lgsim.identify.unknowns.plant import Plant
from lgsim.identify.verdict import bounds_met, fit_verdict, outer_estimate
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
_SIGNALS = ("scale", "offset", "stribeck", "stribeck_speed")
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
        parameter at its bound still has uncertainty. ``intervals`` end at the bounds.
        """
        _, J, lost = (np.asarray(x) for x in _values_and_slopes(self.parameters, self.estimate))
        variance = np.einsum("ip,pq,iq->i", J, np.asarray(self.estimate.covariance), J)
        if bool(np.all(np.isfinite(self.estimate.x))):
            outer = outer_estimate(self.parameters, self.estimate)
            if bounds_met(self.parameters, self.estimate, outer):
                K = J @ np.asarray(outer.map)
                variance = np.maximum(variance, np.einsum("ip,pq,iq->i", K, np.asarray(outer.covariance), K))
        infinite = np.any(np.abs(J[:, lost]) > ROUNDING, axis=1)
        return {
            name: float("inf") if unknown else float(np.sqrt(max(s, 0)))
            for name, s, unknown in zip(self.values, variance, infinite, strict=True)
        }

    @cached_property
    def intervals(self) -> dict[str, tuple[float, float]]:
        """Confidence intervals of ``values`` with at least 95 % coverage; one-sided for a parameter at its bound.

        They extend 1.96 standard errors to either side and are cut at the bounds of the parameter, at zero for masses
        and moments of inertia.
        """
        limits = self.parameters.value_limits()
        out = {}
        for name, value in self.values.items():
            low, high = limits.get(name, (-np.inf, np.inf))
            reach = _NORMAL_95 * self.deviations[name]
            out[name] = max(value - reach, min(low, value)), min(value + reach, max(high, value))
        return out

    @cached_property
    def identifiability(self) -> Identifiability:
        """The combinations of the unknowns that are identifiable from the records, without priors."""
        return identifiability(self.estimate.information, self.parameters.names)

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
        found = [
            _Programs.resimulated(
                self.estimator, self.parameters, self.estimate, self.samples, jnp.asarray(k, jnp.int32)
            )
            for k in (1, 2, 4)
        ]
        return fit_step_error(
            method_name(method), method.order, float(self.samples.dt),
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
        return _Programs.deviations(self.estimator, self.parameters, self.estimate.x, self.estimate.covariance, given)

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
        given = self.samples if samples is None else samples
        return _Programs.by_size("residuals", given)(self.estimator, self.parameters, x, given)

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
        plant, estimate = self.plant, self.estimate
        arrays = {
            "names": np.array(list(self.values)), "values": np.array(list(self.values.values())),
            "prior": np.array(list(self.prior.values())), "deviations": np.array(list(self.deviations.values())),
            "intervals": np.array(list(self.intervals.values())),
            "x": estimate.x, "covariance": estimate.covariance, "information": estimate.information,
            "columns": np.array(self.estimator.columns(self.parameters, self.samples)), "noise": estimate.noise,
            "costs": estimate.costs, "rmse": self.rmse(),
        }  # fmt: skip
        if self.goodness is not None:
            arrays["explained"] = self.goodness.explained
        if self.validation is not None:
            arrays["rmse_held_out"] = self.rmse(self.validation)
        arrays |= {f"signal.{name}": getattr(plant, name) for name in _SIGNALS}
        if estimate.starts is not None:
            arrays["starts"] = estimate.starts
        about = {"message": self.message, "verdict": str(self.verdict), "coordinates": self.parameters.names}
        if isinstance(plant, Plant) and plant.actuators is not None:
            about["actuators"], numbers = to_record(plant.actuators)
            arrays |= numbers
        write_whole(path, model_files.to_bytes(_FORMAT, about, plant.model, arrays))
        return path

    def summary(self) -> str:
        """The verdict, and a table of the parameters with their standard errors, residuals and integration error."""
        width = max(len(name) for name in self.values)
        lines = [f"verdict: {self.verdict}", f"{'':{width}}  {'prior':>12}  {'estimate':>12}  {'std. error':>12}"]
        for name, value in self.values.items():
            lines.append(f"{name:{width}}  {self.prior[name]:12.6g}  {value:12.6g}  {self.deviations[name]:12.3g}")
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
            estimator resumes from it, with the same result as without interruption.

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
    if in_chunks:
        estimate = _run_in_chunks(estimator, parameters, samples, progress, checkpoint)
    else:
        estimate = _Programs.run(estimator, parameters, samples)
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
    signals: Any = {name: arrays[f"signal.{name}"] for name in _SIGNALS}
    actuators = from_record(about["actuators"], arrays) if "actuators" in about else None
    return Plant(model, **signals, actuators=actuators)
