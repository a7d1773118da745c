"""The front door of identification, and what it answers."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.identify.estimators.estimator import RESULTS, Estimate, Estimator
from lgsim.identify.estimators.torque_fit import TorqueFit
from lgsim.identify.estimators.uncertainty import Identifiability, identifiability, unseen, whiteness
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import Plant
from lgsim.multibody.model import Model
from lgsim.multibody.serialization import from_record, to_record
from lgsim.support.files import write_whole

JOINT_FORCES, ROUNDING = TorqueFit(), 1e-12


@dataclass(frozen=True)
class Fit:
    """A plant identified from records, with how well it is known.

    Attributes:
        parameters: The unknowns.
        estimate: What the estimator found, as arrays.
        samples: The records that were fitted.
        validation: Records that were held out, or None.
        estimator: What found it.
    """

    parameters: Parameters
    estimate: Estimate
    samples: Any
    validation: Any = None
    estimator: Estimator = JOINT_FORCES

    @property
    def message(self) -> str:
        """What went wrong, as a sentence; empty where nothing did."""
        return RESULTS[self.estimate.status]

    @cached_property
    def plant(self) -> Plant:
        """The plant found."""
        return self.parameters.put(self.estimate.x)

    @property
    def model(self) -> Model:
        """The machine found."""
        return self.plant.model

    @cached_property
    def values(self) -> dict[str, float]:
        """The physical numbers found, by name and unit."""
        return {name: float(value) for name, value in self.parameters.values(self.estimate.x).items()}

    @cached_property
    def prior(self) -> dict[str, float]:
        """Those numbers before."""
        start = jnp.zeros_like(self.estimate.x)
        return {name: float(value) for name, value in self.parameters.values(start).items()}

    @cached_property
    def deviations(self) -> dict[str, float]:
        """Their standard deviations; infinite where the records and the beliefs do not determine them."""
        J = np.asarray(_slopes(self.parameters, self.estimate.x))
        variance = np.einsum("ip,pq,iq->i", J, np.asarray(self.estimate.covariance), J)
        r = jax.jacfwd(self.parameters.beliefs_at)(self.estimate.x)
        blind = np.asarray(unseen(self.estimate.information + r.T @ r))
        touched = np.any(np.abs(J[:, blind]) > ROUNDING, axis=1)
        return {
            name: float("inf") if lost else float(np.sqrt(max(s, 0)))
            for name, s, lost in zip(self.values, variance, touched, strict=True)
        }

    @cached_property
    def identifiability(self) -> Identifiability:
        """Which combinations of the unknowns the records show, without beliefs."""
        return identifiability(self.estimate.information, self.parameters.names)

    def residuals(self, samples: Any = None) -> Array:
        """What the plant found gives less what was recorded (n, columns), by default of the fitted records."""
        return self._residuals(samples)[0]

    def rmse(self, samples: Any = None) -> np.ndarray:
        """Root mean square of each column of the residuals (columns,)."""
        r, w = map(np.asarray, self._residuals(samples))
        total = np.sum(w, axis=0)
        return np.sqrt(np.sum(np.where(w > 0, r, 0) ** 2 * w, axis=0) / np.where(total > 0, total, 1))

    def signal_deviations(self, samples: Any = None) -> Array:
        """Standard deviations of what the plant gives (n, columns), that come from the uncertain unknowns alone."""
        given = self.samples if samples is None else samples
        return _deviations(self.estimator, self.parameters, self.estimate.x, self.estimate.covariance, given)

    def whiteness(self) -> tuple[np.ndarray, float]:
        """See ``lgsim.identify.uncertainty.whiteness``, of the fitted records."""
        return whiteness(np.asarray(self.residuals()))

    def _residuals(self, samples: Any) -> tuple[Array, Array]:
        given = self.samples if samples is None else samples
        return _residuals(self.estimator, self.parameters, self.estimate.x, given)

    def save(self, path: str | Path) -> Path:
        """Write an ``.npz`` file, whole or not at all.

        It holds ``names``, ``values``, ``prior`` and ``deviations`` of the numbers, coordinates ``x`` with their
        ``covariance`` and ``information``, ``noise`` and ``rmse`` of the ``columns``, and the plant, which
        ``load_plant`` reads again.

        Raises:
            ValueError: the ending is another one.
        """
        return save(self, Path(path))

    def summary(self) -> str:
        """A table of the numbers with their deviations, and the remarks, as text."""
        width = max(len(name) for name in self.values)
        lines = [f"{'':{width}}  {'prior':>12}  {'found':>12}  {'deviation':>12}"]
        for name, value in self.values.items():
            lines.append(f"{name:{width}}  {self.prior[name]:12.6g}  {value:12.6g}  {self.deviations[name]:12.3g}")
        seen = self.identifiability
        lines.append(f"{seen.rank} of {self.parameters.size} combinations of the unknowns are seen in the records")
        names = self.estimator.columns(self.parameters, self.samples)
        fits = ", ".join(f"{n} {r:.3g}" for n, r in zip(names, self.rmse(), strict=True))
        lines.append(f"residuals (rms): {fits}")
        if self.validation is not None:
            held = ", ".join(f"{n} {r:.3g}" for n, r in zip(names, self.rmse(self.validation), strict=True))
            lines.append(f"residuals of held-out records: {held}")
        if self.message:
            lines.append(self.message)
        return "\n".join(lines)


def fit(parameters: Parameters, samples: Any, estimator: Estimator | None = None, validation: Any = None) -> Fit:
    """Identify a plant from records.

    Compiled once for each structure and number of tiles of samples. Under ``jax.vmap``, for many machines or records in
    one call, use ``estimator.run``.

    Args:
        parameters: What is unknown, and the prior.
        samples: Records of the kind that the estimator takes: ``Samples`` of joint forces, or ``Records``.
        estimator: By default ``TorqueFit()``.
        validation: Records that are not fitted but compared.

    Returns:
        The plant with its uncertainty.

    Raises:
        ValueError: a shape is wrong, a number with a weight is not finite, the prior breaks its bounds, or there are
            fewer numbers than unknowns.
        TypeError: an argument is of the wrong kind or dtype.
    """
    estimator = JOINT_FORCES if estimator is None else estimator
    checked(parameters, samples, estimator, validation)
    return Fit(parameters, _run(estimator, parameters, samples), samples, validation, estimator)


def checked(parameters: Parameters, samples: Any, estimator: Estimator, validation: Any) -> None:
    """Raise where these do not fit each other, see ``fit``."""
    if not isinstance(parameters, Parameters):
        raise TypeError(f"parameters: expected Parameters, got {type(parameters).__name__}")
    if not isinstance(estimator, Estimator):
        raise TypeError(f"estimator: expected an estimator such as TorqueFit(), got {type(estimator).__name__}")
    used = estimator.check(parameters, samples)
    if validation is not None:
        estimator.check(parameters, validation)
    used += len(parameters.beliefs_at(jnp.zeros(parameters.size, parameters.dtype)))
    if used < parameters.size:
        raise ValueError(f"samples: {used} numbers with a weight cannot determine {parameters.size} unknowns")
    parameters.bounds()


@eqx.filter_jit
def _run(estimator: Estimator, parameters: Parameters, samples: Any) -> Estimate:
    return estimator.run(parameters, samples)


@eqx.filter_jit
def _residuals(estimator: Estimator, parameters: Parameters, x: Array, samples: Any) -> tuple[Array, Array]:
    return estimator.residuals(parameters, x, samples)


@eqx.filter_jit
def _slopes(parameters: Parameters, x: Array) -> Array:
    return jax.jacfwd(lambda x: jnp.stack(list(parameters.values(x).values())))(x)


@eqx.filter_jit
def _deviations(estimator: Estimator, parameters: Parameters, x: Array, covariance: Array, samples: Any) -> Array:
    return estimator.deviations(parameters, x, covariance, samples)


_FORMAT = "lgsim fit 1"
_SIGNALS = ("scale", "offset", "stribeck", "stribeck_speed")


def save(fit: Any, path: Path) -> Path:
    """See ``Fit.save``."""
    if path.suffix != ".npz":
        raise ValueError(f"{path}: expected a name that ends in .npz, got {path.suffix or 'no ending'!r}")
    plant, estimate = fit.plant, fit.estimate
    topology, numbers = to_record(plant.model)
    about = {"format": _FORMAT, "topology": topology, "message": fit.message, "coordinates": fit.parameters.names}
    arrays = {
        "names": np.array(list(fit.values)), "values": np.array(list(fit.values.values())),
        "prior": np.array(list(fit.prior.values())), "deviations": np.array(list(fit.deviations.values())),
        "x": estimate.x, "covariance": estimate.covariance, "information": estimate.information,
        "columns": np.array(fit.estimator.columns(fit.parameters, fit.samples)), "noise": estimate.noise,
        "costs": estimate.costs, "rmse": fit.rmse(),
    }  # fmt: skip
    if fit.validation is not None:
        arrays["rmse_held_out"] = fit.rmse(fit.validation)
    arrays |= {f"signal.{name}": getattr(plant, name) for name in _SIGNALS}
    arrays |= {f"model.{name}": array for name, array in numbers.items()}
    file = io.BytesIO()
    whole: dict[str, Any] = {"about": np.array(json.dumps(about)), **{k: np.asarray(x) for k, x in arrays.items()}}
    np.savez_compressed(file, **whole)
    write_whole(path, file.getvalue())
    return path


def load_plant(path: str | Path) -> Plant:
    """The plant of a file that ``Fit.save`` wrote: the machine found, with the numbers of its signals.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no such file.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            if about["format"] != _FORMAT:
                raise KeyError(about["format"])
            model = from_record(about["topology"], {n[6:]: file[n] for n in file if n.startswith("model.")})
            return Plant(model, **{name: file[f"signal.{name}"] for name in _SIGNALS})
    except (KeyError, ValueError, TypeError, EOFError, zipfile.BadZipFile):
        raise ValueError(f"{path}: expected a fit that lgsim wrote, got something else") from None
