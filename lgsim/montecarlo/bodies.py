"""Bodies about a given one: the log-Cholesky chart in parts of the body itself.

A body's pseudo-inertia is ``J = U U^T`` with U upper triangular, and so is that of the body ``U E``, E upper triangular
too. With ``E = e^alpha [[e^d1, s12, s13, t1], [0, e^d2, s23, t2], [0, 0, e^d3, t3], [0, 0, 0, 1]]`` all ten numbers
have no unit, and every choice of them is a body that can exist: the chart of ``lgsim.multibody.inertia_chart`` moved by
U, since upper triangular matrices are a group.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.multibody.inertia import from_pseudo_inertia, pseudo_inertia


def factor(parameters: np.ndarray) -> np.ndarray:
    """The upper triangular U (..., 4, 4) with ``J = U U^T``, in NumPy; also of bodies without extent or mass.

    Of those, columns are zero: what has no extent in a direction keeps none under ``scaled``.
    """
    pseudo = np.asarray(pseudo_inertia(jnp.asarray(parameters)))
    J = np.array(pseudo, float)
    U = np.zeros_like(J)
    rounding = 64 * np.finfo(pseudo.dtype).eps * np.abs(J).max(axis=(-2, -1))
    for k in reversed(range(4)):
        solid = J[..., k, k] > rounding
        column = J[..., : k + 1, k] / np.sqrt(np.where(solid, J[..., k, k], 1))[..., None]
        U[..., : k + 1, k] = np.where(solid[..., None], column, 0)
        J = J - U[..., :, None, k] * U[..., None, :, k]
    return U


def scaled(factors: Float[Array, "*batch 4 4"], changes: Float[Array, "*batch 10"]) -> Float[Array, "*batch 10"]:
    """The ten parameters of the bodies ``U0 E`` with ``U0 = factor(parameters)``.

    Zero changes nothing. ``e^(2 alpha)`` is the ratio of the masses, ``e^d`` are ratios of lengths, s shear the body,
    and t moves its centre of mass, in parts of its radii of gyration.

    Args:
        factors: U0 of each body.
        changes: (alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3), as ``lgsim.multibody.inertia_chart`` orders them.

    Source: Rucker, Wensing, Smooth parameterization of rigid-body inertia, IEEE Robotics and Automation Letters 7(2),
    2022, eq. (12).
    """
    E = _factor(changes)
    product = [
        [sum((factors[..., i, k] * E[..., k, j] for k in range(i, j + 1)), jnp.zeros_like(E[..., 0, 0]))
         for j in range(4)] for i in range(4)
    ]  # fmt: skip
    return _body(jnp.stack([jnp.stack(row, axis=-1) for row in product], axis=-2))


def _factor(coordinates: Array) -> Array:
    alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3 = (coordinates[..., i] for i in range(10))
    zero, one = jnp.zeros_like(alpha), jnp.ones_like(alpha)
    rows = ([jnp.exp(d1), s12, s13, t1], [zero, jnp.exp(d2), s23, t2], [zero, zero, jnp.exp(d3), t3],
            [zero, zero, zero, one])  # fmt: skip
    return jnp.exp(alpha)[..., None, None] * jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)


def _body(U: Array) -> Array:
    """The parameters of ``U U^T``, by explicit sums: nothing depends on the precision of matrix products."""
    return from_pseudo_inertia(jnp.sum(U[..., :, None, :] * U[..., None, :, :], axis=-1))
