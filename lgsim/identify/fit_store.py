"""Files of fits: the numbers with their uncertainty, and the plant that they make."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from lgsim.identify.plant import Plant
from lgsim.multibody.record import from_record, to_record
from lgsim.simulation.storage import write_whole

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
