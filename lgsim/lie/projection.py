"""The deviation of an array from a rotation or a displacement, and the rotation nearest to a matrix.

Deviations are computed for concrete arrays on the host: a check before a run, which takes microseconds and compiles
nothing.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim._compile.spatial import Mat, Vec, pack, unpack_matrix
from lgsim.lie.matrix_forms import transpose


def rotation_defects(R: Any) -> dict[str, Any]:
    """The largest entry of ``R^T R - 1`` and the largest ``|det R - 1|`` of matrices (..., n, n)."""
    R = np.asarray(R)
    gram = R.swapaxes(-1, -2) @ R
    with np.errstate(invalid="ignore"):  # NaN entries give NaN defects
        determinant = np.linalg.det(R)
    return {
        "R^T R = 1": np.max(np.abs(gram - np.eye(R.shape[-1], dtype=R.dtype))),
        "det R = 1": np.max(np.abs(determinant - 1)),
    }


def displacement_defects(T: Any) -> dict[str, Any]:
    """The defects of the rotation of homogeneous matrices (..., n, n), and that of their bottom row."""
    T = np.asarray(T)
    last = np.eye(T.shape[-1], dtype=T.dtype)[-1]
    return {**rotation_defects(T[..., :-1, :-1]), "bottom row = (0, 1)": np.max(np.abs(T[..., -1, :] - last))}


def with_rotation(T: Array, R: Array) -> Array:
    """The homogeneous matrix with the rotation R and the translation of T."""
    bottom = jnp.broadcast_to(jnp.eye(T.shape[-1], dtype=T.dtype)[-1], (*T.shape[:-2], 1, T.shape[-1]))
    return jnp.concatenate([jnp.concatenate([R, T[..., :-1, -1:]], axis=-1), bottom], axis=-2)


def _array(m: Mat) -> Array:
    return pack((*m.r0, *m.r1, *m.r2), (3, 3))


@jax.custom_jvp
def rotation(X: Array) -> Array:
    """The rotation R nearest to X (..., 3, 3): the factor of ``X = R P`` with P symmetric.

    The factor is unique where X is invertible. Its derivative along ``dX`` is ``R hat(w)`` with ``(tr(P) - P) w`` the
    vector of ``R^T dX - dX^T R``: smooth also for equal singular values, as at a rotation.
    """
    left, _, right = jnp.linalg.svd(X)
    sign = jnp.linalg.det(left) * jnp.linalg.det(right)
    left = jnp.concatenate([left[..., :2], left[..., 2:] * jnp.sign(sign)[..., None, None]], axis=-1)
    return _array(unpack_matrix(left) @ unpack_matrix(right))


@rotation.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (X,), (dX,) = primals, tangents
    R = rotation(X)
    back = unpack_matrix(R).T
    P, turn = _array(back @ unpack_matrix(X)), (back @ unpack_matrix(dX)).vee_skew() * 2.0
    trace = jnp.trace(P, axis1=-2, axis2=-1)[..., None, None]
    system = trace * jnp.broadcast_to(jnp.eye(3, dtype=X.dtype), P.shape) - 0.5 * (P + transpose(P))
    w = jnp.linalg.solve(system, pack(tuple(turn), (3,))[..., None])[..., 0]
    x, y, z = w[..., 0], w[..., 1], w[..., 2]
    zero = jnp.zeros_like(x)
    hat = Mat(Vec(zero, -z, y), Vec(z, zero, -x), Vec(-y, x, zero))
    return R, _array(unpack_matrix(R) @ hat)
