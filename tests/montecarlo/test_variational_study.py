"""Studies by the variational method: the ends of samples in closed form, and what a study file asks for."""

import numpy as np
import pytest

import lgsim
from lgsim import montecarlo as mc
from lgsim.actuators import Actuators, Lag, Transmission
from lgsim.scenarios import ScenarioError, load_study
from tests.montecarlo.test_step_check import RATE, STEPS, exact, oscillator, swinging


@pytest.mark.slow
def test_samples_of_an_oscillator():
    """Its spring acts half way, so that a step is a turn by ``2 atan(rate dt / 2)``; the error of the steps is told."""
    dt = 0.05
    study = swinging(dt, method=lgsim.VariationalTree())
    results = mc.run(study)
    start = exact(swinging(1e-300))
    q, v = start[:, 0], start[:, 1]
    angle = STEPS * 2 * np.arctan(RATE * dt / 2)
    end = np.stack([q * np.cos(angle) + v / RATE * np.sin(angle), v * np.cos(angle) - RATE * q * np.sin(angle)], axis=1)
    np.testing.assert_allclose(results.column("last"), end, rtol=0, atol=1e-12)
    off = results.column("last").mean(axis=0) - exact(study).mean(axis=0)
    claimed = results.step_error.outputs["last"]["mean"].error
    assert np.all(np.abs(off) < 3 * claimed) and claimed[1] < 3 * np.abs(off[1])


def test_drives_with_states_are_refused():
    model = oscillator()
    drives = Actuators(Transmission.of_joints(model), Lag(0.1))
    with pytest.raises(ValueError, match=r"method: variational requires actuators without states"):
        mc.Rollout(model, dt=0.01, steps=2, method=lgsim.VariationalTree(), actuators=drives)


STUDY = """
[machine]
file = "lgsim:arm7"
[time]
dt = 0.01
steps = 4
method = "{method}"
[dispersions]
q = {{ std = 0.02 }}
[outputs]
keep = ["final_q"]
[sampling]
samples = 8
"""


def test_study_file(tmp_path):
    page = tmp_path / "study.toml"
    page.write_text(STUDY.format(method="variational4"))
    assert load_study(page).study.rollout.method == lgsim.VariationalTree(order=4)
    page.write_text(STUDY.format(method="variation"))
    with pytest.raises(ScenarioError, match=r"time\.method: expected one of .*did you mean 'variational'"):
        load_study(page)
