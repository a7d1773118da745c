"""The ten inertial parameters of a body, and their physical consistency."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

PARAMETERS = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
"""Mass (kg), first moment ``m c`` (kg m), inertia about the frame's origin (kg m^2): dynamics is linear in them."""

_ENTRIES = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
PLACES = np.array([[4, 5, 7], [5, 6, 8], [7, 8, 9]])
"""Index of each entry of the inertia among the ten parameters."""


def parameters(
    mass: Float[Array, "*batch"], center: Float[Array, "*batch 3"], inertia: Float[Array, "*batch 3 3"]
) -> Float[Array, "*batch 10"]:
    """The ten inertial parameters from mass, center of mass and inertia about it.

    ``I_o = I_c + m ((c.c) 1 - c c^T)`` (parallel axis theorem).

    Args:
        mass: kg.
        center: Center of mass in the body's frame, m.
        inertia: About the center of mass, in the body's axes, kg m^2; its upper triangle is read.
    """
    h = mass[..., None] * center
    square = jnp.sum(center * center, axis=-1)
    identity = np.eye(3)
    moved = [
        inertia[..., i, j] + mass * (square * float(identity[i, j]) - center[..., i] * center[..., j])
        for i, j in _ENTRIES
    ]
    return jnp.concatenate([mass[..., None], h, jnp.stack(moved, axis=-1)], axis=-1)


def mass_center_inertia(
    parameters: Float[Array, "*batch 10"],
) -> tuple[Float[Array, "*batch"], Float[Array, "*batch 3"], Float[Array, "*batch 3 3"]]:
    """Mass, center of mass and inertia about it: the inverse of ``parameters``; undefined for a massless body."""
    mass = parameters[..., 0]
    center = parameters[..., 1:4] / mass[..., None]
    about_origin = rotational_inertia(parameters)
    square = jnp.sum(center * center, axis=-1)
    outer = center[..., :, None] * center[..., None, :]
    shift = square[..., None, None] * jnp.eye(3, dtype=mass.dtype).reshape((1,) * mass.ndim + (3, 3)) - outer
    return mass, center, about_origin - mass[..., None, None] * shift


def rotational_inertia(parameters: Float[Array, "*batch 10"]) -> Float[Array, "*batch 3 3"]:
    """The rotational inertia about the frame's origin, kg m^2."""
    return parameters[..., PLACES]


def pseudo_inertia(parameters: Float[Array, "*batch 10"]) -> Float[Array, "*batch 4 4"]:
    """``[[Sigma, h], [h^T, m]]`` with ``Sigma = tr(I)/2 1 - I``: positive definite for physically consistent inertias.

    Source: Wensing, Kim, Slotine, Linear matrix inequalities for physically consistent inertial parameter
    identification, IEEE Robotics and Automation Letters 3(1), 2018, eq. (10).
    """
    inertia = rotational_inertia(parameters)
    half_trace = 0.5 * jnp.trace(inertia, axis1=-2, axis2=-1)
    batch = parameters.ndim - 1
    identity = jnp.eye(3, dtype=parameters.dtype).reshape((1,) * batch + (3, 3))
    sigma = half_trace[..., None, None] * identity - inertia
    h = parameters[..., 1:4]
    top = jnp.concatenate([sigma, h[..., :, None]], axis=-1)
    bottom = jnp.concatenate([h, parameters[..., :1]], axis=-1)
    return jnp.concatenate([top, bottom[..., None, :]], axis=-2)


def from_pseudo_inertia(pseudo: Float[Array, "*batch 4 4"]) -> Float[Array, "*batch 10"]:
    """The ten parameters of a pseudo-inertia: ``I = tr(Sigma) 1 - Sigma``."""
    sigma = pseudo[..., :3, :3]
    trace = jnp.trace(sigma, axis1=-2, axis2=-1)
    entries = [(trace if i == j else 0) - sigma[..., i, j] for i, j in _ENTRIES]
    return jnp.concatenate([pseudo[..., 3:, 3], pseudo[..., :3, 3], jnp.stack(entries, axis=-1)], axis=-1)


def defect(parameters: np.ndarray) -> str | None:
    """Description of the first physical inconsistency of ten parameters (10,), or None; a point mass is consistent."""
    values = np.asarray(parameters, float)
    if not np.all(np.isfinite(values)):
        return "has entries that are not finite"
    if values[0] < 0:
        return f"has the negative mass {values[0]:g} kg"
    if values[0] == 0:
        return "has no mass but an inertia" if np.any(values) else None
    with np.errstate(over="ignore", invalid="ignore"):
        _, central = central_inertia(values)
    if not np.all(np.isfinite(central)):
        return "has inertial parameters out of the range of floats"
    moments = np.linalg.eigvalsh(central)
    rounding = 16 * np.finfo(np.float32).eps * max(abs(moments[-1]), 0.0)
    if moments[0] < -rounding:
        return f"has an inertia that is not positive definite: principal moments {_list(moments)} kg m^2"
    if moments[0] + moments[1] < moments[2] - rounding:
        return (
            f"has a non-physical inertia: of its principal moments {_list(moments)} kg m^2 the"
            " largest exceeds the sum of the others (triangle inequality)"
        )
    return None


EDGES = {1: "in a plane", 2: "on a line", 3: "in a point"}
"""Degenerate mass distributions, by the number of directions without extent."""


def directions_without_extent(parameters: np.ndarray) -> int:
    """The number of directions in which the mass of ten parameters (10,) has no extent beyond rounding, see ``EDGES``.

    The parameters have a mass and are consistent, see ``defect``.
    """
    values = np.asarray(parameters, float)
    center, central = central_inertia(values)
    spread = np.linalg.eigvalsh(0.5 * np.trace(central) * np.eye(3) - central)
    # files have numbers of few digits; moving the inertia to the center has the rounding error of the model
    digits = 16 * np.finfo(np.float32).eps * spread[-1]
    shifted = 16 * np.finfo(np.result_type(parameters, np.float32)).eps * values[0] * (center @ center)
    return int(np.sum((spread <= digits) | (spread <= shifted)))


def nearest_physical(parameters: np.ndarray) -> np.ndarray:
    """Inertial parameters (10,) whose density about the same center of mass has no negative principal moment.

    Negative principal moments of the density ``Sigma`` become zero: the nearest matrix in the Frobenius norm at fixed
    mass and center.
    """
    mass = float(parameters[0])
    center, central = central_inertia(np.asarray(parameters, float))
    values, axes = np.linalg.eigh(0.5 * np.trace(central) * np.eye(3) - central)
    sigma = axes @ np.diag(np.maximum(values, 0.0)) @ axes.T
    fixed = np.trace(sigma) * np.eye(3) - sigma
    moved = fixed + mass * (center @ center * np.eye(3) - np.outer(center, center))
    return np.concatenate([[mass], mass * center, [moved[i, j] for i, j in _ENTRIES]])


def central_inertia(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Center of mass and inertia about it, in float64 independent of JAX's default."""
    center = values[1:4] / values[0]
    return center, values[PLACES] - values[0] * (center @ center * np.eye(3) - np.outer(center, center))


def _list(values: np.ndarray) -> str:
    return ", ".join(f"{v:.4g}" for v in values)


COORDINATES = ("alpha", "d1", "d2", "d3", "s12", "s23", "s13", "t1", "t2", "t3")
"""The mass is ``exp(2 alpha)`` and t the center of mass in m; d and s are the spread of the mass about it."""


def from_log_cholesky(coordinates: Float[Array, "*batch 10"]) -> Float[Array, "*batch 10"]:
    """The ten inertial parameters from unconstrained log-Cholesky coordinates.

    The pseudo-inertia is ``U U^T``, ``U = exp(alpha) [[S, t], [0, 1]]``, S upper triangular with ``exp(d_i)`` on its
    diagonal: always positive definite, and every positive definite matrix has such coordinates.

    Args:
        coordinates: In the order of ``COORDINATES``.

    Returns:
        In the order of ``lgsim.multibody.inertia.PARAMETERS``.

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
    """The log-Cholesky coordinates of ten parameters, the inverse of ``from_log_cholesky``; NaN if non-physical."""
    pseudo = pseudo_inertia(parameters)
    mass = pseudo[..., 3, 3]
    t = pseudo[..., :3, 3] / mass[..., None]
    spread = pseudo[..., :3, :3] / mass[..., None, None] - t[..., :, None] * t[..., None, :]
    # the Cholesky factor of the matrix in reverse order is upper triangular
    S = jnp.flip(jnp.linalg.cholesky(jnp.flip(spread, (-2, -1))), (-2, -1))
    d = [jnp.log(S[..., i, i]) for i in range(3)]
    return jnp.concatenate(
        [jnp.stack([jnp.log(mass) / 2, *d, S[..., 0, 1], S[..., 1, 2], S[..., 0, 2]], axis=-1), t], axis=-1
    )
