"""The elimination of a variational step beside a dense solve, on machines of all joints."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.dynamics.discrete.discrete_momenta import legendre
from lgsim.dynamics.discrete.discrete_newton import linear_solve, with_derivatives
from lgsim.dynamics.discrete.rotation_maps import EXPONENTIAL, QUATERNION, ROTATION_MAPS
from tests.multibody import trees


def passive(model, rng):
    """The machine with dampers, springs, friction and stops of which some are met."""
    one = np.ones(model.nv)
    return model.replace(
        damping=rng.uniform(0.1, 1.0, model.nv) * one, friction=0.3 * one, friction_speed=0.5 * one,
        stiffness=rng.uniform(1.0, 5.0, model.nv), upper=0.2 * one, lower=-0.3 * one, limit_stiffness=20.0 * one,
        limit_damping=3.0 * one,
    )  # fmt: skip


CASES = {
    "tree": lambda: trees.build(("revolute", "prismatic", "universal", "revolute"), (-1, 0, 0, 2), armature=True),
    "groups": lambda: trees.build(("free", "spherical", "planar", "spherical", "revolute"), (-1, 0, 1, 1, 3)),
    "every joint": lambda: trees.every_joint(0, True, followers=0),
    "followers": lambda: trees.every_joint(1, False, followers=2),
}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param("tree", QUATERNION),
        pytest.param("groups", EXPONENTIAL, marks=pytest.mark.slow),
        pytest.param("every joint", QUATERNION, marks=pytest.mark.slow),
        pytest.param("followers", QUATERNION, marks=pytest.mark.slow),
        *(pytest.param("groups", kind, marks=pytest.mark.exhaustive) for kind in ROTATION_MAPS.values()),
    ],
)
def test_elimination_is_a_dense_solve(name, kind):
    """And the transposed one that of the transposed matrix."""
    model = passive(CASES[name](), np.random.default_rng(2))
    q, v, r = trees.state(model)
    h, d = jnp.asarray(0.05), 0.2 * v
    J = jax.jacfwd(lambda d: legendre(kind, True)(model, q, d, h)[0])(d)
    solve = linear_solve(kind)
    found, pull = jax.vjp(lambda r: solve((model, q, d, h), r), r)
    for got, matrix in ((found, J), (pull(r)[0], J.T)):
        expected = np.linalg.solve(matrix, r)
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


def test_derivatives_of_a_step_are_those_of_the_implicit_function():
    model = passive(CASES["tree"](), np.random.default_rng(2))
    q, v, _ = trees.state(model)
    h, d = jnp.asarray(0.05), 0.2 * v
    momentum = legendre(QUATERNION, True)(model, q, d, h)[0]
    found = jax.jacfwd(lambda p: with_derivatives(QUATERNION)((model, q, p, h), d, v)[0])(momentum)
    J = jax.jacfwd(lambda d: legendre(QUATERNION, True)(model, q, d, h)[0])(d)
    np.testing.assert_allclose(found @ J, np.eye(model.nv), rtol=0, atol=1e-11)
