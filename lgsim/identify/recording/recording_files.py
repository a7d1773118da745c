"""Files of recordings: npz with all of them, csv and parquet with their columns."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from lgsim.identify.recording.report import Finding, Report
from lgsim.multibody.configuration import kinds
from lgsim.multibody.model import Model
from lgsim.multibody.serialization import from_record, to_record
from lgsim.simulation.trajectory import q_names, tau_names, v_names
from lgsim.support.extras import package
from lgsim.support.files import write_whole

_FORMAT = "lgsim recording 1"
_ARRAYS = ("time", "q", "v", "a", "tau", "current")


def columns(recording: Any) -> dict[str, np.ndarray]:
    """See ``Recording.columns``."""
    model = recording.model
    names = {
        "q": q_names(model),
        "v": v_names(model),
        "a": [name.replace("/s]", "/s^2]") for name in v_names(model)],
        "tau": tau_names(model),
        "current": [f"{name.rpartition(' [')[0]} [A]" for name in tau_names(model)],
    }
    named = {"time [s]": recording.time}
    for channel, array in recording.channels.items():
        valid = recording.valid(channel)
        if channel in names:
            valid = _of_coordinates(model, valid) if channel == "q" else valid
            titles = [f"{channel} {name}" for name in names[channel]]
        else:
            frame = channel.removeprefix("imu ")
            titles = [f"accelerometer {frame}[{i}] [m/s^2]" for i in range(3)]
            titles += [f"gyroscope {frame}[{i}] [rad/s]" for i in range(3)]
        named |= {title: np.where(valid[:, i], array[:, i], np.nan) for i, title in enumerate(titles)}
    return named


def _of_coordinates(model: Model, valid: np.ndarray) -> np.ndarray:
    """What is true of degrees of freedom (n, nv), for coordinates (n, nq)."""
    out = np.ones((len(valid), model.nq), bool)
    for joint, q, v in kinds(model.topology):
        plain = joint.nv if joint.nq == joint.nv else joint.nq - 4
        out[:, q[:plain]] = valid[:, v[:plain]]
        out[:, q[plain:]] = np.all(valid[:, v[plain:]], axis=1, keepdims=True)
    return out


def save(recording: Any, path: Path) -> Path:
    """See ``Recording.save``."""
    if path.suffix not in _WRITERS:
        raise ValueError(f"{path}: expected a name that ends in {' or '.join(_WRITERS)}, got {path.suffix!r}")
    write_whole(path, _WRITERS[path.suffix](recording))
    return path


def load(path: Path) -> dict[str, Any]:
    """The fields of a ``Recording``, see ``Recording.load``."""
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    try:
        with np.load(path, allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            if about["format"] != _FORMAT:
                raise KeyError(about["format"])
            model = from_record(about["topology"], {n[6:]: file[n] for n in file if n.startswith("model.")})
            arrays = {name: file[name] for name in _ARRAYS if name in file}
            imu = {name[4:]: file[name] for name in file if name.startswith("imu.")}
            weights = {name[8:]: file[name] for name in file if name.startswith("weights.")}
    except (KeyError, ValueError, TypeError, EOFError, zipfile.BadZipFile):
        raise ValueError(f"{path}: expected a recording that lgsim wrote, got something else") from None
    report = Report(tuple(Finding(**finding) for finding in about["report"]))
    others = {"source": about["source"], "history": tuple(about["history"]), "report": report}
    return {"model": model, **arrays, "imu": imu, "weights": weights, **others}


def _npz(recording):
    topology, numbers = to_record(recording.model)
    about = {
        "format": _FORMAT,
        "topology": topology,
        "source": recording.source,
        "history": recording.history,
        "report": [asdict(finding) for finding in recording.report],
    }
    arrays = {name: getattr(recording, name) for name in _ARRAYS if getattr(recording, name) is not None}
    arrays |= {f"imu.{name}": x for name, x in recording.imu.items()}
    arrays |= {f"weights.{name}": x for name, x in recording.weights.items()}
    arrays |= {f"model.{name}": x for name, x in numbers.items()}
    file = io.BytesIO()
    np.savez_compressed(file, about=np.array(json.dumps(about)), **arrays)
    return file.getvalue()


def _csv(recording):
    file = io.StringIO()
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(recording.columns)
    lists = [["" if x != x else x for x in column.tolist()] for column in recording.columns.values()]
    rows.writerows(zip(*lists, strict=True))
    return file.getvalue().encode()


def _parquet(recording):
    arrow, parquet = package("pyarrow", "data"), package("pyarrow.parquet", "data")
    file = io.BytesIO()
    parquet.write_table(arrow.table(recording.columns), file)
    return file.getvalue()


_WRITERS = {".npz": _npz, ".csv": _csv, ".parquet": _parquet}
