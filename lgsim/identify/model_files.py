"""Files of a model with further data: npz with a JSON header, the model's arrays, and named arrays."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from lgsim.multibody.model import Model
from lgsim.multibody.serialization import from_record, to_record
from lgsim.support.files import check_format
from lgsim.support.reading.npz import open_npz

Content = TypeVar("Content")
_PREFIX = "model."


def to_bytes(kind: str, about: Mapping[str, Any], model: Model, arrays: Mapping[str, Any]) -> bytes:
    """Serialize a model, a header and named arrays.

    Args:
        kind: Content and version of the format, such as "lgsim recording 1".
        about: Further entries of the header, plain values for JSON.
    """
    topology, numbers = to_record(model)
    header = json.dumps({"format": kind, "topology": topology, **about})
    named: dict[str, Any] = {name: np.asarray(x) for name, x in arrays.items()}
    named |= {f"{_PREFIX}{name}": x for name, x in numbers.items()}
    file = io.BytesIO()
    np.savez_compressed(file, about=np.array(header), **named)
    return file.getvalue()


def read(
    path: Path,
    kind: str,
    what: str,
    build: Callable[[dict[str, Any], Model, dict[str, np.ndarray]], Content],
    *passed: type[Exception],
) -> Content:
    """Read a file and return ``build(about, model, arrays)`` of its header, model and arrays.

    Args:
        kind: The same as in ``to_bytes``.
        what: The expected content, for the message.
        build: Builds the result; its exceptions are reported as a damaged file.
        passed: Exceptions of ``build`` that propagate unchanged.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: the file is of another kind, or another version of its format.
    """
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    with open_npz(path, f"a {what} that lgsim wrote", *passed) as file:
        about = json.loads(str(file["about"]))
        check_format(path, about["format"], kind)
        stored = {name: file[name] for name in file.names if name != "about"}
        numbers = {name.removeprefix(_PREFIX): x for name, x in stored.items() if name.startswith(_PREFIX)}
        arrays = {name: x for name, x in stored.items() if not name.startswith(_PREFIX)}
        return build(about, from_record(about["topology"], numbers), arrays)
