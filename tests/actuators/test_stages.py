"""Each stage beside a closed form, or beside scipy's Radau on equations that are written anew here."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from lgsim import actuators, rollout
from lgsim.actuators import Actuators, Transmission
from lgsim.actuators.stage import Shaft
from tests.actuators.machines import arm, cart, pendulum

REST = jnp.zeros(1)


def one(model, *stages):
    """Actuators on all joints of a model."""
    return Actuators(Transmission.of_joints(model), *stages)


def force(stage, signal, speed, angle=0.0, states=None):
    """What a stage gives at one signal and one motion."""
    signal, shaft = jnp.array([float(signal)]), Shaft(jnp.array([float(angle)]), jnp.array([float(speed)]))
    z = stage.start(shaft) if states is None else jnp.asarray(states)
    out, rate = stage.respond(signal, shaft, z)
    return float(out[0]), np.asarray(rate)[:, 0] if rate.size else None


def radau(f, y0, t):
    """The solution at times t to 1e-11."""
    found = solve_ivp(f, (t[0], t[-1]), y0, method="Radau", t_eval=t, rtol=1e-10, atol=1e-12)
    assert found.success
    return found.y.T


def test_gear_loses_in_both_directions_and_keeps_power_without_loss():
    gear = actuators.Gear(-20.0, 0.7, 0.1)
    assert force(gear, 3.0, -8.0)[0] == pytest.approx(-60.0 * 0.7, rel=1e-12)  # the motor drives
    assert force(gear, 3.0, 8.0)[0] == pytest.approx(-60.0 / 0.7, rel=1e-12)  # it is driven
    assert force(gear, 3.0, 0.0)[0] == pytest.approx(-60.0, rel=1e-12)
    inner = gear.inner_shaft(Shaft(jnp.array([0.3]), jnp.array([2.0])), jnp.zeros((0, 1)))
    assert float(inner.angle[0]) == pytest.approx(-6.0) and float(inner.speed[0]) == pytest.approx(-40.0)
    perfect = actuators.Gear(5.0)
    shaft = Shaft(jnp.array([0.0]), jnp.array([1.7]))
    motor = perfect.inner_shaft(shaft, jnp.zeros((0, 1)))
    assert force(perfect, 0.4, 1.7)[0] * 1.7 == pytest.approx(0.4 * float(motor.speed[0]), rel=1e-14)


def test_motor_has_the_line_of_its_stall_torque_and_no_load_speed():
    motor = actuators.DCMotor.from_line(24.0, 1.2, 300.0)
    assert force(motor, 24.0, 0.0)[0] == pytest.approx(1.2, rel=1e-14)
    assert force(motor, 24.0, 300.0)[0] == pytest.approx(0.0, abs=1e-14)
    assert force(motor, 12.0, 75.0)[0] == pytest.approx(0.3, rel=1e-13)  # half the voltage, half of its speed


def test_motor_with_inductance_runs_up_as_its_linear_equations_say():
    """i and v of a cart on a winding, ``(i, v)' = A (i, v) + b``, by the exponential of a matrix."""
    R, K, k, L, m, u = 0.8, 0.3, 0.35, 0.02, 2.0, 6.0
    model = cart(m)
    drive = one(model, actuators.DCMotor(R, K, k, L))
    out = rollout(model, REST, REST, dt=1e-3, steps=400, save_every=40, actuators=drive, commands=jnp.array([u]))
    A, b = np.array([[-R / L, -k / L], [K / m, 0]]), np.array([u / L, 0])
    still = -np.linalg.solve(A, b)
    for t, v, z in zip(out.time, out.v, out.actuator_states, strict=True):
        i, speed = still - expm(A * float(t)) @ still
        assert abs(float(v[0]) - speed) < 1e-9 and abs(float(z[0]) - i) < 1e-7


def test_current_loop_lags_and_saturates():
    model, K, T, limit, u = cart(), 0.5, 0.03, 4.0, 10.0
    drive = one(model, actuators.CurrentLoop(K, T, limit))
    out = rollout(model, REST, REST, dt=2e-3, steps=100, actuators=drive, commands=jnp.array([u]))
    gone = np.exp(-out.time / T)
    np.testing.assert_allclose(out.actuator_states[:, 0], limit * (1 - gone), atol=1e-6)
    np.testing.assert_allclose(out.v[:, 0], K * limit * (out.time - T * (1 - gone)) / 2.0, atol=1e-8)


@pytest.mark.parametrize("late", [0.0, 1.0, 2.0, 0.25])
def test_sampled_servo_is_the_sampled_double_integrator(late):
    """Between samples the force is constant, so that the motion of the cart is exact: written out in numpy."""
    model, k, d, T, target, m = cart(2.0), 30.0, 9.0, 0.02, 0.7, 2.0
    servo = actuators.SampledServo(k, d, T, late, longest=2)
    out = rollout(model, REST, REST, dt=0.005, steps=200, actuators=one(model, servo), commands=jnp.array([target]))
    x, v, past = 0.0, 0.0, [0.0, 0.0, 0.0]
    whole, part = int(np.floor(late)), late - np.floor(late)
    for n in range(50):
        np.testing.assert_allclose([out.q[4 * n, 0], out.v[4 * n, 0]], [x, v], rtol=0, atol=1e-12)
        past = [k * (target - x) - d * v, *past[:-1]]
        f = (1 - part) * past[whole] + part * past[min(whole + 1, 2)]
        x, v = x + T * v + T * T / 2 * f / m, v + T * f / m
    assert abs(float(out.q[-1, 0]) - target) < 0.1


def test_servo_goes_on_in_pieces_where_it_was():
    """The clock and what is held are states: two halves are the whole."""
    model, servo = cart(), actuators.SampledServo(30.0, 9.0, 0.02, 1.0)
    options = {"dt": 0.005, "actuators": one(model, servo), "commands": jnp.array([0.5])}
    whole = rollout(model, REST, REST, steps=100, **options)
    first = rollout(model, REST, REST, steps=50, **options)
    rest = rollout(model, first.q[-1], first.v[-1], steps=50, actuator_state=first.actuator_states[-1], **options)
    np.testing.assert_allclose(rest.q[-1], whole.q[-1], atol=1e-13)
    with pytest.raises(ValueError, match=r"actuator_state: expected shape \(3,\), that is actuators.states"):
        rollout(model, REST, REST, steps=50, actuator_state=jnp.zeros(2), **options)


def test_bristles_are_a_spring_at_rest_and_coulomb_friction_in_motion():
    bristles = actuators.LuGreFriction(1e3, 3.0, 0.4, 1.0, 1.5, 0.01)
    assert force(bristles, 2.0, 0.0, states=[[1e-4]])[0] == pytest.approx(2.0 - 0.1, rel=1e-13)
    for v in (0.5, -2.0):
        level = 1.0 + 0.5 * np.exp(-((v / 0.01) ** 2))
        z = np.sign(v) * level / 1e3
        out, rate = force(bristles, 0.0, v, states=[[z]])
        assert out == pytest.approx(-(np.sign(v) * level + 0.4 * v), rel=1e-12) and abs(rate[0]) < 1e-12


def test_bristles_stick_and_slip_as_radau_says():
    """A cart on a spring drawn by a servo's spring, which breaks away: Canudas de Wit's experiment."""
    s0, s1, s2, Fc, Fs, vs, k, m = 1e4, 60.0, 0.4, 1.0, 1.5, 0.05, 8.0, 1.0
    model = cart(m)
    drive = one(model, actuators.PositionServo(k, 0.0), actuators.LuGreFriction(s0, s1, s2, Fc, Fs, vs))
    pull = jnp.linspace(0.0, 0.3, 12001)[:, None]  # 0.1 m/s
    out = rollout(model, REST, REST, dt=2.5e-4, steps=12000, save_every=1200, actuators=drive, commands=pull)

    def motion(t, y):
        x, v, z = y
        rate = v - s0 * abs(v) / (Fc + (Fs - Fc) * np.exp(-((v / vs) ** 2))) * z
        return [v, (k * (0.1 * t - x) - s0 * z - s1 * rate - s2 * v) / m, rate]

    true = radau(motion, [0, 0, 0], np.asarray(out.time))
    assert true[5, 0] < 3e-4 < 0.1 < true[-1, 0]  # it sticks, then it slips
    np.testing.assert_allclose(out.q[:, 0], true[:, 0], atol=1e-7)
    np.testing.assert_allclose(out.actuator_states[:, 0], true[:, 2], atol=1e-8)


@pytest.mark.slow
def test_rotor_rattles_in_its_gap_as_radau_says():
    """A servo on the rotor of a pendulum with play, behind a gear: the gap, contact and gear by hand."""
    J, b, k, c, gap, w, N, kp, kd = 2e-3, 1e-3, 40.0, 0.02, 0.05, 0.005, 3.0, 2.0, 0.05
    model = pendulum()
    stages = (actuators.PositionServo(kp, kd), actuators.Backlash(J, b, k, c, gap, w), actuators.Gear(N))
    times, target = 2.5e-4 * np.arange(0, 4001, 400), 1.2
    out = rollout(
        model, REST, REST, dt=2.5e-4, steps=4000, save_every=400, actuators=one(model, *stages),
        commands=jnp.array([target]),
    )  # fmt: skip

    def motion(t, y):
        q, v, r, s = y
        e = r - N * q
        D = w * (np.logaddexp(0, (e - gap) / w) - np.logaddexp(0, (-e - gap) / w))
        touch = 1 / (1 + np.exp(-(e - gap) / w)) + 1 / (1 + np.exp((e + gap) / w))
        F = k * D + c * touch * (s - N * v)
        return [v, (N * F - 0.2 * 9.81 * np.sin(q)) / 0.06, s, (kp * (target - r) - kd * s - b * s - F) / J]

    true = radau(motion, [0, 0, 0, 0], times)
    np.testing.assert_allclose(np.stack([out.q[:, 0], out.v[:, 0]], 1), true[:, :2], atol=2e-7)
    np.testing.assert_allclose(out.actuator_states, true[:, 2:], atol=2e-6)


def test_torque_falls_with_speed():
    limit = actuators.TorqueSpeedLimit(4.0, 10.0)
    cases = [(9.0, 0.0, 4.0), (9.0, 5.0, 2.0), (9.0, 12.0, 0.0), (9.0, -5.0, 4.0), (-9.0, -7.5, -1.0), (1.0, 2.0, 1.0)]
    for signal, speed, wanted in cases:
        assert force(limit, signal, speed)[0] == pytest.approx(wanted, abs=1e-14)
    assert force(actuators.TorqueSpeedLimit(np.inf, 10.0), 9.0, 20.0)[0] == 9.0
    assert force(actuators.TorqueSpeedLimit(4.0, 0.0), 9.0, 20.0)[0] == 4.0


def test_stribeck_friction_of_the_model_is_its_dry_friction_extended():
    """A cart that slides to rest, beside Radau; and the breakaway force at a small speed."""
    m, F, S, vs, v0 = 2.0, 1.0, 0.8, 0.3, 0.02
    model = cart(m, friction=F, stribeck=S, stribeck_speed=vs, friction_speed=v0)
    out = rollout(model, REST, jnp.array([1.0]), dt=1e-3, steps=1500, save_every=100)

    def dry(v):
        return (F + S * np.exp(-((v / vs) ** 2))) * np.tanh(v / v0)

    true = radau(lambda t, y: [y[1], -dry(y[1]) / m], [0, 1.0], np.asarray(out.time))
    np.testing.assert_allclose(np.stack([out.q[:, 0], out.v[:, 0]], 1), true, atol=1e-8)
    assert dry(0.08) > 1.7  # much more than the dry friction at speed


def test_coupling_keeps_power_and_moves_both_joints():
    """A differential: two motors by the sum and the difference of two joints."""
    model, C = arm(), jnp.array([[20.0, 20.0], [20.0, -20.0]])
    transmission = Transmission.of_joints(model, coupling=C)
    q, v, f = jnp.array([0.3, -0.2]), jnp.array([0.5, 1.1]), jnp.array([0.2, -0.7])
    shaft = transmission.shaft(model, q, v)
    np.testing.assert_allclose(shaft.angle, [20 * 0.1, 20 * 0.5], atol=1e-14)
    tau = transmission.joint_forces(model, q, f)
    np.testing.assert_allclose(tau, [20 * -0.5, 20 * 0.9], atol=1e-13)
    assert float(tau @ v) == pytest.approx(float(f @ shaft.speed), rel=1e-14)


@pytest.mark.slow
def test_dead_time_has_a_derivative_and_numbers_of_all_stages_have():
    """By reverse mode, beside differences, of every leaf of a long chain."""
    model = pendulum()
    stages = (
        actuators.Saturation(-2.0, 2.0), actuators.SampledServo(0.6, 0.02, 0.01, 0.4), actuators.Lag(0.01),
        actuators.DCMotor(0.5, 0.2, 0.2, 2e-3), actuators.TorqueSpeedLimit(0.3, 80.0),
        actuators.LuGreFriction(2.0, 0.01, 1e-3, 0.01, 0.02, 1.0),
        actuators.Backlash(1e-3, 1e-3, 20.0, 0.02, 0.05, 0.02), actuators.Gear(5.0, 0.8, 0.5),
    )  # fmt: skip
    drive = one(model, *stages)
    leaves, structure = jax.tree.flatten(drive)
    commands = jnp.asarray(1.5 * np.sin(0.02 * np.arange(200)))[:, None]

    def reached(leaves):
        there = jax.tree.unflatten(structure, leaves)
        return rollout(model, REST, REST, dt=1e-3, steps=200, actuators=there, commands=commands).q[-1, 0]

    value, slopes = jax.jit(reached), jax.jit(jax.grad(reached))(leaves)
    names = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(drive)]
    still = {n for n, slope in zip(names, slopes, strict=True) if not np.any(slope)}
    # a clock has no derivative, and limits that are not met have none
    assert still <= {n for n in names if n.endswith((".period", ".lower", ".upper", ".effort", "_constant", ".speed"))}
    for i, name in enumerate(names):
        if name in still:
            continue
        h = 1e-6 * max(1.0, float(np.abs(leaves[i]).max()))
        ends = [value([*leaves[:i], leaves[i] + s * h, *leaves[i + 1 :]]) for s in (1, -1)]
        wanted = float(ends[0] - ends[1]) / (2 * h)
        np.testing.assert_allclose(np.sum(slopes[i]), wanted, rtol=2e-5, atol=1e-9, err_msg=name)
