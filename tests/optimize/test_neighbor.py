"""Saddles of constrained problems are left, and minima are not taken for saddles: closed forms and other solvers."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from lgsim.actions import Translation
from lgsim.optimize.constraints.constraint import EndConstraint, PathConstraint
from lgsim.optimize.constraints.soft import Soft
from lgsim.optimize.constraints.state_bounds import StateBounds
from lgsim.optimize.dynamics import DiscreteDynamics
from lgsim.optimize.neighbor import has_curved_constraints, neighbor_along_constraints
from lgsim.optimize.problem import Problem
from lgsim.optimize.solve import solve
from lgsim.optimize.solver import RESULTS
from lgsim.optimize.standard_costs import ControlEffort
from tests.optimize.test_interior_point import around_disk
from tests.optimize.test_optimality import passed

AXES = np.array([3.0, 2.0, 1.0])


def reach(t, y, u, args):
    return y + u


def on_ellipsoid(t, y, args):
    return jnp.sum((y / args) ** 2)[None] - 1


def nearest(unit=1.0, price=1.0, dtype=float):
    """The nearest point of an ellipsoid to its center, in one step."""
    return Problem(DiscreteDynamics(Translation(3), reach, 3, 1.0), jnp.zeros(3, dtype), horizon=1,
                   running=ControlEffort(price), constraints=[EndConstraint(on_ellipsoid)],
                   args=jnp.asarray(unit * AXES, dtype))  # fmt: skip


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(("unit", "price"), [(1.0, 1.0), (1e-6, 1.0), (1e6, 1e-4)])
def test_the_ends_of_the_long_axes_are_saddles(axis, unit, price):
    """On an ellipsoid the distance is stationary at six points, of which the ends of the shortest axis are minima."""
    problem = nearest(unit, price)
    found = solve(problem, unit * np.eye(3)[axis][None])
    assert found.message == ""
    np.testing.assert_allclose(found.cost, price * unit**2 / 2, rtol=1e-6)
    np.testing.assert_allclose(np.abs(found.us[0]) / unit, [0, 0, 1], atol=1e-4)


@pytest.mark.slow
def test_in_float32():
    found = solve(nearest(dtype=np.float32), np.array([[1, 0, 0]], np.float32))
    assert found.message == ""
    np.testing.assert_allclose(found.cost, 0.5, rtol=1e-3)


def test_inside_of_jit_the_solver_stays_at_the_saddle():
    """What is traced cannot start again; with gradients of a solution the guess matters."""
    found = eqx.filter_jit(solve)(nearest(), jnp.asarray(np.eye(3)[:1]))
    np.testing.assert_allclose(found.cost, 4.5, rtol=1e-6)


def test_both_sides_of_a_disk_are_as_good():
    """From controls that are zero: the straight way through the middle, whose nodes lie before and after the disk."""
    ahead = PathConstraint(lambda t, y, u, args: 0.09 - (y[:1] - 1) ** 2 - y[1:2] ** 2, equality=False)
    problem = passed(0.001).replace(constraints=[ahead])
    found = solve(problem)
    assert found.message == ""
    np.testing.assert_allclose(found.cost, around_disk(problem, 0.001, 1), rtol=1e-6)


def test_a_saddle_that_cannot_be_left_is_called_one():
    """Bounds keep the controls within a thousandth of the saddle, where rows that are met leave no other place."""
    problem = nearest().replace(lower=[2.9, -0.01, -0.01], upper=[3.1, 0.01, 0.01])
    found = solve(problem, np.array([[3.0, 0, 0]]))
    # the corner of the box on the ellipsoid is the minimum
    corner = minimize(
        lambda u: u @ u / 2, [3.0, 0.01, 0.01], method="SLSQP", bounds=[(2.9, 3.1), (-0.01, 0.01), (-0.01, 0.01)],
        constraints={"type": "eq", "fun": lambda u: np.sum((u / AXES) ** 2) - 1}, options={"ftol": 1e-15},
    )  # fmt: skip
    if found.result == RESULTS.successful:
        np.testing.assert_allclose(found.cost, corner.fun, rtol=1e-8)
    else:
        assert found.result == RESULTS.saddle


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_a_convex_problem_has_no_saddle(seed):
    """Least effort within a ball and under a soft plane: nothing near is lower, and the optimum is SLSQP's."""
    rng = np.random.default_rng(seed)
    goal, normal = rng.normal(size=3), rng.normal(size=3)
    ball = EndConstraint(lambda t, y, args: jnp.sum((y - args) ** 2)[None] - 0.25, equality=False)
    plane = Soft(EndConstraint(lambda t, y, args: (y @ jnp.asarray(normal, y.dtype))[None] - 0.1, equality=False), 0.3)
    problem = Problem(DiscreteDynamics(Translation(3), reach, 3, 1.0), jnp.zeros(3), horizon=2,
                      running=ControlEffort(1.0), constraints=[ball, plane], args=jnp.asarray(goal))  # fmt: skip
    found = solve(problem)
    assert found.message == ""
    _, lower = neighbor_along_constraints(problem, found.ys, found.us, found.multipliers)
    assert not lower

    def cost(x):  # the controls of both steps are equal; x = (end, slack)
        return x[:3] @ x[:3] / 4 + 0.3 * x[3]

    oracle = minimize(
        cost, [*goal, 1.0], method="SLSQP", bounds=[(None, None)] * 3 + [(0, None)], options={"ftol": 1e-15},
        constraints=[
            {"type": "ineq", "fun": lambda x: 0.25 - np.sum((x[:3] - goal) ** 2)},
            {"type": "ineq", "fun": lambda x: 0.1 + x[3] - x[:3] @ normal},
        ],
    )  # fmt: skip
    soft = 0.3 * max(float(found.ys[-1] @ normal) - 0.1, 0)
    np.testing.assert_allclose(found.cost + soft, oracle.fun, rtol=1e-5)


def test_only_active_curved_rows_are_curved():
    """Bounds of the state, a linear end and an ellipsoid that is not reached have no second derivatives at a node."""
    ends = EndConstraint(lambda t, y, args: y[:1] - 0.3)
    bounds = StateBounds(np.full(3, -1.0), np.array([1.0, 0.2, 1.0]))
    inside = EndConstraint(lambda t, y, args: on_ellipsoid(t, y, args), equality=False)
    problem = nearest().replace(constraints=[ends, bounds, inside])
    found = solve(problem)
    assert found.message == ""
    assert not has_curved_constraints(problem, found.ys, found.us, found.multipliers)
    touching = solve(nearest(), np.array([[0, 0, 0.5]]))
    assert has_curved_constraints(nearest(), touching.ys, touching.us, touching.multipliers)
