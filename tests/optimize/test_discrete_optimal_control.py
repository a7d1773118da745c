"""Discrete mechanics and optimal control: plans whose steps are discrete Euler-Lagrange equations with forces.

What a plan is checked by are both discrete Legendre transforms, ``lgsim.discrete_momenta``, which know no solver and no
step: with the impulse of the forces, one half at each end, the momenta on both sides of a node are one.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import VariationalTree, data, joints
from lgsim.actions import Translation
from lgsim.actuators import Actuators, Lag, Transmission
from lgsim.optimize import (
    ILQR,
    RESULTS,
    AugmentedLagrangian,
    ControlEffort,
    EndConstraint,
    FieldDynamics,
    JointVelocity,
    MultibodyDynamics,
    Posture,
    Problem,
    StateDistance,
    SymplecticEulerDynamics,
    plan_error,
    solve,
    to_trajectory,
)
from lgsim.support.verdict import Outcome
from tests.multibody import trees

EXACT = {"exact_hessian": True, "exact_cost_hessian": True}


def gaps_of_momentum(problem, found):
    """The largest gap between the momenta on both sides of a node, the first one being ``M v0``, and of ``M v`` there.

    Without ``MultibodyDynamics``: from configurations and controls alone, but for the velocities that are compared.
    """
    dynamics = problem.dynamics
    model, dt = dynamics.model, dynamics.dt
    q, v = found.ys[:, : model.nq], found.ys[:, model.nq :]
    p0, p1 = jax.jit(jax.vmap(lambda a, b: lgsim.discrete_momenta(model, a, b, dt, dynamics.method.map)))(q[:-1], q[1:])
    way = jax.vmap(model.difference)(q[:-1], q[1:])
    middle = jax.vmap(lambda q, d: model.retract(q, 0.5 * d))(q[:-1], way)
    passive = jax.jit(jax.vmap(lambda q, v: lgsim.passive_forces(model, q, v)))(middle, way / dt)
    impulse = dt * (jax.vmap(dynamics.forces)(found.us) + passive)
    before, after = p1 + impulse / 2, p0 - impulse / 2
    p = jax.jit(jax.vmap(lambda q, v: lgsim.mass_matrix(model, q) @ v))(q, v)
    return max(float(jnp.max(jnp.abs(gap))) for gap in (before[:-1] - after[1:], before - p[1:], after - p[:-1]))


# A cart that swings a pole up.


def swing_up(dt=0.05, method=None, duration=2.5, substeps=1, euler=False):
    """The pole to its top, by at most 20 N; the same cost for any step."""
    model = lgsim.load_urdf(data.cart_pole())
    S = jnp.array([[1.0], [0.0]])
    method = VariationalTree() if method is None else method
    dynamics = SymplecticEulerDynamics(model, dt, S) if euler else MultibodyDynamics(model, dt, method, S, substeps)
    goal = dynamics.state([0.0, np.pi])
    running = ControlEffort(0.2 * dt) + StateDistance(dynamics.action, goal, 0.2 * dt)
    return Problem(
        dynamics, dynamics.state(), horizon=round(duration / dt), running=running,
        terminal=StateDistance(dynamics.action, goal, 1000.0), lower=-20.0, upper=20.0,
    )  # fmt: skip


@cache
def found_swing_up(dt=0.05, name="variational", substeps=1):
    method = None if name == "Euler" else lgsim.simulation.MOTION_METHODS[name]
    problem = swing_up(dt, method, substeps=substeps, euler=method is None)
    return problem, solve(problem, solver=ILQR(max_iterations=500, gradient_tolerance=1e-5))


@pytest.mark.slow
def test_a_plan_from_controls_is_discrete_euler_lagrange():
    problem, found = found_swing_up()
    assert found.result == RESULTS.successful and found.feasibility < 1e-12
    assert gaps_of_momentum(problem, found) < 1e-10
    assert np.abs(found.ys[-1] - jnp.array([0.0, np.pi, 0.0, 0.0])).max() < 0.05
    # and it is the motion that a simulation makes of its forces
    motion = to_trajectory(problem, found)
    assert motion.method == "variational"
    again = lgsim.rollout(
        motion.model, jnp.asarray(motion.q[0]), jnp.asarray(motion.v[0]), dt=0.05, steps=50,
        torques=jnp.asarray(motion.tau[:-1]), method=VariationalTree(),
    )  # fmt: skip
    np.testing.assert_allclose(again.q, found.ys[:, :2], rtol=0, atol=1e-9)
    np.testing.assert_allclose(again.v, found.ys[:, 2:], rtol=0, atol=1e-8)


@pytest.mark.slow
def test_states_with_gaps_lead_to_the_same_plan():
    """Multiple shooting: the guess swings on a straight line, against all equations; the solver closes them."""
    problem, plain = found_swing_up()
    line = jnp.zeros((51, 4)).at[:, 1].set(jnp.linspace(0, np.pi, 51)).at[:, 3].set(np.pi / 2.5)
    found = solve(problem, None, line, solver=ILQR(max_iterations=500, gradient_tolerance=1e-5))
    assert found.result == RESULTS.successful and found.feasibility < 1e-12
    assert float(found.history.feasibility[0]) > 0.1, "the guess had no gaps"
    assert gaps_of_momentum(problem, found) < 1e-10
    assert float(found.cost) < 1.01 * float(plain.cost)


@pytest.mark.slow
def test_the_optimum_goes_to_that_of_the_motion_with_order_two():
    """Beside the same problem, with controls held as long, by MK4 at an eighth of the step."""
    off = []
    for dt in (0.05, 0.025):
        (_, coarse), (_, fine) = found_swing_up(dt), found_swing_up(dt, "MK4", 8)
        off.append((float(coarse.cost - fine.cost), float(jnp.max(jnp.abs(coarse.us - fine.us)))))
    assert abs(np.log2(off[0][0] / off[1][0]) - 2) < 0.2
    assert off[1][1] < 0.4 * off[0][1]


@pytest.mark.slow
def test_as_many_iterations_as_by_other_steps():
    """At equal steps; and a cost that is nearer to the true one than that of first-order steps at a finer one."""
    iterations = {name: int(found_swing_up(0.05, name)[1].iterations) for name in ("variational", "MK4", "Euler")}
    assert iterations["variational"] < 1.2 * min(iterations["MK4"], iterations["Euler"]), iterations
    true = float(found_swing_up(0.025, "MK4", 8)[1].cost)
    off = {name: abs(float(found_swing_up(0.025, name)[1].cost) - true) for name in ("variational", "Euler")}
    assert off["variational"] < off["Euler"], off


@pytest.mark.slow
def test_steps_between_nodes():
    """Two steps between nodes: those of a rollout, and their momentum goes through without turning into velocity."""
    model = swing_up().dynamics.model
    dynamics = MultibodyDynamics(model, 0.1, VariationalTree(), substeps=2)
    y = dynamics.state([0.1, 2.0], [0.3, -4.0])
    u = jnp.array([3.0, -0.5])
    motion = lgsim.rollout(model, y[:2], y[2:], dt=0.05, steps=2, torques=u, method=VariationalTree())
    np.testing.assert_allclose(
        jax.jit(lambda y: dynamics.step(0.0, y, u, None))(y),
        np.concatenate([motion.q[-1], motion.v[-1]]),
        rtol=0,
        atol=1e-13,
    )


# A cat that falls: what its plan keeps.


def cat():
    """Two halves of 2 kg that bend against each other about two axes, and do not twist; no gravity, as in free fall."""
    m, length, radius = 2.0, 0.25, 0.08
    inertia = m * np.diag([length**2 / 12 + radius**2 / 4] * 2 + [radius**2 / 2])
    half = {"mass": m, "inertia": inertia}
    return (
        lgsim.ModelBuilder(gravity=np.zeros(3))
        .add_body("front", "world", joints.Free(), joint_name="base", center=[0, 0, length / 2], **half)
        .add_body("hind", "front", joints.Universal(), joint_name="waist", center=[0, 0, -length / 2], **half)
        .build()
    )


def half_turn(dt, method):
    """By half a turn about its length in 1 s, from rest, straight, to rest and straight; a guess with gaps."""
    model, horizon = cat(), round(1 / dt)
    S = np.zeros((8, 2))
    S[6, 0] = S[7, 1] = 1
    dynamics = MultibodyDynamics(model, dt, method, S)
    goal = dynamics.state([0, 0, 0, 0, 0, 0, 1, 0, 0])
    waist = jnp.array([0.0] * 6 + [1.0] * 2)
    running = ControlEffort(0.1 * dt) + Posture(model, model.neutral(), 0.3 * dt * waist)
    end = jnp.array([0.0] * 3 + [100.0] * 5 + [0.0] * 6 + [1.0] * 2)
    problem = Problem(
        dynamics, dynamics.state(), horizon=horizon, running=running, terminal=StateDistance(dynamics.action, goal, end)
    )
    s = np.linspace(0, 1, horizon + 1)
    ys = np.zeros((horizon + 1, 17))
    ys[:, 3], ys[:, 6] = np.cos(np.pi * s / 2), np.sin(np.pi * s / 2)
    bend = 1.3 * np.sqrt(np.maximum(np.sin(np.pi * s), 0))
    ys[:, 7], ys[:, 8] = bend * np.cos(2 * np.pi * s), -bend * np.sin(2 * np.pi * s)
    ys[:, 9 + 5] = np.pi
    return problem, jnp.asarray(ys)


def momenta(problem, found):
    """Linear and angular momentum at the nodes (nodes, 6), by the bodies' own masses and velocities."""
    model, nq = problem.dynamics.model, problem.dynamics.model.nq
    return np.asarray(jax.jit(jax.vmap(lambda y: lgsim.centroidal_momentum(model, y[:nq], y[nq:])))(found.ys))


@cache
def found_half_turn(dt, name):
    problem, guess = half_turn(dt, lgsim.simulation.MOTION_METHODS[name])
    return problem, solve(problem, None, guess, solver=ILQR(max_iterations=400, gradient_tolerance=1e-4))


@pytest.mark.slow
@pytest.mark.parametrize("dt", [0.05, pytest.param(0.01, marks=pytest.mark.exhaustive)])
def test_a_cat_turns_without_momentum(dt):
    problem, found = found_half_turn(dt, "variational")
    assert found.result == RESULTS.successful and found.feasibility < 1e-12
    assert np.abs(momenta(problem, found)).max() < 1e-12
    assert gaps_of_momentum(problem, found) < 1e-10
    gap = problem.dynamics.action.difference(problem.terminal.target, found.ys[-1])
    assert np.abs(gap[3:8]).max() < 0.01 and np.abs(gap[14:]).max() < 0.01
    # the second half as well, whose attitude is its own
    turn = lgsim.forward_kinematics(problem.dynamics.model, found.ys[-1, :9])[1, :3, :3]
    np.testing.assert_allclose(turn, np.diag([-1, -1, 1]), atol=0.02)


@pytest.mark.slow
def test_by_other_steps_the_momentum_is_an_error_that_the_plan_uses():
    """MK4 at 50 ms: the cheapest turn is one that its errors push; with steps of a fifth that is nearly gone."""
    coarse, fine = (np.abs(momenta(*found_half_turn(dt, "MK4"))).max() for dt in (0.05, 0.01))
    assert coarse > 0.05 and fine < 1e-3 * coarse and fine > 1e-7


@pytest.mark.exhaustive
def test_second_derivatives_take_few_iterations():
    problem, guess = half_turn(0.05, VariationalTree())
    found = solve(problem, None, guess, solver=ILQR(gradient_tolerance=1e-5, **EXACT))
    assert found.result == RESULTS.successful and found.iterations < 100
    assert np.abs(momenta(problem, found)).max() < 1e-12 and gaps_of_momentum(problem, found) < 1e-10


@pytest.mark.slow
def test_with_conditions_at_the_end():
    """By an augmented Lagrangian: the turn exactly, still without momentum."""
    problem, guess = half_turn(0.05, VariationalTree())
    goal, action = problem.terminal.target, problem.dynamics.action

    def at_goal(t, y, args):
        gap = action.difference(goal, y)
        return jnp.concatenate([gap[3:8], gap[14:]])

    problem = problem.replace(terminal=0.0 * problem.terminal, constraints=[EndConstraint(at_goal)])
    inner = ILQR(max_iterations=300, gradient_tolerance=1e-4)
    found = solve(problem, None, guess, solver=AugmentedLagrangian(inner, tolerance=1e-6))
    assert found.violation < 1e-6 and np.abs(momenta(problem, found)).max() < 1e-12
    assert gaps_of_momentum(problem, found) < 1e-10


# Derivatives.


@pytest.mark.slow
@pytest.mark.parametrize("substeps", [1, 2])
def test_the_matrices_of_a_step_are_central_differences(substeps):
    """On joints that are groups, with dampers and friction, and to a next node that the step does not reach."""
    model = trees.build(["free", "spherical", "revolute"], [-1, 0, 1]).replace(
        damping=jnp.full(10, 0.1), friction=jnp.full(10, 0.05), friction_speed=jnp.full(10, 1.0)
    )
    q, v, _ = trees.state(model)
    dynamics = MultibodyDynamics(model, 0.05, VariationalTree(), substeps=substeps)
    y, u, action = dynamics.state(q, v), jnp.linspace(-1.0, 1.0, model.nv), dynamics.action
    step = jax.jit(lambda y, u: dynamics.step(0.0, y, u, None))
    after = action.move(0.2 * jnp.sin(jnp.arange(1.0, action.dim + 1)), step(y, u))
    A, B, c = jax.jit(lambda: dynamics.linearized(0.0, y, u, after, None))()
    np.testing.assert_allclose(action.move(c, after), step(y, u), atol=1e-12)

    @jax.jit
    def gap(z):
        return action.difference(after, step(action.move(z[: action.dim], y), u + z[action.dim :]))

    h, unit = 1e-6, np.eye(action.dim + model.nv)
    slopes = np.stack([(np.asarray(gap(h * e)) - np.asarray(gap(-h * e))) / (2 * h) for e in unit], axis=1)
    np.testing.assert_allclose(np.hstack([A, B]), slopes, atol=5e-7)


def arm(method=None, dt=0.1, horizon=6):
    """A damped pendulum of two rods that is to rise; small, so that its solution compiles soon."""
    rod = {"mass": 1.0, "center": [0, 0, -0.5], "inertia": 0.1 * np.eye(3), "damping": 0.2}
    down = np.eye(4)
    down[2, 3] = -1.0
    hinge = {"axis": [0, 1, 0]}
    builder = lgsim.ModelBuilder().add_body("upper", "world", joints.Revolute(), **hinge, **rod)
    model = builder.add_body("lower", "upper", joints.Revolute(), **hinge, placement=down, **rod).build()
    dynamics = MultibodyDynamics(model, dt, VariationalTree() if method is None else method)
    goal = dynamics.state([0.8, 0.4])
    terminal = StateDistance(dynamics.action, goal, 10.0) + JointVelocity(model, 1.0)
    return Problem(dynamics, dynamics.state(), horizon=horizon, running=ControlEffort(0.01), terminal=terminal)


@pytest.mark.slow
def test_dampers_act_half_way():
    problem = arm()
    found = solve(problem)
    assert found.result == RESULTS.successful and gaps_of_momentum(problem, found) < 1e-10


@pytest.mark.exhaustive
def test_the_derivative_of_a_plan_is_that_of_the_optimum():
    """By a number of the machine and by the step: beside differences of solutions."""
    problem = arm(horizon=3)
    solver = ILQR(gradient_tolerance=1e-10)

    def cost(x):
        model = problem.dynamics.model
        model = model.replace(inertias=model.inertias * x[0], damping=x[1] * jnp.ones(2))
        dynamics = MultibodyDynamics(model, 0.1, VariationalTree())
        found = solve(problem.replace(dynamics=dynamics), solver=solver)
        return found.cost + jnp.sum(found.us[0] ** 2)

    x, value = jnp.array([1.1, 0.2]), jax.jit(cost)
    slope = jax.jit(jax.grad(cost))(x)
    h = 1e-4
    differences = [(value(x + h * e) - value(x - h * e)) / (2 * h) for e in jnp.eye(2)]
    np.testing.assert_allclose(slope, differences, rtol=1e-5)


@pytest.mark.slow
def test_many_plans_at_once():
    problem = arm()
    starts = problem.y0[None] + jnp.array([[0.0, 0, 0, 0], [0.2, -0.1, 0.5, 0.0], [-0.4, 0.3, 0, 1.0]])
    many = jax.jit(jax.vmap(lambda y0: solve(problem.replace(y0=y0))))(starts)
    assert np.all(many.result == RESULTS.successful)
    for k in range(3):
        alone = jax.tree.map(lambda x, k=k: x[k], many)
        assert gaps_of_momentum(problem, alone) < 1e-10


# What is said of plans.


@pytest.mark.slow
def test_the_error_of_a_plan():
    """Vouched for, it is that of the motion; and refused where the motion is another one."""
    problem, found = found_swing_up(0.025)
    error = plan_error(problem, found)
    assert error.resolved
    motion = to_trajectory(problem, found)
    rows = jnp.repeat(jnp.asarray(motion.tau[:-1]), 16, axis=0)
    true = lgsim.rollout(
        motion.model, jnp.asarray(motion.q[0]), jnp.asarray(motion.v[0]), dt=0.025 / 16, steps=len(rows), save_every=16,
        torques=rows, method=lgsim.MK8,
    )  # fmt: skip
    off = np.abs(np.asarray(true.q) - motion.q).max(axis=0)
    claimed = np.asarray(error.error)[:, :2].max(axis=0)
    assert np.all(off < 2 * claimed) and np.all(claimed < 4 * off)
    coarse = plan_error(*found_half_turn(0.05, "variational"))
    assert not coarse.resolved
    assert "the motion from" in coarse.reason and coarse.reason.endswith("increase substeps")


@pytest.mark.slow
def test_steps_without_a_solution_end_the_search_aloud():
    """A guess in which the hind half turns by more than half a turn in a step has no such step."""
    problem, guess = half_turn(0.05, VariationalTree())
    found = solve(problem, None, guess.at[7, 9 + 6].set(500.0))
    assert found.result == RESULTS.nonfinite_start
    assert "Give another guess" in found.message and "the state after the step at node 8" in found.message, (
        found.message
    )
    assert found.verdict.outcome is Outcome.FAILED and found.verdict.sample == 8


def test_what_it_does_not_take():
    method = VariationalTree()
    with pytest.raises(
        TypeError, match=r"requires the equations.*MultibodyDynamics|action: variational requires the states"
    ):
        dynamics = FieldDynamics(Translation(2), lambda t, y, u, args: y + u, 2, 0.1, method)
        Problem(dynamics, jnp.zeros(2), horizon=2, running=ControlEffort())
    model = arm(lgsim.MK4).dynamics.model
    lag = Actuators(Transmission.of_joints(model), Lag(0.1))
    lagging = MultibodyDynamics(model, 0.1, method, actuators=lag)
    with pytest.raises(ValueError, match=r"actuators without states of their own"):
        Problem(lagging, lagging.state(), horizon=2, running=ControlEffort())
