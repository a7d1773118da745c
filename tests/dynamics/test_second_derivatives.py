"""Second derivatives of forward dynamics by sums over the tree, against differences of the first ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.dynamics import second_derivatives
from lgsim.dynamics.forward_dynamics import acceleration
from lgsim.dynamics.second_derivatives import forward_dynamics_by_hessians
from tests.multibody import trees


def weighted(model, f, q, v, tau):
    """A scalar of the accelerations, with slope and curvature by them, in coordinates (3 nv,) about the state."""
    nv, numbers = model.nv, jnp.sin(jnp.arange(1.0, model.nv + 1))

    def value(z):
        a = f(model, model.retract(q, z[:nv]), v + z[nv : 2 * nv], tau + z[2 * nv :], None)
        return numbers @ a + jnp.sum(a * a) / 10

    return value


@pytest.mark.parametrize(
    ("kinds", "parents", "most"),
    [
        (["free", "revolute"], [-1, 0], 8),
        pytest.param(["free", "revolute"], [-1, 0], 0, marks=pytest.mark.slow),
        pytest.param(*trees.CASES["floating"], 8, marks=pytest.mark.slow),
        pytest.param(*trees.CASES["groups"], 8, marks=pytest.mark.slow),
        pytest.param(*trees.CASES["revolute tree"], 8, marks=pytest.mark.slow),
    ],
)
def test_hessians(kinds, parents, most, monkeypatch):
    """Of all pairs of directions, with all directions in one program and one by one.

    Some 4 s: the program of all second derivatives is the largest of the dynamics.
    """
    monkeypatch.setattr(second_derivatives, "SMALL", most)
    model = trees.build(kinds, parents, armature=True)
    rng = np.random.default_rng(3)
    q = jnp.asarray(trees.configuration(model, rng))
    v, tau = (jnp.asarray(rng.normal(size=model.nv)) for _ in range(2))
    zero = jnp.zeros(3 * model.nv)
    found = jax.jit(jax.hessian(weighted(model, forward_dynamics_by_hessians, q, v, tau)))(zero)
    slope = jax.jit(jax.vmap(jax.grad(weighted(model, acceleration, q, v, tau))))
    h = 1e-5
    steps = h * jnp.eye(zero.size)
    wanted = (slope(steps) - slope(-steps)) / (2 * h)
    scale = np.max(np.abs(wanted))
    assert scale > 1
    np.testing.assert_allclose(found, (wanted + wanted.T) / 2, atol=3e-8 * scale)
    np.testing.assert_allclose(found, found.T, atol=1e-12 * scale)
