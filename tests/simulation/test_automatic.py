"""The choice of a method along the motion, what it says, and what a motion beyond the limit of its steps says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import lgsim
from lgsim import actions
from lgsim.simulation import Automatic, Trajectory, controls, simulate, simulate_adaptive
from tests.simulation.test_stiff_motion import stiff_pendulum

INERTIA, MOMENT = 0.05 + 1.3 * 0.16, 1.3 * 9.81 * 0.4
START = np.array([0.2])


@pytest.mark.slow
def test_a_stiff_machine_gets_a_stiff_method(tmp_path):
    model = stiff_pendulum(1e4)
    found = simulate(model, START, duration=0.5, dt=0.01, method=Automatic())
    same = simulate(model, START, duration=0.5, dt=0.01, method=lgsim.Rodas4)
    assert found.method == "Rodas4" and not found.result and found.step_error.resolved
    np.testing.assert_array_equal(found.q, same.q)
    assert found.remark == (
        f"rates up to 3.9e+04 1/s at joint {model.joint_names[0]} (damping 1e+04 on 0.26 kg m^2): Rodas4 takes the"
        " place of MK4"
    )
    assert found.remark in str(found.summary())
    assert Trajectory.load(found.save(tmp_path / "run.npz")).remark == found.remark


def test_a_slow_one_keeps_the_explicit_method():
    found = simulate(stiff_pendulum(0.1, friction_speed=1.0), START, duration=0.5, dt=0.01, method=Automatic())
    assert (found.method, found.remark) == ("MK4", "")


@pytest.mark.slow
def test_a_machine_that_becomes_stiff_on_its_way():
    """A pendulum falls into a place where its damper is 1e4 N m s, which MK4 does not bear at 10 ms."""
    model = stiff_pendulum(0.5, friction_speed=1.0).replace(friction=jnp.zeros(1))

    def brake(t, q, v, model):
        return -1e4 * jnp.exp(-(((q - 0.6) / 0.1) ** 2)) * v

    def derivative(t, y):
        damping = 0.5 + 1e4 * np.exp(-(((y[0] - 0.6) / 0.1) ** 2))
        return [y[1], (MOMENT * np.cos(y[0]) - damping * y[1]) / INERTIA]

    right = solve_ivp(derivative, (0, 1), [-0.3, 0.0], method="Radau", rtol=1e-10, atol=1e-12).y[:, -1]
    found = simulate(model, np.array([-0.3]), duration=1.0, dt=0.01, control=brake, method=Automatic())
    assert found.method == "Rodas4" and not found.result
    assert f"at joint {model.joint_names[0]} (damping" in found.remark and "of the control" in found.remark
    assert abs(found.q[-1, 0] - right[0]) < 3 * found.step_error.largest[0] < 3e-3


def test_a_stop_that_the_step_cannot_see_is_not_resolved():
    """A stop of 1e5 N m/rad: within a step of 10 ms the motion meets it and leaves it, by any method."""
    model = stiff_pendulum(5.0, friction_speed=1.0)
    numbers = {"upper": 0.6, "limit_stiffness": 1e5, "friction": 0.0}
    model = model.replace(**{name: jnp.array([x]) for name, x in numbers.items()})
    found = simulate(model, np.array([-0.3]), duration=4.0, dt=0.01, method=Automatic())
    assert f"at joint {model.joint_names[0]} (stiffness 1e+05 on 0.26 kg m^2)" in found.remark
    assert not found.step_error.resolved
    fine = simulate(model, np.array([-0.3]), duration=4.0, dt=1e-4, save_every=100, method=Automatic())
    rest = 0.6
    for _ in range(5):
        rest = 0.6 + MOMENT * np.cos(rest) / 1e5
    assert fine.step_error.resolved and abs(fine.q[-1, 0] - rest) < 1e-7


def test_an_explicit_step_beyond_its_limit_says_joint_rate_and_method():
    model = stiff_pendulum(1e4)
    found = simulate(model, START, duration=0.5, dt=0.01)
    assert found.result.startswith("diverged: ")
    assert "rates up to 3.9e+04 1/s at joint" in found.result
    assert "take a dt of 4e-05 s, or a method such as Rodas4" in found.result


def test_a_control_that_cannot_be_differentiated_is_no_obstacle():
    @jax.custom_vjp
    def push(x):
        return -x

    push.defvjp(lambda x: (push(x), None), lambda _, y: (-y,))
    model = stiff_pendulum(0.1, friction_speed=1.0)
    found = simulate(model, START, duration=0.1, dt=0.01, method=Automatic(), control=lambda t, q, v, model: push(v))
    assert (found.method, found.remark, found.result) == ("MK4", "", "")


def test_a_stiff_control_is_named():
    model = stiff_pendulum(0.1, friction_speed=1.0)
    law = controls.PD(jnp.zeros(1), 1e5, 1e3)
    found = simulate(model, START, duration=0.5, dt=0.01, control=law, method=Automatic())
    assert found.method == "Rodas4" and "of the control on 0.26 kg m^2" in found.remark


def test_a_singular_linear_system_names_its_joint():
    """A control that pushes away at the rate 1/(gamma dt): x'' = 160 000 x, dt = 10 ms, gamma = 1/4."""
    model = stiff_pendulum(0.0, friction_speed=1.0).replace(friction=jnp.zeros(1), gravity=jnp.zeros(3))

    def push(t, q, v, model):
        return INERTIA * 400.0**2 * q

    found = simulate(model, START, duration=0.5, dt=0.01, control=push, method=lgsim.Rodas4)
    name = model.joint_names[0]
    assert f"the linear system of a step is singular at the joint {name!r}, which grows too fast for dt" in found.result


def test_the_first_fault_is_named_by_a_stiff_method_too():
    """What diverges by itself, looked into: its Jacobian goes through the checks of every quantity."""
    model = stiff_pendulum(0.1, friction_speed=1.0)

    def runaway(t, q, v, model):
        return 1e3 * jnp.exp(q**2) * q

    found = simulate(model, START, duration=1.0, dt=0.01, control=runaway, method=lgsim.Rodas4, check=True)
    assert found.result.startswith("diverged: not finite: ")


@pytest.mark.slow
def test_adaptive_steps_of_a_stiff_pair():
    """Rodas43 on a stiff pendulum in few steps, forwards and backwards, by the machine's own linear systems."""
    pytest.importorskip("diffrax")
    model = stiff_pendulum(1e4)
    fine = simulate(model, START, duration=1.0, dt=1e-3, method=lgsim.Rodas4, step_check=False)
    found = simulate_adaptive(model, START, duration=1.0, rtol=1e-9, atol=1e-12, method=lgsim.Rodas43, dt_out=0.5)
    assert not found.result and found.step_error.resolved
    np.testing.assert_allclose(found.q[-1], fine.q[-1], rtol=0, atol=1e-9)
    assert found.method.startswith("Rodas43")


def test_adaptive_steps_in_both_directions():
    """y' = -1000 (y - cos t) - sin t from t = 0: y = cos t, on the line forwards, with J of either sign."""
    adaptive = pytest.importorskip("lgsim.integrators.adaptive")

    def field(t, y, args):
        return args * (y - jnp.cos(t)) - jnp.sin(t)

    for end, rate in ((1.0, -1e3), (-1.0, 1e3)):
        solution = adaptive.solve(
            lgsim.Rodas43, actions.Translation(1), field, jnp.ones(1), t1=end, args=rate, rtol=1e-8, atol=1e-10,
            save_at=[end],
        )  # fmt: skip
        assert solution.result == adaptive.RESULTS.successful
        np.testing.assert_allclose(solution.ys[-1], np.cos(end), rtol=0, atol=1e-7)
