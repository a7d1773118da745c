"""The front door: what a fit answers, and what it refuses."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.identify.estimators.torque_fit import TorqueFit
from lgsim.identify.fit import fit
from lgsim.identify.unknowns.body_blocks import Masses, StandardParameters
from lgsim.identify.unknowns.joint_blocks import TorqueOffset
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import Plant
from tests.identify import arms


@pytest.fixture(scope="module")
def parameters():
    model = arms.planar()
    factors = np.array([[1.2], [0.9]])
    return Parameters(model.replace(inertias=np.asarray(model.inertias) * factors), [Masses(), TorqueOffset()])


@pytest.fixture(scope="module")
def found(parameters):
    true = Plant(arms.planar(), offset=[0.3, -0.2])
    records = arms.samples(true, 300, noise=0.1)
    return fit(parameters, records, validation=arms.samples(true, 300, seed=5, noise=0.1))


@pytest.mark.slow
@pytest.mark.quick
def test_values_come_with_deviations(found):
    truth = {"m of upper, kg": 2.0, "m of fore, kg": 1.2, "offset of shoulder, N m": 0.3, "offset of elbow, N m": -0.2}
    assert list(found.values) == list(truth) and found.prior["m of upper, kg"] == pytest.approx(2.4)
    for name, value in truth.items():
        assert abs(found.values[name] - value) < 4 * found.deviations[name] < 0.2
    assert found.message == "" and found.identifiability.rank == 4


@pytest.mark.slow
def test_residuals_are_the_noise(found):
    np.testing.assert_allclose(found.rmse(), 0.1, rtol=0.15)
    np.testing.assert_allclose(found.rmse(found.validation), 0.1, rtol=0.15)
    np.testing.assert_allclose(found.estimate.noise, found.rmse(), rtol=0.02)
    assert found.whiteness()[1] < 2
    assert np.max(found.signal_deviations()) < 0.05  # far below the noise: 300 samples decide four numbers
    text = found.summary()
    assert "m of fore, kg" in text and "held-out" in text and "4 of 4 combinations" in text


def test_numbers_that_no_record_shows_have_infinite_deviations(found):
    model = found.parameters.plant.model
    lost = fit(Parameters(model, StandardParameters()), found.samples, TorqueFit(noise=0.1))
    assert lost.identifiability.rank == 6
    assert np.isinf(lost.deviations["m of upper, kg"]) and np.isfinite(lost.deviations["mx of fore, kg m"])
    assert {"Ixx of fore": 1.0} in lost.identifiability.unidentifiable


def test_repr_is_short(found):
    """The size of the problem and how the fit ended; the parameters are in the summary."""
    text = repr(found)
    assert text.startswith("Fit(4 unknowns by TorqueFit, ") and ": successful)" in text and text.count("\n") < 10


def test_what_does_not_fit_is_named(parameters, found, without_import_hook):
    with pytest.raises(TypeError, match="parameters: expected Parameters, got Model"):
        fit(parameters.plant.model, found.samples)
    with pytest.raises(TypeError, match=r"estimator: expected an estimator such as TorqueFit\(\), got str"):
        fit(parameters, found.samples, "least squares")
    with pytest.raises(TypeError, match="samples: expected TorqueSamples, got dict"):
        fit(parameters, {}, TorqueFit())
    part = eqx.tree_at(lambda s: s.weight, found.samples, jnp.zeros((300, 2)).at[0].set(1))
    with pytest.raises(ValueError, match="expected at least 4 values with a weight for as many unknowns, got 2"):
        fit(parameters, part)
    v = np.array(found.samples.v)
    v[3, 0] = np.nan
    bad = eqx.tree_at(lambda s: s.v, found.samples, jnp.asarray(v))
    with pytest.raises(ValueError, match="v: row 3 is not finite and has a weight; give it weight 0"):
        fit(parameters, bad)
    wide = eqx.tree_at(lambda s: s.q, found.samples, jnp.zeros((300, 3)))
    with pytest.raises(ValueError, match=r"q: expected shape \(300, 2\), got \(300, 3\)"):
        fit(parameters, wide)
