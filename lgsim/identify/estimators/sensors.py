"""Sensor models: readings as functions of the state, and differences between readings and measurements."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.identify.recording.coordinates import dof_names
from lgsim.lie import se3
from lgsim.multibody.model import Model
from lgsim.simulation.sensors import frame_pose, imu


class Instant(NamedTuple):
    """The state of a system at one time.

    Attributes:
        q: Configuration (nq,), rad or m.
        v: Velocity (nv,), rad/s or m/s.
        a: Time derivative of v (nv,), rad/s^2 or m/s^2, or None if no sensor needs it.
    """

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    a: Float[Array, " nv"] | None


class Sensor(eqx.Module):
    """Base class of sensor models; subclasses define ``read``, ``labels`` and, on groups, ``difference``.

    Attributes:
        ACCELERATION: True if a reading depends on the acceleration.
    """

    ACCELERATION: ClassVar[bool] = False

    @abstractmethod
    def read(self, model: Model, at: Instant) -> Float[Array, "*shape"]:
        """The noise-free reading at one time, of shape ``shape(model)``."""

    @abstractmethod
    def labels(self, model: Model) -> list[str]:
        """Names of the degrees of freedom of a reading."""

    def shape(self, model: Model) -> tuple[int, ...]:
        """The shape of a reading, by default one entry for each degree of freedom."""
        return (len(self.labels(model)),)

    def difference(
        self, model: Model, measured: Float[Array, "*shape"], reading: Float[Array, "*shape"]
    ) -> Float[Array, " dofs"]:
        """Reading minus measurement, in the tangent space at the measurement, one entry for each label."""
        return reading - measured


class PositionSensor(Sensor):
    """Configurations (nq,): joint encoders, and the pose of a floating base."""

    def read(self, model: Model, at: Instant) -> Float[Array, " nq"]:
        return at.q

    def labels(self, model: Model) -> list[str]:
        return [f"position {name}" for name in dof_names(model)]

    def shape(self, model: Model) -> tuple[int, ...]:
        return (model.nq,)

    def difference(
        self, model: Model, measured: Float[Array, " nq"], reading: Float[Array, " nq"]
    ) -> Float[Array, " nv"]:
        return model.difference(measured, reading)


class VelocitySensor(Sensor):
    """Velocities of all joints (nv,)."""

    def read(self, model: Model, at: Instant) -> Float[Array, " nv"]:
        return at.v

    def labels(self, model: Model) -> list[str]:
        return [f"velocity {name}" for name in dof_names(model)]


class FramePoseSensor(Sensor):
    """The pose (4, 4) of a frame in the world, as from motion capture; differences are twists (v, w) in the frame.

    Attributes:
        frame: Name of the frame.
    """

    frame: str = eqx.field(static=True)

    def read(self, model: Model, at: Instant) -> Float[Array, "4 4"]:
        return frame_pose(model, self.frame, at.q)

    def labels(self, model: Model) -> list[str]:
        return [f"{c} of {self.frame}" for c in ("x", "y", "z", "rx", "ry", "rz")]

    def shape(self, model: Model) -> tuple[int, ...]:
        return (4, 4)

    def difference(
        self, model: Model, measured: Float[Array, "4 4"], reading: Float[Array, "4 4"]
    ) -> Float[Array, " 6"]:
        return se3.log(se3.compose(se3.inverse(measured), reading))


class ImuSensor(Sensor):
    """An IMU: specific force, m/s^2, and angular velocity, rad/s, (6,) in the axes of a frame.

    Attributes:
        frame: Name of the frame.
    """

    ACCELERATION: ClassVar[bool] = True
    frame: str = eqx.field(static=True)

    def read(self, model: Model, at: Instant) -> Float[Array, " 6"]:
        assert at.a is not None
        force, rate = imu(model, self.frame, at.q, at.v, at.a)
        return jnp.concatenate([force, rate])

    def labels(self, model: Model) -> list[str]:
        return [f"{c} of {self.frame}" for c in ("fx", "fy", "fz", "wx", "wy", "wz")]
