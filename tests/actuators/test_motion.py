"""Actuators in rollouts, simulations, stiff methods, studies and plans: one object, its states in the state."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import actuators, montecarlo, optimize, rollout, simulate, simulate_adaptive
from lgsim.actuators import Actuators, Transmission
from lgsim.integrators.linearly_implicit import linearize
from lgsim.simulation import controls
from lgsim.simulation.actuated_control import ActuatedControl
from lgsim.simulation.equations_of_motion import initial_state, state_space
from lgsim.simulation.motion_field import MOTION_FIELD, motion_jacobian
from tests.actuators.machines import LINK, arm, cart, pendulum
from tests.dynamics.machines import close

Q0, V0 = jnp.array([0.3, -0.4]), jnp.array([0.2, 0.1])


def servos(model, **more):
    """Servo, motor with inductance, friction with bristles, rotor with play, gear with losses: four states each."""
    return Actuators(
        Transmission.of_joints(model, **more),
        actuators.PositionServo(2.0, 0.05), actuators.DCMotor(0.5, 0.2, jnp.array([0.2, 0.15]), 5e-3),
        actuators.LuGreFriction(2.0, 0.01, 1e-3, 0.01, 0.02, 1.0),
        actuators.Backlash(1e-3, 1e-3, 20.0, 0.02, 0.05, 0.02), actuators.Gear(5.0, 0.8, 0.5),
    )  # fmt: skip


def ball_and_arm():
    """A machine with a group among its joints."""
    builder = lgsim.ModelBuilder()
    builder.add_body("ball", "world", lgsim.joints.Spherical(), **{k: x for k, x in LINK.items() if k != "axis"})
    return builder.add_body("fore", "ball", lgsim.joints.Revolute(), **LINK).build()


@pytest.mark.slow
@pytest.mark.parametrize("make", [arm, ball_and_arm])
def test_stiff_steps_take_the_jacobian_of_the_whole_state(make):
    """The systems of linearly implicit steps, and the Jacobian that stiffness is judged by, beside forward mode."""
    model = make()
    joint = model.joint_names[-1]
    one = servos(model, joints=[joint, model.joint_names[0]]) if model.nv == 2 else None
    if one is None:
        one = Actuators(
            Transmission.of_joints(model, joints=[joint], coupling=jnp.array([[1.0], [0.5]])), *servos(arm()).stages
        )
    law = ActuatedControl(one, lambda t, q, v, model: jnp.stack([jnp.sin(3 * t), 0.2 * v[0]]))
    rng = np.random.default_rng(1)
    q = model.retract(model.neutral(), jnp.asarray(rng.normal(size=model.nv) / 3))
    z = 0.2 * jnp.asarray(rng.normal(size=one.states))
    y = initial_state(model, q, jnp.asarray(rng.normal(size=model.nv)), law, z)
    args, space, t, s = ((model, law, None), None), state_space(model, law), jnp.array(0.3), jnp.array(0.01)
    assert y.size == space.length and space.dim == 2 * model.nv + one.states
    assert one.states == 8

    def plain(t, y, args):
        return MOTION_FIELD(t, y, args)

    mine, dense = (jax.jit(lambda y, f=f: _linearized(f, space, t, y, args, s)) for f in (MOTION_FIELD, plain))
    for found, wanted in zip(mine(y), dense(y), strict=True):
        close(found, wanted, 1e-9)
    jacobian = jax.jit(lambda y: motion_jacobian(t, y, args)[0])(y)
    close(jnp.linalg.inv(jnp.eye(space.dim) - s * jacobian), dense(y)[2], 1e-9)


def _linearized(field, space, t, y, args, s):
    found = linearize(space, field, t, y, args, s)
    return found.value, found.rate, jax.vmap(found.resolvent, 1, 1)(jnp.eye(space.dim))


@pytest.mark.slow
def test_simulation_is_the_rollout_and_its_error_is_estimated():
    model, command = arm(), jnp.array([0.5, -0.3])
    drive = servos(model)
    motion = simulate(model, Q0, V0, duration=0.3, dt=5e-4, actuators=drive, commands=command)
    out = rollout(model, Q0, V0, dt=5e-4, steps=600, actuators=drive, commands=command)
    close(motion.q, out.q, 1e-12)
    tau = drive.respond(model, out.q[-1], out.v[-1], out.actuator_states[-1], command)[0]
    close(motion.tau[-1], tau, 1e-12)
    assert motion.step_error.resolved
    fine = rollout(model, Q0, V0, dt=1e-4, steps=3000, actuators=drive, commands=command)
    error = np.abs(np.asarray(motion.q[-1] - fine.q[-1]))
    assert (error < 3 * motion.step_error.error[-1, :2] + 1e-12).all()
    stiff = simulate(model, Q0, V0, duration=0.3, dt=5e-4, actuators=drive, commands=command, method=lgsim.Rodas4)
    close(stiff.q[-1], fine.q[-1], 1e-5)
    free = simulate_adaptive(model, Q0, V0, duration=0.3, rtol=1e-8, atol=1e-10, actuators=drive, commands=command)
    close(free.q[-1], fine.q[-1], 1e-6)
    close(free.tau[-1], fine_tau(model, drive, fine, command), 1e-4)


def fine_tau(model, drive, motion, command):
    """The joint forces at the end of a motion."""
    return drive.respond(model, motion.q[-1], motion.v[-1], motion.actuator_states[-1], command)[0]


def test_sampled_servo_in_a_simulation_is_checked_by_steps_that_its_period_is_a_multiple_of():
    model = pendulum(damping=0.1)
    drive = Actuators(Transmission.of_joints(model), actuators.SampledServo(8.0, 0.4, 0.01, 1.0))
    motion = simulate(model, duration=0.5, dt=2.5e-3, actuators=drive, commands=jnp.array([0.8]))
    out = rollout(model, jnp.zeros(1), jnp.zeros(1), dt=1.25e-3, steps=400, actuators=drive, commands=jnp.array([0.8]))
    assert motion.step_error.resolved and np.abs(motion.q[-1] - out.q[-1]).max() < 1e-6
    with pytest.raises(ValueError, match="actuators: some have clocks or bounds that act at steps of a fixed length"):
        simulate_adaptive(model, duration=0.5, actuators=drive, commands=jnp.array([0.8]))


@pytest.mark.slow
def test_commands_come_from_rows_from_a_control_or_both():
    """A servo of unlimited rate is the PD law of the controls; rows are held for a step each."""
    model, target = arm(), jnp.array([0.5, -0.2])
    drive = Actuators(Transmission.of_joints(model), actuators.PositionServo(jnp.array([20.0, 9.0]), 1.5))
    law = controls.PD(target, jnp.array([20.0, 9.0]), 1.5)
    wanted = rollout(model, Q0, V0, dt=2e-3, steps=50, control=law).q
    options = {"dt": 2e-3, "steps": 50, "actuators": drive}
    close(rollout(model, Q0, V0, commands=target, **options).q, wanted, 1e-13)
    close(rollout(model, Q0, V0, commands=jnp.tile(target, (50, 1)), **options).q, wanted, 1e-13)
    close(rollout(model, Q0, V0, commands=jnp.tile(target, (51, 1)), **options).q, wanted, 1e-13)

    def half(t, q, v, model):
        return target / 2

    close(rollout(model, Q0, V0, control=half, commands=target / 2, **options).q, wanted, 1e-13)
    checked = rollout(model, Q0, V0, control=half, commands=target / 2, check=True, **options)
    close(checked.q, wanted, 1e-13)


def test_sum_of_actuators_has_the_commands_of_the_first_first():
    model = arm()
    servo = Actuators(Transmission.of_joints(model, ["upper"]), actuators.Lag(0.02), actuators.PositionServo(9.0, 1.0))
    motor = Actuators(Transmission.of_joints(model, ["fore"]), actuators.Gear(3.0), names=["motor"])
    both = servo + motor
    assert (both.commands, both.states, both.names) == (2, 1, ("0", "motor"))
    out = rollout(model, Q0, V0, dt=2e-3, steps=1, actuators=both, commands=jnp.array([0.3, 0.2]))
    tau, rate = both.respond(model, Q0, V0, out.actuator_states[0], jnp.array([0.3, 0.2]))
    close(tau, jnp.array([9.0 * (0 - 0.3) - 0.2, 0.6]), 1e-13)
    close(rate, jnp.array([0.3 / 0.02]), 1e-12)


def test_programs_serve_other_numbers_and_batches():
    model, drive = arm(), servos(arm())

    @jax.jit
    @chex.assert_max_traces(n=1)
    def end(drive, command):
        return rollout(model, Q0, V0, dt=1e-3, steps=20, actuators=drive, commands=command).q[-1]

    commands = jnp.array([[0.5, -0.3], [0.1, 0.2], [-0.4, 0.6]])
    single = jnp.stack([end(drive, command) for command in commands])
    end(jax.tree.map(lambda x: 1.1 * x, drive), commands[0])
    close(jax.vmap(lambda u: rollout(model, Q0, V0, dt=1e-3, steps=20, actuators=drive, commands=u).q[-1])(commands),
          single, 1e-13)  # fmt: skip


def test_float32_stays_float32():
    model = jax.tree.map(lambda x: x.astype(jnp.float32), arm())
    drive = servos(model)
    out = rollout(model, Q0.astype(jnp.float32), V0.astype(jnp.float32), dt=1e-3, steps=5,
                  actuators=jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), drive))  # fmt: skip
    assert out.q.dtype == out.actuator_states.dtype == jnp.float32


@pytest.mark.slow
def test_study_disperses_numbers_of_stages():
    """A sample is the rollout with its number; the names are paths."""
    model = pendulum(damping=0.1)
    drive = Actuators(Transmission.of_joints(model), actuators.SampledServo(8.0, 0.4, 0.01), actuators.Gear(1.0))
    run = montecarlo.Rollout(model, dt=2.5e-3, steps=80, actuators=drive, commands=jnp.array([0.8]))
    assert {"commands", "actuators.stages.0.stiffness", "actuators.stages.1.ratio"} <= set(run.names())
    name = "actuators.stages.1.ratio"
    study = montecarlo.Study({name: montecarlo.Uniform(0.8, 1.2)}, run, {"q": lambda m: m.q[-1, 0]}, samples=8)
    found = montecarlo.run(study)
    for i in range(3):
        ratio = study.sample(i).values[name]
        own = Actuators(drive.transmission, drive.stages[0], actuators.Gear(ratio))
        q = rollout(model, jnp.zeros(1), jnp.zeros(1), dt=2.5e-3, steps=80, actuators=own, commands=jnp.array([0.8])).q
        np.testing.assert_allclose(found.column("q")[i], q[-1, 0], rtol=1e-9)


@pytest.mark.slow
def test_plan_has_the_states_of_actuators_in_its_state():
    """Voltages that swing a pendulum up through a winding and a gear, found by iLQR; replayed by a rollout."""
    model = pendulum(damping=0.05)
    drive = Actuators(
        Transmission.of_joints(model), actuators.Saturation(-12.0, 12.0), actuators.DCMotor(2.0, 0.05, 0.05, 0.02),
        actuators.Gear(20.0),
    )  # fmt: skip
    machine = optimize.MultibodyDynamics(model, 0.02, actuators=drive)
    assert machine.controls == 1 and machine.state().shape == (3,)
    y, u = machine.state(jnp.array([0.3])), jnp.array([4.0])
    A, B, _ = machine.linearized(0.0, y, u, machine.step(0.0, y, u, None), None)
    for j in range(3):
        h = jnp.zeros(3).at[j].set(1e-6)
        slope = (machine.step(0.0, y + h, u, None) - machine.step(0.0, y - h, u, None)) / 2e-6
        np.testing.assert_allclose(A[:, j], slope, atol=1e-7)
    slope = (machine.step(0.0, y, u + 1e-6, None) - machine.step(0.0, y, u - 1e-6, None)) / 2e-6
    np.testing.assert_allclose(B[:, 0], slope, atol=1e-7)
    goal = machine.state(jnp.array([np.pi]))
    problem = optimize.Problem(
        machine, machine.state(), horizon=60, running=optimize.ControlEffort(1e-3),
        terminal=optimize.StateDistance(machine.action, goal, jnp.array([500.0, 50.0, 0.0])), lower=-11.0, upper=11.0,
    )  # fmt: skip
    solution = optimize.solve(problem)
    assert np.abs(np.asarray(solution.ys[-1, :2] - goal[:2])).max() < 0.1
    motion = optimize.to_trajectory(problem, solution)
    out = rollout(model, jnp.zeros(1), jnp.zeros(1), dt=0.02, steps=60, actuators=drive, commands=solution.us)
    close(motion.q, out.q, 1e-9)
    np.testing.assert_allclose(motion.tau[:, 0], 20 * 0.05 * out.actuator_states[:, 0], rtol=1e-9, atol=1e-12)


def test_errors(without_import_hook):
    model = cart()
    drive = Actuators(Transmission.of_joints(model), actuators.Gear(2.0))
    q, options = jnp.zeros(1), {"dt": 0.1, "steps": 1}
    with pytest.raises(ValueError, match="torques: expected none with actuators, which make the joint forces"):
        rollout(model, q, q, actuators=drive, torques=q, **options)
    with pytest.raises(ValueError, match="commands: expected actuators that take them, got none"):
        rollout(model, q, q, commands=q, **options)
    with pytest.raises(ValueError, match=r"commands: expected shape \(..., 1\), got \(2,\)"):
        rollout(model, q, q, actuators=drive, commands=jnp.zeros(2), **options)
    with pytest.raises(ValueError, match="actuator_state: expected None, since no actuator has states"):
        rollout(model, q, q, actuators=drive, actuator_state=q, **options)
    with pytest.raises(TypeError, match=r"actuators: expected lgsim\.actuators\.Actuators, got Gear"):
        rollout(model, q, q, actuators=actuators.Gear(2.0), **options)
    with pytest.raises(TypeError, match=r"stages\[0\]: expected a stage such as actuators.Gear, got float"):
        Actuators(Transmission.of_joints(model), 3.0)
    with pytest.raises(
        ValueError, match=r"stages\[0\].ratio: expected a number or shape \(1,\), one for each actuator"
    ):
        rollout(model, q, q, actuators=Actuators(Transmission.of_joints(model), actuators.Gear([2.0, 3.0])), **options)
    with pytest.raises(ValueError, match=r"transmission: expected shape \(actuators, 1\), that is nv, got \(2, 2\)"):
        rollout(model, q, q, actuators=Actuators(Transmission.of_joints(arm())), **options)
    with pytest.raises(ValueError, match="joints: there is no 'wheel'; the model has cart"):
        Transmission.of_joints(model, ["wheel"])
    with pytest.raises(ValueError, match=r"coupling: expected shape \(actuators, 1\), a column for each degree"):
        Transmission.of_joints(model, coupling=np.eye(2))
    with pytest.raises(ValueError, match="names: expected 1, one for each actuator, got 2"):
        Actuators(Transmission.of_joints(model), names=["a", "b"])
