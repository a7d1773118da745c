"""The readings of sensors on a machine, as functions of its state."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.dynamics.kinematics import forward_kinematics, frame_accelerations, frame_index, frame_twists
from lgsim.dynamics.passive_forces import coordinates
from lgsim.multibody.model import Model


class IMU(NamedTuple):
    """The readings of an accelerometer and a gyroscope, in the axes of the sensor's frame.

    Attributes:
        specific_force: Acceleration less that of free fall, (..., 3), m/s^2; (0, 0, 9.81) at rest with z up.
        rate: Angular velocity, (..., 3), rad/s.
    """

    specific_force: Float[Array, "*batch 3"]
    rate: Float[Array, "*batch 3"]


def encoders(model: Model, q: Float[Array, " nq"]) -> Float[Array, " nv"]:
    """The readings of joint encoders: the number of each degree of freedom, 0 for spherical and free joints.

    Args:
        model: The machine.
        q: Configuration (nq,).

    Returns:
        The readings (nv,), rad or m.
    """
    return coordinates(model, q)[0]


def imu(
    model: Model,
    frame: str | int,
    q: Float[Array, "*#batch nq"],
    v: Float[Array, "*#batch nv"],
    a: Float[Array, "*#batch nv"],
) -> IMU:
    """The readings of an accelerometer and a gyroscope at the origin of a frame, ``f = R^T (p'' - g)`` and w.

    Args:
        model: The machine.
        frame: Name of the frame, or its place in ``model.frame_names``.
        q: Configuration (..., nq).
        v: Velocity (..., nv), rad/s or m/s.
        a: The derivative of v, (..., nv), rad/s^2 or m/s^2, e.g. of ``forward_dynamics``.

    Returns:
        IMU(specific_force, rate), each (..., 3), in the frame's axes.

    Raises:
        ValueError: there is no such frame, an array has a wrong length.
        TypeError: dtypes differ.
    """
    index = frame_index(model.topology, frame)
    V = frame_twists(model, q, v)[..., index, :]
    A = frame_accelerations(model, q, v, a)[..., index, :]
    R = forward_kinematics(model, q)[..., index, :3, :3]
    linear, w = V[..., :3], V[..., 3:]
    fall = jnp.einsum("...ji,j->...i", R, model.gravity, precision="highest")
    return IMU(A[..., :3] + jnp.cross(w, linear) - fall, w)


def frame_pose(model: Model, frame: str | int, q: Float[Array, "*batch nq"]) -> Float[Array, "*batch 4 4"]:
    """The pose of a frame in the world, as a motion capture system gives it.

    Args:
        model: The machine.
        frame: Name of the frame, or its place in ``model.frame_names``.
        q: Configuration (..., nq).

    Returns:
        The homogeneous matrix ``T_WF`` (..., 4, 4), m.

    Raises:
        ValueError: there is no such frame, q has a wrong length.
    """
    return forward_kinematics(model, q)[..., frame_index(model.topology, frame), :, :]


def frame_twist(
    model: Model, frame: str | int, q: Float[Array, "*#batch nq"], v: Float[Array, "*#batch nv"]
) -> Float[Array, "*batch 6"]:
    """The body twist (v, w) of a frame, in its own axes, m/s and rad/s.

    Args:
        model: The machine.
        frame: Name of the frame, or its place in ``model.frame_names``.
        q: Configuration (..., nq).
        v: Velocity (..., nv), rad/s or m/s.

    Returns:
        The twist (..., 6), linear part first.

    Raises:
        ValueError: there is no such frame, an array has a wrong length.
    """
    return frame_twists(model, q, v)[..., frame_index(model.topology, frame), :]
