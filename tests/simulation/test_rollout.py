"""Motions against closed forms, scipy, MuJoCo and Pinocchio; what drives them; derivatives through them."""

import chex
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pinocchio as pin
import pytest
from scipy.integrate import solve_ivp

import lgsim
from lgsim.multibody import joints
from lgsim.simulation import controls, rollout
from tests.dynamics.machines import close
from tests.integrators.engines import default
from tests.multibody import trees
from tests.multibody.twin import Twin

ENGINES = ("CF4", "CG3", "MK4TwoCommutators")
"""The families, of which MK4 runs in the other tests."""
CASES = ["revolute chain", "floating", "groups"]


def reference(model, q0, v0, duration):
    """q and v at the end, by scipy on Pinocchio's accelerations, in coordinates of Pinocchio's own about the start."""
    twin = Twin(model)
    start = twin.q(q0)

    def field(t, x):
        q = pin.integrate(twin.pin, start, x[: twin.pin.nv])
        v = x[twin.pin.nv :]
        a = pin.aba(twin.pin, twin.data, q, v, np.zeros(twin.pin.nv))
        slope = np.linalg.solve(pin.dIntegrate(twin.pin, start, x[: twin.pin.nv])[1], v)
        return np.concatenate([slope, a])

    x0 = np.concatenate([np.zeros(twin.pin.nv), twin.v(v0)])
    x = solve_ivp(field, (0, duration), x0, method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    return pin.integrate(twin.pin, start, x[: twin.pin.nv]), x[twin.pin.nv :]


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_order_on_every_kind_of_joint(name):
    """MK4's error falls sixteenfold with half the step, to the motion that scipy and Pinocchio find."""
    model = trees.build(*trees.CASES[name])
    q0, v0, _ = trees.state(model)
    twin = Twin(model)
    right, speed = reference(model, q0, v0, 0.2)
    errors = []
    run = jax.jit(lambda q, v, dt: rollout(model, q, v, dt=dt, steps=40))
    for pieces in (1, 2):
        q, v = q0, v0
        for _ in range(pieces):
            out = run(q, v, 0.2 / (40 * pieces))
            q, v = out.q[-1], out.v[-1]
        gap = pin.difference(twin.pin, right, twin.q(q))
        errors.append(np.linalg.norm(np.concatenate([gap, twin.v(v) - speed])))
    assert errors[1] < 1e-5
    assert 12 < errors[0] / errors[1] < 21


def test_on_revolute_joints_it_is_the_method_of_mujoco():
    """MK4 is classical Runge-Kutta there: the same motion as MuJoCo's RK4 to round-off."""
    xml = """<mujoco><option integrator="RK4" timestep="0.002"/><worldbody><body><joint axis="0 1 0" damping="0.1"/>
    <geom type="capsule" fromto="0 0 0 0.3 0 0.4" size="0.03"/><body pos="0.3 0 0.4"><joint axis="1 0 0"/>
    <geom type="capsule" fromto="0 0 0 0 0.2 0.3" size="0.02"/></body></body></worldbody></mujoco>"""
    theirs = mujoco.MjModel.from_xml_string(xml.replace("<geom", '<geom contype="0" conaffinity="0"'))
    data = mujoco.MjData(theirs)
    data.qpos[:] = [0.4, -0.3]
    model, _ = lgsim.formats.read_mjcf(text=xml)
    out = rollout(model, jnp.array([0.4, -0.3]), jnp.zeros(2), dt=0.002, steps=300)
    for _ in range(300):
        mujoco.mj_step(theirs, data)
    close(out.q[-1], data.qpos, 1e-12)
    close(out.v[-1], data.qvel, 1e-12)


@pytest.fixture(scope="module")
def fine():
    """A plane and a ball on it, with a state, and for each size of a step the end of twenty small ones of MK4."""
    model = trees.build(["planar", "spherical"], [-1, 0])
    q0, v0, _ = trees.state(model)
    small = jax.jit(lambda dt: rollout(model, q0, v0, dt=dt / 20, steps=20, save_every=20))
    ends = {dt: small(dt) for dt in (0.04, 0.02)}
    return model, q0, v0, {dt: (out.q[-1], out.v[-1]) for dt, out in ends.items()}


@pytest.mark.repeats("MK4TwoCommutators")
@pytest.mark.parametrize("method", default(["MK4", "CF4", "CG3", "MK2", "MK4TwoCommutators"], ENGINES))
def test_every_family_moves_every_joint(method, fine):
    """One step of each against small ones of MK4: an error of the method's order, not of a lower one."""
    model, q0, v0, ends = fine

    @jax.jit
    def gap(dt, q, v):
        one = rollout(model, q0, v0, dt=dt, steps=1, method=lgsim.METHODS[method])
        return jnp.linalg.norm(jnp.concatenate([model.difference(q, one.q[-1]), one.v[-1] - v]))

    gaps = [float(gap(dt, *end)) for dt, end in ends.items()]
    assert np.log2(gaps[0] / gaps[1]) > lgsim.METHODS[method].order + 0.7


def pendulum(**numbers):
    builder = lgsim.ModelBuilder()
    builder.add_body("bob", "world", joints.Revolute(), axis=[0, 1, 0], mass=1.0, center=[0, 0, -0.5],
                     inertia=0.01 * np.eye(3), **numbers)  # fmt: skip
    return builder.build()


I = 0.01 + 0.25  # noqa: E741  about the joint


def test_torques_held_and_in_straight_lines():
    """Without gravity the speed is the integral of the torque: exact for both readings, also at the end of a step."""
    model = pendulum().replace(gravity=jnp.zeros(3))
    tau = jnp.asarray(np.random.default_rng(0).normal(size=(11, 1)))
    for given, area in (
        (tau[:10], jnp.sum(tau[:10])),
        (tau, jnp.sum(tau[:10] + tau[1:]) / 2),
        (tau[0], 10 * tau[0, 0]),
    ):
        out = rollout(model, jnp.zeros(1), jnp.zeros(1), dt=0.1, steps=10, torques=given, t0=3.0)
        np.testing.assert_allclose(out.v[-1, 0], 0.1 * area / I, rtol=1e-13)
    np.testing.assert_allclose(out.time, 3.0 + 0.1 * np.arange(11), rtol=1e-14)


def test_a_damped_spring_is_its_closed_form():
    model = pendulum(stiffness=8.0, damping=0.3, rest=0.1).replace(gravity=jnp.zeros(3))
    out = rollout(model, jnp.ones(1), jnp.zeros(1), dt=0.01, steps=200)
    decay, w = 0.3 / (2 * I), np.sqrt(8.0 / I - (0.3 / (2 * I)) ** 2)
    right = 0.1 + 0.9 * np.exp(-decay * out.time) * (np.cos(w * out.time) + decay / w * np.sin(w * out.time))
    np.testing.assert_allclose(out.q[:, 0], right, rtol=0, atol=1e-6)


@pytest.mark.slow
def test_gravity_compensation_holds_and_pd_pulls():
    model = trees.build(["revolute"] * 3, [-1, 0, 0])
    q0, _, _ = trees.state(model)
    still = jnp.zeros(model.nv)
    run = jax.jit(lambda law: rollout(model, q0, still, dt=0.01, steps=50, control=law))
    out = run(controls.GravityCompensation())
    np.testing.assert_allclose(out.q[-1], q0, rtol=0, atol=1e-11)
    goal = q0 + 0.3
    law = controls.ComputedTorque(goal, 25.0, 10.0)
    out = run(law)
    e = 0.3 * np.exp(-5 * out.time[-1]) * (1 + 5 * out.time[-1])  # the critically damped error
    np.testing.assert_allclose(goal - out.q[-1], np.full(model.nv, e), rtol=0, atol=1e-6)
    both = controls.GravityCompensation() + controls.PD(goal, 3.0, 2.0)
    force, weight = jax.jit(lambda: (both(0.0, q0, still, model), lgsim.gravity_forces(model, q0)))()
    close(force, weight + 3.0 * (goal - q0))


def test_a_motor_gives_what_its_line_allows():
    model = pendulum(effort_limit=2.0, velocity_limit=4.0)
    motor = controls.MotorLimits(lambda t, q, v, model: 10.0 * jnp.ones_like(v))
    for v, most in ((0.0, 2.0), (2.0, 1.0), (4.0, 0.0), (5.0, 0.0), (-2.0, 2.0)):
        np.testing.assert_allclose(motor(0.0, jnp.zeros(1), jnp.array([v]), model), most, atol=1e-15)
    back = controls.MotorLimits(lambda t, q, v, model: -10.0 * jnp.ones_like(v))
    np.testing.assert_allclose(back(0.0, jnp.zeros(1), jnp.array([-2.0]), model), -1.0)
    free = pendulum()
    assert motor(0.0, jnp.zeros(1), jnp.array([9.0]), free) == 10.0


@pytest.mark.slow
def test_a_wrench_on_a_frame():
    """In axes of the world and of the frame its power is that of the frame's motion: M a changes by the Jacobian's
    transpose."""
    model = trees.build(["free", "revolute"], [-1, 0]).add_frame("tip", "body1", trees.pose(np.random.default_rng(5)))
    q, v, tau = trees.state(model)
    F = jnp.asarray(np.random.default_rng(6).normal(size=6))

    @jax.jit
    def powers(q, v, tau, F):
        pushes = jnp.stack([controls.FrameWrench("tip", F, world=x)(0.0, q, v, model) for x in (True, False)])
        wrenches = jnp.concatenate([pushes, jnp.zeros_like(pushes[:1])])
        a, b, free = jax.vmap(lambda w: lgsim.forward_dynamics(model, q, v, tau, w))(wrenches)
        twist = lgsim.dynamics.frame_twists(model, q, v)[-1]
        R = lgsim.forward_kinematics(model, q)[-1, :3, :3]
        M = lgsim.mass_matrix(model, q)
        turned = jnp.concatenate([R @ twist[:3], R @ twist[3:]])
        return jnp.stack([v @ (M @ (a - free)), v @ (M @ (b - free))]), jnp.stack([turned @ F, twist @ F])

    np.testing.assert_allclose(*powers(q, v, tau, F), rtol=1e-11)


def loss(model, q0, v0, torques, checkpoint):
    out = rollout(model, q0, v0, dt=0.02, steps=12, torques=torques, checkpoint=checkpoint)
    return jnp.sum(out.q[-1] ** 2) + jnp.sum(out.v[6] ** 3)


def sprung(*kinds):
    """A chain with all kinds of passive forces, a start, and torques."""
    model = trees.build([*kinds], range(-1, len(kinds) - 1), armature=True)
    n = model.nv
    model = model.replace(
        damping=jnp.full(n, 0.2), friction=jnp.full(n, 0.1), stiffness=jnp.full(n, 3.0),
        limit_stiffness=jnp.full(n, 5.0),
        limit_damping=jnp.full(n, 0.5), upper=jnp.full(n, -3.0),
    )  # fmt: skip
    q0, v0, _ = trees.state(model)
    return model, q0, v0, jnp.asarray(np.random.default_rng(1).normal(size=(12, n)))


@pytest.mark.slow
def test_all_checkpoints_and_modes_agree():
    """Gradients in the start and in torques; forward mode and reverse mode."""
    model, q0, v0, torques = sprung("revolute")
    slope = jax.jit(jax.grad(loss, (2, 3)), static_argnums=4)
    right = slope(model, q0, v0, torques, "step")
    for other in (None, 4, "recursive"):
        for x, y in zip(slope(model, q0, v0, torques, other), right, strict=True):
            close(x, np.asarray(y), 1e-11)
    change = jnp.asarray(np.random.default_rng(2).normal(size=torques.shape))
    along = jax.jit(lambda t: jax.jvp(lambda t: loss(model, q0, v0, t, None), (t,), (change,))[1])(torques)
    np.testing.assert_allclose(along, jnp.sum(right[1] * change), rtol=1e-10)


@pytest.mark.slow
def test_gradients_of_everything():
    """Reverse mode and finite differences agree in torques, states and every number of the model."""
    model, q0, v0, torques = sprung("revolute", "spherical", "prismatic")
    f = jax.jit(loss, static_argnums=4)
    slope = jax.jit(jax.grad(loss, (0, 2, 3)), static_argnums=4)(model, q0, v0, torques, "step")
    for i, given in ((1, v0), (2, torques)):
        change = np.random.default_rng(2).normal(size=given.shape)
        moved = [given + s * change for s in (1e-5, -1e-5)]
        ends = [float(f(model, q0, *((x, torques) if i == 1 else (v0, x)), None)) for x in moved]
        np.testing.assert_allclose(np.sum(slope[i] * change), (ends[0] - ends[1]) / 2e-5, rtol=1e-6)
    for name in ("inertias", "placements", "axes", "armature", "damping", "friction", "friction_speed", "stiffness",
                 "rest", "limit_stiffness", "limit_damping", "upper", "gravity"):  # fmt: skip
        number = np.asarray(getattr(model, name))
        change = np.random.default_rng(3).normal(size=number.shape)
        if name == "placements":
            change[:, 3] = 0
        ends = [float(f(model.replace(**{name: number + s * change}), q0, v0, torques, None)) for s in (1e-6, -1e-6)]
        found = float(np.sum(np.asarray(getattr(slope[0], name)) * change))
        assert found != 0, name
        np.testing.assert_allclose(found, (ends[0] - ends[1]) / 2e-6, rtol=2e-5, atol=1e-7, err_msg=name)


def test_batches_compile_once_and_numbers_do_not_compile_again():
    model = pendulum()

    @chex.assert_max_traces(n=1)
    def run(model, q0):
        return rollout(model, q0, jnp.zeros(1), dt=0.01, steps=30, save_every=10).q

    jitted = jax.jit(lgsim.tiled_vmap(run, in_axes=(None, 0)))
    q0 = jnp.linspace(0, 1, 5)[:, None]
    many = jitted(model, q0)
    again = jitted(model.replace(inertias=2 * model.inertias), q0)
    assert many.shape == (5, 4, 1)
    close(again, many, 1e-12)  # a pendulum of twice the mass swings alike
    close(many[3], run(model, q0[3]), 1e-13)


@pytest.mark.float32
def test_float32():
    model = trees.build(["free", "revolute"], [-1, 0], dtype=jnp.float32)
    q0, v0, _ = trees.state(model)
    out = rollout(model, q0, v0, dt=0.01, steps=20)
    assert out.q.dtype == out.v.dtype == out.time.dtype == jnp.float32
    assert np.abs(np.linalg.norm(out.q[:, 3:7], axis=1) - 1).max() < 1e-5


WRONG = [
    ({"torques": np.zeros(3)}, ValueError, r"torques: expected shape"),
    (
        {"torques": np.zeros((5, 1))},
        ValueError,
        r"torques: expected shape \(1,\), \(10, 1\) held .* \(11, 1\) nodes",
    ),
    ({"torques": np.zeros((10, 1), np.float32)}, TypeError, r"torques: expected float64"),
    ({"q0": np.zeros(2)}, ValueError, r"q0: expected shape \(1,\), that is nq, got \(2,\)"),
    ({"v0": np.zeros((4, 1))}, ValueError, r"v0: .* use jax.vmap"),
    ({"q0": np.zeros(1, np.float32)}, TypeError, r"q0: expected float64, the dtype of the model"),
    ({"dt": 0.0}, ValueError, r"dt: expected a step that is not zero"),
    ({"steps": 0}, ValueError, r"steps: expected at least 1"),
    ({"steps": True}, TypeError, r"steps: expected an integer, got the truth value True"),
    ({"steps": 2.0}, TypeError, r"steps: expected an integer known"),
    ({"save_every": True}, TypeError, r"save_every: expected an integer, got the truth value True"),
    ({"torques": "abc"}, TypeError, r"torques: expected an array .* got the string"),
    ({"dt": None}, TypeError, r"dt: expected a number, got None"),
    ({"save_every": 3}, ValueError, r"save_every: expected a divisor"),
    ({"method": "MK4"}, TypeError, r"method: expected a method"),
    ({"checkpoint": "some"}, ValueError, r"checkpoint: expected None"),
]


@pytest.mark.parametrize(("wrong", "kind", "message"), WRONG, ids=[f"{i}" for i in range(len(WRONG))])
def test_errors(wrong, kind, message, without_import_hook):
    given = {"q0": np.zeros(1), "v0": np.zeros(1), "dt": 0.1, "steps": 10} | wrong
    with pytest.raises(kind, match=message):
        rollout(pendulum(), given.pop("q0"), given.pop("v0"), **given)
    with pytest.raises(TypeError, match="model: expected an lgsim"):
        rollout(None, np.zeros(1), np.zeros(1), dt=0.1, steps=1)


@pytest.mark.parametrize("none", [0.0, np.inf])
def test_a_motor_without_given_limits(none):
    """Zero is what files write for a limit that they do not give: never NaN, at rest either; derivatives are finite."""
    motor = controls.MotorLimits(lambda t, q, v, model: 10.0 * jnp.ones_like(v))

    def force(v, effort, velocity):
        return motor(0.0, jnp.zeros(1), v, pendulum().replace(effort_limit=effort, velocity_limit=velocity))[0]

    both = jax.jit(jax.value_and_grad(force, (0, 1, 2)))
    for v in (0.0, 9.0, -9.0):
        at = jnp.array([v])
        for limits, expected in (((2.0, none), 2.0), ((none, 4.0), 10.0), ((none, none), 10.0)):
            value, slopes = both(at, *(jnp.array([x]) for x in limits))
            assert value == expected
            chex.assert_tree_all_finite(slopes)
        # half of the effort is left at half of the speed, and it falls by effort/velocity
        value, slopes = both(jnp.array([2.0]), jnp.array([2.0]), jnp.array([4.0]))
        np.testing.assert_allclose([value, slopes[0][0], slopes[1][0]], [1.0, -0.5, 0.5], rtol=1e-14)
