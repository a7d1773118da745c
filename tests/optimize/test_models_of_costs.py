"""Models of costs in closed form are those by differentiation; small matrices against numpy."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim._compile.linalg import dense
from lgsim._compile.xla import batch_last
from lgsim.lie.action import Action
from lgsim.optimize.cost import zero_tangent
from lgsim.optimize.standard_costs import ControlEffort, FramePose, StateDistance
from lgsim.simulation.equations_of_motion import state_space


@pytest.fixture(scope="module")
def floating():
    """A free body that carries a hinge, its action, two states and a control."""
    builder = lgsim.ModelBuilder()
    builder.add_body("trunk", "world", lgsim.joints.Free(), mass=2.0, inertia=np.diag([0.1, 0.2, 0.3]))
    builder.add_body("tip", "trunk", lgsim.joints.Revolute(), axis=[1, 0, 0], mass=1.0, inertia=0.1 * np.eye(3))
    model = builder.build()
    action = state_space(model)
    rng = np.random.default_rng(3)
    home = jnp.concatenate([model.neutral(), jnp.zeros(model.nv)])
    near, far = (action.move(jnp.asarray(rng.normal(size=action.dim) * 0.4), home) for _ in range(2))
    return model, action, near, far, jnp.asarray(rng.normal(size=4))


assert_same = partial(chex.assert_trees_all_close, rtol=1e-10, atol=1e-11)


def test_the_jacobian_of_a_difference_joint_by_joint(floating):
    _, action, near, far, _ = floating
    r, J = jax.jit(action.difference_jacobian)(near, far)
    expected, whole = jax.jit(lambda a, b: Action.difference_jacobian(action, a, b))(near, far)
    assert_same(r, expected)
    full = np.eye(action.dim)
    full[: len(J), : len(J)] = J
    assert_same(full, whole)


@pytest.mark.slow
def test_models_in_closed_form(floating):
    """Of a distance, an effort and a pose, with a control and at the end."""
    model, action, near, far, u = floating
    weights = jnp.linspace(0.1, 2.0, action.dim)
    target = lgsim.forward_kinematics(model, near[: model.nq])[-1]
    costs = (
        StateDistance(action, near, weights),
        ControlEffort(jnp.array([1.0, 2.0, 3.0, 0.5]), 0.3),
        FramePose(model, "tip", target, jnp.linspace(1, 2, 6)),
    )
    for cost in costs:

        def plain(y, u, cost=cost):
            """J^T W J of a weighted residual by forward mode."""
            z = zero_tangent(action, y, u)

            def r(z):
                n = action.dim
                return cost.residual(0.0, action.move(z[:n], y), u + z[n:], None)

            J, w = jax.jacfwd(r)(z), jnp.broadcast_to(cost.weight, r(z).shape)
            return jnp.sum(w * r(z) ** 2) / 2, J.T @ (w * r(z)), J.T @ (w[:, None] * J)

        found = jax.jit(lambda y, u, cost=cost: cost.quadratic(action, 0.0, y, u, None, False))(far, u)
        assert_same(tuple(found), jax.jit(plain)(far, u))


def test_small_matrices():
    """Definite ones are inverted; one negative pivot is seen; rows that are not free are zero."""
    rng = np.random.default_rng(4)
    A = rng.normal(size=(5, 4, 4))
    A = A @ A.transpose(0, 2, 1) + np.eye(4)
    A[1] -= 5 * np.outer(A[1, 0], A[1, 0]) / A[1, 0, 0]
    rhs, free = rng.normal(size=(5, 4, 3)), np.ones((5, 4))
    free[2, 1] = free[3, :] = 0
    definite = jax.jit(jax.vmap(batch_last(lambda A: dense.inverse_if_definite(A)[1])))(jnp.asarray(A))
    np.testing.assert_array_equal(definite, [np.linalg.eigvalsh(a).min() > 0 for a in A])
    assert not definite[1] and definite[0]
    found = np.asarray(jax.jit(jax.vmap(batch_last(dense.solve_free)))(*map(jnp.asarray, (A, rhs, free))))
    for a, b, keep, x in zip(A, rhs, free.astype(bool), found, strict=True):
        expected = np.zeros_like(b)
        expected[keep] = np.linalg.solve(a[np.ix_(keep, keep)], b[keep])
        np.testing.assert_allclose(x, expected, atol=1e-12)
