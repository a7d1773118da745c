"""What stands on the dynamics of machines takes a Delta robot: plans, fits, studies, events, sensors, gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import identify, optimize
from lgsim import montecarlo as mc
from lgsim.dynamics.operational_space import operational_space
from lgsim.multibody.topology import ModelError
from lgsim.simulation import sensors
from lgsim.view.motion import frame_poses
from tests.dynamics import closed_machines as machines

ARMS = ("arm0", "arm1", "arm2")
DRIVEN = np.array([6, 11, 16])
ANGLES = DRIVEN + 1  # in q, whose platform has a quaternion
SELECTION = jnp.asarray(np.eye(21)[:, DRIVEN])


def delta():
    return machines.machine("delta")


def posture():
    """A closed configuration, and the joint forces of the arms that hold it."""
    model = delta()
    q = next(machines.states("delta"))[0]
    still = jnp.zeros(model.nv)
    return q, lgsim.actuated_inverse_dynamics(model, q, still, still, ARMS).tau


def rows(hold, steps=20, dt=0.01):
    """Joint forces that move the arms."""
    t = dt * np.arange(steps)[:, None]
    return np.asarray(hold)[None] + np.sin(9 * t + np.arange(3)) @ np.asarray(SELECTION).T


def motion(model, q, tau, dt=0.01):
    """States (steps + 1, nq + nv) under joint forces that each step holds, from the closed configuration at q."""
    q0 = lgsim.close_loops(model, q).q
    dynamics = optimize.MultibodyDynamics(model, dt)

    def step(y, u):
        y = dynamics.step(0.0, y, u, None)
        return y, y

    y0 = jnp.concatenate([q0, jnp.zeros(model.nv)])
    return jnp.concatenate([y0[None], jax.lax.scan(step, y0, jnp.asarray(tau))[1]])


def gap(model, q):
    return float(np.abs(lgsim.loop_residual(model, jnp.asarray(q))).max())


def slope(f, e=1e-4):
    """The derivative of a function at zero by differences of fourth order."""
    return (f(-2 * e) - 8 * f(-e) + 8 * f(e) - f(2 * e)) / (12 * e)


def moved_numbers(model, seed=0):
    """By the name of a leaf a function of s that moves all its numbers along one direction."""
    rng = np.random.default_rng(seed)

    def poses(name):
        twists = jnp.asarray(0.05 * rng.normal(size=(len(getattr(model, name)), 6)))
        return lambda s: model.replace(**{name: getattr(model, name) @ lgsim.se3.exp(s * twists)})

    shares = jnp.asarray(rng.normal(size=model.inertias.shape))
    damping, armature = (jnp.asarray(rng.uniform(0.1, 0.2, model.nv)) for _ in range(2))
    return {
        "inertias": lambda s: model.replace(inertias=model.inertias * (1 + s * shares)),
        "drives": lambda s: model.replace(damping=0.1 + s * damping, armature=0.01 + s * armature),
        "gravity": lambda s: model.replace(gravity=model.gravity + s * jnp.array([1.0, -2.0, 0.5])),
        "placements": poses("placements"),
        "frames": poses("frames"),
    }


@pytest.mark.slow
def test_gradients_of_a_motion_by_all_numbers():
    """Lengths move the closed set: each motion starts at the closed configuration next to the same one."""
    model = delta()
    q, hold = posture()
    tau = rows(hold, 6)
    weights = jnp.asarray(np.random.default_rng(1).normal(size=43))

    @jax.jit
    def cost(model):
        return motion(model, q, tau)[-1] @ weights

    along = jax.jit(lambda model, change: jax.jvp(cost, (model,), (change,))[1])
    back = jax.jit(jax.grad(cost))
    for name, numbers in moved_numbers(model).items():
        point, change = jax.jvp(numbers, (0.0,), (1.0,))
        expected = slope(lambda s, numbers=numbers: float(cost(numbers(s))))
        assert abs(along(point, change) - expected) < 1e-6 * max(1, abs(expected)), name
        pulled = sum(jax.tree.leaves(jax.tree.map(lambda g, d: jnp.sum(g * d), back(point), change)))
        assert abs(pulled - expected) < 1e-6 * max(1, abs(expected)), name


@pytest.mark.slow
def test_gradients_by_lengths_of_rods():
    """The leaf of loops, of a machine with rods."""
    model = machines.rod_machine()
    q, _ = machines.closed_state(model)

    @jax.jit
    def cost(lengths):
        moved = model.replace(loops=lengths)
        y = motion(moved, q, np.zeros((10, model.nv)))[-1]
        return jnp.sum(y * jnp.arange(1.0, y.size + 1))

    for i in range(2):
        e = jnp.zeros(2).at[i].set(1.0)
        expected = slope(lambda s, e=e: float(cost(model.loops + s * e)), 1e-3)
        assert abs(jax.grad(cost)(model.loops)[i] - expected) < 1e-6 * max(1, abs(expected))


@pytest.mark.slow
def test_a_plan_moves_the_platform_by_three_arms():
    model = delta()
    q, hold = posture()
    goal = lgsim.close_loops(model, q.at[:3].add(jnp.array([0.02, 0.0, 0.03])), hold=["platform"]).q
    dynamics = optimize.MultibodyDynamics(model, 0.02, selection=SELECTION)
    problem = optimize.Problem(
        dynamics, dynamics.state(q), horizon=10, running=optimize.ControlEffort(1e-4),
        terminal=optimize.StateDistance(dynamics.action, dynamics.state(goal), 1e3),
    )  # fmt: skip
    plan = optimize.solve(problem, jnp.tile(hold[DRIVEN], (10, 1)))
    assert plan.verdict
    q_planned = plan.ys[:, : model.nq]
    assert np.abs(q_planned[-1, :3] - goal[:3]).max() < 1e-5
    assert gap(model, q_planned) < 1e-13
    # the same forces, step by step
    again = motion(model, q, plan.us @ SELECTION.T, 0.02)
    assert np.abs(again[:, : model.nq] - q_planned).max() < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("windows", [pytest.param(None, marks=pytest.mark.exhaustive), 10])
def test_the_mass_of_the_platform_from_encoders_of_the_arms(windows):
    """First states are unknown: the parts that would open the loops are held by the loops alone."""
    model = delta()
    q, hold = posture()
    real = model.replace(inertias=model.inertias.at[0].mul(1.3))
    tau = rows(hold, 30)
    ys = np.asarray(jax.jit(lambda: motion(real, q, tau))())
    noise = np.random.default_rng(1).normal(size=(31, 3))
    measured = ys[:, : model.nq].copy()
    measured[:, ANGLES] += 1e-4 * noise
    weight = np.zeros((31, model.nv))
    weight[:, DRIVEN] = 1
    records = identify.SensorRecords(
        0.01, {"q": identify.Channel(identify.PositionSensor(), measured, 1e-4, weight)}, tau, states=ys
    )
    unknown = identify.Parameters(model, [identify.Masses(["platform"])])
    found = identify.fit(unknown, records, identify.SimulationFit(window_steps=windows))
    mass, deviation = found.values["m of platform, kg"], found.deviations["m of platform, kg"]
    assert found.verdict, found.verdict
    assert abs(mass - 0.65) < 4 * deviation and deviation < 1e-3
    # within the deviation of gaps, 1e-5, as the ends of windows are
    assert gap(found.model, found.estimate.starts[:, : model.nq]) < 2e-6
    # only residuals with a weight can be colored
    assert found.whiteness()[1] < 2


@pytest.mark.slow
def test_a_study_of_masses_and_its_linear_covariance():
    model = delta()
    q, hold = posture()
    run = mc.Rollout(model, q, torques=hold, dt=0.01, steps=10)
    heavier = mc.MassDispersion(model.inertias, mc.LogNormal(model.inertias[:, 0], 0.02))
    study = mc.Study({"model.inertias": heavier}, run, [mc.outputs.final_q], samples=200, seed=0)
    results = mc.run(study)
    linear = mc.linear_covariance(study, "final_q", model)
    places = np.asarray(results.column("final_q"))
    assert np.isfinite(places).all() and gap(model, places) < 1e-12
    sampled = np.var(places[:, :3], axis=0)
    assert np.all(np.abs(sampled / np.diag(linear.covariance)[:3] - 1) < 0.4)
    # to first order nothing leaves the closed set
    J = np.asarray(lgsim.loop_jacobian(model, jnp.asarray(linear.value)))
    assert np.abs(J @ linear.covariance).max() < 1e-10 * np.abs(linear.covariance).max()


@pytest.mark.slow
def test_adaptive_steps_an_event_and_sensors():
    pytest.importorskip("diffrax")
    model = delta()
    q, _ = posture()
    until = lgsim.events.joint_reaches(model, "arm0", float(q[ANGLES[0]]) + 0.05)
    found = lgsim.simulate_adaptive(model, q, duration=0.5, rtol=1e-8, atol=1e-10, dt_out=0.01, events=until)
    assert found.q[-1, ANGLES[0]] == pytest.approx(float(q[ANGLES[0]]) + 0.05, abs=1e-7)
    assert gap(model, found.q) < 1e-12
    # an accelerometer on the platform by differences of its velocity in the world
    end = len(found.q) - 3
    e = 1e-4
    q1, v1 = jnp.asarray(found.q[end]), jnp.asarray(found.v[end])
    near = [lgsim.rollout(model, q1, v1, dt=s * e, steps=1) for s in (-2, -1, 1, 2)]
    twists = [sensors.frame_twist(model, "platform", x.q[-1], x.v[-1]) for x in near]
    poses = [sensors.frame_pose(model, "platform", x.q[-1])[:3, :3] for x in near]
    v = [np.asarray(R @ V[:3]) for R, V in zip(poses, twists, strict=True)]
    acceleration = (v[0] - 8 * v[1] + 8 * v[2] - v[3]) / (12 * e)
    a = lgsim.forward_dynamics(model, q1, v1, jnp.zeros(model.nv))
    force, _ = sensors.imu(model, "platform", q1, v1, a)
    R = sensors.frame_pose(model, "platform", q1)[:3, :3]
    assert np.abs(R @ force - (acceleration - np.asarray(model.gravity))).max() < 1e-6


@pytest.mark.slow
def test_a_replay_shows_closed_loops():
    model = delta()
    q, _ = posture()
    motion = lgsim.simulate(model, q, duration=0.05, dt=0.005, control=lgsim.controls.PD(q, 5.0, 0.1))
    shown = frame_poses(motion, np.linspace(0, 0.05, 11))
    names = list(model.frame_names)
    for i in range(6):
        a, b = (shown.positions[:, names.index(f"end_{x}{i}")] for x in "ab")
        assert np.abs(a - b).max() < 1e-12


@pytest.mark.slow
def test_laws_of_control_hold_and_lead_the_driven_joints():
    model = delta()
    q, _ = posture()

    held = lgsim.rollout(
        model, q, jnp.zeros(model.nv), dt=0.01, steps=20, control=lgsim.controls.GravityCompensation(ARMS)
    )
    assert np.abs(held.q[-1] - q).max() < 1e-9
    law = lgsim.controls.ComputedTorque(q, 100.0, 20.0, actuated=ARMS)
    start = lgsim.close_loops(model, q.at[2].add(0.01), hold=["platform"]).q
    led = lgsim.rollout(model, start, jnp.zeros(model.nv), dt=0.01, steps=100, control=law)
    # critically damped: (1 + 10 t) exp(-10 t) of the start after 1 s
    share = 11 * np.exp(-10.0)
    assert np.abs(led.q[-1, 2] - q[2]) < 2 * 0.01 * share
    assert led.q[-1, 2] - q[2] == pytest.approx(0.01 * share, rel=0.2)
    assert np.all(np.delete(np.asarray(law(0.0, start, jnp.zeros(model.nv), model)), DRIVEN) == 0)


def test_what_ignores_loops_is_refused():
    model = machines.machine("four_bar")
    q, v = next(machines.states("four_bar"))[:2]
    tree = machines.tree()
    with pytest.raises(ModelError, match=r"GravityCompensation\(\) without actuated does not .* the loop 'loop0'"):
        lgsim.controls.GravityCompensation()(0.0, q, v, model)
    with pytest.raises(ModelError, match=r"ComputedTorque.*actuated=\[names of joints\]"):
        lgsim.controls.ComputedTorque(q, 1.0, 1.0)(0.0, q, v, model)
    with pytest.raises(ModelError, match="actuated: GravityCompensation takes names of driven joints only for models"):
        lgsim.controls.GravityCompensation(["link0"])(0.0, tree.neutral(), jnp.zeros(tree.nv), tree)
    with pytest.raises(ValueError, match="actuated: expected names of joints, got 'arm'"):
        lgsim.controls.GravityCompensation(["arm"])(0.0, q, v, model)
    with pytest.raises(ModelError, match=r"operational_space does not support loops.*dtau"):
        operational_space(model, q, v, model.frame_names[-1])
    with pytest.raises(ModelError, match=r"inverse_kinematics does not support loops.*close_loops"):
        optimize.inverse_kinematics(model, model.frame_names[-1], jnp.zeros(3))
    with pytest.raises(ModelError, match=r"SymplecticEulerDynamics does not support loops.*would open them"):
        optimize.SymplecticEulerDynamics(model, 0.01)
    unknown = identify.Parameters(model, [identify.Masses(["link1"])])
    samples = identify.TorqueSamples(q[None], v[None], v[None], v[None])
    with pytest.raises(ModelError, match=r"a fit of joint torques does not support loops.*use SimulationFit"):
        identify.fit(unknown, samples, identify.TorqueFit())
