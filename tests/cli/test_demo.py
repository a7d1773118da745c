"""``lgsim demo``: what a new user sees first."""

import numpy as np
import pytest

from lgsim.simulation import Trajectory
from tests.cli.machines import lgsim, refused


@pytest.mark.slow
def test_demo_of_a_file(files, tmp_path):
    pytest.importorskip("viser")
    result = lgsim("demo", files / "arm.urdf", "--out", tmp_path / "shown", "--duration", 0.5)
    assert result.exit_code == 0, result.output
    made = {path.name for path in (tmp_path / "shown").iterdir()}
    assert made == {"arm-joints.png", "arm-energy.png", "arm-momentum.png", "arm.html", "arm.npz"}
    assert "energy: within" in result.output and "gradient through 200 steps" in result.output
    run = Trajectory.load(tmp_path / "shown" / "arm.npz")
    assert len(run) == 51 and not np.any(run.model.damping)
    assert np.abs(run.energy - run.energy[0]).max() < 1e-8


@pytest.mark.parametrize("duration", ["0", "-1", "nan"])
def test_bad_duration(files, duration):
    line = refused("demo", files / "arm.urdf", "--duration", duration)
    assert line.startswith("--duration: expected a positive number of seconds, got")
