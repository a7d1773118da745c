"""Rotation vectors, matrices and quaternions into each other; poses and their parts."""

from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from lgsim.lie import conversions, se3, series

VECTORS = np.concatenate(
    [np.random.default_rng(3).normal(size=(20, 3)), [[0, 0, 0], [1e-9, 0, 0], [0, 3.1, 0], [0, 0, np.pi - 1e-7]]]
)


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-15 * max(1, np.max(np.abs(expected))))


def test_rotation_vectors_are_those_of_scipy():
    other = Rotation.from_rotvec(VECTORS)
    q = other.as_quat(scalar_first=True)
    found = conversions.quaternion_from_rotation_vector(jnp.asarray(VECTORS))
    close(found * np.sign(np.sum(found * q, axis=1, keepdims=True)), q)
    close(conversions.matrix_from_rotation_vector(jnp.asarray(VECTORS)), other.as_matrix())


@pytest.mark.parametrize("form", ["quaternion", "matrix"])
def test_rotation_vectors_come_back(form):
    there = getattr(conversions, f"{form}_from_rotation_vector")(jnp.asarray(VECTORS))
    back = getattr(conversions, f"rotation_vector_from_{form}")(there)
    # the shorter way round
    np.testing.assert_allclose(back, Rotation.from_rotvec(VECTORS).as_rotvec(), rtol=0, atol=1e-14)


def test_poses_are_made_of_their_parts():
    R, p = Rotation.from_rotvec(VECTORS).as_matrix(), np.random.default_rng(4).normal(size=VECTORS.shape)
    T = se3.from_rotation_translation(jnp.asarray(R), jnp.asarray(p))
    close(T[:, :3], np.concatenate([R, p[:, :, None]], axis=2))
    close(T[:, 3], np.broadcast_to([0, 0, 0, 1], (len(R), 4)))
    close(se3.rotation_matrix(T), R)
    close(se3.translation(T), p)
    close(se3.act(T, jnp.asarray(p[::-1])), np.einsum("kij,kj->ki", R, p[::-1]) + p)


def test_derivatives_of_dexpinv_at_zero_are_fractions():
    """``(1 - x/2 cot(x/2))/x^2 = 1/12 + x^2/720 + x^4/30240 + ...``, in x^2."""
    assert [series.dexpinv_terms(k) for k in range(3)] == [Fraction(1, 12), Fraction(1, 720), Fraction(2, 30240)]
