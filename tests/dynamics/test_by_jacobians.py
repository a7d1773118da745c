"""The rule that takes all Jacobians at once, against the rule of `forward_dynamics`, which is held against others."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.dynamics.forward_dynamics import acceleration, forward_dynamics_by_jacobians
from tests.dynamics.machines import lanes
from tests.dynamics.test_forward_dynamics import mimicking
from tests.dynamics.test_inverse_dynamics import wrenches
from tests.multibody import trees

MODELS = {"chain": lambda: trees.build(*trees.CASES["floating chain"], armature=True), "mimics": mimicking}


@pytest.mark.slow
@pytest.mark.parametrize("name", lanes(["mimics"], ["chain"]))
def test_the_derivatives_by_everything(name):
    """By the state, joint forces and wrenches along the tangent, and by each number of the model."""
    model = MODELS[name]()
    q, v, tau = trees.state(model)
    external = wrenches(model)
    numbers = model.inertias, model.armature, model.gravity

    def of(solve):
        def value(x, v, tau, external, numbers):
            inertias, armature, gravity = numbers
            changed = model.replace(inertias=inertias, armature=armature, gravity=gravity)
            return solve(changed, model.retract(q, x), v, tau, external)

        return jax.jacfwd(value, (0, 1, 2, 3, 4))(jnp.zeros(model.nv), v, tau, external, numbers)

    found, wanted = jax.jit(lambda: (of(forward_dynamics_by_jacobians), of(acceleration)))()
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-11 * max(1.0, float(jnp.max(jnp.abs(b)))))


@pytest.mark.slow
def test_nothing_moves_and_reverse_mode():
    """A derivative along nothing is zero, and the rule can be transposed."""
    model = MODELS["chain"]()
    q, v, tau = trees.state(model)

    def total(x, v, tau):
        return jnp.sum(forward_dynamics_by_jacobians(model, model.retract(q, x), v, tau, None) ** 2)

    def plain(x, v, tau):
        return jnp.sum(acceleration(model, model.retract(q, x), v, tau, None) ** 2)

    found, wanted = (jax.jit(jax.grad(f, (0, 1, 2)))(jnp.zeros(model.nv), v, tau) for f in (total, plain))
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * float(jnp.max(jnp.abs(b))))
    solved = jax.jit(lambda s: forward_dynamics_by_jacobians(model, q, v, tau, None) + 0 * s)
    _, still = jax.jvp(solved, (0.0,), (1.0,))
    np.testing.assert_array_equal(still, 0)
