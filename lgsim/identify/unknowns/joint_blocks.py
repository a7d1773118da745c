"""Unknown parameters of joints: drives, friction, and the scale and offset of their signals."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Int

from lgsim.identify.recording.coordinates import dof_names
from lgsim.identify.unknowns.block import NumberBlock, select_names
from lgsim.identify.unknowns.plant import AFFINE_JOINTS, NumbersLike, Plant, first_index, with_drives
from lgsim.multibody.model import DRIVES, Model
from lgsim.support.check import unknown_name

UNITS = {
    "armature": "kg m^2", "damping": "N m s/rad", "friction": "N m", "stiffness": "N m/rad", "rest": "rad",
    "friction_speed": "rad/s", "limit_stiffness": "N m/rad", "limit_damping": "N m s/rad^2",
    "stribeck": "N m", "stribeck_speed": "rad/s", "offset": "N m",
}  # fmt: skip
"""Units of the parameters of a revolute joint."""
STILL = 1e-3
"""Speed, rad/s or m/s, acceleration and displacement of a joint that does not move: files of logs resolve no less."""


class JointBlock(NumberBlock):
    """Unknown parameters of one kind, one for each degree of freedom of some joints.

    Attributes:
        joints: Names of the joints, by default all.
        lower: Lower bounds of the parameters themselves, one value or one for each.
        upper: Upper bounds of the parameters themselves, one value or one for each.
    """

    joints: Sequence[str] | None = eqx.field(static=True, default=None)
    prior_deviation: NumbersLike | None = None
    lower: ArrayLike = -np.inf
    upper: ArrayLike = np.inf

    @property
    @abstractmethod
    def kind(self) -> str:
        """Name of the parameter."""

    @abstractmethod
    def read_all(self, plant: Plant) -> Float[Array, " nv"]:
        """The values for all degrees of freedom."""

    @abstractmethod
    def write_all(self, plant: Plant, values: Float[Array, " nv"]) -> Plant:
        """The plant with new values for all degrees of freedom."""

    @property
    def unit(self) -> str:
        """The unit for a revolute joint."""
        return UNITS.get(self.kind, "1")

    def names(self, model: Model) -> list[str]:
        """Names of the degrees of freedom; raises ValueError for an unknown joint."""
        return dof_names(model, select_names("joints", self.joints, model.joint_names))

    def indices(self, model: Model) -> Int[np.ndarray, " size"]:
        """Indices of the degrees of freedom in v."""
        slices = [model.v_slices[name] for name in select_names("joints", self.joints, model.joint_names)]
        return np.concatenate([np.arange(s.start, s.stop) for s in slices])

    def affine_indices(self, model: Model) -> Int[np.ndarray, " moved"] | None:
        return first_index(model, self.kind) + self.indices(model) if self.is_linear else None

    @property
    def is_linear(self) -> bool:
        return self.kind in AFFINE_JOINTS

    def labels(self, plant: Plant) -> list[str]:
        return [f"{self.kind} of {name}" for name in self.names(plant.model)]

    def largest(self, plant: Plant, torque: Float[np.ndarray, " nv"]) -> ArrayLike:
        if not self.is_linear:
            return np.inf
        return torque[self.indices(plant.model)] / (1 if self.unit == UNITS["friction"] else STILL)

    def read(self, plant: Plant) -> Float[Array, " size"]:
        return self.read_all(plant)[self.indices(plant.model)]

    def write(self, plant: Plant, numbers: Float[Array, " size"]) -> Plant:
        return self.write_all(plant, self.read_all(plant).at[self.indices(plant.model)].set(numbers))


class JointParameter(JointBlock):
    """One parameter of the joints' drives, such as ``JointParameter("damping")``.

    Friction, inertia and stiffness have the lower bound zero by default.

    Attributes:
        parameter: A name of ``lgsim.multibody.model.DRIVES``.

    Raises:
        ValueError: the parameter does not exist.
    """

    parameter: str = eqx.field(static=True, default="damping")

    def __init__(
        self,
        parameter: str,
        joints: Sequence[str] | None = None,
        prior_deviation: NumbersLike | None = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike = np.inf,
    ) -> None:
        if parameter not in DRIVES:
            raise unknown_name("parameter: expected a parameter of a joint", parameter, DRIVES)
        self.parameter, self.joints, self.prior_deviation, self.upper = parameter, joints, prior_deviation, upper
        unbounded = ("rest", "lower", "upper")
        self.lower = lower if lower is not None else -np.inf if parameter in unbounded else 0.0

    @property
    def kind(self) -> str:
        return self.parameter

    def read_all(self, plant: Plant) -> Float[Array, " nv"]:
        return getattr(plant.model, self.parameter)

    def write_all(self, plant: Plant, values: Float[Array, " nv"]) -> Plant:
        drives = plant.model.drives.at[:, DRIVES.index(self.parameter)].set(values)
        model = with_drives(plant.model, drives, values if self.parameter == "stribeck" else None)
        return eqx.tree_at(lambda p: p.model, plant, model)


class SignalBlock(JointBlock):
    """Unknown parameters of the recorded signals: a field of ``Plant``."""

    FIELD: ClassVar[str] = ""

    @property
    def kind(self) -> str:
        return self.FIELD

    def read_all(self, plant: Plant) -> Float[Array, " nv"]:
        return getattr(plant, self.kind)

    def write_all(self, plant: Plant, values: Float[Array, " nv"]) -> Plant:
        return eqx.tree_at(lambda p: getattr(p, self.kind), plant, values)


class SignalScale(SignalBlock):
    """Joint torque per unit of a joint's signal, N m or N: gear ratio times torque constant.

    The coordinates are logarithms of ratios to the prior values, so that a scale keeps its sign.

    Attributes:
        unit: Unit of the scale, for tables: "N m/A" for currents.
    """

    FIELD: ClassVar[str] = "scale"
    relative = True
    unit: str = eqx.field(static=True, default="1")


class TorqueOffset(SignalBlock):
    """Offset of a joint's signal at zero joint torque, N m or N."""

    FIELD: ClassVar[str] = "offset"
