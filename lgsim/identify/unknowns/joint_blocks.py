"""Unknown parameters of joints: drives, friction, and the scale and offset of their signals."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Int

from lgsim.dynamics.passive_forces import FRICTION
from lgsim.identify.recording.coordinates import dof_names
from lgsim.identify.unknowns.block import NumberBlock, select_names
from lgsim.identify.unknowns.plant import AFFINE_JOINTS, NumbersLike, Plant, first_index, with_drives, with_part
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


SPEEDS = ("friction_speed", "stribeck_speed")
"""The speeds of a joint's dry friction."""
SPEED_DEVIATION = float(np.log(10))
"""Prior standard deviation of the logarithm of a speed: a factor of ten."""
DIRECTIONAL = ("friction", "damping")
"""The parameters of a joint that may differ by direction."""
MARGIN = 10.0
"""The smallest ratio between the prior of a speed and its bounds."""


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

    The coordinates of the speeds ``friction_speed`` and ``stribeck_speed`` are logarithms of ratios to the prior. By
    default their prior standard deviation is a factor of ten, so that they remain finite where no record identifies
    them. ``fit`` to joint torques then keeps them between the lowest and the highest speed of each joint in the record.

    Attributes:
        parameter: A name of ``lgsim.multibody.model.DRIVES``.
        of_record: True for speeds whose bounds are those of the record; static.

    Raises:
        ValueError: the parameter does not exist.
    """

    parameter: str = eqx.field(static=True, default="damping")
    of_record: bool = eqx.field(static=True, default=False)

    def __init__(
        self,
        parameter: str,
        joints: Sequence[str] | None = None,
        prior_deviation: NumbersLike | None = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
    ) -> None:
        if parameter not in DRIVES:
            raise unknown_name("parameter: expected a parameter of a joint", parameter, DRIVES)
        self.parameter, self.joints, self.prior_deviation = parameter, joints, prior_deviation
        unbounded = ("rest", "lower", "upper")
        self.of_record = self.has_speeds and lower is None and upper is None and prior_deviation is None
        self.lower = lower if lower is not None else -np.inf if parameter in unbounded else 0.0
        self.upper = np.inf if upper is None else upper
        if self.has_speeds and prior_deviation is None:
            self.prior_deviation = SPEED_DEVIATION

    @property
    def kind(self) -> str:
        return self.parameter

    @property
    def relative(self) -> bool:
        """True for speeds."""
        return self.has_speeds

    @property
    def of_friction(self) -> bool:
        return self.parameter in FRICTION

    @property
    def has_speeds(self) -> bool:
        return self.parameter in SPEEDS

    def value_limits(self, plant: Plant) -> dict[str, tuple[float, float]]:
        # the bounds of a record end a search, not an interval
        return dict.fromkeys(self.values(plant), (0.0, np.inf)) if self.of_record else super().value_limits(plant)

    def within_speeds(
        self, plant: Plant, lowest: Float[Array, " nv"], highest: Float[Array, " nv"]
    ) -> tuple[Plant, JointParameter]:
        if not self.of_record:
            return plant, self
        at = self.indices(plant.model)
        # a joint that does not move has no highest speed
        high = jnp.where(highest[at] > 0, highest[at], jnp.inf)
        # the prior stays within the bounds, not at them
        prior = jnp.minimum(self.read(plant), high / MARGIN)
        low = jnp.minimum(lowest[at], prior / MARGIN)
        bounded = eqx.tree_at(lambda b: (b.lower, b.upper), self, (low, high))
        return self.write(plant, prior), bounded

    def read_all(self, plant: Plant) -> Float[Array, " nv"]:
        return getattr(plant.model, self.parameter)

    def write_all(self, plant: Plant, values: Float[Array, " nv"]) -> Plant:
        drives = plant.model.drives.at[:, DRIVES.index(self.parameter)].set(values)
        model = with_drives(plant.model, drives, values if self.parameter == "stribeck" else None)
        return eqx.tree_at(lambda p: p.model, plant, model)


class DirectionalParameter(JointBlock):
    """Friction or damping of the joints that differs by direction: one value for v > 0 and one for v < 0.

    It replaces ``JointParameter`` of the same parameter. A model has no such friction: ``Fit.model`` has the mean.

    Attributes:
        parameter: "friction" or "damping".

    Raises:
        ValueError: the parameter is another one.
    """

    parameter: str = eqx.field(static=True, default="friction")

    def __init__(
        self,
        parameter: str,
        joints: Sequence[str] | None = None,
        prior_deviation: NumbersLike | None = None,
        lower: ArrayLike = 0.0,
        upper: ArrayLike = np.inf,
    ) -> None:
        if parameter not in DIRECTIONAL:
            raise unknown_name("parameter: expected a parameter that may differ by direction", parameter, DIRECTIONAL)
        self.parameter, self.joints, self.prior_deviation = parameter, joints, prior_deviation
        self.lower, self.upper = lower, upper

    @property
    def kind(self) -> str:
        return self.parameter

    @property
    def is_linear(self) -> bool:
        return False

    @property
    def of_friction(self) -> bool:
        return True

    def labels(self, plant: Plant) -> list[str]:
        return [f"{self.kind} of {name} at v {side} 0" for name in self.names(plant.model) for side in "><"]

    def read_all(self, plant: Plant) -> Float[Array, "nv 2"]:
        """The values for positive and negative v."""
        mean, half = getattr(plant.model, self.kind), getattr(plant, f"{self.kind}_asymmetry")
        half = jnp.zeros_like(mean) if half is None else half
        return jnp.stack([mean + half, mean - half], axis=1)

    def write_all(self, plant: Plant, values: Float[Array, "nv 2"]) -> Plant:
        plant = JointParameter(self.kind).write_all(plant, jnp.mean(values, axis=1))
        return with_part(plant, f"{self.kind}_asymmetry", (values[:, 0] - values[:, 1]) / 2)

    def read(self, plant: Plant) -> Float[Array, " size"]:
        return self.read_all(plant)[self.indices(plant.model)].reshape(-1)

    def write(self, plant: Plant, numbers: Float[Array, " size"]) -> Plant:
        every = self.read_all(plant)
        return self.write_all(plant, every.at[self.indices(plant.model)].set(numbers.reshape(-1, 2)))


class SignalBlock(JointBlock):
    """Unknown parameters of the recorded signals: a field of ``Plant``."""

    FIELD: ClassVar[str] = ""

    @property
    def kind(self) -> str:
        return self.FIELD

    def read_all(self, plant: Plant) -> Float[Array, " nv"]:
        values = getattr(plant, self.kind)
        return jnp.zeros_like(plant.offset) if values is None else values

    def write_all(self, plant: Plant, values: Float[Array, " nv"]) -> Plant:
        return with_part(plant, self.kind, values)


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


class LoadFriction(SignalBlock):
    """Dry friction of a joint's gear relative to the transmitted torque, for a driving and a driven gear.

    A gear of efficiency e that drives the joint has ``1/e - 1``. The transmitted torque is that of the bodies, without
    the rotor's inertia. A model has no such friction; simulate it with ``actuators.Gear``.

    Source: Hamon, Gautier, Garrec, Dynamic identification of robots with a dry friction model depending on load and
    velocity, IROS 2010, eq. (7).
    """

    FIELD: ClassVar[str] = "load_friction"
    lower: ArrayLike = 0.0
