"""Actuators as plain values for JSON and named arrays, and back: what the file of a fit keeps of its drives."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.actuators.actuators import Actuators, ActuatorSum
from lgsim.actuators.stage import Stage
from lgsim.actuators.transmission import Transmission

LARGEST = 2**31 - 1
"""The largest count that a stage can have."""

Record = dict[str, Any]
"""The class of a module with its fields: plain values, names of arrays, or records of further modules."""


def to_record(actuators: Actuators | ActuatorSum, prefix: str = "actuators") -> tuple[Record, dict[str, np.ndarray]]:
    """(what actuators consist of, their numbers by place, such as "actuators.stages.0.ratio").

    Args:
        actuators: Actuators with stages of lgsim, or of classes of yours.
    """
    arrays: dict[str, np.ndarray] = {}

    def plain(value: Any, place: str) -> Any:
        if isinstance(value, eqx.Module):
            fields = {f.name: plain(getattr(value, f.name), f"{place}.{f.name}") for f in dataclasses.fields(value)}
            return {"class": _class_name(type(value)), "fields": fields}
        if isinstance(value, tuple):
            return {"tuple": [plain(inner, f"{place}.{k}") for k, inner in enumerate(value)]}
        if isinstance(value, Array | np.ndarray):
            arrays[place] = np.asarray(value)
            return {"array": place}
        return value

    return plain(actuators, prefix), arrays


def from_record(record: Record, arrays: dict[str, np.ndarray]) -> Actuators | ActuatorSum:
    """The actuators of ``to_record``.

    Raises:
        ValueError: a stage has other fields, or a count is negative or not finite.
        MissingStage: a stage is of a class that no module which is imported has.
    """
    known = {_class_name(kind): kind for kind in (Actuators, ActuatorSum, Transmission, *_kinds(Stage))}

    def built(value: Any) -> Any:
        if not isinstance(value, dict):
            if isinstance(value, int | float) and not 0 <= value <= LARGEST:
                raise ValueError(f"actuators: expected a count, got {value}")
            return value
        if "array" in value:
            return jnp.asarray(arrays[value["array"]])
        if "tuple" in value:
            return tuple(built(inner) for inner in value["tuple"])
        if value["class"] not in known:
            raise MissingStage(
                f"actuators: there is no {value['class']} here; import the module with this stage, then load the file"
            )
        # as they were: no converter stands between a file and its numbers
        new = object.__new__(known[value["class"]])
        if set(value["fields"]) != {f.name for f in dataclasses.fields(new)}:
            raise ValueError(f"actuators: expected the fields of {value['class']}, got {list(value['fields'])}")
        for name, inner in value["fields"].items():
            object.__setattr__(new, name, built(inner))
        return new

    return built(record)


class MissingStage(ValueError):
    """A file has a stage of a class that is not imported."""


def _class_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _kinds(base: type[Stage]) -> Iterator[type[Stage]]:
    """All subclasses that are imported."""
    for kind in base.__subclasses__():
        yield kind
        yield from _kinds(kind)
