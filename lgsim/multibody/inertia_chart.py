"""Coordinates of a body's inertia in which every point is a body that can exist."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.multibody.inertia import from_pseudo_inertia, pseudo_inertia

COORDINATES = ("alpha", "d1", "d2", "d3", "s12", "s23", "s13", "t1", "t2", "t3")
"""The mass is ``exp(2 alpha)`` and t the centre of mass in m; d and s are the spread of the mass about it."""


def from_log_cholesky(coordinates: Float[Array, "*batch 10"]) -> Float[Array, "*batch 10"]:
    """The ten parameters of a body from coordinates without bounds.

    The pseudo-inertia is ``U U^T``, ``U = exp(alpha) [[S, t], [0, 1]]``, S upper triangular with ``exp(d_i)`` on its
    diagonal: positive definite everywhere, and every positive definite one has such coordinates.

    Args:
        coordinates: In the order of ``COORDINATES``.

    Returns:
        As ``lgsim.multibody.inertia`` lists them.

    Source: Rucker and Wensing, Smooth parameterization of rigid-body inertia, IEEE Robotics and Automation Letters
    7(2), 2022, eq. (12).
    """
    alpha, d1, d2, d3, s12, s23, s13 = (coordinates[..., i] for i in range(7))
    t = coordinates[..., 7:]
    zero = jnp.zeros_like(alpha)
    rows = [[jnp.exp(d1), s12, s13], [zero, jnp.exp(d2), s23], [zero, zero, jnp.exp(d3)]]
    S = jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)
    mass = jnp.exp(2 * alpha)[..., None, None]
    sigma = mass * (S @ S.mT + t[..., :, None] * t[..., None, :])
    h = mass * t[..., :, None]
    top, bottom = jnp.concatenate([sigma, h], axis=-1), jnp.concatenate([h.mT, mass], axis=-1)
    return from_pseudo_inertia(jnp.concatenate([top, bottom], axis=-2))


def to_log_cholesky(parameters: Float[Array, "*batch 10"]) -> Float[Array, "*batch 10"]:
    """The coordinates of a body's ten parameters: the inverse of ``from_log_cholesky``; NaN where no body has them."""
    pseudo = pseudo_inertia(parameters)
    mass = pseudo[..., 3, 3]
    t = pseudo[..., :3, 3] / mass[..., None]
    spread = pseudo[..., :3, :3] / mass[..., None, None] - t[..., :, None] * t[..., None, :]
    # the Cholesky factor of the matrix in reverse order is the upper triangular one
    S = jnp.flip(jnp.linalg.cholesky(jnp.flip(spread, (-2, -1))), (-2, -1))
    d = [jnp.log(S[..., i, i]) for i in range(3)]
    return jnp.concatenate(
        [jnp.stack([jnp.log(mass) / 2, *d, S[..., 0, 1], S[..., 1, 2], S[..., 0, 2]], axis=-1), t], axis=-1
    )
