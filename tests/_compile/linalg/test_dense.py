"""Small dense matrices with the batch on their last axes, against NumPy."""

import jax.numpy as jnp
import numpy as np
import pytest

from lgsim._compile.linalg import dense


@pytest.fixture
def definite():
    """Definite matrices (4, 4, 3), the batch last, as arrays of NumPy."""
    A = np.random.default_rng(0).normal(size=(3, 4, 4))
    return np.moveaxis(A @ A.swapaxes(1, 2) + np.eye(4), 0, -1)


def by_numpy(f, *matrices):
    return np.moveaxis(f(*(np.moveaxis(A, -1, 0) for A in matrices)), 0, -1)


def test_inverse(definite):
    found = dense.inverse(jnp.asarray(definite))
    np.testing.assert_allclose(found, by_numpy(np.linalg.inv, definite), rtol=0, atol=1e-13)


def test_a_matrix_that_is_not_definite_is_named(definite):
    definite[:, :, 1] -= 3 * np.eye(4) * np.linalg.eigvalsh(definite[:, :, 1])[1]
    found, is_definite = dense.inverse_if_definite(jnp.asarray(definite))
    np.testing.assert_array_equal(is_definite, [True, False, True])
    expected = by_numpy(np.linalg.inv, definite)
    np.testing.assert_allclose(found[..., ::2], expected[..., ::2], rtol=0, atol=1e-13)


def test_product_with_a_start(definite):
    A, B = jnp.asarray(definite[:, :2]), jnp.asarray(definite[:2])
    found = dense.product(A, B, jnp.asarray(definite))
    np.testing.assert_allclose(found, definite + by_numpy(np.matmul, definite[:, :2], definite[:2]), rtol=1e-14)
