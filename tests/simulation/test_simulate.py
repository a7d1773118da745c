"""Simulation as a user runs it: what is kept, what is said, and files."""

import csv
import itertools
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.multibody import ModelError, joints
from lgsim.multibody.serialization import fingerprint, from_record, to_record
from lgsim.simulation import Trajectory, rollout, sensors, simulate
from tests.dynamics.machines import close
from tests.multibody import trees
from tests.multibody.twin import Twin

# the module, which its function of the same name hides
SIMULATE = sys.modules["lgsim.simulation.simulate"]
SMALL = ["free", "revolute"]


@pytest.fixture(scope="module")
def motion():
    model = trees.build(SMALL, [-1, 0]).replace(gravity=jnp.zeros(3))
    q0, v0, _ = trees.state(model)
    return simulate(model, q0, v0, duration=0.4, dt=0.01)


def test_is_the_rollout(motion):
    out = rollout(motion.model, jnp.asarray(motion.q[0]), jnp.asarray(motion.v[0]), dt=0.01, steps=40)
    assert len(motion) == 41 and motion.result == "" and motion.method == "MK4" and motion.dt == 0.01
    close(motion.q, out.q, 1e-13)
    close(motion.v, out.v, 1e-13)
    np.testing.assert_allclose(motion.time, out.time, rtol=1e-14)


def test_pieces_join(monkeypatch):
    """Pieces of 8 steps, the last one shorter, with torques that change: as in one go."""
    model = lgsim.ModelBuilder().add_body("a", "world", joints.Revolute(), mass=1.0, center=[0.3, 0, 0]).build()
    torques = jnp.asarray(np.random.default_rng(0).normal(size=(30, 1)))
    whole = simulate(model, duration=0.3, dt=0.01, torques=torques, save_every=2)
    monkeypatch.setattr(SIMULATE, "CHUNK", 8)
    seen = []
    parts = simulate(
        model,
        duration=0.3,
        dt=0.01,
        torques=torques,
        save_every=2,
        progress=lambda done, steps: seen.append((done, steps)),
    )
    assert seen == [(8, 30), (16, 30), (24, 30), (30, 30)]
    close(parts.q, whole.q, 1e-13)
    np.testing.assert_array_equal(parts.tau, whole.tau)
    np.testing.assert_array_equal(parts.tau[:-1], torques[::2])


def test_energy_momentum_and_norm_of_a_free_machine(motion):
    """All are conserved; kinetic energy is that of Pinocchio's mass matrix."""
    import pinocchio as pin

    twin = Twin(motion.model)
    M = pin.crba(twin.pin, twin.data, twin.q(motion.q[7]))
    M = np.triu(M) + np.triu(M, 1).T
    v = twin.v(motion.v[7])
    np.testing.assert_allclose(motion.kinetic_energy[7], v @ M @ v / 2, rtol=1e-12)
    assert np.abs(motion.energy - motion.energy[0]).max() < 1e-5 * motion.kinetic_energy.max()
    assert np.abs(motion.momentum - motion.momentum[0]).max() < 1e-5 * np.abs(motion.momentum).max()
    h = pin.computeCentroidalMomentum(twin.pin, twin.data, twin.q(motion.q[7]), v)
    c = twin.data.com[0]
    np.testing.assert_allclose(motion.momentum[7], [*h.linear, *(h.angular + np.cross(c, h.linear))], rtol=1e-11)
    assert motion.constraint_error.max() < 1e-14


def test_slices_and_resampling(motion, without_import_hook):
    part = motion[10:20:2]
    assert len(part) == 5 and part.time[0] == motion.time[10]
    start = jnp.asarray(motion.q[0]), jnp.asarray(motion.v[0])
    fine = jax.jit(lambda q, v: rollout(motion.model, q, v, dt=0.005, steps=80))(*start)
    errors = []
    for every in (4, 2):  # at a quarter of each interval, against the same motion at half the step
        places = np.arange(every // 2, 81, 2 * every)
        found = motion[::every].resample(fine.time[places])
        gap = jax.jit(motion.model.difference)(jnp.asarray(found.q), fine.q[places])
        errors.append((float(jnp.abs(gap).max()), float(np.abs(found.v - fine.v[places]).max())))
    assert errors[1][0] < 1e-4 and 11 < errors[0][0] / errors[1][0] < 22
    assert 5.5 < errors[0][1] / errors[1][1] < 12
    np.testing.assert_allclose(motion.resample(motion.time).v, motion.v, rtol=0, atol=1e-11)
    with pytest.raises(ValueError, match=r"time: expected times from 0 to 0\.4 s"):
        motion.resample([0.5])
    with pytest.raises(TypeError, match=r"trajectory: expected a slice"):
        motion[3]


@pytest.mark.parametrize("ending", [".npz", ".parquet"])
def test_files_keep_everything(motion, tmp_path, ending):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    path = motion.save(tmp_path / f"run{ending}")
    again = Trajectory.load(path)
    for name in ("time", "q", "v", "tau"):
        np.testing.assert_array_equal(getattr(again, name), getattr(motion, name))
    assert (again.method, again.dt, again.result, again.version) == ("MK4", 0.01, "", lgsim.__version__)
    assert again.fingerprint == motion.fingerprint
    assert again.model.topology == motion.model.topology
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_csv_has_names_and_units(motion, tmp_path):
    with open(motion.save(tmp_path / "run.csv"), encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0][:9] == ["time [s]", "q joint0[0] [m]", "q joint0[1] [m]", "q joint0[2] [m]", "q joint0[3] [-]",
                           "q joint0[4] [-]", "q joint0[5] [-]", "q joint0[6] [-]", "q joint1 [rad]"]  # fmt: skip
    assert {"v joint0[0] [m/s]", "v joint0[3] [rad/s]", "tau joint1 [N m]", "kinetic energy [J]"} <= set(rows[0])
    assert len(rows) == 42
    np.testing.assert_array_equal(np.array(rows[1:], float)[:, 1:9], motion.q)


def test_an_interrupted_file_leaves_the_old_one(motion, tmp_path, monkeypatch):
    path = motion.save(tmp_path / "run.npz")
    before = path.read_bytes()

    def broken(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", broken)
    with pytest.raises(OSError, match="disk full"):
        motion[:5].save(path)
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


def test_bad_files(motion, tmp_path):
    names = r"\.npz or \.parquet or \.csv or \.mcap"
    with pytest.raises(ValueError, match=rf"expected a name that ends in {names}, got '\.txt'"):
        motion.save(tmp_path / "run.txt")
    with pytest.raises(FileNotFoundError, match="no such file"):
        Trajectory.load(tmp_path / "none.npz")
    (tmp_path / "bad.npz").write_text("no")
    (tmp_path / "empty.npz").write_bytes(b"")
    with pytest.raises(ValueError, match="expected a trajectory that lgsim wrote"):
        Trajectory.load(tmp_path / "empty.npz")
    with pytest.raises(ValueError, match="expected a trajectory that lgsim wrote"):
        Trajectory.load(tmp_path / "bad.npz")
    np.savez(tmp_path / "other.npz", x=np.ones(3))
    with pytest.raises(ValueError, match="expected a trajectory that lgsim wrote"):
        Trajectory.load(tmp_path / "other.npz")


def test_divergence_is_told_and_what_was_computed_is_kept():
    model = lgsim.ModelBuilder().add_body("rod", "world", joints.Revolute(), mass=1.0, center=[0.3, 0, 0],
                                          damping=-1e3).build()  # fmt: skip
    out = simulate(model, jnp.array([0.1]), jnp.array([0.1]), duration=10.0, dt=0.1)
    assert 2 < len(out) < 101 and np.isfinite(out.v).all()
    assert "diverged: the state is not finite at" in out.result and "'rod'" in out.result and "smaller dt" in out.result
    step = int(out.result.split("(step ")[1].split(")")[0])
    assert step == len(out)  # the first one that is lost


@pytest.mark.repeats("float64")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_joint_without_inertia_is_named_and_no_smaller_step(dtype):
    """A link without mass at the tip; with an armature it moves."""
    builder = lgsim.ModelBuilder(dtype=dtype).add_body("rod", "world", joints.Revolute(), mass=1.0, center=[0.3, 0, 0])
    model = builder.add_body("end", "rod", joints.Revolute(), joint_name="tip").build()
    out = simulate(model, duration=0.1, dt=0.01)
    assert len(out) == 1 and out.result.startswith("diverged: the state is not finite at 0.01 s (step 1)")
    assert out.result.endswith("; joint 'tip' moves without inertia: give the link behind it mass and inertia, or the"
                               " joint an armature")  # fmt: skip
    assert "smaller dt" not in out.result
    assert simulate(model.replace(armature=0.01), duration=0.1, dt=0.01).result == ""


def test_any_function_controls():
    model = lgsim.ModelBuilder().add_body("rod", "world", joints.Revolute(), mass=1.0, center=[1.0, 0, 0]).build()
    out = simulate(model, duration=0.1, dt=0.01, control=lambda t, q, v, model: 2.0 * jnp.ones_like(v))
    np.testing.assert_allclose(out.v[:, 0], 2.0 * out.time, rtol=1e-12)
    np.testing.assert_array_equal(out.tau, 2.0)


@pytest.mark.parametrize("place", ["progress", "forces", "last"])
def test_an_interrupt_keeps_what_was_computed(place, monkeypatch):
    """In progress what is computed, within a chunk what was before it; after the last chunk all is done."""
    model = lgsim.ModelBuilder().add_body("rod", "world", joints.Revolute(), mass=1.0, center=[0.3, 0, 0]).build()
    monkeypatch.setattr(SIMULATE, "CHUNK", 10)
    calls, forces = itertools.count(), SIMULATE._forces

    def pressed(*args):
        # of the first state, and of two chunks
        if place == "forces" and next(calls) == 3:
            raise KeyboardInterrupt
        return forces(*args)

    def stop(done, steps):
        if done == {"progress": 20, "last": 100}.get(place):
            raise KeyboardInterrupt

    monkeypatch.setattr(SIMULATE, "_forces", pressed)
    out = simulate(model, jnp.array([0.1]), duration=1.0, dt=0.01, progress=stop)
    if place == "last":
        assert len(out) == 101 and out.result == ""
    else:
        assert len(out) == 21 and out.result == "interrupted at 0.2 s of 1 s"


def test_what_progress_raises_goes_through():
    model = lgsim.ModelBuilder().add_body("rod", "world", joints.Revolute(), mass=1.0, center=[0.3, 0, 0]).build()
    with pytest.raises(ZeroDivisionError):
        simulate(model, jnp.array([0.1]), duration=1.0, dt=0.01, progress=lambda done, steps: 1 / 0)


@pytest.mark.parametrize("name", ["duration", "dt"])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_bad_times(motion, name, value):
    with pytest.raises(ValueError, match=f"{name}: expected a positive number of seconds, got {value}"):
        simulate(motion.model, **({"duration": 1.0, "dt": 0.1} | {name: value}))


@pytest.mark.parametrize("name", trees.CASES)
def test_records_of_models(name):
    model = trees.build(*trees.CASES[name])
    again = from_record(*to_record(model))
    assert again.topology == model.topology and fingerprint(again) == fingerprint(model)
    assert fingerprint(model.replace(gravity=jnp.ones(3))) != fingerprint(model)
    with pytest.raises(ModelError, match="record: expected what to_record wrote"):
        from_record("{}", {})


def test_sensors():
    """An IMU at rest feels gravity upwards; in circular motion the pull to the center; encoders read joint numbers."""
    model = lgsim.ModelBuilder().add_body("rod", "world", joints.Revolute(), mass=1.0).build()
    model = model.add_frame("tip", "rod", np.block([[np.eye(3), np.array([[0.5], [0], [0]])], [np.zeros((1, 3)), 1]]))
    q, w, dw = jnp.array([0.7]), jnp.array([3.0]), jnp.array([2.0])
    felt = sensors.imu(model, "tip", q, w, dw)
    np.testing.assert_allclose(felt.specific_force, [-0.5 * 9.0, 0.5 * 2.0, 9.81], rtol=1e-13)
    np.testing.assert_allclose(felt.rate, [0, 0, 3.0], atol=1e-15)
    np.testing.assert_array_equal(sensors.encoders(model, q), q)
    np.testing.assert_allclose(sensors.frame_pose(model, "tip", q)[:2, 3], [0.5 * np.cos(0.7), 0.5 * np.sin(0.7)])
    np.testing.assert_allclose(sensors.frame_twist(model, "tip", q, w), [0, 1.5, 0, 0, 0, 3.0], atol=1e-15)
