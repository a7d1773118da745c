"""Machines by linearly implicit steps: their own linear systems, stiff joints and drives, orders, derivatives."""

import json
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import lgsim
from lgsim.actuators import Actuators, Lag, Transmission
from lgsim.integrators.linearly_implicit import linearize
from lgsim.simulation import controls, rollout
from lgsim.simulation.equations_of_motion import equations_of_motion, state_space
from lgsim.simulation.motion_field import MOTION_FIELD
from tests.integrators.engines import default
from tests.integrators.problems import DATA
from tests.multibody import trees

MACHINES = {
    "chain": (["revolute", "helical", "prismatic"], [-1, 0, 1]),
    "floating": (["free", "revolute", "revolute"], [-1, 0, 0]),
    "groups": (["spherical", "revolute", "planar"], [-1, 0, 0]),
}


def machine(name):
    model = trees.build(*MACHINES[name], seed=3, armature=True)
    nv = model.nv
    numbers = {"damping": jnp.linspace(0.1, 1, nv), "friction": jnp.full(nv, 0.3), "friction_speed": jnp.full(nv, 0.2)}
    return model.replace(**numbers)


def control(t, q, v, model):
    """Something of time and of the whole state, that couples the joints."""
    return -3 * v * jnp.sin(t) + jnp.flip(v) * 0.5 + jnp.cos(q[:1]) * jnp.ones_like(v)


def push(t, q, v, model):
    """Wrenches of time and state on all bodies."""
    bodies = jnp.arange(1.0, model.topology.bodies + 1, dtype=v.dtype)
    wrench = jnp.array([0.1, 0.2, 0.3, -0.1, 0.2, 1], v.dtype)
    return jnp.outer(bodies, wrench) * jnp.sin(q[0] + v[-1] + t)


def start(model):
    """A state (q, v)."""
    return jnp.concatenate(trees.state(model)[:2])


def check_system(model, y, forces):
    """The linearization of the machine's field beside that of a plain function, by forward mode and dense LU."""
    action = state_space(model)
    basis = jnp.eye(action.dim)

    @partial(jax.jit, static_argnums=0)
    def matrices(field, y):
        found = linearize(action, field, jnp.asarray(0.3), y, (forces, None), jnp.asarray(0.03))
        return found.value, found.rate, jax.vmap(found.resolvent, 1, 1)(basis)

    def plain(t, y, args):
        return equations_of_motion(t, y, args)

    for own, dense in zip(matrices(MOTION_FIELD, y), matrices(plain, y), strict=True):
        np.testing.assert_allclose(own, dense, rtol=0, atol=1e-13 * np.max(np.abs(dense)))


@pytest.mark.slow
@pytest.mark.parametrize("name", default(list(MACHINES), ["floating", "groups"]))
def test_its_own_linear_system_is_that_of_the_equations(name):
    """Against dense LU of the Jacobian by forward mode, which contains that of dexpinv."""
    model = machine(name)
    check_system(model, start(model), (model, control, push))


@pytest.mark.slow
@pytest.mark.parametrize("name", default(["ROS2", "ROS3P", "Rodas4"], ["Rodas4"]))
def test_order_on_a_tree_with_balls(name):
    """The end against MK8 at a step of 1/4 ms, forces of time and state on all bodies."""
    model, method = machine("groups"), lgsim.LINEARLY_IMPLICIT_METHODS[name]
    q, v, _ = trees.state(model)
    settings = {"control": control, "wrenches": push}

    def end(method, steps):
        motion = rollout(model, q, v, dt=0.32 / steps, steps=steps, save_every=steps, method=method, **settings)
        return np.concatenate([motion.q[-1], motion.v[-1]])

    right, counts = end(lgsim.MK8, 1280), {2: (64, 128), 3: (256, 512), 4: (16, 32)}[method.order]
    coarse, fine = (np.linalg.norm(end(method, n) - right) for n in counts)
    assert abs(np.log2(coarse / fine) - method.order) < 0.15, (coarse, fine)


TREES = {
    "arm": (["revolute"] * 4, [-1, 0, 1, 2]),
    "tree": (["revolute", "prismatic", "cylindrical", "helical", "universal"], [-1, 0, 0, 2, -1]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TREES)
def test_the_recursion_solves_the_same_system(name, monkeypatch):
    """In O(n) where forces act joint by joint, against dense LU of the Jacobian by forward mode."""
    monkeypatch.setattr("lgsim.simulation.motion_field.SMALL", 0)
    model = trees.build(*TREES[name], seed=4, armature=True)
    nv = model.nv
    model = model.replace(
        damping=jnp.linspace(0.1, 1, nv), friction=jnp.full(nv, 0.3), friction_speed=jnp.full(nv, 0.2),
        stiffness=jnp.linspace(1, 30, nv), rest=jnp.full(nv, 0.2),
    )  # fmt: skip
    law = controls.PD(lambda t: (0.3 * jnp.sin(t) * jnp.ones(nv), jnp.cos(t) * jnp.ones(nv), jnp.zeros(nv)), 20.0, 3.0)
    assert (law + law).by_joints and not (law + controls.GravityCompensation()).by_joints
    check_system(model, start(model), (model, law, None))


def stiff_pendulum(damping, friction_speed=0.01):
    builder = lgsim.ModelBuilder()
    link = {"mass": 1.3, "center": [0.4, 0, 0], "inertia": np.diag([0.01, 0.05, 0.05])}
    builder.add_body("link", "world", lgsim.joints.Revolute(), axis=[0, 1, 0], damping=damping, **link)
    model = builder.build()
    return model.replace(friction=jnp.array([0.5]), friction_speed=jnp.array([friction_speed]))


@pytest.mark.repeats
@pytest.mark.parametrize(("name", "bound"), [("ROS2", 3e-3), ("ROS3P", 2e-3), ("Rodas4", 2e-5), ("Rodas43", 2e-5)])
def test_stiff_pendulum_against_radau(name, bound):
    """A damper of 1e4 N m s (rate 4e4 1/s) and dry friction, dt 10 ms, on its closed-form equation."""
    model = stiff_pendulum(1e4)
    inertia, moment = 0.05 + 1.3 * 0.16, 1.3 * 9.81 * 0.4

    def derivative(t, y):
        force = 3e4 * np.sin(3 * t) - 1e4 * y[1] - 0.5 * np.tanh(y[1] / 0.01) + moment * np.cos(y[0])
        return [y[1], force / inertia]

    right = solve_ivp(derivative, (0, 1), [0.2, 0.0], method="Radau", rtol=1e-11, atol=1e-13).y[:, -1]

    def drive(t, q, v, model):
        return 3e4 * jnp.sin(3 * t) * jnp.ones_like(v)

    q0, v0, method = jnp.array([0.2]), jnp.zeros(1), lgsim.LINEARLY_IMPLICIT_METHODS[name]
    motion = rollout(model, q0, v0, dt=0.01, steps=100, save_every=100, control=drive, method=method)
    assert np.abs(np.array([motion.q[-1, 0], motion.v[-1, 0]]) - right).max() < bound
    explicit = rollout(model, q0, v0, dt=0.01, steps=100, save_every=100, control=drive)
    assert not np.isfinite(explicit.q[-1]).all()


def test_drives_and_dampers_at_a_million():
    """Lags of 10 ns and a damper of 1e6 rates a step: the motion is that of drives without a lag."""
    model, torque = stiff_pendulum(1e7), jnp.array([1e7])
    motion = rollout(
        model, jnp.zeros(1), jnp.zeros(1), dt=0.01, steps=100, commands=torque, actuator_state=torque,
        actuators=Actuators(Transmission.of_joints(model), Lag(1e-8)), method=lgsim.Rodas4,
    )  # fmt: skip
    np.testing.assert_allclose(motion.q[-1], 1.0, rtol=2e-6)
    np.testing.assert_allclose(motion.v[50:], 1.0, rtol=2e-6)
    np.testing.assert_allclose(motion.actuator_states[50:], 1e7, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["grad", "jvp"])
def test_derivatives_through_steps(mode):
    """Reverse mode, forward mode and differences of a stiff motion by what the machine is and where it starts."""
    model = machine("groups")
    q, v, _ = trees.state(model)

    @jax.jit
    def value(damping, stretch):
        stiff = model.replace(damping=damping)
        motion = rollout(stiff, q, v * stretch, dt=0.02, steps=5, control=control, method=lgsim.Rodas4)
        return jnp.sum(jnp.sin(motion.q[-1])) + jnp.sum(motion.v[-1] ** 2)

    damping, one = 100 * model.damping, jnp.asarray(1.0)
    along = jax.random.normal(jax.random.key(0), damping.shape)
    if mode == "grad":
        by_damping, by_stretch = jax.jit(jax.grad(value, (0, 1)))(damping, one)
        slope = jnp.vdot(by_damping, along) + by_stretch
    else:
        slope = jax.jit(lambda: jax.jvp(value, (damping, one), (along, one)))()[1]
    h = 1e-4
    up, down = (value(damping + s * h * along, one + s * h) for s in (1, -1))
    assert abs(slope - (up - down) / (2 * h)) < 1e-6 * abs(slope)


@pytest.mark.slow
@pytest.mark.oracle
def test_reaching_arm_with_dry_friction():
    """A Panda that reaches at 10 ms against numbers of Pinocchio and Radau; explicit steps of 10 ms miss by 0.4 rad."""
    from tests.formats.robots import FOLDER

    case = json.loads((DATA / "stiff_reach.json").read_text())["rows"][0]
    numbers = {name: jnp.asarray(case[name]) for name in ("stiffness", "damping", "hold", "goal", "friction")}
    arm = lgsim.load_urdf(FOLDER / "panda_description/urdf/panda.urdf", physical="report")
    arm = arm.lock([name for name in arm.joint_names if "finger" in name], arm.neutral())
    arm = arm.replace(
        damping=jnp.zeros(7), friction=numbers["friction"], friction_speed=jnp.full(7, case["friction_speed"])
    )

    def reach(t, q, v, model):
        return numbers["hold"] + numbers["stiffness"] * (numbers["goal"] - q) - numbers["damping"] * v

    def error(method):
        motion = rollout(
            arm, jnp.asarray(case["q0"]), jnp.zeros(7), dt=0.01, steps=160, save_every=40, control=reach, method=method
        )
        gaps = np.abs(motion.q[1:] - np.array(case["q"])), np.abs(motion.v[1:] - np.array(case["v"]))
        return float(np.max([gap[-1].max() for gap in gaps]))

    assert error(lgsim.Rodas4) < 1.5 * 2.1e-6
    assert error(lgsim.MK4) > 0.1
