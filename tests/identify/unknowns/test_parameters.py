"""Coordinates of a plant: how blocks and priors make one vector."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.identify.unknowns.body_blocks import Inertias, Masses, StandardParameters
from lgsim.identify.unknowns.frame_blocks import GravityDirection
from lgsim.identify.unknowns.joint_blocks import JointParameter, TorqueOffset
from lgsim.identify.unknowns.parameters import Parameters, TotalMass
from tests.identify import arms


@pytest.fixture(scope="module")
def model():
    return arms.planar(damping=0.2)


def test_blocks_follow_one_another(model):
    p = Parameters(model, [Masses(), JointParameter("damping", ["elbow"], upper=1.0), TorqueOffset()])
    assert p.size == 5 and p.sizes == (2, 1, 2)
    assert p.names[1:4] == ["log mass of fore", "damping of elbow", "offset of shoulder"]
    plant, values = jax.jit(lambda x: (p.plant_at(x), list(p.values(0 * x).values())))(
        np.array([0.0, np.log(2), 0.3, 0.4, 0.5])
    )
    np.testing.assert_allclose(np.asarray(plant.model.inertias)[:, 0], [2.0, 2.4])
    np.testing.assert_allclose(plant.model.damping, [0.2, 0.5])
    np.testing.assert_allclose(plant.offset, [0.4, 0.5])
    assert [len(part) for part in p.split(jnp.arange(5.0))] == [2, 1, 2]
    lower, upper = p.bounds()
    np.testing.assert_allclose(lower, [-np.inf, -np.inf, -0.2, -np.inf, -np.inf])
    np.testing.assert_allclose(upper, [np.inf, np.inf, 0.8, np.inf, np.inf])
    np.testing.assert_allclose(values, [2, 1.2, 0.2, 0, 0])


def test_places_of_numbers(model):
    """Inertias and masses move rows of ten, which signals are affine in; the direction of gravity is none."""
    p = Parameters(model, [TorqueOffset(), StandardParameters(["fore"])])
    assert p.linear_indices.tolist() == [30, 31, *range(10, 20)]
    assert p.affine_indices.tolist() == [*range(10, 20), 30, 31]
    p = Parameters(model, [Inertias(["fore"]), JointParameter("armature")])
    assert p.linear_indices is None and p.affine_indices.tolist() == [*range(10, 22)]
    assert Parameters(model, [Masses(), GravityDirection()]).affine_indices is None


def test_priors_are_residuals_in_standard_deviations(model):
    p = Parameters(
        model, [Masses(prior_deviation=0.5), TorqueOffset(prior_deviation=[0.1, 0.2])], [TotalMass(3.5, 0.01)]
    )
    residuals = eqx.filter_jit(p.prior_residuals)(jnp.array([0.0, np.log(2), 0.3, -0.4]))
    np.testing.assert_allclose(residuals, [0, np.log(2) / 0.5, 3, -2, (2 + 2.4 - 3.5) / 0.01], atol=1e-9)
    assert Parameters(model, TorqueOffset()).prior_residuals(jnp.zeros(2)).shape == (0,)
    np.testing.assert_allclose(p.prior_deviations(np.ones(4)), [0.5, 0.5, 0.1, 0.2])


def test_what_does_not_fit_is_named(model, without_import_hook):
    with pytest.raises(TypeError, match=r"blocks\[1\]: expected a block such as Masses\(\), got float"):
        Parameters(model, [Masses(), 1.0])
    with pytest.raises(TypeError, match=r"priors\[0\]: expected a prior such as TotalMass\(\), got int"):
        Parameters(model, Masses(), [3])
    with pytest.raises(ValueError, match="blocks: expected each unknown once, got log mass of fore in two"):
        Parameters(model, [Masses(), Masses(["fore"])])
    with pytest.raises(ValueError, match="blocks: expected at least one unknown"):
        Parameters(model, [])
    with pytest.raises(ValueError, match=r"the prior of damping of shoulder violates its bounds by 0\.3"):
        Parameters(model, JointParameter("damping", lower=0.5)).bounds()
