"""Base parameters against textbooks."""

import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.identify.unknowns.base_parameters import base_parameters
from lgsim.identify.unknowns.body_blocks import Inertias, Masses, StandardParameters
from lgsim.identify.unknowns.frame_blocks import GravityDirection
from lgsim.identify.unknowns.joint_blocks import JointParameter, TorqueOffset
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import Plant
from tests.identify import arms

JOINTS = (JointParameter("damping"), JointParameter("friction"), TorqueOffset())


@pytest.fixture(scope="module")
def prior():
    return arms.planar(friction_speed=0.1)


@pytest.fixture(scope="module")
def base(prior):
    return base_parameters(Parameters(prior, [StandardParameters(), *JOINTS]))


def test_base_parameters_of_the_planar_arm_are_the_textbooks(prior, base):
    """Iyy1 + l^2 m2, mx1, mz1 + l m2, Iyy2, mx2, mz2 (Siciliano et al., Robotics, 2009, example 7.2, with offsets)."""
    textbook = np.zeros((6, 20))
    for row, entries in enumerate(
        [{6: 1, 10: arms.LENGTH**2}, {1: 1}, {3: 1, 10: arms.LENGTH}, {16: 1}, {11: 1}, {13: 1}]
    ):
        textbook[row, list(entries)] = list(entries.values())
    assert base.rank == 6 + 6 and base.indices == (*range(20), 22, 23, 24, 25, 30, 31)
    inertial, others = base.matrix[:6], base.matrix[6:]
    assert np.linalg.matrix_rank(np.vstack([inertial[:, :20], textbook]), tol=1e-8) == 6
    np.testing.assert_array_equal(inertial[:, 20:], 0)
    np.testing.assert_array_equal(others, np.eye(26)[20:])
    assert any("m of fore" in name for name in base.names)
    assert base.values(Plant(prior)).shape == (12,)


def test_base_parameters_do_not_depend_on_the_coordinates(prior, base):
    consistent = base_parameters(Parameters(prior, [Inertias(), *JOINTS]))
    assert base.names == consistent.names
    np.testing.assert_array_equal(base.matrix, consistent.matrix)


def test_the_table_of_a_fit(prior, base):
    """beta = B n with the deviations of B S B^T, where S is the covariance of all parameters n: by numpy."""
    parameters, rng = Parameters(prior, [StandardParameters(), *JOINTS]), np.random.default_rng(0)
    root, x = rng.normal(size=(parameters.size, parameters.size)), rng.normal(size=parameters.size)
    found = base.table(parameters, jnp.asarray(x), jnp.asarray(root @ root.T))
    assert list(found) == base.names
    order = [parameters.linear_indices.tolist().index(i) for i in base.indices]
    B = base.matrix[:, np.argsort(order)]
    before = np.asarray(Plant(prior).dynamic_parameters)[parameters.linear_indices]
    values, deviations = np.array(list(found.values())).T
    np.testing.assert_allclose(values, B @ (before + x), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(deviations, np.linalg.norm(B @ root, axis=1), rtol=1e-12)


def test_what_is_not_affine_is_refused(prior):
    with pytest.raises(ValueError, match="joint torques are not affine in all unknowns"):
        base_parameters(Parameters(prior, [Masses(), GravityDirection()]))
