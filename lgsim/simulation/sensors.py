"""Sensor readings as functions of the state: encoders, IMU, motion capture, force plate and foot switch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.dynamics.contacts.contact_forces import contact_forces, contact_points
from lgsim.dynamics.kinematics import forward_kinematics, frame_accelerations, frame_index, frame_twists
from lgsim.dynamics.passive_forces import coordinates
from lgsim.multibody.model import Model
from lgsim.multibody.topology import ROOT
from lgsim.support.messages import unknown_name


class IMU(NamedTuple):
    """The readings of an accelerometer and a gyroscope, in the axes of the sensor's frame.

    Attributes:
        specific_force: Acceleration minus gravity, (..., 3), m/s^2; (0, 0, 9.81) at rest with z up.
        rate: Angular velocity, (..., 3), rad/s.
    """

    specific_force: Float[Array, "*batch 3"]
    rate: Float[Array, "*batch 3"]


class ForcePlate(NamedTuple):
    """The readings of a force plate, in the axes of its frame.

    Attributes:
        force: Force of the ground on the robot, (..., 3), N; (0, 0, m g) at rest.
        moment: Its moment about the frame's origin, (..., 3), N m.
        center: The center of pressure in the frame's xy plane, (..., 2), m: the point where a single force with a
            moment about z is equivalent. The origin where nothing presses.
    """

    force: Float[Array, "*batch 3"]
    moment: Float[Array, "*batch 3"]
    center: Float[Array, "*batch 2"]


def encoders(model: Model, q: Float[Array, " nq"]) -> Float[Array, " nv"]:
    """The readings of joint encoders: the coordinate of each degree of freedom, 0 for spherical and free joints.

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
        frame: Name of the frame, or its index in ``model.frame_names``.
        v: Velocity (..., nv), rad/s or m/s.
        a: The derivative of v, (..., nv), rad/s^2 or m/s^2, e.g. from ``forward_dynamics``.

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
    """The pose of a frame in the world, as measured by motion capture.

    Args:
        frame: Name of the frame, or its index in ``model.frame_names``.

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
        frame: Name of the frame, or its index in ``model.frame_names``.
        v: Velocity (..., nv), rad/s or m/s.

    Returns:
        The twist (..., 6), linear part first.

    Raises:
        ValueError: there is no such frame, an array has a wrong length.
    """
    return frame_twists(model, q, v)[..., frame_index(model.topology, frame), :]


def force_plate(
    model: Model,
    contacts: str | Sequence[str],
    q: Float[Array, "*#batch nq"],
    v: Float[Array, "*#batch nv"],
    frame: str | int = ROOT,
) -> ForcePlate:
    """The readings of a force plate under contacts: the sum of the forces of the surfaces on the shapes.

    With the forces f_i and couples n_i at the points p_i of the contacts, ``f = sum f_i``, ``n = sum p_i x f_i + n_i``,
    and the center of pressure is ``(-n_y, n_x) / f_z``.

    Args:
        contacts: Name of a contact, or names of several, such as those of all feet.
        v: Velocity (..., nv), rad/s or m/s.
        frame: Name of the plate's frame, or its index in ``model.frame_names``; its x and y axes span the plate. By
            default the world frame.

    Returns:
        ForcePlate(force, moment, center).

    Raises:
        ValueError: there is no such frame or contact, an array has a wrong length.
        TypeError: dtypes differ.
    """
    points = _points_of(model, (contacts,) if isinstance(contacts, str) else contacts)
    index = None if frame == ROOT else frame_index(model.topology, frame)
    forces, places = contact_forces(model, q, v), contact_points(model, q)
    f = (forces.normal[..., None] * places.normal + forces.tangential)[..., points, :]
    p, couple = places.position[..., points, :], forces.couple[..., points, :]
    if index is not None:
        T = forward_kinematics(model, q)[..., index, :, :]
        f, p, couple = _in_axes(T, f), _in_axes(T, p - T[..., None, :3, 3]), _in_axes(T, couple)
    force, moment = jnp.sum(f, axis=-2), jnp.sum(jnp.cross(p, f) + couple, axis=-2)
    z = force[..., 2:]
    pressed = z != 0
    lever = jnp.stack([-moment[..., 1], moment[..., 0]], axis=-1)
    return ForcePlate(force, moment, jnp.where(pressed, lever / jnp.where(pressed, z, 1), 0))


def foot_switch(
    model: Model,
    contacts: str | Sequence[str],
    q: Float[Array, "*#batch nq"],
    v: Float[Array, "*#batch nv"],
    threshold: float = 1.0,
) -> Float[Array, "*batch"]:
    """The signal of a switch under contacts: 0 in the air, 1/2 at a threshold, towards 1 under load.

    ``s = f^2 / (f^2 + threshold^2)``, f being the sum of the normal forces, so that the signal is smooth and its
    derivatives exist where contacts begin and end.

    Args:
        contacts: Name of a contact, or names of several on one switch.
        v: Velocity (..., nv), rad/s or m/s.
        threshold: The force at which the switch is half on, N.

    Returns:
        The signal (...), from 0 to 1.

    Raises:
        ValueError: there is no such contact, the threshold is not positive, an array has a wrong length.
        TypeError: dtypes differ.
    """
    if not threshold > 0:
        raise ValueError(f"threshold: expected a positive number of N, got {threshold}")
    points = _points_of(model, (contacts,) if isinstance(contacts, str) else contacts)
    ratio = jnp.sum(contact_forces(model, q, v).normal[..., points], axis=-1) / threshold
    return ratio * ratio / (ratio * ratio + 1)


def _points_of(model: Model, contacts: Sequence[str]) -> np.ndarray:
    """The indices of the points of some contacts among those of all contacts.

    Raises:
        ValueError: there is no such contact, or none is named.
    """
    if not contacts:
        raise ValueError("contacts: expected the name of a contact or of several, got none")
    for name in contacts:
        if name not in model.contact_names:
            raise ValueError(unknown_name("contacts: expected names of contacts", name, model.contact_names))
    return np.concatenate([np.r_[model.point_slices[name]] for name in contacts])


def _in_axes(T: Float[Array, "*batch 4 4"], x: Float[Array, "*batch points 3"]) -> Float[Array, "*batch points 3"]:
    """World vectors expressed in the axes of a frame."""
    return jnp.einsum("...ji,...pj->...pi", T[..., :3, :3], x, precision="highest")
