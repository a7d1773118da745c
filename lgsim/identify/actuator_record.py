"""Serialization of actuators: plain values for JSON and named arrays, as a saved fit holds them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.actuators.actuators import Actuators, ActuatorSum
from lgsim.actuators.body_forces import BodyForces as BodyForces
from lgsim.actuators.passive_springs import PassiveSprings as PassiveSprings
from lgsim.actuators.stage import Stage
from lgsim.actuators.tendon_paths import TendonPaths
from lgsim.actuators.transmission import Transmission

OTHERS = (ActuatorSum, Transmission, TendonPaths)
"""Modules of actuators that are neither terms nor stages."""
LARGEST = 2**31 - 1
"""The largest count that a stage can have."""

Record = dict[str, Any]
"""A module as its class and fields: plain values, names of arrays, or records of nested modules."""


def to_record(actuators: Actuators | ActuatorSum, prefix: str = "actuators") -> tuple[Record, dict[str, np.ndarray]]:
    """Convert actuators to a record and their arrays by path, such as "actuators.stages.0.ratio".

    Args:
        actuators: Actuators with stages of lgsim or user-defined stages.
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
    """Rebuild the actuators from the output of ``to_record``.

    Raises:
        ValueError: a stage has unexpected fields, or a count is negative or not finite.
        MissingStage: a stage's class is not in any imported module.
    """
    known = {_class_name(kind): kind for kind in (Actuators, *_kinds(Actuators), *OTHERS, *_kinds(Stage))}

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
                f"actuators: the class {value['class']} is not imported; import the module that defines it, then load"
                " the file again"
            )
        # bypasses __init__, so that no converter changes the stored values
        new = object.__new__(known[value["class"]])
        if set(value["fields"]) != {f.name for f in dataclasses.fields(new)}:
            raise ValueError(f"actuators: expected the fields of {value['class']}, got {list(value['fields'])}")
        for name, inner in value["fields"].items():
            object.__setattr__(new, name, built(inner))
        return new

    return built(record)


class MissingStage(ValueError):
    """The file contains an actuator stage whose class is not imported."""


def _class_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _kinds(base: type[eqx.Module]) -> Iterator[type[eqx.Module]]:
    """All imported subclasses, recursively."""
    for kind in base.__subclasses__():
        yield kind
        yield from _kinds(kind)
