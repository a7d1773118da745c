"""What can be identified of joints, their drives and their signals."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import equinox as eqx
import numpy as np
from jax import Array

from lgsim.identify.unknowns.body_blocks import Block, named
from lgsim.identify.unknowns.plant import AFFINE, Plant, freedoms, place
from lgsim.multibody.model import DRIVES, Model

UNITS = {
    "armature": "kg m^2", "damping": "N m s/rad", "friction": "N m", "stiffness": "N m/rad", "rest": "rad",
    "friction_speed": "rad/s", "limit_stiffness": "N m/rad", "limit_damping": "N m s/rad^2", "actuator_time": "s",
}  # fmt: skip
"""Of the numbers of a drive that turns."""


class _OfJoints(Block):
    """Numbers of degrees of freedom.

    Attributes:
        joints: Their joints' names, by default all.
        lower, upper: Bounds of the numbers themselves.
    """

    joints: Sequence[str] | None = eqx.field(static=True, default=None)
    prior: Any = None
    lower: Any = -np.inf
    upper: Any = np.inf

    @property
    @abstractmethod
    def what(self) -> str:
        """Name of the number."""

    @abstractmethod
    def read(self, plant: Plant) -> Array:
        """All its values (nv,)."""

    @abstractmethod
    def write(self, plant: Plant, values: Array) -> Plant:
        """The plant with other values (nv,)."""

    def names(self, model: Model) -> list[str]:
        return freedoms(model, named("joints", self.joints, model.joint_names))

    def places(self, model: Model) -> np.ndarray:
        slices = [model.v_slices[name] for name in named("joints", self.joints, model.joint_names)]
        return np.concatenate([np.arange(s.start, s.stop) for s in slices])

    def affine(self, model: Model) -> np.ndarray | None:
        return place(model, self.what) + self.places(model) if self.linear else None

    @property
    def linear(self) -> bool:
        return self.what in (*AFFINE, "stribeck", "offset")

    def labels(self, plant: Plant) -> list[str]:
        return [f"{self.what} of {name}" for name in self.names(plant.model)]

    def put(self, plant: Plant, x: Array) -> Plant:
        values = self.read(plant)
        return self.write(plant, values.at[self.places(plant.model)].add(x))

    def values(self, plant: Plant) -> dict[str, Array]:
        numbers = self.read(plant)[self.places(plant.model)]
        unit = UNITS.get(self.what, "1")
        return {f"{self.what} of {n}, {unit}": numbers[i] for i, n in enumerate(self.names(plant.model))}

    def bounds(self, plant: Plant) -> tuple[Any, Any]:
        start = self.read(plant)[self.places(plant.model)]
        return self.lower - start, self.upper - start


class JointParameter(_OfJoints):
    """One kind of number of the drives, such as ``Drive("damping")``: a name of ``lgsim.multibody.model.DRIVES``.

    Those that are friction, inertia or stiffness have the lower bound zero by default.
    """

    number: str = eqx.field(static=True, default="damping")

    def __init__(self, number: str, joints: Sequence[str] | None = None, prior: Any = None, lower: Any = None,
                 upper: Any = np.inf):  # fmt: skip
        if number not in DRIVES:
            near = get_close_matches(number, DRIVES) or DRIVES
            raise ValueError(f"number: there is no {number!r} of a drive; expected {' or '.join(near)}")
        self.number, self.joints, self.prior, self.upper = number, joints, prior, upper
        free = ("rest", "lower", "upper")
        self.lower = lower if lower is not None else -np.inf if number in free else 0.0

    @property
    def what(self) -> str:
        return self.number

    def read(self, plant: Plant) -> Array:
        return getattr(plant.model, self.number)

    def write(self, plant: Plant, values: Array) -> Plant:
        # straight into the array, since a traced number of Model.replace may change the topology
        drives = plant.model.drives.at[:, DRIVES.index(self.number)].set(values)
        return eqx.tree_at(lambda p: p.model.drives, plant, drives)


class _OfSignals(_OfJoints):
    """Numbers of the recorded signals."""

    FIELD = ""

    @property
    def what(self) -> str:
        return type(self).FIELD

    def read(self, plant: Plant) -> Array:
        return getattr(plant, self.what)

    def write(self, plant: Plant, values: Array) -> Plant:
        return eqx.tree_at(lambda p: getattr(p, self.what), plant, values)


class SignalScale(_OfSignals):
    """N m or N for each unit of a joint's signal: gear ratio times motor constant."""

    FIELD = "scale"


class TorqueOffset(_OfSignals):
    """What a joint's signal shows without any force, N m or N."""

    FIELD = "offset"


class Stribeck(_OfSignals):
    """Breakaway friction less dry friction, N m or N."""

    FIELD = "stribeck"


class StribeckSpeed(_OfSignals):
    """The speed at which the Stribeck part is gone, rad/s or m/s."""

    FIELD = "stribeck_speed"
