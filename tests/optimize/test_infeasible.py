"""Constraints that cannot be met, told from those that are not met yet: closed forms, linear programs, random ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog, lsq_linear

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
    solve,
)

LINE, H, DT = Translation(2), 20, 0.1


def push(t, y, u, args):
    """A mass of 1 kg, pushed for steps of 0.1 s."""
    return jnp.stack([y[0] + DT * y[1] + DT**2 / 2 * u[0], y[1] + DT * u[0]])


def pushed(*constraints, args=None, **more):
    return Problem(DiscreteDynamics(LINE, push, 1, DT), jnp.zeros(2), horizon=H, running=ControlEffort(1.0),
                   constraints=constraints, args=args, **more)  # fmt: skip


def to_end():
    """The effect of the controls on the last state (2, H)."""
    lag = H - 1 - np.arange(H)
    return np.stack([DT**2 * (lag + 0.5), np.full(H, DT)])


@pytest.mark.parametrize("unit", [1.0, pytest.param(1e-6, marks=pytest.mark.slow)])
def test_a_place_that_nothing_moves_within_a_ball(unit):
    """x stays at 0, and keeps out of |x| < 1: least violation 1, in the unit of the row."""
    out = PathConstraint(lambda t, y, u, args: unit * (1 - jnp.abs(y[:1])), equality=False, at_end=True)
    problem = Problem(
        DiscreteDynamics(LINE, lambda t, y, u, args: y + jnp.stack([0 * u[0], u[0]]), 1), jnp.zeros(2), horizon=6,
        running=ControlEffort(1.0), terminal=StateDistance(LINE, jnp.array([0.0, 2.0]), 10.0), constraints=[out],
    )  # fmt: skip
    found = solve(problem)
    assert found.result == RESULTS.infeasible
    np.testing.assert_allclose(found.violation, unit, rtol=1e-12)
    place = found.constraints.violated
    assert (int(place.constraint), int(place.row)) == (0, 0) and 1 <= int(place.node) <= 6
    for words in (
        f"The worst violation is {unit:g}, of constraint 0 (PathConstraint), row 0, node {int(place.node)}, t = ",
        "Ignored, since no control affects it: constraint 0 (PathConstraint), row 0, node 0, t = 0 s.",
    ):
        assert words in found.message


def test_ends_that_contradict_each_other():
    """x = 0 and x = 1 at the end: in the middle, each violated by 0.5."""
    problem = pushed(
        EndConstraint(lambda t, y, args: y[:1]), EndConstraint(lambda t, y, args: y[:1] - 1, equality=False),
        EndConstraint(lambda t, y, args: 1 - y[:1], equality=False),
    )  # fmt: skip
    found = solve(problem)
    assert found.result == RESULTS.infeasible
    np.testing.assert_allclose(found.violation, 0.5, rtol=1e-6)
    np.testing.assert_allclose(found.ys[-1, 0], 0.5, rtol=1e-6)
    assert int(found.constraints.violated.node) == H and float(found.optimality.decrement) < 1e-6


@pytest.mark.parametrize("dtype", [jnp.float64, pytest.param(jnp.float32, marks=pytest.mark.slow)])
def test_a_goal_beyond_the_reach_of_bounded_controls(dtype):
    """All controls at their bounds: the violation is the distance less ``a T^2 / 2``, here 3 m less 2 m."""
    problem = Problem(
        DiscreteDynamics(LINE, push, 1, jnp.asarray(DT, dtype)), jnp.zeros(2, dtype), horizon=H,
        running=ControlEffort(1.0), constraints=[EndConstraint(lambda t, y, args: y[:1] - 3)], lower=-1.0, upper=1.0,
    )  # fmt: skip
    found = solve(problem)
    assert found.result == RESULTS.infeasible
    np.testing.assert_allclose(found.violation, 1.0, rtol=1e-5)
    np.testing.assert_allclose(found.us, 1.0, rtol=1e-6)


@pytest.mark.slow
def test_a_ball_whose_center_is_on_the_way_is_no_infeasible_one():
    """Its slope vanishes in the center, where the violation is largest: a maximum, and no minimum."""

    def out(t, y, u, args):
        return 0.09 - (y[:1] - 1) ** 2 - y[1:2] ** 2

    def step(t, y, u, args):
        return jnp.concatenate([y[:2] + 0.1 * y[2:] + 0.005 * u, y[2:] + 0.1 * u])

    space = Translation(4)
    problem = Problem(
        DiscreteDynamics(space, step, 2, 0.1), jnp.zeros(4), horizon=20, running=ControlEffort(0.1),
        terminal=StateDistance(space, jnp.array([2.0, 0, 0, 0]), 100.0),
        constraints=[PathConstraint(out, equality=False)],
    )  # fmt: skip
    found = solve(problem)
    assert found.message == "" and np.min(np.abs(found.ys[8:13, 1])) > 0.05


@pytest.mark.slow
def test_where_the_least_violation_is_not_found_nothing_is_infeasible():
    """Rows that are no numbers but at the guess and near to it: not met, and that is all that is known."""

    def row(t, y, args):
        far = jnp.abs(y[:1]) > 1e-6
        return jnp.where(far, jnp.nan, 1 + 0 * y[:1])

    found = solve(pushed(EndConstraint(row)))
    assert found.result == RESULTS.constraints_violated and float(found.violation) == 1
    assert np.all(np.isfinite(found.us))


def random_feasible(key):
    """A pendulum to where random controls within the bounds bring it, which also keep a random inequality."""
    keys = jax.random.split(key, 5)
    unit = 10 ** jax.random.uniform(keys[0], (2,), minval=-6, maxval=6)
    bound, stiffness = jax.random.uniform(keys[1], (2,), minval=0.5, maxval=3.0)
    us = bound * jax.random.uniform(keys[2], (H, 1), minval=-1, maxval=1)
    direction = jax.random.normal(keys[3], (2,))

    def step(t, y, u, args):
        return jnp.stack([y[0] + DT * y[1], y[1] + DT * (u[0] - args[0] * jnp.sin(y[0]))])

    problem = Problem(
        DiscreteDynamics(LINE, step, 1, DT), jnp.zeros(2), horizon=H, running=ControlEffort(1.0),
        lower=-bound * jnp.ones(1), upper=bound * jnp.ones(1), args=(stiffness,),
    )  # fmt: skip
    ys = problem.rollout(us)
    most = jnp.max(ys @ direction) + 0.02
    return problem.replace(constraints=[
        EndConstraint(lambda t, y, args: unit[0] * (y - args[1])),
        PathConstraint(lambda t, y, u, args: unit[1] * (y @ args[2] - args[3])[None], equality=False, at_end=True),
    ], args=(stiffness, ys[-1], direction, most))  # fmt: skip


@pytest.mark.slow
def test_random_problems_that_can_be_met_are_never_infeasible():
    """Also after few iterations, in units from a millionth to a million."""
    count = 100
    keys = jax.random.split(jax.random.key(3), count)
    for iterations in (20, 4):
        solver = AugmentedLagrangian(max_iterations=iterations)
        result = jax.jit(jax.vmap(lambda key, solver=solver: solve(random_feasible(key), solver=solver).result))(keys)
        assert not np.any(result == RESULTS.infeasible)
        if iterations == 20:
            assert np.sum(np.asarray(result == RESULTS.successful)) >= 0.97 * count


def linear(goal, bound, limit, place):
    """Ends at a goal, with bounds of the controls and of the speed, and an end before a place."""
    return pushed(
        EndConstraint(lambda t, y, args: y - args[0]),
        EndConstraint(lambda t, y, args: (y[0] - args[2])[None], equality=False),
        StateBounds(jnp.stack([jnp.array(-jnp.inf), -limit]), jnp.stack([jnp.array(jnp.inf), limit])),
        args=(goal, limit, place), lower=-bound * jnp.ones(1), upper=bound * jnp.ones(1),
    )  # fmt: skip


@pytest.mark.slow
def test_random_problems_against_linear_programs():
    """What a linear program finds no solution of is called infeasible, and nothing else."""
    rng, count = np.random.default_rng(11), 100
    goal = rng.normal(size=(count, 2)) * [1.5, 0.7]
    bound, limit, place = rng.uniform(0.3, 2, count), rng.uniform(0.3, 2, count), rng.uniform(-0.5, 3, count)

    found = jax.jit(jax.vmap(lambda *x: solve(linear(*x))))(*(jnp.asarray(x) for x in (goal, bound, limit, place)))
    result, ys = found.result, np.asarray(found.ys)
    ends = to_end()
    lag = np.arange(H)[:, None] - np.arange(H)[None]
    speeds = np.where(lag >= 0, DT, 0.0)
    least = []
    for i in range(count):
        # the least of all violations, with one slack
        rows = np.vstack([ends, -ends, ends[:1], speeds, -speeds])
        most = np.concatenate([goal[i], -goal[i], [place[i]], np.full(2 * H, limit[i])])
        slack = np.hstack([rows, -np.ones((len(rows), 1))])
        program = linprog(
            np.append(np.zeros(H), 1), A_ub=slack, b_ub=most, bounds=[(-bound[i], bound[i])] * H + [(0, None)]
        )
        least.append(program.fun)
    least = np.array(least)
    assert 20 < np.sum(least > 1e-4) < 80
    assert np.all(np.asarray(result == RESULTS.infeasible) == (least > 1e-4))
    assert np.all(np.asarray(result == RESULTS.successful) == (least < 1e-7))
    assert np.max(np.abs(found.us[..., 0]) - bound[:, None]) <= 0
    violation = np.maximum(np.max(np.abs(ys[:, -1] - goal), axis=1), ys[:, -1, 0] - place)
    violation = np.maximum(violation, np.max(np.abs(ys[:, :, 1]), axis=1) - limit)
    assert np.all(violation[least > 1e-4] >= least[least > 1e-4] * (1 - 1e-6))


def test_the_least_violation_is_that_of_bounded_least_squares():
    """Place and speed at the end out of reach; their natural sizes weigh them."""
    goal = np.array([3.0, 0.0])
    found = solve(pushed(EndConstraint(lambda t, y, args: y - args), args=jnp.array(goal), lower=-1.0, upper=1.0))
    assert found.result == RESULTS.infeasible
    size = np.asarray(found.multipliers.end_sizes[0])
    ends = to_end()
    np.testing.assert_allclose(size, np.sqrt(np.sum(ends**2, axis=1)), rtol=1e-9)
    oracle = lsq_linear(ends / size[:, None], goal / size, bounds=(-1, 1), tol=1e-14)
    off = np.abs(ends @ oracle.x - goal)
    np.testing.assert_allclose(np.abs(np.asarray(found.ys[-1]) - goal), off, rtol=1e-4)
