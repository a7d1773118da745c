"""Base parameters against textbooks, and linear least squares with its covariance."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.identify.estimators.linear_fit import LinearFit
from lgsim.identify.unknowns.base_parameters import base_parameters
from lgsim.identify.unknowns.body_blocks import Inertias, Masses, StandardParameters
from lgsim.identify.unknowns.frame_blocks import GravityDirection
from lgsim.identify.unknowns.joint_blocks import JointParameter, TorqueOffset
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import Plant
from tests.identify import arms

TRUE = {"damping": 0.3, "friction": 0.4, "friction_speed": 0.1}
JOINTS = (JointParameter("damping"), JointParameter("friction"), TorqueOffset())


@pytest.fixture(scope="module")
def prior():
    return arms.planar(friction_speed=0.1)


@pytest.fixture(scope="module")
def unknown(prior):
    return Parameters(prior, [StandardParameters(), *JOINTS])


@pytest.fixture(scope="module")
def base(unknown):
    return base_parameters(unknown)


@pytest.fixture(scope="module")
def true():
    model = arms.planar(**TRUE)
    return Plant(model.replace(inertias=model.inertias * jnp.array([[1.3], [0.8]])), offset=jnp.array([0.2, -0.1]))


@pytest.fixture(scope="module")
def run():
    return eqx.filter_jit(lambda estimator, parameters, samples: estimator.run(parameters, samples))


def test_base_parameters_of_the_planar_arm_are_the_textbooks(prior):
    """Iyy1 + l^2 m2, mx1, mz1 + l m2, Iyy2, mx2, mz2 (Siciliano et al., Robotics, 2009, example 7.2, with offsets)."""
    found = base_parameters(Parameters(prior, StandardParameters()))
    textbook = np.zeros((6, 20))
    for row, entries in enumerate(
        [{6: 1, 10: arms.LENGTH**2}, {1: 1}, {3: 1, 10: arms.LENGTH}, {16: 1}, {11: 1}, {13: 1}]
    ):
        textbook[row, list(entries)] = list(entries.values())
    assert found.rank == 6 and np.linalg.matrix_rank(np.vstack([found.matrix, textbook]), tol=1e-8) == 6
    assert any("m of fore" in name for name in found.names)
    assert found.values(Plant(prior)).shape == (6,)


def test_base_parameters_do_not_depend_on_the_coordinates(prior):
    linear = base_parameters(Parameters(prior, StandardParameters()))
    consistent = base_parameters(Parameters(prior, Inertias()))
    assert linear.names == consistent.names
    np.testing.assert_array_equal(linear.matrix, consistent.matrix)


def test_exact_records_give_the_base_parameters_exactly(run, base, unknown, true):
    assert base.rank == 6 + 6
    est = run(LinearFit(base), unknown, arms.samples(true))
    np.testing.assert_allclose(base.values(unknown.plant_at(est.x)), base.values(true), atol=1e-9)
    dependent = np.asarray(est.x)[list(base.dependent)]
    np.testing.assert_array_equal(dependent, 0)  # those stay at the prior


def test_covariance_is_that_of_many_fits_and_the_ellipsoid_holds_its_share(base, unknown, true):
    """400 data sets in one call: scores have unit variance, and 95 % of the ellipsoids hold the truth."""
    q, v, a = arms.states(true.model, 150)
    clean, noise = true.signals(q, v, a), jnp.array([0.5, 0.2])
    signals = clean[None] + noise[None, None] * jax.random.normal(jax.random.key(1), (400, *clean.shape))

    @eqx.filter_jit
    def many(signals):
        def one(y):
            est = LinearFit(base).run(unknown, eqx.tree_at(lambda s: s.signals, arms.samples(true, 150), y))
            return base.values(unknown.plant_at(est.x)), base.covariance(unknown, est.x, est.covariance), est.noise

        return eqx.filter_vmap(one)(signals)

    found, C, sigma = map(np.asarray, many(signals))
    gap = found - np.asarray(base.values(true))
    np.testing.assert_allclose(sigma.mean(axis=0), noise, rtol=0.01)
    np.testing.assert_allclose(np.var(gap, axis=0), np.mean(np.diagonal(C, axis1=1, axis2=2), axis=0), rtol=0.3)
    squares = np.einsum("si,si->s", gap, np.linalg.solve(C, gap[..., None])[..., 0])
    share = np.mean(squares < 21.03)  # the 95 % quantile of chi squared with 12 degrees of freedom
    assert 0.91 < share < 0.985


def test_what_is_not_linear_is_refused(prior, base):
    with pytest.raises(ValueError, match="joint forces are not affine in all that they move"):
        base_parameters(Parameters(prior, [Masses(), GravityDirection()]))
    records = arms.samples(Plant(prior), 5)
    with pytest.raises(ValueError, match="their coordinates are no numbers of the plant; take StandardParameters"):
        LinearFit(base).run(Parameters(prior, Inertias()), records)
    with pytest.raises(ValueError, match=r"base: belongs to other unknowns; take base_parameters\(parameters\)"):
        LinearFit(base).run(Parameters(prior, StandardParameters()), records)
