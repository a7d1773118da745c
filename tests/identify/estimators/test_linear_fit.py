"""Linear least squares of base parameters with its covariance."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.identify.estimators.linear_fit import LinearFit
from lgsim.identify.unknowns.base_parameters import base_parameters
from lgsim.identify.unknowns.body_blocks import Inertias, StandardParameters
from lgsim.identify.unknowns.joint_blocks import JointParameter, TorqueOffset
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import Plant
from tests.identify import arms

TRUE = {"damping": 0.3, "friction": 0.4, "friction_speed": 0.1}
JOINTS = (JointParameter("damping"), JointParameter("friction"), TorqueOffset())
NOISE = np.array([0.5, 0.2])


@pytest.fixture(scope="module")
def unknown():
    return Parameters(arms.planar(friction_speed=0.1), [StandardParameters(), *JOINTS])


@pytest.fixture(scope="module")
def base(unknown):
    return base_parameters(unknown)


@pytest.fixture(scope="module")
def true():
    model = arms.planar(**TRUE)
    return Plant(model.replace(inertias=np.asarray(model.inertias) * np.array([[1.3], [0.8]])), offset=[0.2, -0.1])


@pytest.fixture(scope="module")
def found(base, unknown, true):
    """(true base parameters, found ones, their covariances, noises, coordinates) of 401 records in one call.

    The first record is exact, the others have noise.
    """
    records = arms.samples(true, 150)
    noise = NOISE * np.random.default_rng(1).normal(size=(401, 150, 2))
    noise[0] = 0

    @eqx.filter_jit
    def many(signals):
        def one(y):
            est = LinearFit(base).run(unknown, eqx.tree_at(lambda s: s.signals, records, y))
            covariance = base.covariance(unknown, est.x, est.covariance)
            return base.values(unknown.plant_at(est.x)), covariance, est.noise, est.x

        return base.values(true), *jax.vmap(one)(signals)

    return [np.asarray(x) for x in many(jnp.asarray(np.asarray(records.signals) + noise))]


@pytest.mark.slow
def test_exact_records_give_the_base_parameters_exactly(base, found):
    truth, values, _, _, x = found
    np.testing.assert_allclose(values[0], truth, atol=1e-9)
    np.testing.assert_array_equal(x[0, list(base.dependent)], 0)  # those stay at the prior


@pytest.mark.slow
def test_covariance_is_that_of_many_fits_and_the_ellipsoid_holds_its_share(found):
    """400 data sets: scores have unit variance, and 95 % of the ellipsoids hold the truth."""
    truth, values, C, sigma, _ = found
    gap, C = values[1:] - truth, C[1:]
    np.testing.assert_allclose(sigma[1:].mean(axis=0), NOISE, rtol=0.01)
    np.testing.assert_allclose(np.var(gap, axis=0), np.mean(np.diagonal(C, axis1=1, axis2=2), axis=0), rtol=0.3)
    squares = np.einsum("si,si->s", gap, np.linalg.solve(C, gap[..., None])[..., 0])
    share = np.mean(squares < 21.03)  # the 95 % quantile of chi squared with 12 degrees of freedom
    assert 0.91 < share < 0.985


def test_what_is_not_linear_is_refused(unknown, base):
    prior, records = unknown.plant, arms.samples(unknown.plant, 150)
    with pytest.raises(
        ValueError, match="expected coordinates in which the signals are affine; use StandardParameters"
    ):
        LinearFit(base).run(Parameters(prior, Inertias()), records)
    with pytest.raises(
        ValueError,
        match=r"base: expected the base parameters of the same unknowns, got others; use base_parameters\(parameters\)",
    ):
        LinearFit(base).run(Parameters(prior, StandardParameters()), records)
