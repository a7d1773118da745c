"""Euler angles of all twelve axis sets give the rotation back at, beside and far from the gimbal, to rounding."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim import quaternion, so3
from lgsim.lie import conversions
from lgsim.lie.conversions import EulerAxes

BESIDE = (0.0, 1e-16, 1e-12, 1e-9, 1e-8, 1e-6, 1e-3)
"""Distances of the middle angle from the ends of its range, rad."""
OUTER = (0.0, 0.4, -2.1, np.pi / 2, np.pi, -np.pi + 1e-9)
ULPS = 4


def turn(axis, angle):
    """The turn about an axis in extended precision, independent of lgsim."""
    c, s = np.cos(np.longdouble(angle)), np.sin(np.longdouble(angle))
    R = np.eye(3, dtype=np.longdouble)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R[i, i], R[i, j], R[j, i], R[j, j] = c, -s, s, c
    return R


def product(axes, angles):
    i, j, k = axes.value
    return turn(i, angles[0]) @ turn(j, angles[1]) @ turn(k, angles[2])


def samples(axes):
    """Triples of angles: at the ends of the middle one, beside them, and anywhere."""
    two = axes.value[0] == axes.value[2]
    ends = (0.0, np.pi) if two else (-np.pi / 2, np.pi / 2)
    low, high = ends
    middles = [b for gap in BESIDE for b in (low + gap, high - gap)]
    found = [(a, b, c) for a in OUTER for b in middles for c in OUTER]
    far = np.random.default_rng(0).uniform((-np.pi, low, -np.pi), (np.pi, high, np.pi), (200, 3))
    return np.concatenate([np.array(found), far])


@pytest.mark.slow
@pytest.mark.float32
@pytest.mark.parametrize("axes", EulerAxes)
def test_the_matrix_comes_back(axes):
    for dtype in (jnp.zeros(()).dtype, jnp.dtype("float32")):
        exact = np.array([product(axes, angles) for angles in samples(axes)])
        # as computed rotations are: a rounding unit off, which at the gimbal is all that is left of two angles
        noise = np.random.default_rng(1).uniform(-0.5, 0.5, exact.shape) * np.finfo(dtype).eps
        R = np.concatenate([exact, exact + noise]).astype(dtype)
        found = conversions.euler_from_matrix(jnp.asarray(R), axes)
        assert found.dtype == dtype
        back = np.array([product(axes, np.asarray(angles, np.longdouble)) for angles in np.asarray(found)])
        error = np.abs(back - R.astype(np.longdouble)).max(axis=(1, 2))
        assert error.max() <= ULPS * np.finfo(dtype).eps, samples(axes)[np.argmax(error) % len(exact)]
        middle = np.asarray(found[:, 1])
        low, high = (0, np.pi) if axes.value[0] == axes.value[2] else (-np.pi / 2, np.pi / 2)
        assert (middle >= np.asarray(low, dtype)).all() and (middle <= np.asarray(high, dtype)).all()


@pytest.mark.parametrize("axes", EulerAxes)
def test_the_identity_has_no_angles(axes):
    assert not np.any(conversions.euler_from_matrix(jnp.eye(3), axes))


@pytest.mark.parametrize("axes", EulerAxes)
def test_quaternions_at_the_gimbal_come_back(axes):
    middle = 0.0 if axes.value[0] == axes.value[2] else np.pi / 2
    q = conversions.quaternion_from_euler(jnp.array([0.7, middle, -2.0]), axes)
    back = conversions.quaternion_from_euler(conversions.euler_from_quaternion(q, axes), axes)
    np.testing.assert_allclose(np.abs(q @ back), 1, atol=1e-15)
    np.testing.assert_allclose(quaternion.Ad(back), quaternion.Ad(q), atol=2e-15)


@pytest.mark.parametrize("sign", [-1, 1])
def test_coordinates_of_the_second_kind_at_the_gimbal(sign):
    """They are the angles about x, y, z, see Celledoni et al. 2021, sec. 2.2."""
    for gap in BESIDE:
        R = np.asarray(product(EulerAxes.XYZ, (0.3, sign * (np.pi / 2 - gap), -1.1)), float)
        u = so3.second_kind_inverse(jnp.asarray(R))
        assert np.abs(product(EulerAxes.XYZ, np.asarray(u)) - R).max() <= ULPS * np.finfo(float).eps


@pytest.mark.slow
@pytest.mark.parametrize("axes", [EulerAxes.XYZ, EulerAxes.ZYZ])
def test_derivatives_beside_the_gimbal(axes):
    """Of angles made from a matrix made from angles: the identity, as far from the gimbal as its condition allows."""
    middle = 0.0 if axes.value[0] == axes.value[2] else -np.pi / 2

    def there_and_back(angles):
        return conversions.euler_from_matrix(conversions.matrix_from_euler(angles, axes), axes)

    for gap in (1e-6, 1e-3, 0.5):
        angles = jnp.array([0.4, middle + gap, -1.2])
        for mode in (jax.jacfwd, jax.jacrev):
            np.testing.assert_allclose(mode(there_and_back)(angles), np.eye(3), atol=1e-14 / gap**2 + 1e-13)
