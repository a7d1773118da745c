"""Joint forces that follow their commands with a lag: closed forms, MuJoCo's filter, files, derivatives."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import lgsim
from lgsim.actuators import Actuators, Lag, Transmission
from lgsim.multibody import joints
from lgsim.simulation import Trajectory, controls, events, rollout, simulate, simulate_adaptive
from tests.dynamics.machines import close

T, U, START = 0.2, 6.0, -1.5


def slide():
    """A mass of 2 kg on a rail, without gravity."""
    builder = lgsim.ModelBuilder(gravity=(0, 0, 0))
    return builder.add_body("cart", "world", joints.Prismatic(), mass=2.0).build()


def arm():
    """Two links that swing in a plane."""
    builder = lgsim.ModelBuilder()
    options = {"axis": [0, 1, 0], "mass": 1.0, "center": [0, 0, 0.2], "inertia": 0.02 * np.eye(3)}
    lift = np.eye(4)
    lift[2, 3] = 0.4
    builder.add_body("upper", "world", joints.Revolute(), **options)
    return builder.add_body("fore", "upper", joints.Revolute(), placement=lift, **options).build()


def lagging(model, time_constant):
    """Drives of all joints that follow their commands."""
    return Actuators(Transmission.of_joints(model), Lag(time_constant))


@pytest.mark.slow
def test_a_step_of_the_command_is_followed_by_an_exponential():
    """tau = u + (tau_0 - u) exp(-t/T), and its integral is the momentum; the trajectory has that force."""
    model = slide()
    given = {"actuators": lagging(model, T), "commands": jnp.array([U]), "actuator_state": jnp.array([START])}
    motion = simulate(model, duration=0.5, dt=0.005, **given)
    gone = np.exp(-motion.time / T)
    np.testing.assert_allclose(motion.tau[:, 0], U + (START - U) * gone, rtol=0, atol=1e-7)
    np.testing.assert_allclose(motion.v[:, 0], (U * motion.time + (START - U) * T * (1 - gone)) / 2, rtol=0, atol=1e-7)
    adaptive = simulate_adaptive(
        model, duration=0.5, rtol=1e-9, atol=1e-11, dt_out=0.1,
        events=events.joint_reaches(model, "cart", 0.0, rising=True), **given,
    )  # fmt: skip
    t = adaptive.time[-1]
    np.testing.assert_allclose(adaptive.tau[:, 0], U + (START - U) * np.exp(-adaptive.time / T), rtol=0, atol=1e-7)
    place = (U * t**2 / 2 + (START - U) * T * (t - T * (1 - np.exp(-t / T)))) / 2
    assert 0.05 < t < 0.5 and abs(place) < 1e-8 and "the joint 'cart' is 0 m" in adaptive.result


def test_the_forces_of_drives_are_kept_in_files(tmp_path):
    """tau of the trajectory is what the drives give, not the commands."""
    model = slide()
    whole = simulate(model, duration=0.4, dt=0.01, actuators=lagging(model, T), commands=jnp.array([U]))
    again = Trajectory.load(whole.save(tmp_path / "run.npz"))
    np.testing.assert_array_equal(again.tau, whole.tau)
    middle = whole.resample(whole.time[:-1] + 0.005)
    np.testing.assert_allclose(middle.tau[:, 0], U * (1 - np.exp(-middle.time / T)), rtol=0, atol=2e-3)


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
    model = lgsim.formats.read_mjcf(text=xml)[0]
    out = rollout(
        model, jnp.array([0.4, -0.3]), jnp.zeros(2), dt=0.002, steps=200,
        actuators=lagging(model, jnp.array([0.03, 0.1])), commands=jnp.array([2.0, -0.5]),
    )  # fmt: skip
    for _ in range(200):
        mujoco.mj_step(theirs, data)
    close(out.q[-1], data.qpos, 1e-12)
    close(out.v[-1], data.qvel, 1e-12)
    close(out.actuator_states[-1], data.act, 1e-12)


@pytest.mark.slow
def test_a_short_lag_is_nearly_none():
    """Of first order in T, with feedback."""
    q0, v0, law, model = jnp.array([0.3, -0.4]), jnp.zeros(2), controls.PD(jnp.array([0.5, 0.2]), 20.0, 2.0), arm()
    right = rollout(model, q0, v0, dt=0.002, steps=100, control=law)
    run = jax.jit(
        lambda T: rollout(model, q0, v0, dt=0.002, steps=100, control=law, actuators=lagging(model, T),
                          actuator_state=law(0.0, q0, v0, model))
    )  # fmt: skip
    gaps = [np.abs(run(jnp.full(2, T)).q - right.q).max() for T in (4e-3, 2e-3)]
    assert gaps[1] < 2e-2 and 1.6 < gaps[0] / gaps[1] < 2.4


@pytest.mark.slow
def test_gradient_in_time_constants_and_in_the_forces_at_the_start():
    model = arm()
    commands = jnp.asarray(np.random.default_rng(0).normal(size=(30, 2)))
    law = controls.PD(jnp.array([0.5, 0.2]), 5.0, 0.5)

    def loss(T, start, checkpoint):
        out = rollout(
            model, jnp.array([0.3, -0.4]), jnp.zeros(2), dt=0.01, steps=30, commands=commands, control=law,
            actuators=lagging(model, T), actuator_state=start, checkpoint=checkpoint,
        )  # fmt: skip
        return jnp.sum(out.q[-1] ** 2) + jnp.sum(out.actuator_states[15] * out.v[15])

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
