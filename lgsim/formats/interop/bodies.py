"""Inertias, poses and twists in the forms of other tools."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim.formats.interop.forms import rotate
from lgsim.lie import conversions
from lgsim.multibody import inertia as ten
from lgsim.support import check


def mass_center(values: Float[Array, "*batch 10"]) -> tuple[Float[Array, "*batch"], Float[Array, "*batch 3"]]:
    """Mass and center of mass from the ten inertial parameters; the center is the origin for a massless body."""
    mass = values[..., 0]
    return mass, values[..., 1:4] / jnp.where(mass == 0, 1, mass)[..., None]


def central(
    values: Float[Array, "*batch 10"],
) -> tuple[Float[Array, "*batch"], Float[Array, "*batch 3"], Float[Array, "*batch 3 3"]]:
    """Mass, center of mass and inertia about it from the ten inertial parameters."""
    mass, center = mass_center(values)
    return mass, center, ten.rotational_inertia(values) - _steiner(mass, center)


def parameters(
    mass: Float[Array, "*#batch"], center: Float[Array, "*#batch 3"], inertia: Float[Array, "*#batch 3 3"]
) -> Float[Array, "*batch 10"]:
    """The ten inertial parameters of a body with its inertia about the center of mass."""
    return parameters_at_origin(mass, center, inertia + _steiner(mass, center))


def parameters_at_origin(
    mass: Float[Array, "*#batch"], center: Float[Array, "*#batch 3"], inertia: Float[Array, "*#batch 3 3"]
) -> Float[Array, "*batch 10"]:
    """The ten inertial parameters of a body with its inertia about the origin of its frame."""
    entries = [inertia[..., i, j] for i, j in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))]
    return jnp.concatenate([mass[..., None], mass[..., None] * center, jnp.stack(entries, axis=-1)], axis=-1)


def split_pose(T: Float[Array, "*batch 4 4"]) -> tuple[Float[Array, "*batch 3"], Float[Array, "*batch 4"]]:
    """Position and quaternion (w, x, y, z) of a pose."""
    return T[..., :3, 3], conversions.quaternion_from_matrix(T[..., :3, :3])


def assemble_pose(
    position: Float[Array, "*batch 3"], quaternion: Float[Array, "*batch 4"]
) -> Float[Array, "*batch 4 4"]:
    """The pose of a position and a quaternion (w, x, y, z)."""
    R = conversions.matrix_from_quaternion(quaternion)
    top = jnp.concatenate([R, position[..., None]], axis=-1)
    last = jnp.broadcast_to(jnp.array([0, 0, 0, 1], top.dtype), (*top.shape[:-2], 1, 4))
    return jnp.concatenate([top, last], axis=-2)


def rotate_and_swap(T: ArrayLike, V: ArrayLike, inverse: bool = False) -> Float[Array, "*batch 6"]:
    """Map (a, b) to (R b, R a) with the rotation R of a pose, or to (R^T b, R^T a) with ``inverse``.

    Args:
        T: Poses (..., 4, 4).
        V: Twists or wrenches (..., 6).
        inverse: True applies R^T.
    """
    T, V = check.arguments(T=(T, (4, 4)), V=(V, (6,)))
    R = jnp.swapaxes(T[..., :3, :3], -1, -2) if inverse else T[..., :3, :3]
    return jnp.concatenate([rotate(R, V[..., 3:]), rotate(R, V[..., :3])], axis=-1)


def _steiner(mass: Float[Array, "*#batch"], center: Float[Array, "*#batch 3"]) -> Float[Array, "*batch 3 3"]:
    """``m ((c.c) 1 - c c^T)``."""
    square = jnp.sum(center * center, axis=-1)[..., None, None]
    identity = jnp.broadcast_to(jnp.eye(3, dtype=center.dtype), (*center.shape, 3))
    return mass[..., None, None] * (square * identity - center[..., :, None] * center[..., None, :])
