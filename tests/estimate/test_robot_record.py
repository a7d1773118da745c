"""Recordings as records for a filter: readings and forces against formulas by hand, at the times they belong to."""

import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.estimate import EKF, RobotProcess, RobotRecord
from lgsim.identify import JointParameter, Recording

DEVIATIONS = {"q": 1e-2, "v": 0.1, "accelerometer": 0.2, "gyroscope": 0.03}


def test_readings_of_a_free_body():
    """A body with forces at its center: the accelerometer reads f / m, the gyroscope w; a pose differs by a twist."""
    model = lgsim.load_urdf(lgsim.data.quadrotor(), floating_base=True)
    process, rng = RobotProcess(model, 0.1), np.random.default_rng(0)
    q, v, force = np.asarray(model.neutral()), np.array([0.3, -0.2, 0.1, 0, 0, 0]), np.array([1.0, -2, 12, 0, 0, 0])
    q = np.asarray(model.retract(jnp.asarray(q), jnp.asarray(rng.normal(size=6))))
    twist = 0.1 * rng.normal(size=6)
    seen = np.asarray(model.retract(jnp.asarray(q), jnp.asarray(twist)))
    weights = {"q": np.array([[1.0] * 6, [0.0] * 6, [1.0] * 6])}
    log = Recording(
        model, np.array([0, 0.1, 0.2]), np.stack([q, seen, seen]), tau=np.tile(force, (3, 1)),
        imu={"hull": np.ones((3, 6))}, weights=weights,
    )  # fmt: skip
    record = RobotRecord.from_recording(process, log, DEVIATIONS, delays={"imu hull": 0.1})
    names = ["q root_joint [m, rad]", "accelerometer hull [m/s^2]", "gyroscope hull [rad/s]"]
    assert [stream.measurement.name for stream in record.streams] == names
    assert record.noises == ["force", "q [m, rad]", "accelerometer [m/s^2]", "gyroscope [rad/s]"]
    pose, accelerometer, gyroscope = record.streams
    y = (jnp.concatenate([q, v]),)
    reading = pose.values[1]
    np.testing.assert_allclose(
        pose.measurement.residual(pose.measurement.predicted(y, force), reading), twist, atol=1e-12
    )
    np.testing.assert_allclose(pose.ts, [0, 0.2])
    mass = float(model.inertias[0, 0])
    np.testing.assert_allclose(accelerometer.measurement.predicted(y, jnp.asarray(force)), force[:3] / mass, atol=1e-12)
    y = (jnp.concatenate([q, jnp.arange(6.0)]),)
    np.testing.assert_allclose(gyroscope.measurement.predicted(y, jnp.asarray(force)), [3, 4, 5], atol=1e-12)
    # the first late reading belongs to a time before the start
    np.testing.assert_allclose(gyroscope.ts - gyroscope.delay, [0, 0.1])
    half = record.scaled({"q [m, rad]": 0.5, "force": 2})
    np.testing.assert_allclose(half.streams[0].measurement.noise, 0.5e-2)
    np.testing.assert_allclose((half.process.force_noise, half.streams[1].measurement.noise[0]), (0.2, 0.2))


def test_forces_in_a_gap_and_late_ones():
    model = lgsim.load_urdf(lgsim.data.cart_pole())
    time = np.array([0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.5])
    tau = np.stack([np.arange(12.0), np.zeros(12)], axis=1)
    log = Recording(model, time, np.zeros((12, 2)), tau=tau)
    process = RobotProcess(model, 0.1)
    inputs = RobotRecord.from_recording(process, log, DEVIATIONS).inputs
    # half a second is divided into four parts of at most 0.15 s
    np.testing.assert_allclose(inputs.ts, [*time[:11], 1.125, 1.25, 1.375, 1.5])
    np.testing.assert_allclose(inputs.values[:, 0], [*(np.arange(11) + 0.5), 10.5, 10.5, 10.5, 11])
    fine = RobotRecord.from_recording(process, log, DEVIATIONS, dt=0.05).inputs
    assert len(fine.ts) == 31 and np.max(np.diff(fine.ts)) < 0.0501
    late = RobotRecord.from_recording(process, log, DEVIATIONS, delays={"tau": 0.25}).inputs
    np.testing.assert_allclose(late.ts[:3], [0, 0.05, 0.15], atol=1e-12)
    np.testing.assert_allclose(late.values[:3, 0], [2.5, 3.5, 4.5])
    early = RobotRecord.from_recording(process, log, DEVIATIONS, delays={"tau": -0.05}).inputs
    np.testing.assert_allclose(early.ts[:2], [0, 0.15])


def test_unknowns_are_physical_and_files_whole(tmp_path):
    """The deviation of a damping is that of its coordinate, which is the damping itself."""
    model = lgsim.load_urdf(lgsim.data.cart_pole())
    process = RobotProcess(model, 0.1, JointParameter("damping", ["slider"], prior_deviation=0.3))
    time = np.arange(20) * 0.05
    log = Recording(model, time, np.zeros((20, 2)), v=np.zeros((20, 2)))
    found = RobotRecord.from_recording(process, log, DEVIATIONS).filtered(EKF())
    ((name, (values, deviations)),) = found.unknowns().items()
    assert "damping of slider" in name and found.prior[name] == pytest.approx(float(model.damping[0]))
    np.testing.assert_allclose(deviations[0], 0.3, rtol=1e-6)
    with np.load(found.save(tmp_path / "estimate.npz")) as file:
        np.testing.assert_array_equal(file["values"][:, 0], values)
        assert file["streams"].tolist() == ["q slider [m]", "q hinge [rad]", "v slider [m/s]", "v hinge [rad/s]"]
        np.testing.assert_allclose(np.linalg.norm(file["factors"], axis=-1), file["deviations"], rtol=1e-12)


def test_a_search_for_noises_that_does_not_settle_says_so():
    """A robot at rest without any noise: the likelihood grows without end as the force noise vanishes."""
    model = lgsim.load_urdf(lgsim.data.cart_pole())
    log = Recording(model, np.arange(20) * 0.05, np.zeros((20, 2)), v=np.zeros((20, 2)))
    record = RobotRecord.from_recording(RobotProcess(model, 0.1), log, DEVIATIONS)
    with pytest.warns(RuntimeWarning, match="noises of the largest likelihood: force at the end of the range"):
        found = record.likely_factors(EKF(), ["force"])
    assert found["force"] < 1e-6


@pytest.mark.usefixtures("without_import_hook")
def test_what_is_refused():
    model = lgsim.load_urdf(lgsim.data.cart_pole())
    log = Recording(model, np.array([0, 0.1]), np.zeros((2, 2)), weights={"q": np.zeros((2, 2))})
    with pytest.raises(ValueError, match="recording: expected readings of positions"):
        RobotRecord.from_recording(RobotProcess(model, 0.1), log, DEVIATIONS)
    log = Recording(model, np.array([0, 0.1]), np.zeros((2, 2)))
    with pytest.raises(ValueError, match="deviations: expected a standard deviation of 'q', got v"):
        RobotRecord.from_recording(RobotProcess(model, 0.1), log, {"v": 1.0})
    back = Recording(model, np.array([0, 0.1, 0.05]), np.zeros((3, 2)))
    with pytest.raises(ValueError, match="expected ascending times"):
        RobotRecord.from_recording(RobotProcess(model, 0.1), back, DEVIATIONS)
