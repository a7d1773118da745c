"""The inverse mass matrix and its action: against Pinocchio, against the mass matrix, with joints that mimic."""

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

from lgsim.dynamics.inverse_mass import inverse_mass_matrix, solve_mass_matrix
from tests.dynamics.machines import lanes, mass_by_columns, mimicking
from tests.multibody import trees
from tests.multibody.twin import Twin


@pytest.mark.parametrize("case", lanes(["floating chain"], ["groups", "floating"]))
def test_equals_pinocchio(case):
    model = trees.build(*trees.CASES[case], armature=True)
    twin = Twin(model)
    q, x, _ = trees.state(model)
    # computeMinverse knows no armature; the mass matrix gets it on its diagonal
    mass = pin.crba(twin.pin, twin.data, twin.q(q))
    mass = twin.matrix(np.triu(mass) + np.triu(mass, 1).T)
    expected = np.linalg.inv(mass)
    bound = max(1e-12, 1e-15 * np.linalg.cond(mass)) * np.abs(expected).max()
    found = inverse_mass_matrix(model, q)
    assert np.array_equal(found, found.T)
    np.testing.assert_allclose(found, expected, rtol=0, atol=bound)
    np.testing.assert_allclose(solve_mass_matrix(model, q, x), expected @ x, rtol=0, atol=bound * np.abs(x).sum())


def test_mimic_is_the_reduced_machine():
    model = mimicking()
    q = jnp.array([0.4, -1.1])
    mass = mass_by_columns(model, q)
    x = jnp.array([0.7, -2.0])
    np.testing.assert_allclose(inverse_mass_matrix(model, q) @ mass, np.eye(2), rtol=0, atol=1e-13)
    np.testing.assert_allclose(solve_mass_matrix(model, q, x), np.linalg.solve(mass, x), rtol=1e-13)


def test_batch_is_one_by_one():
    model = mimicking()
    q, x, _ = trees.state(model, batch=(2,))
    whole = inverse_mass_matrix(model, q)
    solved = solve_mass_matrix(model, q, x)
    assert whole.shape == (2, model.nv, model.nv)
    for i in range(2):
        np.testing.assert_allclose(whole[i], inverse_mass_matrix(model, q[i]), rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(solved[i], whole[i] @ x[i], rtol=0, atol=1e-12 * np.abs(whole[i]).max())


@pytest.mark.slow
def test_derivative():
    """``d(M^-1 x) = -M^-1 dM M^-1 x``."""
    model = trees.build(["revolute", "helical", "prismatic"], [-1, 0, 0])
    q, dq, x = trees.state(model)
    y, dy = jax.jit(lambda q, dq: jax.jvp(lambda q: solve_mass_matrix(model, q, x), (q,), (dq,)))(q, dq)
    _, dmass = jax.jit(lambda q, dq: jax.jvp(lambda q: mass_by_columns(model, q), (q,), (dq,)))(q, dq)
    np.testing.assert_allclose(dy, -solve_mass_matrix(model, q, dmass @ y), rtol=1e-10, atol=1e-12)


def test_wrong_length_names_the_argument():
    model = trees.build(*trees.CASES["revolute chain"])
    with pytest.raises(ValueError, match=r"x: expected shape \(\.\.\., 7\), got \(6,\)"):
        solve_mass_matrix(model, jnp.zeros(7), jnp.zeros(6))


@pytest.mark.slow
@pytest.mark.float32
def test_float32():
    model = trees.build(*trees.CASES["revolute chain"], dtype=np.float32)
    q, x, _ = trees.state(model)
    found = inverse_mass_matrix(model, q)
    assert found.dtype == solve_mass_matrix(model, q, x).dtype == np.float32
    np.testing.assert_allclose(found @ mass_by_columns(model, q), np.eye(7), rtol=0, atol=1e-3)
