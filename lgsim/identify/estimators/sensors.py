"""What was measured in recorded motion, as functions of the state: predictions, and how far a measurement is off."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from lgsim.lie import se3
from lgsim.multibody.model import Model
from lgsim.simulation.sensors import frame_pose, imu


class Instant(NamedTuple):
    """A machine at one time.

    Attributes:
        q: Configuration (nq,).
        v: Velocity (nv,).
        a: Its derivative (nv,), or None where no sensor asks for it.
    """

    q: Array
    v: Array
    a: Array | None


class Sensor(eqx.Module):
    """One kind of measurement; a new one is a subclass with three short functions."""

    ACCELERATION = False
    """Whether it depends on the acceleration."""

    @abstractmethod
    def read(self, model: Model, at: Instant) -> Array:
        """What it reads without noise."""

    @abstractmethod
    def labels(self, model: Model) -> list[str]:
        """A name for each of its degrees of freedom."""

    def shape(self, model: Model) -> tuple[int, ...]:
        """That of a reading."""
        return (len(self.labels(model)),)

    def difference(self, model: Model, measured: Array, reading: Array) -> Array:
        """Reading less measurement in the tangent space of the measurement, one number for each label."""
        return reading - measured


class PositionSensor(Sensor):
    """Configurations: joint encoders, and the pose of a floating base."""

    def read(self, model: Model, at: Instant) -> Array:
        return at.q

    def labels(self, model: Model) -> list[str]:
        return [f"position {name}" for name in of_velocities(model)]

    def shape(self, model: Model) -> tuple[int, ...]:
        return (model.nq,)

    def difference(self, model: Model, measured: Array, reading: Array) -> Array:
        return model.difference(measured, reading)


class VelocitySensor(Sensor):
    """Velocities of all joints."""

    def read(self, model: Model, at: Instant) -> Array:
        return at.v

    def labels(self, model: Model) -> list[str]:
        return [f"velocity {name}" for name in of_velocities(model)]


class FramePoseSensor(Sensor):
    """The pose (4, 4) of a frame in the world, as motion capture gives it; differences are twists (v, w) in the frame.

    Attributes:
        frame: Its name.
    """

    frame: str = eqx.field(static=True)

    def read(self, model: Model, at: Instant) -> Array:
        return frame_pose(model, self.frame, at.q)

    def labels(self, model: Model) -> list[str]:
        return [f"{c} of {self.frame}" for c in ("x", "y", "z", "rx", "ry", "rz")]

    def shape(self, model: Model) -> tuple[int, ...]:
        return (4, 4)

    def difference(self, model: Model, measured: Array, reading: Array) -> Array:
        return se3.log(se3.compose(se3.inverse(measured), reading))


class ImuSensor(Sensor):
    """Specific force and angular velocity (6,) in the axes of a frame: an IMU.

    Attributes:
        frame: Its name.
    """

    ACCELERATION = True
    frame: str = eqx.field(static=True)

    def read(self, model: Model, at: Instant) -> Array:
        assert at.a is not None
        force, rate = imu(model, self.frame, at.q, at.v, at.a)
        return jnp.concatenate([force, rate])

    def labels(self, model: Model) -> list[str]:
        return [f"{c} of {self.frame}" for c in ("fx", "fy", "fz", "wx", "wy", "wz")]


def of_velocities(model: Model) -> list[str]:
    """A name for each entry of v."""
    out = []
    for name, part in model.v_slices.items():
        count = part.stop - part.start
        out += [name] if count == 1 else [f"{name}[{i}]" for i in range(count)]
    return out
