"""The second derivatives of a machine's steps, weighted by multipliers, against those of the plain step by JAX."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.optimize import ControlEffort, MultibodyDynamics, Problem, RateControlledDynamics, SymplecticEulerDynamics
from lgsim.optimize.cost import zero_tangent
from lgsim.optimize.linear_quadratic import add_curvature, linearize, split_nodes, step_in_chart
from tests.multibody import trees


@pytest.mark.parametrize(
    "kind",
    [
        SymplecticEulerDynamics,
        pytest.param(MultibodyDynamics, marks=pytest.mark.slow),
        pytest.param(lambda *given: RateControlledDynamics(MultibodyDynamics(*given)), marks=pytest.mark.slow),
    ],
)
def test_the_curvature_of_steps(kind):
    """Against plain second derivatives of a step, whose program takes some 3 s to trace and compile."""
    model = trees.build(["revolute", "prismatic"], [-1, 0], armature=True)
    model = model.replace(damping=jnp.ones(2), friction=jnp.ones(2))
    dynamics, start = kind(model, 0.1), jnp.array([0.3, -0.2, 1.0, 0.5])
    if isinstance(dynamics, RateControlledDynamics):
        start = start, jnp.array([0.4, -0.6])
    problem = Problem(dynamics, start, horizon=2, running=ControlEffort(1.0))

    @jax.jit
    def both(us, multipliers):
        ys = problem.rollout(us)
        lq, _ = linearize(problem, ys, us, False)
        bent = add_curvature(problem, ys, us, lq, multipliers)

        def plain(k, y, u, after, weight):
            step = partial(step_in_chart, problem, k, y, u, after)
            return jax.hessian(lambda z: weight @ step(z))(zero_tangent(dynamics.action, y, u))

        before, after = split_nodes(ys)
        wanted = jax.vmap(plain)(jnp.arange(2), before, us, after, multipliers[1:])
        found = jnp.block([[bent.Q, bent.N], [jnp.swapaxes(bent.N, 1, 2), bent.R]])
        return found - jnp.block([[lq.Q, lq.N], [jnp.swapaxes(lq.N, 1, 2), lq.R]]), wanted

    multipliers = jnp.asarray(np.random.default_rng(1).normal(size=(3, dynamics.action.dim)))
    found, wanted = both(jnp.array([[1.0, 0.5], [-0.4, 2.0]]), multipliers)
    assert np.max(np.abs(wanted)) > 0.1
    np.testing.assert_allclose(found, wanted, atol=1e-12 * np.max(np.abs(wanted)))
