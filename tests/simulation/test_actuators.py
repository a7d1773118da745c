"""Drives that follow their commands with a lag: closed forms, MuJoCo's filter, derivatives, what is kept."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import lgsim
from lgsim.multibody import ModelError, joints
from lgsim.multibody.model import DRIVES
from lgsim.multibody.serialization import from_record, to_record
from lgsim.simulation import Trajectory, controls, events, rollout, simulate, simulate_adaptive
from tests.dynamics.machines import close
from tests.multibody import trees


def slide(**numbers):
    """A mass of 2 kg on a rail, without gravity."""
    builder = lgsim.ModelBuilder(gravity=(0, 0, 0))
    return builder.add_body("cart", "world", joints.Prismatic(), mass=2.0, **numbers).build()


def arm(**numbers):
    """Two links that swing in a plane."""
    builder = lgsim.ModelBuilder()
    options = {"axis": [0, 1, 0], "mass": 1.0, "center": [0, 0, 0.2], "inertia": 0.02 * np.eye(3)} | numbers
    lift = np.eye(4)
    lift[2, 3] = 0.4
    builder.add_body("upper", "world", joints.Revolute(), **options)
    return builder.add_body("fore", "upper", joints.Revolute(), placement=lift, **options).build()


@pytest.mark.slow
def test_a_step_of_the_command_is_followed_by_an_exponential():
    """tau = u + (tau_0 - u) exp(-t/T), and its integral is the momentum; the trajectory has that force."""
    model, T, u, start = slide(actuator_time=0.2), 0.2, 6.0, -1.5
    motion = simulate(model, duration=0.5, dt=0.005, torques=jnp.array([u]), tau0=jnp.array([start]))
    gone = np.exp(-motion.time / T)
    np.testing.assert_allclose(motion.tau[:, 0], u + (start - u) * gone, rtol=0, atol=1e-7)
    np.testing.assert_allclose(motion.v[:, 0], (u * motion.time + (start - u) * T * (1 - gone)) / 2, rtol=0, atol=1e-7)
    adaptive = simulate_adaptive(
        model, duration=0.5, rtol=1e-9, atol=1e-11, torques=jnp.array([u]), tau0=jnp.array([start]), dt_out=0.1,
        events=events.joint_reaches(model, "cart", 0.0, rising=True),
    )  # fmt: skip
    t = adaptive.time[-1]
    np.testing.assert_allclose(adaptive.tau[:, 0], u + (start - u) * np.exp(-adaptive.time / T), rtol=0, atol=1e-7)
    place = (u * t**2 / 2 + (start - u) * T * (t - T * (1 - np.exp(-t / T)))) / 2
    assert 0.05 < t < 0.5 and abs(place) < 1e-8 and "the joint 'cart' is 0 m" in adaptive.result


@pytest.mark.slow
def test_the_forces_that_lag_are_kept_in_files_and_between_states(tmp_path):
    """tau of the trajectory is what the drives give, not the commands; a motion goes on from its last row."""
    model, command, options = slide(actuator_time=0.2), jnp.array([6.0]), {"dt": 0.01}
    whole = simulate(model, duration=0.4, torques=command, **options)
    for name in ("run.npz", "run.parquet"):
        again = Trajectory.load(whole.save(tmp_path / name))
        np.testing.assert_array_equal(again.tau, whole.tau)
        assert again.model.topology.lags and again.fingerprint == whole.fingerprint
    middle = whole.resample(whole.time[:-1] + 0.005)
    np.testing.assert_allclose(middle.tau[:, 0], 6.0 * (1 - np.exp(-middle.time / 0.2)), rtol=0, atol=2e-3)
    half = whole[:21]
    rest = simulate(model, half.q[-1], half.v[-1], duration=0.2, torques=command, tau0=half.tau[-1], **options)
    close(rest.q, whole.q[20:], 1e-13)
    close(rest.tau, whole.tau[20:], 1e-13)


def test_a_machine_gets_lags_and_loses_them(without_import_hook):
    """By any name of the number; without lags there are no forces to start from."""
    plain = slide()
    drives = plain.drives.at[:, DRIVES.index("actuator_time")].set(0.1)
    for model in (plain.replace(actuator_time=0.1), plain.replace(drives=drives)):
        assert model.topology.lags and rollout(
            model, jnp.zeros(1), jnp.zeros(1), dt=0.1, steps=1
        ).drive_forces.shape == (2, 1)
    lost = model.replace(actuator_time=0.0)
    assert lost.topology == plain.topology
    with pytest.raises(ValueError, match="tau0: no drive of the model lags"):
        rollout(lost, jnp.zeros(1), jnp.zeros(1), dt=0.1, steps=1, tau0=jnp.ones(1))


def test_it_is_the_filter_of_mujoco():
    """Its Runge-Kutta method takes the activations along as MK4 does: the same motion to round-off."""
    xml = """<mujoco><option integrator="RK4" timestep="0.002"/><worldbody><body><joint name="a" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 0.3 0 0.4" size="0.03"/><body pos="0.3 0 0.4"><joint name="b" axis="1 0 0"/>
    <geom type="capsule" fromto="0 0 0 0 0.2 0.3" size="0.02"/></body></body></worldbody>
    <actuator><general joint="a" dyntype="filter" dynprm="0.03"/><general joint="b" dyntype="filter" dynprm="0.1"/>
    </actuator></mujoco>"""
    theirs = mujoco.MjModel.from_xml_string(xml.replace("<geom", '<geom contype="0" conaffinity="0"'))
    data = mujoco.MjData(theirs)
    data.qpos[:], data.ctrl[:] = [0.4, -0.3], [2.0, -0.5]
    model = lgsim.formats.read_mjcf(text=xml)[0].replace(actuator_time=jnp.array([0.03, 0.1]))
    out = rollout(model, jnp.array([0.4, -0.3]), jnp.zeros(2), dt=0.002, steps=200, torques=jnp.array([2.0, -0.5]))
    for _ in range(200):
        mujoco.mj_step(theirs, data)
    close(out.q[-1], data.qpos, 1e-12)
    close(out.v[-1], data.qvel, 1e-12)
    close(out.drive_forces[-1], data.act, 1e-12)


@pytest.mark.slow
def test_without_a_time_constant_there_is_no_lag():
    """Exactly, also where another joint has one, and with feedback; with a short one nearly."""
    q0, v0, law = jnp.array([0.3, -0.4]), jnp.zeros(2), controls.PD(jnp.array([0.5, 0.2]), 20.0, 2.0)
    plain = arm()
    run = jax.jit(lambda model, **more: rollout(model, q0, v0, dt=0.002, steps=100, control=law, **more))
    right = run(plain)
    assert right.drive_forces is None and not plain.topology.lags and not plain.replace(actuator_time=0.0).topology.lags
    half = plain.replace(actuator_time=jnp.array([0.0, 1e9]))
    found = run(half, tau0=jnp.array([7.0, -1.0]))
    motion = simulate(half, q0, v0, duration=0.2, dt=0.002, control=law, tau0=jnp.array([7.0, -1.0]))
    close(motion.q, found.q, 1e-13)
    np.testing.assert_allclose(motion.tau[:, 0], 20.0 * (0.5 - motion.q[:, 0]) - 2.0 * motion.v[:, 0], rtol=1e-12)
    np.testing.assert_allclose(motion.tau[:, 1], -1.0, atol=1e-6)
    traced = jax.jit(lambda T: rollout(plain.replace(actuator_time=T), q0, v0, dt=0.002, steps=100, control=law))
    close(traced(jnp.zeros(2)).q, right.q, 1e-13)
    gaps = [np.abs(traced(jnp.full(2, T)).q - right.q).max() for T in (4e-3, 2e-3)]
    assert gaps[1] < 2e-2 and 1.6 < gaps[0] / gaps[1] < 2.4  # of first order in T


@pytest.mark.slow
def test_gradient_in_time_constants_and_in_the_forces_at_the_start():
    model = arm(actuator_time=[0.05])
    torques = jnp.asarray(np.random.default_rng(0).normal(size=(30, 2)))
    law = controls.PD(jnp.array([0.5, 0.2]), 5.0, 0.5)

    def loss(T, tau0, checkpoint):
        there = model.replace(actuator_time=T)
        out = rollout(there, jnp.array([0.3, -0.4]), jnp.zeros(2), dt=0.01, steps=30, torques=torques, control=law,
                      tau0=tau0, checkpoint=checkpoint)  # fmt: skip
        return jnp.sum(out.q[-1] ** 2) + jnp.sum(out.drive_forces[15] * out.v[15])

    at = jnp.array([0.05, 0.08]), jnp.array([0.3, -0.6])
    value, slopes = jax.jit(lambda *x: loss(*x, None)), jax.jit(jax.grad(lambda *x: loss(*x, "step"), (0, 1)))(*at)
    for place, slope in enumerate(slopes):
        assert np.abs(slope).min() > 1e-4
        for i in range(2):
            ends = []
            for h in (1e-6, -1e-6):
                moved = list(at)
                moved[place] = at[place].at[i].add(h)
                ends.append(value(*moved))
            np.testing.assert_allclose(slope[i], (ends[0] - ends[1]) / 2e-6, rtol=1e-6)


def test_machines_made_of_others_keep_their_lags():
    model, plain = arm(actuator_time=0.1), arm()
    assert model.topology.lags and not plain.topology.lags
    both = plain.attach(slide(actuator_time=0.3), "fore", "tool ")
    np.testing.assert_array_equal(both.actuator_time, [0, 0, 0.3])
    assert both.topology.lags and both.lock(["upper"], jnp.zeros(3)).topology.lags
    text, numbers = to_record(model)
    again = from_record(text, numbers)
    assert again.topology == model.topology
    np.testing.assert_array_equal(again.actuator_time, 0.1)
    older = from_record(to_record(plain)[0], numbers | {"drives": numbers["drives"][:, :12]})
    np.testing.assert_array_equal(older.drives, plain.drives)


def test_errors(without_import_hook):
    with pytest.raises(ModelError, match=r"joint 'cart': expected an actuator_time of zero or more, got \[-1\.\]"):
        slide(actuator_time=-1.0)
    with pytest.raises(ValueError, match=r"tau0: no drive of the model lags"):
        rollout(slide(), jnp.zeros(1), jnp.zeros(1), dt=0.1, steps=1, tau0=jnp.zeros(1))
    with pytest.raises(ValueError, match=r"tau0: expected shape \(1,\)"):
        simulate(slide(actuator_time=1.0), duration=1.0, dt=0.1, tau0=jnp.zeros(2))


@pytest.mark.slow
@pytest.mark.float32
def test_float32():
    model = trees.build(["free", "revolute"], [-1, 0], dtype=jnp.float32).replace(actuator_time=0.1)
    q0, v0, _ = trees.state(model)
    out = rollout(model, q0, v0, dt=0.01, steps=5, torques=jnp.ones(7, jnp.float32))
    assert out.drive_forces.dtype == jnp.float32
    np.testing.assert_allclose(out.drive_forces[-1], 1 - np.exp(-0.5), rtol=1e-5)
