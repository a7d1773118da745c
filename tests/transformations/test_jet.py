"""``jax.experimental.jet`` through lgsim's primitives, against forward mode in forward mode."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.jet import jet

import lgsim
from tests.multibody import trees

FUNCTIONS = {
    "forward dynamics": lambda model, q, v: lgsim.forward_dynamics(model, q, v, jnp.ones(2)),
    "in a batch": lambda model, q, v: jax.vmap(lambda q: lgsim.mass_matrix(model, q))(jnp.stack([q, v])),
    "poses": lambda model, q, v: lgsim.forward_kinematics(model, q),
}


@pytest.mark.slow
@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_terms_are_derivatives_along_a_polynomial(f):
    model = trees.build(["revolute", "prismatic"], [-1, 0], seed=3)
    start = jnp.array([0.3, -0.2]), jnp.array([0.5, 0.7])
    terms = [[jnp.array([1.0, 0.4]), jnp.array([-0.6, 2.0])], [jnp.array([0.2, 0.1]), jnp.array([0.0, 1.0])]]

    def along(t):
        return f(model, *(x + t * a + t**2 / 2 * b for x, (a, b) in zip(start, terms, strict=True)))

    first = lambda t: jax.jvp(along, (t,), (1.0,))[1]  # noqa: E731
    value, series = jet(lambda q, v: f(model, q, v), start, terms)
    np.testing.assert_allclose(value, along(0.0), rtol=1e-12)
    np.testing.assert_allclose(series[0], first(0.0), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(series[1], jax.jvp(first, (0.0,), (1.0,))[1], rtol=1e-10, atol=1e-12)
