"""Errors relative to the motion of each component: a slow joint beside a fast one, rest, and states saved rarely."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import lgsim
from lgsim.actuators import Actuators, SampledServo, Transmission
from lgsim.multibody import joints
from lgsim.simulation import simulate, simulate_adaptive

G, CENTER, INERTIA = 9.81, 0.05, 1e-4
POINT = INERTIA + CENTER**2


def pendulum(dtype=None, wheel=False):
    """A mass of 1 kg on a short arm, with an independent wheel beside it."""
    builder = lgsim.ModelBuilder(dtype=dtype)
    builder.add_body("bob", "world", joints.Revolute(), axis=[0, 1, 0], mass=1.0, center=[0, 0, -CENTER],
                     inertia=INERTIA * np.eye(3))  # fmt: skip
    if wheel:
        builder.add_body("wheel", "world", joints.Revolute(), axis=[0, 1, 0], mass=1.0, inertia=0.01 * np.eye(3))
    return builder.build()


def satellite(dtype):
    builder = lgsim.ModelBuilder(gravity=np.zeros(3), dtype=dtype)
    builder.add_body("bus", "world", joints.Free(), mass=10.0, inertia=np.diag([1.0, 1.2, 0.8]))
    builder.add_body("wheel", "bus", joints.Revolute(), axis=[0, 0, 1], mass=0.5,
                     inertia=np.diag([5e-4, 5e-4, 1e-3]))  # fmt: skip
    return builder.build()


def test_a_pendulum_beside_a_fast_wheel():
    """The wheel turns 5000 rad; the pendulum's error is relative to its own 4 rad, and the line names it."""
    found = simulate(pendulum(wheel=True), jnp.array([2.0, 0.0]), jnp.array([0.0, 500.0]), duration=10.0, dt=0.045)
    field = lambda t, y: [y[1], -G * CENTER / POINT * np.sin(y[0])]  # noqa: E731
    exact = solve_ivp(field, (0, 10.0), [2.0, 0.0], "DOP853", found.time, rtol=1e-12, atol=1e-12).y[0]
    said = found.step_error
    assert np.abs(found.q[:, 0] - exact).max() > 0.3
    assert not said.resolved and "bob" in str(said)
    assert said.size[0] < 5 and said.size[1] == pytest.approx(5000, rel=1e-3)
    fine = simulate(pendulum(wheel=True), jnp.array([2.0, 0.0]), jnp.array([0.0, 500.0]), duration=2.0, dt=0.005)
    assert fine.step_error.resolved and str(fine.step_error).endswith("in q bob")


def test_a_suspension_on_a_moving_car():
    """2000 N/m under 1 kg of a car of 100 m/s, without a damper: 45 rad/s with steps of 1.3 rad."""
    builder = lgsim.ModelBuilder(gravity=np.zeros(3))
    builder.add_body("car", "world", joints.Prismatic(), axis=[1, 0, 0], mass=10.0)
    builder.add_body("wheel", "car", joints.Prismatic(), axis=[0, 0, 1], mass=1.0, stiffness=2000.0)
    found = simulate(builder.build(), jnp.array([0.0, 0.1]), jnp.array([100.0, 0.0]), duration=6.0, dt=0.03)
    true = np.abs(found.q[:, 1] - 0.1 * np.cos(np.sqrt(2000.0) * found.time)).max()
    assert true > 0.05 and not found.step_error.resolved and "wheel" in str(found.step_error)


def test_a_small_motion_in_single_precision():
    """1 mrad with an error of a third counts as a motion."""
    found = simulate(pendulum(np.float32), jnp.array([1e-3], jnp.float32), duration=5.0, dt=0.06)
    true = np.abs(found.q[:, 0] - 1e-3 * np.cos(np.sqrt(G * CENTER / POINT) * found.time)).max()
    assert true > 2e-4 and not found.step_error.resolved


@pytest.mark.repeats("0.0-float64", "0.01-float32")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("torque", [0.0, 0.01])
def test_a_satellite_at_rest_with_a_reaction_wheel(dtype, torque):
    """The rounding of the wheel's 5000 rad is none of the bus, which does not move or turns only about z."""
    v0 = jnp.zeros(7, dtype).at[6].set(500.0)
    torques = jnp.zeros(7, dtype).at[6].set(torque)
    found = simulate(satellite(dtype), v0=v0, duration=10.0, dt=0.02, torques=torques)
    # the sum of the angular momenta stays: 0.8 w + 1e-3 (w + wheel) = 0.5
    other = np.delete(np.arange(7), [5, 6])
    angle = found.model.difference(jnp.asarray(found.q[0]), jnp.asarray(found.q[-1]))
    assert np.abs(angle[other]).max() < 1e-6 and float(angle[5]) == pytest.approx(-torque * 50 / 0.8, rel=1e-4)
    assert found.step_error.resolved and (torque or "wheel" in str(found.step_error))


@pytest.mark.parametrize("steps", [100, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("start", [(0.7, 0.0), (0.0, 0.7)])
def test_states_that_are_saved_once_a_period(steps, start):
    builder = lgsim.ModelBuilder(gravity=np.zeros(3))
    builder.add_body("weight", "world", joints.Prismatic(), mass=1.0, stiffness=4 * np.pi**2)
    q0, v0 = (jnp.array([x]) for x in start)
    found = simulate(builder.build(), q0, v0, duration=100.0, dt=1 / steps, save_every=steps)
    # between the saved states, where it stands still
    amplitude = start[0] or start[1] / (2 * np.pi)
    assert found.step_error.resolved and found.step_error.size[0] == pytest.approx(amplitude * (2 if start[0] else 1),
                                                                                   rel=0.1)  # fmt: skip
    true = np.abs(found.q[:, 0] - start[0]).max()
    assert true <= 3 * found.step_error.value[:, 0].max()


@pytest.mark.parametrize("period", [0.0125, 0.013, 0.007])
def test_a_sampled_servo_whose_period_is_no_multiple_of_the_step(period, tmp_path):
    """The held output and the clock of a motion with half the step jump elsewhere; the motions stay together."""
    builder = lgsim.ModelBuilder(gravity=np.zeros(3))
    builder.add_body("weight", "world", joints.Revolute(), axis=[0, 1, 0], mass=1.0, inertia=0.1 * np.eye(3))
    model = builder.build()
    servo = SampledServo(jnp.array([10.0]), jnp.array([1.0]), period=period)
    given = {"actuators": Actuators(Transmission.of_joints(model), servo), "commands": jnp.ones(1)}
    found = simulate(model, duration=3.0, dt=0.005, **given)

    # sampled at k T exactly, with constant forces between
    angle, rate, states = 0.0, 0.0, [(0.0, 0.0, 0.0)]
    for _ in range(int(3.0 / period) + 1):
        a = (10.0 * (1 - angle) - rate) / 0.1
        states[-1] = (angle, rate, a)
        angle, rate = angle + rate * period + a * period**2 / 2, rate + a * period
        states.append((angle, rate, 0.0))
    k = np.floor(found.time / period + 1e-9).astype(int)
    since, (x, v, a) = found.time - k * period, np.array(states)[k].T
    true = np.abs(found.q[:, 0] - (x + v * since + a * since**2 / 2)).max()
    said = found.step_error
    assert said.resolved and true <= 3 * said.value[:, 0].max() < 0.02
    again = lgsim.Trajectory.load(found.save(tmp_path / "run.npz")).step_error
    np.testing.assert_array_equal(again.size, said.size)


def test_a_joint_that_moves_less_than_the_errors_of_others():
    """A wheel of 5 t that a pendulum pushes: it moves by less than the pendulum's own error, and counts as at rest."""
    builder = lgsim.ModelBuilder()
    builder.add_body("base", "world", joints.Revolute(), axis=[0, 1, 0], mass=1.0, inertia=5000.0 * np.eye(3))
    builder.add_body("bob", "base", joints.Revolute(), axis=[0, 1, 0], mass=1.0, center=[0, 0, -CENTER],
                     inertia=INERTIA * np.eye(3))  # fmt: skip
    found = simulate(builder.build(), jnp.array([0.0, 1.0]), duration=5.0, dt=0.02)
    said = found.step_error
    assert said.resolved and np.abs(found.q[:, 0]).max() < said.value[:, 1].max()


def test_adaptive_states_that_are_saved_once_a_period():
    pytest.importorskip("diffrax")
    builder = lgsim.ModelBuilder(gravity=np.zeros(3))
    builder.add_body("weight", "world", joints.Prismatic(), mass=1.0, stiffness=4 * np.pi**2)
    found = simulate_adaptive(builder.build(), jnp.array([0.7]), duration=20.0, dt_out=1.0)
    true = np.abs(found.q[:, 0] - 0.7).max()
    assert found.step_error.resolved and true <= 3 * found.step_error.value[:, 0].max()
