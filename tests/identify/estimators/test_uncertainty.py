"""Covariances and what records do not show, against matrices by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.identify.estimators.uncertainty import covariance, identifiability, scaled_spectrum, undetermined, whiteness

NAMES = ["mass", "length", "damping"]


def information():
    """Two unknowns of which only 2 mass + length is seen, in units far apart, and a third one."""
    J = np.random.default_rng(0).normal(size=(50, 2)) @ np.array([[2.0, 1.0, 0.0], [0.0, 0.0, 1e-4]])
    return jnp.asarray(J.T @ J)


def test_covariance_is_the_inverse_on_free_coordinates():
    A = np.random.default_rng(0).normal(size=(6, 3))
    H, free = jnp.asarray(A.T @ A), jnp.array([True, False, True])
    expected = np.zeros((3, 3))
    expected[np.ix_([0, 2], [0, 2])] = np.linalg.inv((A.T @ A)[np.ix_([0, 2], [0, 2])])
    of = jax.jit(covariance)
    np.testing.assert_allclose(of(H, free), expected, atol=1e-12)
    np.testing.assert_allclose(of(H, np.ones(3, bool), 4 * A.T @ A), 4 * np.linalg.inv(A.T @ A), rtol=1e-9)


def test_unidentifiable_combinations_are_named_whatever_the_units():
    found = identifiability(information(), NAMES)
    assert found.rank == 2 and len(found.unidentifiable) == 1
    combination = found.unidentifiable[0]
    assert set(combination) == {"mass", "length"}
    assert combination["mass"] * combination["length"] < 0  # in scaled coordinates: one grows as the other falls
    np.testing.assert_array_equal(jax.jit(undetermined)(information()), [True, True, False])


def test_a_coordinate_that_nothing_depends_on_is_named_but_for_rounding():
    H = jnp.asarray(np.diag([1.0, 1e-28, 4.0]))
    found = identifiability(H, NAMES)
    assert found.rank == 2 and found.unidentifiable == [{"length": 1.0}]
    inverse, singular, _ = jax.jit(scaled_spectrum)(H)
    np.testing.assert_allclose(np.diag(inverse), [1, 0, 0.25])
    np.testing.assert_allclose(singular, [1, 1, 0])


def test_whiteness_tells_white_from_correlated_residuals():
    """A first-order process has the autocorrelations 0.8^k."""
    white = np.random.default_rng(0).normal(size=(4000, 2))
    _, statistic = whiteness(white)
    assert 0.5 < statistic < 1.6
    red = np.zeros_like(white)
    for k in range(1, len(white)):
        red[k] = 0.8 * red[k - 1] + white[k]
    rho, statistic = whiteness(red)
    np.testing.assert_allclose(rho[:3].mean(axis=1), [0.8, 0.64, 0.512], atol=0.05)
    assert statistic > 100


def test_nothing_is_identifiable_without_information():
    found = identifiability(np.zeros((2, 2)), ["a", "b"])
    assert found.rank == 0 and found.unidentifiable == [{"a": 1.0}, {"b": 1.0}]


@pytest.mark.parametrize("held", [[], [1, 3], [0, 1, 2]])
def test_covariances_have_derivatives_where_coordinates_are_held(held):
    """In both modes, against differences: eigenvectors of coordinates that are held have none."""
    rng = np.random.default_rng(0)
    J, change = rng.normal(size=(9, 5)), rng.normal(size=(9, 5))
    free = jnp.asarray(~np.isin(np.arange(5), held))

    def found(k):
        A = jnp.asarray(J) + k * jnp.asarray(change)
        return covariance(A.T @ A, free)

    h = 1e-6
    wanted = (found(h) - found(-h)) / (2 * h)
    for mode in (jax.jacfwd, jax.jacrev):
        np.testing.assert_allclose(mode(found)(0.0), wanted, rtol=1e-6, atol=1e-7)
    rest = np.flatnonzero(free)
    np.testing.assert_allclose(found(0.0)[np.ix_(rest, rest)], np.linalg.inv((J.T @ J)[np.ix_(rest, rest)]), rtol=1e-9)
