"""Fingerprints as files of the first format of checkpoints have them, so that these files are still read."""

from __future__ import annotations

import hashlib
import re
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


def _feed(digest: Any, tree: Any) -> None:
    leaves, structure = jax.tree.flatten(tree)
    digest.update(_text(str(structure)))
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
    return _TODAY.sub(lambda name: NAMES[name[0]], _ADDRESS.sub("", found)).encode()
