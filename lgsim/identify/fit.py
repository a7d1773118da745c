"""The front door of identification: a plant from records, in one go, or in iterations that are shown and kept."""

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
from lgsim.support.verdict import Verdict

_FORMAT = "lgsim fit 1"
_SIGNALS = ("scale", "offset", "stribeck", "stribeck_speed")
JOINT_FORCES, ROUNDING = TorqueFit(), 1e-12
SMALL = 500_000
"""The number of numbers in records up to which programs that read them a few times are compiled fast."""
_NORMAL_95 = 1.959963984540054
"""Deviations that the middle 95 % of a normal distribution reach to either side."""


@dataclass(frozen=True)
class Fit:
    """A plant identified from records, with how well it is known.

    Attributes:
        estimate: The coordinates found with their covariance, as arrays.
        samples: The records that were fitted.
        validation: Records that were not fitted but are compared, or None.
    """

    parameters: Parameters
    estimate: Estimate
    samples: Any
    validation: Any = None
    estimator: Estimator = JOINT_FORCES

    @property
    def message(self) -> str:
        """A sentence that says what went wrong and what to do; empty where nothing did."""
        return RESULTS[self.estimate.result]

    @cached_property
    def verdict(self) -> Verdict:
        """How the fit ended: converged, with what it leaves open and the bounds that it met, stopped or failed."""
        return fit_verdict(self)

    @cached_property
    def plant(self) -> Plant:
        """The plant at the coordinates found."""
        return _Programs.plant_at(self.parameters, self.estimate.x)

    @property
    def model(self) -> Model:
        """The machine with the numbers found."""
        return self.plant.model

    @cached_property
    def values(self) -> dict[str, float]:
        """The physical numbers found, by name and unit."""
        return self._values_at(self.estimate.x)

    @cached_property
    def prior(self) -> dict[str, float]:
        """The same physical numbers of the prior, by name and unit."""
        return self._values_at(jnp.zeros_like(self.estimate.x))

    def _values_at(self, x: Float[Array, " p"]) -> dict[str, float]:
        found = _values_and_slopes(self.parameters, eqx.tree_at(lambda e: e.x, self.estimate, x))[0]
        return dict(zip(value_names(self.parameters.values, x), found.tolist(), strict=True))

    @cached_property
    def deviations(self) -> dict[str, float]:
        """Standard deviations of ``values``, in their units; infinite where records and priors do not determine one.

        Where bounds or the edge of what bodies can be hold the numbers, these are what they would be without: a number
        at its bound is not known exactly. ``intervals`` end at the bounds.
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
        """Intervals of ``values`` that hold the truth in at least 95 of 100 cases; one-sided for a number at a bound.

        They reach 1.96 deviations to either side and end at the bounds of a number, at zero for masses and moments of
        inertia.
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
        """The combinations of the unknowns that the records show, without priors."""
        return identifiability(self.estimate.information, self.parameters.names)

    @cached_property
    def step_error(self) -> FitStepError | None:
        """How far the steps move the simulated signals beside their noise; None where the estimator does not simulate.

        The windows are simulated again with dt/2 and dt/4, by one program.
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
        """Signals of the plant found less recorded ones, in the records' units, by default of the fitted records."""
        return self._residuals(self.estimate.x, samples)[0]

    def rmse(self, samples: Any = None) -> Float[np.ndarray, " columns"]:
        """Weighted root mean square of each column of ``residuals(samples)``."""
        r, w = map(np.asarray, self._residuals(self.estimate.x, samples))
        total = np.sum(w, axis=0)
        return np.sqrt(np.sum(np.where(w > 0, r, 0) ** 2 * w, axis=0) / np.where(total > 0, total, 1))

    def residuals_at(self, x: Float[Array, " p"]) -> Float[Array, "n columns"]:
        """``residuals`` of the fitted records at other coordinates."""
        return self._residuals(x)[0]

    def signal_deviations(self, samples: Any = None) -> Float[Array, "n columns"]:
        """Standard deviations of what the plant gives, in the records' units, that come from the covariance alone."""
        given = self.samples if samples is None else samples
        return _Programs.deviations(self.estimator, self.parameters, self.estimate.x, self.estimate.covariance, given)

    def whiteness(self) -> tuple[Float[np.ndarray, "lags columns"], float]:
        """(autocorrelations, statistic) of the fitted records' residuals.

        What has no weight counts as the mean of its column; a column without any is left out of the statistic.
        """
        r, w = map(np.asarray, self._residuals(self.estimate.x))
        used = w > 0
        mean = np.sum(np.where(used, r, 0), axis=0) / np.maximum(np.sum(used, axis=0), 1)
        return whiteness(np.where(used, r, mean[None]))

    def _residuals(
        self, x: Float[Array, " p"], samples: Any = None
    ) -> tuple[Float[Array, "n columns"], Float[Array, "n columns"]]:
        given = self.samples if samples is None else samples
        return _Programs.by_size("residuals", given)(self.estimator, self.parameters, x, given)

    def save(self, path: str | Path) -> Path:
        """Write an ``.npz`` file, whole or not at all.

        It holds ``names``, ``values``, ``prior``, ``deviations`` and ``intervals`` of the numbers, coordinates ``x``
        with their ``covariance`` and ``information``, ``noise`` and ``rmse`` of the ``columns``, of simulated windows
        their first states ``starts``, those of actuators among them, and the plant with its actuators, which
        ``load_plant`` reads again.

        Raises:
            ValueError: the ending is another one.
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
        """The verdict, a table of the numbers with their deviations, and the remarks, as text."""
        width = max(len(name) for name in self.values)
        lines = [f"verdict: {self.verdict}", f"{'':{width}}  {'prior':>12}  {'found':>12}  {'deviation':>12}"]
        for name, value in self.values.items():
            lines.append(f"{name:{width}}  {self.prior[name]:12.6g}  {value:12.6g}  {self.deviations[name]:12.3g}")
        seen = self.identifiability
        lines.append(f"{seen.rank} of {self.parameters.size} combinations of the unknowns are seen in the records")
        names = self.estimator.columns(self.parameters, self.samples)
        fits = ", ".join(f"{n} {r:.3g}" for n, r in zip(names, self.rmse(), strict=True))
        lines.append(f"residuals (rms): {fits}")
        if self.validation is not None:
            others = ", ".join(f"{n} {r:.3g}" for n, r in zip(names, self.rmse(self.validation), strict=True))
            lines.append(f"residuals of held-out records: {others}")
        if self.step_error is not None:
            lines.append(self.step_error.summary())
        return "\n".join(lines)


Progress = Callable[[Iteration], Any]
"""``progress(iteration)`` is called after each iteration."""


def fit(
    parameters: Parameters,
    samples: Any,
    estimator: Estimator | None = None,
    validation: Any = None,
    *,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
) -> Fit:
    """Identify a plant from records.

    Compiled once for each structure and number of tiles of samples. Under ``jax.vmap``, for many machines or records in
    one call, use ``estimator.run``.

    Args:
        samples: Records of the kind that the estimator takes: ``TorqueSamples`` of joint forces, or ``SensorRecords``.
        estimator: Estimator, by default ``TorqueFit()``.
        validation: Records that are not fitted but compared.
        progress: Called with each ``Iteration`` while the estimator works, such as ``print``. What it raises goes
            through, but Ctrl-C (``KeyboardInterrupt``) ends the iterations and the best plant so far is returned.
        checkpoint: A file that keeps the estimator's state every few seconds and at the end. If it exists, the
            estimator goes on from it, to the same numbers that it finds without a break.

            With progress or checkpoint each iteration is compiled apart from the rest, and the numbers agree with those
            of one program to rounding; neither can be taken inside of ``jit`` and ``vmap``.

    Returns:
        The plant with its uncertainty.

    Raises:
        ValueError: a shape is wrong, a number with a weight is not finite, the prior breaks its bounds, or there are
            fewer numbers than unknowns.
        TypeError: an argument is of the wrong kind or dtype; or progress or checkpoint is given, and the estimator runs
            in one piece or an argument is traced.
        CheckpointError: the checkpoint is of other parameters, records or estimator, or no file can be written there.
        OSError: the checkpoint cannot be written, for example because the disk is full.
    """
    estimator = JOINT_FORCES if estimator is None else estimator
    in_chunks = progress is not None or checkpoint is not None
    if in_chunks and is_traced(parameters, samples, estimator):
        raise TypeError("progress, checkpoint: expected records of numbers; inside of jit and vmap leave both out")
    checked(parameters, samples, estimator, validation)
    if in_chunks:
        estimate = _run_in_chunks(estimator, parameters, samples, progress, checkpoint)
    else:
        estimate = _Programs.run(estimator, parameters, samples)
    return Fit(parameters, estimate, samples, validation, estimator)


def checked(parameters: Parameters, samples: Any, estimator: Estimator, validation: Any) -> None:
    """Raise where the arguments of ``fit`` do not fit each other.

    Raises:
        ValueError, TypeError: as of ``fit``.
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
        raise ValueError(f"samples: {used} numbers with a weight cannot determine {parameters.size} unknowns")
    parameters.bounds()


def _run_in_chunks(
    estimator: Estimator,
    parameters: Parameters,
    samples: Any,
    progress: Progress | None,
    path: str | Path | None,
) -> Estimate:
    """What ``fit`` does if it is given ``progress`` or ``checkpoint``."""
    if not isinstance(estimator, StepwiseEstimator):
        raise TypeError(
            f"estimator: {type(estimator).__name__} runs in one piece; without progress and checkpoint it can be taken"
        )
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
        lambda now: int(now.round) >= rounds.count,
        progress=None if progress is None else lambda before, after: [progress(row) for row in rows],
        checkpoint=kept,
    )
    while int(state.round) < rounds.count:
        # of an interrupted search: the rounds that are left end where they start
        state = _Programs.advance(rounds, state._replace(state=state.state._replace(done=jnp.array(True))))
    estimate = _Programs.conclude(rounds, state.carry, state.found)
    return eqx.tree_at(lambda e: e.result, estimate, RESULTS.interrupted) if interrupted else estimate


def _method(name: str, finish: Callable[[Any], Any] = lambda found: found) -> Callable[..., Any]:
    """The method of this name of the first argument."""

    def call(owner: Any, *given: Any) -> Any:
        return finish(getattr(owner, name)(*given))

    call.__name__ = name
    return call


class _Programs:
    """The programs of fits: methods of an estimator, its rounds and the parameters.

    What loops over the records is compiled well, what runs a few times in a short time.
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
        """The program of a method that is sooner done with records of this size, its compilation included."""
        size = sum(leaf.size for leaf in jax.tree.leaves(samples) if eqx.is_array(leaf))
        return _by_compiler(name, compiled_fast if size <= SMALL else compiled)


@cache
def _by_compiler(name: str, compiler: Callable[..., Any]) -> Callable[..., Any]:
    return compiler(_method(name))


@compiled_fast
def _values_and_slopes(
    parameters: Parameters, estimate: Estimate
) -> tuple[Float[Array, " values"], Float[Array, "values p"], Bool[Array, " p"]]:
    """(the physical numbers, their derivatives by x, which coordinates records and priors do not determine)."""

    def values(x: Float[Array, " p"]) -> tuple[Float[Array, " values"], Float[Array, " values"]]:
        found = parameters.value_array(x)
        return found, found

    J, found = jax.jacfwd(values, has_aux=True)(estimate.x)
    r = jax.jacfwd(parameters.prior_residuals)(estimate.x)
    return found, J, undetermined(estimate.information + r.T @ r)


def load_plant(path: str | Path) -> Plant:
    """The plant of a file that ``Fit.save`` wrote: the machine found, with the numbers of its signals.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file holds no fit.
        MissingStage: a ValueError: it has a stage of an actuator of a class that is not imported.
    """
    try:
        return model_files.read(Path(path), _FORMAT, "fit", _plant, MissingStage)
    except MissingStage as error:
        raise MissingStage(f"{path}: {error}") from error


def _plant(about: dict[str, Any], model: Model, arrays: dict[str, np.ndarray]) -> Plant:
    signals: Any = {name: arrays[f"signal.{name}"] for name in _SIGNALS}
    actuators = from_record(about["actuators"], arrays) if "actuators" in about else None
    return Plant(model, **signals, actuators=actuators)
