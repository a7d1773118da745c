"""The state space of a machine as a manifold that a group moves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.simulation import StateSpace
from tests.multibody import trees

CASES = {
    "groups": (["spherical", "planar"], [-1, 0]),
    "screws": trees.CASES["screws"],
    "floating": (["free", "revolute"], [-1, 0]),
}


def point(name):
    model = trees.build(*CASES[name])
    q, v, _ = trees.state(model)
    action = StateSpace(model.topology)
    rng = np.random.default_rng(0)
    sigma, xi = jnp.asarray(0.4 * rng.normal(size=(2, action.dim)))
    return model, action, jnp.concatenate([q, v]), sigma, xi


@pytest.mark.parametrize("name", CASES)
def test_dexpinv_is_the_rate_of_the_exponential(name):
    """d/ds exp(sigma + s dexpinv_sigma(xi)) y = d/ds exp(s xi) exp(sigma) y."""
    _, action, y, sigma, xi = point(name)

    @jax.jit
    def rates(sigma, xi):
        rate = action.dexpinv(sigma, xi)
        left = jax.jvp(lambda s: action.move(sigma + s * rate, y), (0.0,), (1.0,))[1]
        return left, jax.jvp(lambda s: action.move(s * xi, action.move(sigma, y)), (0.0,), (1.0,))[1]

    np.testing.assert_allclose(*rates(sigma, xi), rtol=0, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["screws", "floating", pytest.param("groups", marks=pytest.mark.exhaustive)])
def test_bracket_is_the_commutator_of_two_motions(name):
    """exp(-b) exp(-a) exp(b) exp(a) y: to second order a motion along the bracket of the acting algebra."""
    _, action, y, a, b = point(name)

    def around(s):
        end = y
        for x in (a, b, -a, -b):
            end = action.move(s * x, end)
        return end

    second = jax.jit(jax.jacfwd(jax.jacfwd(around)))(0.0)
    moved = jax.jit(lambda: jax.jvp(lambda s: action.move(s * action.bracket(b, a), y), (0.0,), (1.0,))[1])()
    np.testing.assert_allclose(second, 2 * moved, rtol=0, atol=1e-12)
    bracket = jax.jit(action.bracket)
    np.testing.assert_allclose(bracket(a, b), -bracket(b, a), rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.quick
def test_difference_undoes_a_motion(name):
    _, action, y, sigma, _ = point(name)
    np.testing.assert_allclose(action.difference(y, action.move(sigma, y)), sigma, rtol=0, atol=1e-14)


def test_errors():
    _, action, y, sigma, _ = point("floating")
    with pytest.raises(ValueError, match=r"xi: expected shape \(\.\.\., 14\), got \(13,\)"):
        action.move(sigma[:-1], y)
    with pytest.raises(ValueError, match=r"y: expected shape"):
        action.move(sigma, y[:-1])
