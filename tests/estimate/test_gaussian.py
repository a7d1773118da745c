"""Gaussians on groups: conversion, inverse, composition, second order, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.actions import LeftTranslation, RightTranslation, Translation
from lgsim.estimate import Gaussian

BODY, SPACE = RightTranslation(lgsim.SE3), LeftTranslation(lgsim.SE3)


def pose(x):
    T = np.eye(4)
    T[:3, 3] = x
    return jnp.asarray(T)


def covariance(key, n=6):
    A = np.asarray(jax.random.normal(key, (n, n)))
    return A @ A.T + np.eye(n)


def test_the_inverse_of_a_pose_with_an_uncertain_rotation():
    """The position of the inverse is ``-R^T p``: a rotation of deviation s about each axis moves it across p."""
    s = 1e-3
    known = Gaussian.from_deviations(pose([1.0, 0, 0]), [0, 0, 0, s, s, s], SPACE)
    # errors in the world's axes of x are errors in the body's axes of x^-1
    body = Gaussian.from_deviations(pose([1.0, 0, 0]), [0, 0, 0, s, s, s], BODY).inverse()
    np.testing.assert_allclose(body.covariance[:3, :3], s**2 * np.diag([0, 1, 1]), atol=1e-20)
    np.testing.assert_allclose(body.mean[:3, 3], [-1, 0, 0])
    np.testing.assert_allclose(known.with_error(BODY).covariance[:3, :3], s**2 * np.diag([0, 1, 1]), atol=1e-20)


def test_the_sides_of_a_group_are_tied_by_its_adjoint(key):
    T, P = lgsim.SE3.random(key), covariance(key)
    space = Gaussian.from_covariance(T, P, BODY).with_error(SPACE)
    Ad = np.asarray(lgsim.SE3.Ad(T))
    np.testing.assert_allclose(space.covariance, Ad @ P @ Ad.T, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(space.with_error(BODY).covariance, P, rtol=1e-10, atol=1e-10)
    inverse = Gaussian.from_covariance(T, P, BODY).inverse()
    np.testing.assert_allclose(inverse.covariance, Ad @ P @ Ad.T, rtol=1e-12, atol=1e-12)


def test_composition_of_independent_poses(key):
    """``x y`` has the error ``Ad_{y^-1} e_x + e_y`` in the body's axes."""
    keys = jax.random.split(key, 4)
    x, y = lgsim.SE3.random(keys[0]), lgsim.SE3.random(keys[1])
    P, Q = covariance(keys[2]), covariance(keys[3])
    both = Gaussian.from_covariance(x, P, BODY).compose(Gaussian.from_covariance(y, Q, BODY))
    Ad = np.asarray(lgsim.SE3.Ad(lgsim.SE3.inverse(y)))
    np.testing.assert_allclose(both.mean, x @ y, atol=1e-14)
    np.testing.assert_allclose(both.covariance, Ad @ P @ Ad.T + Q, rtol=1e-11, atol=1e-11)


def test_second_order_of_a_square():
    """``x^2`` of a normal x: mean ``m^2 + s^2``, variance ``4 m^2 s^2 + 2 s^4``, both exact to second order."""
    m, s = 0.7, 0.3
    x = Gaussian.from_deviations(jnp.array([m]), [s], Translation(1))
    square = x.transform(lambda x: x**2, order=2)
    np.testing.assert_allclose(square.mean, [m**2 + s**2], rtol=1e-14)
    np.testing.assert_allclose(square.covariance, [[4 * m**2 * s**2 + 2 * s**4]], rtol=1e-14)


def test_a_point_of_an_uncertain_pose_to_second_order():
    """A point at distance d turned by a normal angle of deviation s: its mean moves back by ``d s^2 / 2``."""
    d, s = 2.0, 0.1
    turn = Gaussian.from_deviations(lgsim.SO2.identity(), [s], RightTranslation(lgsim.SO2))
    point = turn.transform(lambda R: R @ jnp.array([d, 0.0]), Translation(2), order=2)
    np.testing.assert_allclose(point.mean, [d - d * s**2 / 2, 0], atol=1e-14)
    np.testing.assert_allclose(point.covariance, np.diag([d**2 * s**4 / 2, d**2 * s**2]), atol=1e-14)


def test_samples_have_the_covariance(key):
    P = covariance(key) * 1e-4
    T = lgsim.SE3.random(key)
    gaussian = Gaussian.from_covariance(T, P, SPACE)
    samples = jax.jit(jax.vmap(gaussian.sample))(jax.random.split(key, 20_000))
    errors = jax.vmap(lambda x: SPACE.difference(T, x))(samples)
    np.testing.assert_allclose(np.cov(errors.T), P, atol=0.05 * P.max())


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Gaussian.from_covariance(jnp.zeros(2), [[1.0, 2], [2, 1]], Translation(2)), "lowest eigenvalue is -1"),
        (lambda: Gaussian.from_covariance(jnp.zeros(2), [[1.0, 2], [0, 1]], Translation(2)), "symmetric"),
        (lambda: Gaussian.from_covariance(jnp.zeros(2), np.full((2, 2), np.nan), Translation(2)), "finite"),
        (lambda: Gaussian.from_covariance(jnp.zeros(2), np.ones((2, 3)), Translation(2)), "square"),
        (lambda: Gaussian.from_factor(jnp.zeros(2), np.ones((3, 3)), Translation(2)), "expected 2 rows"),
        (lambda: Gaussian(jnp.zeros(2), np.ones((2, 2)), Translation(2)), "upper triangular"),
        (lambda: Gaussian.from_deviations(jnp.zeros(2), [1.0, -1], Translation(2)), "not negative"),
        (lambda: Gaussian.from_deviations(jnp.zeros(2), [1.0, np.inf], Translation(2)), "not negative, got inf"),
        (lambda: Gaussian.from_deviations(2 * jnp.eye(4), 1.0, BODY), "mean: expected a point"),
        (lambda: Gaussian.from_deviations(jnp.zeros(2), 1.0, Translation(2)).inverse, None),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("without_import_hook")
def test_what_is_refused(make, says):
    if says is None:
        make()
        return
    with pytest.raises(ValueError, match=says):
        make()


@pytest.mark.usefixtures("without_import_hook")
def test_errors_of_kind():
    with pytest.raises(TypeError, match="expected an action"):
        Gaussian(jnp.zeros(2), jnp.eye(2), 3)
    joint = Gaussian.joint(*2 * (Gaussian.from_deviations(jnp.zeros(2), 1.0, Translation(2)),))
    with pytest.raises(TypeError, match="elements of a group"):
        joint.inverse()


def test_in_single_precision_a_known_direction_stays_known():
    """Singular covariances and float32: deviations of zero remain zero, and the dtype is the mean's."""
    known = Gaussian.from_deviations(jnp.zeros(2, jnp.float32), [1.0, 0.0], Translation(2))
    moved = known.transform(lambda x: 2 * x)
    assert moved.factor.dtype == jnp.float32
    np.testing.assert_array_equal(moved.deviations, [2, 0])
