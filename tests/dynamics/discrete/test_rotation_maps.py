"""Discrete rotation vectors and their spins beside derivatives along one-parameter groups."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim._compile.spatial import Sym, Vec, sincos_of_twice
from lgsim.dynamics import ROTATION_MAPS
from lgsim.lie import quaternion

INERTIA = jnp.array([[1.3, 0.2, -0.1], [0.2, 0.9, 0.15], [-0.1, 0.15, 0.6]])
SYMMETRIC = Sym(*INERTIA[np.triu_indices(3)])


@pytest.mark.repeats("1e-05-cayley", "1e-05-exp")
@pytest.mark.parametrize("name", ROTATION_MAPS)
@pytest.mark.parametrize("angle", [0.0, 1e-5, 0.3, 2.0])
def test_spin_and_its_slope(name, angle):
    """The slope of ``phi . I phi / 2`` by a rotation that follows, and the slope of that."""
    kind = ROTATION_MAPS[name]
    turn = quaternion.exp(angle * jnp.array([0.6, -0.5, 0.8]) / jnp.sqrt(1.25))

    def moved(psi):
        return quaternion.compose(quaternion.exp(psi), turn)

    def energy(psi, by):
        q = quaternion.compose(quaternion.exp(psi), moved(by))
        phi = jnp.stack(kind.vector(q[0], Vec(*q[1:])))
        return 0.5 * phi @ INERTIA @ phi

    def spin(by):
        return jax.grad(energy)(jnp.zeros(3), by)

    s, x = turn[0], Vec(*turn[1:])
    phi = kind.vector(s, x)
    np.testing.assert_allclose(jnp.stack(kind.spin(s, phi, SYMMETRIC)), spin(jnp.zeros(3)), rtol=0, atol=1e-14)
    slope = jnp.stack([jnp.stack(row) for row in kind.spin_slope(s, phi, SYMMETRIC)])
    np.testing.assert_allclose(slope, jax.jacfwd(spin)(jnp.zeros(3)), rtol=0, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sine_and_cosine_of_twice_an_angle(dtype):
    """Beside numpy's in 80 bits, relative to themselves, at angles of all sizes; and their derivatives."""
    size = np.concatenate([np.linspace(0.01, 0.785, 500), np.logspace(-30, -2, 100)]).astype(dtype)
    angles = np.concatenate([size, -size, [0]]).astype(dtype)
    found, rates = jax.jvp(sincos_of_twice, (jnp.asarray(angles),), (jnp.ones(angles.shape, dtype),))
    twice = 2 * angles.astype(np.longdouble)
    for got, expected in zip(found, (np.sin(twice), np.cos(twice)), strict=True):
        assert got.dtype == dtype
        # where the cosine vanishes it is exact to a rounding of 1
        scale = np.abs(expected) if got is found[0] else 1
        assert (np.abs(np.asarray(got, np.longdouble) - expected) <= 2.5 * np.finfo(dtype).eps * scale).all()
    np.testing.assert_array_equal(rates[0], 2 * found[1])
    np.testing.assert_array_equal(rates[1], -2 * found[0])
