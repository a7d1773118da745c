"""Fingerprints as files of the first format of checkpoints have them, so that these files are still read."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import numpy as np

from lgsim.support.full_repr import full_reprs

VERSIONS = ("0.1.0", "0+unknown")
"""The versions of lgsim that wrote the format."""

NAMES = {
    "BodyMomentumHamiltonian": "BodyMomentum",
    "CentersOfMass": "Centers",
    "ControlEffort": "Effort",
    "EndFunctionCost": "EndFunction",
    "FramePoseSensor": "FramePose",
    "FunctionCost": "Function",
    "ImuSensor": "Inertial",
    "JointParameter": "Drive",
    "MotorLimits": "Motor",
    "MultibodyDynamics": "MachineDynamics",
    "OptimistixLeastSquares": "Optimistix",
    "PendulumParameters": "Chain",
    "PositionSensor": "Positions",
    "Prior": "Belief",
    "QuadrotorParameters": "Vehicles",
    "RateControlledDynamics": "RateControlled",
    "ReducedMuntheKaas": "FewCommutators",
    "SensorRecords": "Records",
    "SharedBlock": "Tied",
    "ShootingMinimizer": "ShootingMinimiser",
    "SquaredLoss": "Squares",
    "StateSpace": "Motions",
    "StructuredGaussNewton": "ChainSteps",
    "SymplecticEulerDynamics": "EulerDynamics",
    "TorqueSamples": "Samples",
    "TrackingGains": "Tracking",
    "TruncatedDexpinv": "Truncated",
    "VelocitySensor": "Velocities",
}
"""The names of classes at the time of the format, by those of today. A class that is renamed gets a line here."""

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_MISSING = re.compile(r"<equinox[\w.]*\._Missing object>")
_TODAY = re.compile(rf"\b({'|'.join(NAMES)})\b")


def fingerprint_1(*trees: Any) -> str:
    """The fingerprint of pytrees in the first format: of their structure as JAX prints it, and their leaves.

    It tells less apart than ``lgsim.support.fingerprint``: functions that use other names are equal if all else is, and
    so are static objects whose ``repr`` is.
    """
    digest = hashlib.sha256()
    with full_reprs():
        _feed(digest, trees)
    return digest.hexdigest()[:16]


COLUMNS = 13
"""The number of columns of ``Model.drives`` at that time; the next two are Stribeck friction and its speed."""
_LATER = {"MultibodyDynamics": "actuators", "SensorRecords": "commands"}
"""The last field of a class that it did not have then, of which None is the same as none."""
_RARE = ("loops", "contacts", "heights", "solids", "solid_poses", "grids")
"""Fields of a model that it did not have then."""
_MARKS = re.compile(r"(, \(\(\),\))+\]")
_FRICTION = "*, *, (*, *)"


def _as_then(tree: Any) -> Any:
    """Pytrees of today with the arrays of that time, and marks in the place of fields that were not there."""

    def changed(x: Any) -> bool:
        return type(x).__name__ in ("Model", "Plant", "InstrumentedPlant", *_LATER)

    def then(x: Any) -> Any:
        name = type(x).__name__
        if name == "Model" and hasattr(x.drives, "shape"):
            later = {key: ((),) for key in _RARE if getattr(x, key) is None}
            return replace(x.replace(drives=x.drives[:, :COLUMNS], topology=x.topology), **later)
        if name.endswith("Plant"):
            friction = (x.model.stribeck, x.model.stribeck_speed)
            x = eqx.tree_at(lambda p: p.actuators, x, friction, is_leaf=lambda leaf: leaf is None)
            return eqx.tree_at(lambda p: p.model, x, _as_then(x.model))
        field = _LATER.get(name, "")
        if field and getattr(x, field) is None:
            x = eqx.tree_at(lambda p: getattr(p, field), x, ((),), is_leaf=lambda leaf: leaf is None)
        inner = {part: getattr(x, part) for part in ("model",) if hasattr(x, part)}
        for part, value in inner.items():
            x = eqx.tree_at(lambda p, part=part: getattr(p, part), x, _as_then(value))
        return x

    return jax.tree.map(lambda x: then(x) if changed(x) else x, tree, is_leaf=changed)


def _feed(digest: Any, tree: Any) -> None:
    leaves, structure = jax.tree.flatten(_as_then(tree))
    digest.update(_text(_MARKS.sub("]", str(structure)).replace(_FRICTION, "*, *, *, *")))
    for leaf in leaves:
        if eqx.is_array_like(leaf):
            array = np.asarray(leaf)
            digest.update(f"{array.dtype}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        else:
            _feed_other(digest, leaf)


def _feed_other(digest: Any, leaf: Any) -> None:
    """A function by its code and what it closes over, all else by its text."""
    digest.update(f"{getattr(leaf, '__module__', '')}.{getattr(leaf, '__qualname__', '')}".encode())
    code = getattr(leaf, "__code__", None)
    if code is None:
        digest.update(_text(repr(leaf)))
        return
    digest.update(code.co_code)
    digest.update(_ADDRESS.sub("", repr(code.co_consts)).encode())
    inside = tuple(cell.cell_contents for cell in leaf.__closure__ or ())
    if inside or leaf.__defaults__:
        _feed(digest, (inside, leaf.__defaults__))


def _text(found: str) -> bytes:
    """A text of today as it was at the time of the format."""
    found = _MISSING.sub("Missing", _ADDRESS.sub("", found))
    return _TODAY.sub(lambda name: NAMES[name[0]], found).encode()
