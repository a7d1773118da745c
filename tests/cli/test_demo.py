"""``lgsim demo``: what a new user sees first."""

import numpy as np
import pytest

from lgsim import data, load_urdf
from lgsim.cli.work import tour
from lgsim.multibody import ModelBuilder, joints
from lgsim.simulation import Trajectory, simulate, with_stops
from tests.cli.machines import lgsim, refused


@pytest.mark.slow
def test_demo_of_a_file(files, tmp_path):
    pytest.importorskip("viser")
    result = lgsim("demo", files / "arm.urdf", "--out", tmp_path / "shown", "--duration", 0.5)
    assert result.exit_code == 0, result.output
    made = {path.name for path in (tmp_path / "shown").iterdir()}
    assert made == {"arm-joints.png", "arm-energy.png", "arm-momentum.png", "arm.html", "arm.npz"}
    assert "energy drift in 1 s of free motion: below" in result.output and "gradient of 200 steps" in result.output
    run = Trajectory.load(tmp_path / "shown" / "arm.npz")
    assert len(run) == 51 and run.step_error.resolved


@pytest.mark.slow
def test_the_arm_of_the_demo_moves_within_its_limits():
    """It whirled at 40 times its speed limits, through its stops, with joint forces of zero."""
    model = with_stops(load_urdf(data.arm7()))
    q0, law = tour.tour(model, 2.0)
    motion = simulate(model, q0, duration=2.0, dt=1e-3, control=law, save_every=10)
    for kind in ("position", "speed", "torque"):
        assert 0.1 < max(use.part for use in motion.limit_uses if use.kind == kind) < 0.9
    assert not any(use.passed for use in motion.limit_uses) and np.all(np.ptp(motion.tau, axis=0) > 1e-3)
    assert np.all(np.ptp(motion.q, axis=0) > 0.05)
    np.testing.assert_allclose(motion.q[-1], q0, atol=2e-2)  # home again


def test_other_machines_have_tours():
    """Ball joints, a base that moves freely, joints without limits: finite, and at rest at both ends."""
    body = {"mass": 1.0, "inertia": 0.1 * np.eye(3)}
    builder = ModelBuilder().add_body("torso", "world", joints.Free(), **body)
    builder.add_body("ball", "torso", joints.Spherical(), **body)
    model = builder.add_body(
        "leg", "ball", joints.Revolute(), lower=-1.0, upper=0.5, velocity_limit=0.0, **body
    ).build()
    q0, law = tour.tour(model, 3.0)
    np.testing.assert_allclose(q0, [*model.neutral()[:-1], -0.25])
    for t in (0.0, 1.0, 1.7, 3.0, 4.0):
        q, v, a = law.target(t)
        assert np.isfinite(q).all() and np.allclose(np.linalg.norm(q[3:7]), 1) and not np.any(v[:6])
        h = 1e-5
        if t == 1.7:
            moved = model.difference(law.target(t - h)[0], law.target(t + h)[0]) / (2 * h)
            np.testing.assert_allclose(v, moved, atol=1e-8)
            np.testing.assert_allclose(a, (law.target(t + h)[1] - law.target(t - h)[1]) / (2 * h), atol=1e-7)
        else:
            np.testing.assert_allclose(v, 0, atol=1e-12)


@pytest.mark.parametrize("duration", ["0", "-1", "nan"])
def test_bad_duration(files, duration):
    line = refused("demo", files / "arm.urdf", "--duration", duration)
    assert line.startswith("--duration: expected a positive number of seconds, got")
