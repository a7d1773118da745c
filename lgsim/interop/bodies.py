"""Inertias, poses and twists in the shapes in which other tools take them."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from lgsim.interop.forms import rotated
from lgsim.lie import conversions
from lgsim.multibody import inertia as ten
from lgsim.support import check


def mass_center(values: Array) -> tuple[Array, Array]:
    """Mass and centre of mass (..., 3) of ten parameters; the origin for a massless body."""
    mass = values[..., 0]
    return mass, values[..., 1:4] / jnp.where(mass == 0, 1, mass)[..., None]


def central(values: Array) -> tuple[Array, Array, Array]:
    """Mass, centre of mass and inertia (..., 3, 3) about it."""
    mass, center = mass_center(values)
    return mass, center, ten.rotational_inertia(values) - _steiner(mass, center)


def parameters(mass: Array, center: Array, inertia: Array) -> Array:
    """The ten parameters; the inertia is about the centre of mass."""
    return of_origin(mass, center, inertia + _steiner(mass, center))


def of_origin(mass: Array, center: Array, inertia: Array) -> Array:
    """The ten parameters; the inertia is about the frame's origin."""
    entries = [inertia[..., i, j] for i, j in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))]
    return jnp.concatenate([mass[..., None], mass[..., None] * center, jnp.stack(entries, axis=-1)], axis=-1)


def split(T: Array) -> tuple[Array, Array]:
    """Position (..., 3) and quaternion wxyz (..., 4) of a pose (..., 4, 4)."""
    return T[..., :3, 3], conversions.quaternion_from_matrix(T[..., :3, :3])


def assembled(position: Array, quaternion: Array) -> Array:
    """The pose (..., 4, 4)."""
    R = conversions.matrix_from_quaternion(quaternion)
    top = jnp.concatenate([R, position[..., None]], axis=-1)
    last = jnp.broadcast_to(jnp.array([0, 0, 0, 1], top.dtype), (*top.shape[:-2], 1, 4))
    return jnp.concatenate([top, last], axis=-2)


def turned(T: Array, V: Array, back: bool = False) -> Array:
    """(a, b) to (R b, R a), or with ``back`` (b, a) of that back to (a, b)."""
    T, V = check.arguments(T=(T, (4, 4)), V=(V, (6,)))
    R = jnp.swapaxes(T[..., :3, :3], -1, -2) if back else T[..., :3, :3]
    return jnp.concatenate([rotated(R, V[..., 3:]), rotated(R, V[..., :3])], axis=-1)


def _steiner(mass: Array, center: Array) -> Array:
    """``m ((c.c) 1 - c c^T)``."""
    square = jnp.sum(center * center, axis=-1)[..., None, None]
    identity = jnp.broadcast_to(jnp.eye(3, dtype=center.dtype), (*center.shape, 3))
    return mass[..., None, None] * (square * identity - center[..., :, None] * center[..., None, :])
