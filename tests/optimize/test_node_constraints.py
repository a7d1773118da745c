"""Conditions at given nodes and times, at the end, and within bounds that are infinite, against closed forms."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.actions import Translation
from lgsim.optimize import (
    RESULTS,
    AugmentedLagrangian,
    ControlEffort,
    DiscreteDynamics,
    EndConstraint,
    FieldDynamics,
    FreeTime,
    NodeConstraint,
    PathConstraint,
    Phase,
    Phases,
    Problem,
    Soft,
    StateBounds,
    solve,
)

LINE, DT, HORIZON = Translation(2), 0.1, 20


def push(t, y, u, args):
    """A mass of 1 kg, pushed for steps of 0.1 s."""
    return jnp.stack([y[0] + DT * y[1] + DT**2 / 2 * u[0], y[1] + DT * u[0]])


def problem_with(*constraints, dtype=jnp.float64, **more):
    return Problem(
        DiscreteDynamics(LINE, push, 1, jnp.asarray(DT, dtype)), jnp.zeros(2, dtype), horizon=HORIZON,
        constraints=constraints, **({"running": ControlEffort(1.0)} | more),
    )  # fmt: skip


def positions():
    """The effect of the controls on the positions of all nodes (H + 1, H)."""
    lag = np.arange(HORIZON + 1)[:, None] - 1 - np.arange(HORIZON)[None]
    return np.where(lag >= 0, DT**2 * (lag + 0.5), 0)


def least_effort(rows, goal):
    return np.linalg.pinv(rows) @ goal


def place(goal):
    return lambda t, y, u, args: y[:1] - goal


@pytest.mark.parametrize(
    "where",
    [{"nodes": [5, 12]}, pytest.param({"times": [0.5, 1.2]}, marks=pytest.mark.repeats)],
    ids=["nodes", "times"],
)
def test_a_way_through_two_places(where):
    """The least effort through 0.3 m at nodes 5 and 12 is that of the pseudo-inverse."""
    found = solve(problem_with(NodeConstraint(place(0.3), **where)))
    assert found.message == ""
    rows = positions()[[5, 12]]
    np.testing.assert_allclose(found.us[:, 0], least_effort(rows, np.full(2, 0.3)), atol=2e-6)
    np.testing.assert_allclose(found.cost, 0.09 / 2 * np.sum(np.linalg.inv(rows @ rows.T)), rtol=1e-5)
    multipliers = np.asarray(found.multipliers.path[0][:, 0])
    assert np.array_equal(np.flatnonzero(multipliers), [5, 12])
    np.testing.assert_allclose(multipliers[[5, 12]], -np.linalg.solve(rows @ rows.T, np.full(2, 0.3)), rtol=1e-4)


def test_nodes_that_are_traced_and_the_last_one():
    """One program for all nodes; at the last one, which has no control, as at the others."""

    def effort(node):
        return solve(problem_with(NodeConstraint(place(0.3), nodes=node))).cost

    nodes = jnp.array([7, 20])
    rows = positions()[np.asarray(nodes)]
    np.testing.assert_allclose(jax.vmap(effort)(nodes), 0.045 / np.sum(rows**2, axis=1), rtol=1e-5)


def test_what_a_function_gets_at_its_nodes():
    """A node that is last has no control; nodes before it have one, and the function is asked for no other."""
    seen = []

    def condition(t, y, u, args):
        seen.append(u is None)
        return y[:1]

    problem_with(NodeConstraint(condition, nodes=3))
    assert seen == [False]
    seen.clear()
    problem_with(NodeConstraint(condition, nodes=-1 + HORIZON + 1))
    assert seen == [True]
    seen.clear()
    problem_with(PathConstraint(condition, equality=False, at_end=True))
    assert seen == [False, True]


@pytest.mark.parametrize(
    "where, error, words",
    [
        ({"nodes": 21}, ValueError, "from 0 to 20, the last node, got 21"),
        ({"nodes": [3, -1]}, ValueError, "got -1"),
        ({"nodes": 2.5}, TypeError, "integers, got 2.5"),
        ({"nodes": []}, ValueError, "a scalar or a vector"),
        ({"times": 0.55}, ValueError, "got 0.55 s; the closest node is at 0.6 s"),
        ({"times": [0.5, 2.1]}, ValueError, "from 0 to 2 s, with a step of 0.1 s, got 2.1 s"),
        ({"times": -0.1}, ValueError, "got -0.1 s"),
        ({"times": float("nan")}, ValueError, "got nan s"),
        ({}, ValueError, "exactly one of them"),
        ({"nodes": 1, "times": 0.1}, ValueError, "exactly one of them"),
    ],
)
def test_nodes_and_times_that_there_are_not(where, error, words):
    with pytest.raises(error, match=words):
        problem_with(NodeConstraint(place(0.3), **where))


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
@pytest.mark.parametrize("t0", [0.0, 1234.5])
def test_times_are_those_of_nodes_up_to_rounding(t0, dtype):
    times = t0 + DT * np.arange(HORIZON + 1)
    problem = problem_with(NodeConstraint(place(0.3), times=times), t0=t0, dtype=dtype)
    held = [bool(problem.constraints[0].holds(k, problem.time(k))) for k in range(HORIZON + 1)]
    assert all(held)
    problem = problem_with(NodeConstraint(place(0.3), times=times[4]), t0=t0, dtype=dtype)
    held = [bool(problem.constraints[0].holds(k, problem.time(k))) for k in range(HORIZON + 1)]
    assert np.array_equal(np.flatnonzero(held), [4])


def test_a_time_stays_where_it_is_while_the_horizon_recedes():
    problem = problem_with(NodeConstraint(place(0.3), times=0.5))
    for shift in (0, 3, 5, 7):
        later = eqx.tree_at(lambda p: p.t0, problem, jnp.array(shift * DT))
        at = [bool(later.constraints[0].holds(k, later.time(k))) for k in range(HORIZON + 1)]
        assert np.flatnonzero(at).tolist() == ([5 - shift] if shift <= 5 else [])


def test_a_problem_with_another_step_places_its_times_anew():
    problem = problem_with(NodeConstraint(place(0.3), times=0.8))
    finer = problem.replace(dynamics=DiscreteDynamics(LINE, push, 1, 0.05), horizon=40)
    assert bool(finer.constraints[0].holds(16, finer.time(16))) and not finer.constraints[0].holds(8, finer.time(8))
    with pytest.raises(ValueError, match=r"step of 0.3 s, got 0\.8 s"):
        problem.replace(dynamics=DiscreteDynamics(LINE, push, 1, 0.3))


def free_time(*constraints, **more):
    """From rest to rest over 1 m under |u| <= 1 in the shortest time, 2 s."""
    dynamics = FieldDynamics(LINE, lambda t, y, u, args: jnp.stack([y[1], u[0]]), 1, dt=DT)
    return Problem(
        dynamics, jnp.zeros(2), horizon=10, constraints=constraints, free=[FreeTime(0.1, 9.0, weight=1.0)],
        lower=-1.0, upper=1.0, **more,
    )  # fmt: skip


def arrived(t, y, u, args):
    return y - jnp.array([1.0, 0.0])


def test_nodes_of_a_free_time():
    """The last node is the end."""
    found = solve(free_time(NodeConstraint(arrived, nodes=10)))
    assert found.message == ""
    np.testing.assert_allclose(found.ts[-1], 2.0, atol=1e-5)
    with pytest.raises(ValueError, match="expected nodes=, got times="):
        free_time(NodeConstraint(arrived, times=1.0))


@pytest.mark.slow
def test_a_speed_at_one_node_of_a_free_time():
    """Slower than 0.5 m/s in the middle alone: the other nodes may be faster, and the time is longer than 2 s."""
    slow = NodeConstraint(lambda t, y, u, args: y[1:] - 0.5, nodes=5, equality=False)
    found = solve(free_time(NodeConstraint(arrived, nodes=10), slow))
    assert found.message == "" and float(found.ts[-1]) > 2.01
    speeds = np.asarray(found.ys[:, 1])
    assert abs(speeds[5] - 0.5) < 1e-5 and np.max(speeds) > 0.52
    assert np.flatnonzero(np.abs(found.multipliers.path[0][:, 0]) > 1e-9).tolist() == [5]


@pytest.mark.slow
def test_nodes_of_a_phase_are_counted_from_its_first():
    """A phase of its own that must stand still at its second node; soft rows of it are never violated."""
    dynamics = FieldDynamics(LINE, lambda t, y, u, args: jnp.stack([y[1], u[0]]), 1, dt=DT)
    still = NodeConstraint(lambda t, y, u, args: y[1:], nodes=1)
    over = Soft(PathConstraint(lambda t, y, u, args: y[:1] - 0.5, equality=False), 1e-6)
    second = Phase(dynamics, 10, constraints=[still, over])
    problem = Problem(
        Phases([Phase(dynamics, 10), second]), jnp.zeros(2), horizon=20, running=ControlEffort(1.0),
        constraints=[EndConstraint(lambda t, y, args: y - jnp.array([1.0, 0.0]))],
    )  # fmt: skip
    found = solve(problem)
    assert found.message == ""
    assert abs(float(found.ys[11, 1])) < 1e-5 and abs(float(found.ys[10, 1])) > 1e-3
    assert found.constraints.names == ("EndConstraint", "NodeConstraint", "Soft(PathConstraint)")
    with pytest.raises(ValueError, match="from 0 to 9"):
        beyond = Phase(dynamics, 10, constraints=[NodeConstraint(arrived, nodes=10)])
        solve(problem.replace(dynamics=Phases([beyond]), horizon=10))


@pytest.mark.slow
def test_a_time_too_short_is_infeasible_at_the_last_node():
    """At most 1 s for 1 m under |u| <= 1: 0.25 m are reached at rest, and the node is that of the plan."""
    short = free_time(EndConstraint(lambda t, y, args: y - jnp.array([1.0, 0.0]))).replace(free=[FreeTime(0.1, 1.0)])
    found = solve(short)
    assert found.result == RESULTS.infeasible and int(found.constraints.violated.node) == 10
    np.testing.assert_allclose(found.ts[-1], 1.0, rtol=1e-9)


def test_what_is_not_finite_elsewhere_does_no_harm():
    """A reciprocal that is infinite at the start, asked for at one node: value, gradient and Hessian stay finite."""
    found = solve(problem_with(NodeConstraint(lambda t, y, u, args: 1 / y[:1] - 4.0, nodes=15)), jnp.ones((20, 1)))
    assert found.message == ""
    np.testing.assert_allclose(found.ys[15, 0], 0.25, rtol=1e-5)


def test_rows_at_infinity_cost_nothing_and_are_never_named():
    """Of eight bounds of a state of two, one is finite and broken."""
    bounds = StateBounds(np.array([-np.inf, -np.inf]), np.array([np.inf, 0.1]))
    problem = problem_with(EndConstraint(lambda t, y, args: y - jnp.array([1.0, 0.0])), bounds)
    found = solve(problem, solver=AugmentedLagrangian(max_iterations=2))
    assert found.result == RESULTS.constraints_violated and np.isfinite(found.cost)
    for multipliers in (*found.multipliers.path, *found.multipliers.end):
        assert np.all(np.isfinite(multipliers))
    assert np.all(np.asarray(found.multipliers.path[0])[:, :3] == 0)


@pytest.mark.slow
def test_bounds_that_are_all_infinite():
    nothing = StateBounds(np.full(2, -np.inf), np.full(2, np.inf))
    free = solve(problem_with(nothing, running=lambda t, y, u, args: (u[0] - 1) ** 2))
    assert free.message == "" and int(free.constraints.violated.row) == -1 and float(free.violation) == 0
    np.testing.assert_allclose(free.us, 1.0, rtol=1e-9)
