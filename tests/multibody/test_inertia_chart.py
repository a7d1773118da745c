"""Coordinates of inertias: a chart of all bodies that can exist and of no other ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.multibody import inertia
from lgsim.multibody.inertia import from_log_cholesky, to_log_cholesky


@pytest.fixture(scope="module")
def coordinates():
    return 0.7 * jax.random.normal(jax.random.key(3), (40, 10))


def test_every_point_is_a_body(coordinates):
    """The pseudo-inertia is the product of the triangular factor by numpy; the mass and its center are coordinates."""
    bodies = jax.jit(from_log_cholesky)(coordinates)
    for x, body in zip(np.asarray(coordinates), np.asarray(bodies), strict=True):
        alpha, d1, d2, d3, s12, s23, s13, *t = x
        U = np.exp(alpha) * np.array(
            [[np.exp(d1), s12, s13, t[0]], [0, np.exp(d2), s23, t[1]], [0, 0, np.exp(d3), t[2]], [0, 0, 0, 1]]
        )
        P = U @ U.T
        J = np.trace(P[:3, :3]) * np.eye(3) - P[:3, :3]
        wanted = [P[3, 3], *P[:3, 3], J[0, 0], J[0, 1], J[1, 1], J[0, 2], J[1, 2], J[2, 2]]
        np.testing.assert_allclose(body, wanted, rtol=1e-13, atol=1e-13)
    mass, center, central = jax.jit(inertia.mass_center_inertia)(bodies)
    np.testing.assert_allclose(mass, np.exp(2 * coordinates[:, 0]), rtol=1e-14)
    np.testing.assert_allclose(center, coordinates[:, 7:], rtol=1e-12, atol=1e-13)
    moments = np.linalg.eigvalsh(np.asarray(central))
    assert np.all(moments > 0) and np.all(moments[:, 0] + moments[:, 1] > moments[:, 2])


def test_every_body_is_a_point(coordinates):
    again = jax.jit(lambda x: to_log_cholesky(from_log_cholesky(x)))(coordinates)
    np.testing.assert_allclose(again, coordinates, rtol=1e-10, atol=1e-10)
    box = inertia.parameters(jnp.array(3.0), jnp.array([0.1, -0.2, 0.3]), jnp.diag(jnp.array([0.05, 0.1, 0.13])))

    @jax.jit
    def there_and_back(box):
        x = to_log_cholesky(box)
        return from_log_cholesky(x), jax.jacfwd(to_log_cholesky)(box) @ jax.jacrev(from_log_cholesky)(x)

    back, slope = there_and_back(box)
    np.testing.assert_allclose(back, box, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(slope, np.eye(10), atol=1e-11)


@pytest.mark.float32
def test_what_no_body_has_is_not_a_number():
    flat = inertia.parameters(jnp.float32(1.0), jnp.zeros(3, "float32"), jnp.diag(jnp.array([1, 1, 3], "float32")))
    assert np.isnan(to_log_cholesky(flat)).any() and to_log_cholesky(flat).dtype == jnp.float32
