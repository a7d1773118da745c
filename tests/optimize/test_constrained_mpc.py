"""Constraints in closed loop: each applied control against that of a quadratic program, multipliers against closed
forms, disturbances, starts outside of bounds, goals out of reach, and long runs."""

import subprocess
import sys
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import nnls

import lgsim
from lgsim.actions import Translation
from lgsim.optimize import (
    RESULTS,
    AugmentedLagrangian,
    ControlEffort,
    DiscreteDynamics,
    EndConstraint,
    PathConstraint,
    Problem,
    StateBounds,
    StateDistance,
    mpc,
)

LINE = Translation(2)
HORIZON, DT, EFFORT = 20, 0.1, 0.1
A, B = np.array([[1, DT], [0, 1]]), np.array([DT**2 / 2, DT])
WEIGHTS = np.tile([1.0, 0.1], (HORIZON, 1))
WEIGHTS[-1] = 10.0, 1.0
WALL, SPEED, GOAL = 0.8, 0.4, 1.0


def push(t, y, u, args):
    """A mass of 1 kg, pushed for steps of 0.1 s."""
    return jnp.stack([y[0] + DT * y[1] + DT**2 / 2 * u[0], y[1] + DT * u[0]])


def carriage(wall=WALL, speed=SPEED, dtype=float, unit=1.0, worth=1.0):
    """To a goal behind a wall, with a bound of the speed.

    Args:
        unit: Length of the unit of states and controls, m.
        worth: Unit of the cost.
    """
    scale = worth * unit**2
    goal = jnp.array([GOAL / unit, 0.0], dtype)
    return Problem(
        DiscreteDynamics(LINE, push, 1, DT), jnp.zeros(2, dtype), horizon=HORIZON,
        running=ControlEffort(scale * EFFORT) + StateDistance(LINE, goal, scale * jnp.array([1.0, 0.1], dtype)),
        terminal=StateDistance(LINE, goal, scale * jnp.array([10.0, 1.0], dtype)),
        constraints=(StateBounds(np.array([-np.inf, -speed / unit]), np.array([wall / unit, speed / unit])),),
    )  # fmt: skip


@cache
def effects():
    """Positions and speeds (H, 2, H) of the nodes from the second on, by each control."""
    found, effect = [], np.zeros((2, HORIZON))
    for k in range(HORIZON):
        effect = A @ effect
        effect[:, k] += B
        found.append(effect.copy())
    return np.array(found)


def program(y, wall=WALL, speed=SPEED):
    """The first control of the quadratic program from y, as a least-distance problem by scipy's nnls.

    Source: Lawson and Hanson, Solving Least Squares Problems, ch. 23.
    """
    S, free = effects(), np.array([np.linalg.matrix_power(A, k + 1) @ y for k in range(HORIZON)])
    J = (np.sqrt(WEIGHTS)[..., None] * S).reshape(-1, HORIZON)
    r = (np.sqrt(WEIGHTS) * (free - [GOAL, 0])).ravel()
    H = J.T @ J + EFFORT * np.eye(HORIZON)
    best, root = -np.linalg.solve(H, J.T @ r), np.linalg.inv(np.linalg.cholesky(H)).T
    C = np.concatenate([S[:, 0], S[:, 1], -S[:, 1]])
    room = np.concatenate([wall - free[:, 0], speed - free[:, 1], speed + free[:, 1]])
    E = np.vstack([-(C @ root).T, C @ best - room])
    multipliers, _ = nnls(E, np.eye(HORIZON + 1)[-1])
    rest = E @ multipliers - np.eye(HORIZON + 1)[-1]
    us = best - root @ rest[:-1] / rest[-1]
    assert np.max(C @ us - room) < 1e-7
    return us[0]


def closed_loop(controller, plan, y, steps, disturbances=None):
    """(states (steps + 1, 2), controls (steps,), verdicts, the last plan) with the model as the machine."""
    pushes = jnp.zeros((steps, 2), y.dtype) if disturbances is None else jnp.asarray(disturbances, y.dtype)

    def step(state, pushed):
        y, plan = state
        u, plan = controller.step(plan, y)
        after = push(0.0, y, u, None) + pushed
        return (after, plan), (after, u[0], plan.violation, plan.multipliers.weight)

    (_, plan), (ys, us, violations, weights) = jax.jit(lambda start: jax.lax.scan(step, start, pushes))((y, plan))
    return np.concatenate([y[None], ys]), np.asarray(us), np.asarray(violations), np.asarray(weights), plan


@cache
def controlled(dtype=float):
    controller = mpc(carriage(dtype=dtype))
    return controller, controller.plan()


def test_each_control_is_that_of_the_quadratic_program_and_bounds_are_kept():
    """Along the bound of the speed, then to rest at the wall, in one scan with the simulation."""
    controller, plan = controlled()
    ys, us, violations, weights, plan = closed_loop(controller, plan, jnp.zeros(2), 60)
    wanted = np.array([program(y) for y in ys[:-1]])
    np.testing.assert_allclose(us, wanted, atol=1e-4)
    assert np.max(ys[:, 0]) < WALL + 1e-5 and np.max(ys[:, 1]) < SPEED + 1e-5
    assert np.sum(ys[:, 1] > SPEED - 1e-4) > 10 and np.sum(ys[:, 0] > WALL - 1e-4) > 10
    assert np.max(violations) < 1e-3
    assert np.ptp(weights) == 0
    assert bool(plan.result == RESULTS.constraints_violated) or float(plan.violation) < 1e-5


def test_multipliers_settle_to_their_closed_form_and_stay_for_thousands_of_steps():
    """At rest at the wall each node presses with the slope of its own cost."""
    controller, plan = controlled()
    first = plan.multipliers.weight
    ys, _, violations, weights, plan = closed_loop(controller, plan, jnp.zeros(2), 3000)
    pressing, end = np.asarray(plan.multipliers.path[0]), np.asarray(plan.multipliers.end[0])
    assert pressing.shape == (HORIZON, 4)
    np.testing.assert_allclose(pressing[1:, 2], GOAL - WALL, atol=1e-3)
    np.testing.assert_allclose(end[2], 10 * (GOAL - WALL), rtol=1e-3)
    assert bool(plan.result == RESULTS.successful)
    np.testing.assert_allclose(pressing[1:, [0, 1, 3]], 0, atol=1e-3)
    np.testing.assert_array_equal(weights, first)
    np.testing.assert_allclose(ys[100:], np.broadcast_to([WALL, 0.0], (2901, 2)), atol=1e-6)
    assert np.max(violations[100:]) < 1e-4


@pytest.mark.slow
def test_the_controls_are_the_same_in_every_unit():
    """Millimeters and nanometers, and costs in millionths: the penalty follows."""
    us = []
    for unit, worth in ((1.0, 1.0), (1e-3, 1e6), (1e-9, 1e-6)):
        controller = mpc(carriage(unit=unit, worth=worth))
        us.append(unit * closed_loop(controller, controller.plan(), jnp.zeros(2), 40)[1])
    np.testing.assert_allclose(us[1], us[0], atol=1e-4)
    # the first plan ends where its residuals are small, a little further off
    np.testing.assert_allclose(us[2], us[0], atol=1e-3)
    np.testing.assert_allclose(us[2][5:], us[0][5:], atol=1e-4)


@pytest.mark.slow
def test_a_push_beyond_the_bound_is_recovered_from_and_the_optimum_found_again():
    controller, plan = controlled()
    pushes = np.zeros((60, 2))
    pushes[15], pushes[30] = (0.03, 0.2), (-0.3, 0.1)
    ys, us, _, weights, _ = closed_loop(controller, plan, jnp.zeros(2), 60, pushes)
    assert ys[16, 1] > SPEED + 0.1
    assert np.max(ys[18:, 1]) < SPEED + 1e-3 and np.max(ys[:, 0]) < WALL + 1e-3
    wanted = np.array([program(y) for y in ys[24:30]] + [program(y) for y in ys[40:-1]])
    np.testing.assert_allclose(np.concatenate([us[24:30], us[40:]]), wanted, atol=1e-3)
    assert np.ptp(weights) == 0


@pytest.mark.slow
def test_noise_neither_raises_the_penalty_nor_the_multipliers():
    controller, plan = controlled()
    noise = np.random.default_rng(0).normal(size=(2000, 2)) * [1e-4, 1e-3]
    ys, _, violations, weights, plan = closed_loop(controller, plan, jnp.zeros(2), 2000, noise)
    assert np.ptp(weights) == 0 and np.all(np.isfinite(ys))
    assert np.max(ys[:, 0]) < WALL + 2e-3 and np.max(violations) < 2e-3
    np.testing.assert_allclose(np.mean(ys[100:, 0]), WALL, atol=2e-3)
    assert np.max(plan.multipliers.path[0]) < 100


@pytest.mark.slow
def test_a_start_outside_of_a_bound_comes_back():
    """Behind the wall and moving on: no control can change that, and it counts neither as violated nor as a cost."""
    controller, plan = controlled()
    y = jnp.array([WALL + 0.1, 0.1])
    u, after = controller.step(plan, y)
    assert int(after.bad_node) == -1 and float(u[0]) < 0
    ys, us, violations, _, _ = closed_loop(controller, plan, y, 80)
    assert violations[0] > 0.01 and violations[-1] < 1e-4
    back = int(np.argmax(ys[:, 0] < WALL + 1e-3))
    assert 0 < back < 12
    assert np.max(ys[back:, 0]) < WALL + 1e-3
    np.testing.assert_allclose(us[60:], [program(y) for y in ys[60:-1]], atol=1e-4)


@pytest.mark.slow
def test_rows_of_the_first_node_that_no_control_moves_have_no_part():
    """A wall at the first node alone, in front of which the start lies: cost, controls and verdict as without."""

    def behind(t, y, u, args):
        return jnp.where(t == args, y[:1] + 1.0, -1.0)

    for equality in (False, True):
        rows = PathConstraint(
            behind if not equality else lambda t, y, u, args: jnp.where(t == args, y[:1] + 1.0, 0.0), equality
        )
        free = carriage().replace(constraints=())
        limited = mpc(free.replace(constraints=[rows], args=jnp.array(0.0)))
        plan = limited.plan(solver=AugmentedLagrangian(max_iterations=2))
        plain = mpc(free)
        u, after = limited.step(plan, jnp.array([0.1, 0.2]))
        other, expected = plain.step(plain.plan(), jnp.array([0.1, 0.2]))
        np.testing.assert_allclose(u, other, atol=1e-9)
        np.testing.assert_allclose(after.cost, expected.cost, rtol=1e-9)
        assert float(after.violation) == 0


@pytest.mark.slow
def test_a_goal_out_of_reach_leaves_no_multipliers_that_outlast_it():
    """The end of the horizon cannot reach the goal at first: multipliers that grew until then would carry the mass past
    it, by a third of the way without their being held."""
    goal = jnp.array([3.0, 0.0])
    far = Problem(
        DiscreteDynamics(LINE, push, 1, DT), jnp.zeros(2), horizon=HORIZON, running=ControlEffort(0.1),
        constraints=[EndConstraint(lambda t, y, args: y - goal)], lower=-1.0, upper=1.0,
    )  # fmt: skip
    controller = mpc(far)
    plan = controller.plan()
    assert bool(plan.result == RESULTS.infeasible)
    ys, us, violations, _, plan = closed_loop(controller, plan, jnp.zeros(2), 120)
    assert np.all(us[:10] == 1.0) and violations[0] > 1.0
    assert np.max(ys[:, 0]) < 3.1
    np.testing.assert_allclose(ys[-1], goal, atol=1e-3)
    assert float(plan.violation) < 1e-3


def test_a_measurement_that_is_no_number_keeps_plan_and_multipliers():
    controller, plan = controlled()
    _, plan = controller.step(plan, jnp.zeros(2))
    u, after = controller.step(plan, jnp.array([jnp.nan, 0.0]))
    assert bool(after.result == RESULTS.nonfinite_start) and int(after.bad_node) == 0
    np.testing.assert_array_equal(u, plan.us[0])
    np.testing.assert_array_equal(after.us[:-1], plan.us[1:])
    np.testing.assert_array_equal(after.multipliers.path[0][:-1], plan.multipliers.path[0][1:])
    np.testing.assert_array_equal(after.multipliers.end[0], plan.multipliers.end[0])
    _, again = controller.step(after, plan.ys[1])
    assert int(again.bad_node) == -1 and np.all(np.isfinite(again.us))


@pytest.mark.slow
def test_many_at_once_are_each_as_alone():
    controller, plan = controlled()
    starts = jnp.array([[0.0, 0.0], [0.5, 0.3], [0.7, -0.2]])

    def run(y):
        return closed_loop(controller, plan, y, 20)

    def loop(y):
        def step(state, _):
            y, plan = state
            u, plan = controller.step(plan, y)
            return (push(0.0, y, u, None), plan), u[0]

        return jax.lax.scan(step, (y, plan), None, length=20)[1]

    together = jax.jit(jax.vmap(loop))(starts)
    for y, us in zip(starts, together, strict=True):
        np.testing.assert_allclose(us, run(y)[1], atol=1e-8)


@pytest.mark.slow
def test_in_float32():
    controller, plan = controlled(jnp.float32)
    assert plan.multipliers.weight.dtype == jnp.float32
    ys, us, _, weights, plan = closed_loop(controller, plan, jnp.zeros(2, jnp.float32), 60)
    assert us.dtype == np.float32 and plan.multipliers.path[0].dtype == jnp.float32
    assert np.max(ys[:, 0]) < WALL + 1e-4 and np.max(ys[:, 1]) < SPEED + 1e-4
    wanted = np.array([program(y) for y in ys[:-1].astype(float)])
    np.testing.assert_allclose(us, wanted, atol=1e-3)
    assert np.ptp(weights) == 0


def test_a_plan_is_saved_and_goes_on_with_the_same_digits(tmp_path):
    controller, plan = controlled()
    _, plan = controller.step(plan, jnp.zeros(2))
    leaves, structure = jax.tree.flatten(plan)
    np.savez(tmp_path / "plan.npz", *leaves)
    with np.load(tmp_path / "plan.npz") as file:
        again = jax.tree.unflatten(structure, [jnp.asarray(file[f"arr_{i}"]) for i in range(len(leaves))])
    y = jnp.array([0.1, 0.2])
    (u, after), (v, other) = controller.step(plan, y), controller.step(again, y)
    np.testing.assert_array_equal(u, v)
    jax.tree.map(np.testing.assert_array_equal, jax.tree.leaves(after), jax.tree.leaves(other))


@pytest.mark.slow
def test_multipliers_move_with_their_nodes():
    """The last node takes its own again."""
    both = carriage()
    once = both.replace(constraints=[both.constraints[0], PathConstraint(lambda t, y, u, args: y[1:] - 0.3, False)])
    controller = mpc(once)
    _, plan = controller.step(controller.plan(), jnp.zeros(2))
    bounds, path = plan.multipliers.path
    np.testing.assert_array_equal(bounds[-1], bounds[-2])
    np.testing.assert_array_equal(path[-1], path[-2])
    assert bounds.shape == (HORIZON, 4) and path.shape == (HORIZON, 1) and np.max(path) > 0.01


def test_without_constraints_a_plan_has_no_multipliers():
    controller = mpc(carriage().replace(constraints=()))
    plan = controller.plan()
    assert plan.multipliers is None and controller.step(plan, jnp.zeros(2))[1].multipliers is None
    with pytest.raises(ValueError, match=r"plan: expected a plan of this controller, .* got one without multipliers"):
        controlled()[0].step(plan, jnp.zeros(2))


@pytest.mark.slow
def test_an_exported_step_has_the_same_digits_in_another_process(tmp_path):
    """With operations of StableHLO alone, multipliers and all; and those of the controller to rounding."""
    controller, plan = controlled()
    measured = np.array([[0.0, 0.0], [0.02, 0.25], [0.05, 0.35], [0.5, 0.45]])
    exported = lgsim.export(lambda plan, y: controller.step(plan, y), portable=True)(plan, jnp.zeros(2))
    assert "custom_call" not in exported.mlir_module()
    (tmp_path / "step").write_bytes(exported.serialize())
    np.savez(tmp_path / "plan.npz", *jax.tree.leaves(plan))
    np.save(tmp_path / "measured.npy", measured)
    done = subprocess.run(
        [sys.executable, "-m", "tests.optimize.exported_controller", str(tmp_path)],
        cwd=Path(__file__).parents[2], capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    with np.load(tmp_path / "found.npz") as file:
        us, *leaves = (file[f"arr_{i}"] for i in range(len(file.files)))
    here = own = plan
    for y, u in zip(jnp.asarray(measured), us, strict=True):
        same, here = exported.call(here, y)
        np.testing.assert_array_equal(u, same)
        near, own = controller.step(own, y)
        np.testing.assert_allclose(u, near, atol=1e-7)
    for found, expected in zip(leaves, jax.tree.leaves(here), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
def test_a_disk_on_the_way_is_passed_in_two_dimensions():
    """A constraint that is not convex, from the first plan to the goal behind it; the path touches the disk."""
    space, disk = Translation(4), np.array([0.5, 0.01])

    def move(t, y, u, args):
        return jnp.concatenate([y[:2] + DT * y[2:] + DT**2 / 2 * u, y[2:] + DT * u])

    def inside(t, y, u, args):
        return 0.3 - jnp.linalg.norm(y[:2] - disk)[None]

    goal = jnp.array([1.0, 0.0, 0.0, 0.0])
    problem = Problem(
        DiscreteDynamics(space, move, 2, DT), jnp.zeros(4), horizon=25, terminal=StateDistance(space, goal, 10.0),
        running=ControlEffort(0.05) + StateDistance(space, goal, jnp.array([1.0, 1.0, 0.1, 0.1])),
        constraints=[PathConstraint(inside, equality=False)],
    )  # fmt: skip
    controller = mpc(problem)

    def step(state, _):
        y, plan = state
        u, plan = controller.step(plan, y)
        y = move(0.0, y, u, None)
        return (y, plan), y

    (last, _), ys = jax.jit(lambda plan: jax.lax.scan(step, (jnp.zeros(4), plan), None, length=80))(controller.plan())
    nearest = np.min(np.linalg.norm(np.asarray(ys[:, :2]) - disk, axis=1))
    assert abs(nearest - 0.3) < 1e-5
    np.testing.assert_allclose(last, goal, atol=1e-4)
