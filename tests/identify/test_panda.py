"""Panda's base parameters, and its masses from motion that MuJoCo made in C."""

import jax
import numpy as np
import pytest

pytest.importorskip("mujoco")

from cases.sysid import panda, panda_data

from lgsim.identify.fit import fit
from lgsim.identify.unknowns.base_parameters import base_parameters
from lgsim.identify.unknowns.body_blocks import Inertias, Masses
from lgsim.identify.unknowns.parameters import Parameters

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def recorded():
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        return panda.recorded(panda.stored("masses"))


@pytest.mark.slow
def test_rank_of_the_arms_inertias_is_43():
    """No mass alone is among the base parameters of an arm on a fixed base."""
    base = base_parameters(Parameters(panda_data.true_model(), Inertias()))
    assert base.rank == 43
    assert not {f"m of panda_link{i}" for i in range(1, 8)} & set(base.names)


@pytest.mark.slow
def test_the_simulator_and_the_controller_keep_to_the_motion(recorded):
    raw, samples = recorded
    q, v, _ = jax.jit(panda.stored("masses"))(raw.time)
    assert np.max(np.abs(raw.true_q - q)) < 1e-3 and np.max(np.abs(raw.true_v - v)) < 0.05
    assert 0 < np.max(np.abs(raw.q - raw.true_q)) <= panda_data.ENCODER / 2 * (1 + 1e-9)
    assert 0.4 < float(np.mean(samples.weight)) < 0.7
    np.testing.assert_allclose(np.std(raw.tau - raw.true_tau, axis=0), raw.noise, rtol=0.03)


@pytest.mark.slow
def test_masses_are_within_one_point_two_percent_on_average(recorded):
    """From encoders' positions and noisy torques; centres of mass and inertias for each kg are known."""
    true = panda_data.true_model()
    found = fit(Parameters(panda.wrong(true), Masses()), recorded[1])
    errors = np.asarray(found.model.inertias)[:, 0] / np.asarray(true.inertias)[:, 0] - 1
    assert np.mean(np.abs(errors)) < 0.012
    assert np.all(np.abs(errors) < 4 * np.sqrt(np.diag(found.estimate.covariance)))
