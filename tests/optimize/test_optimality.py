"""What counts as an optimum: in any unit, in both precisions, at the trajectory that is returned, and nowhere else."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.optimize import linprog, minimize

from lgsim.actions import Translation
from lgsim.optimize.augmented_lagrangian import AugmentedLagrangian
from lgsim.optimize.constraints.constraint import EndConstraint, PathConstraint
from lgsim.optimize.constraints.state_bounds import StateBounds
from lgsim.optimize.cost import LeastSquares
from lgsim.optimize.direct_shooting import DirectShooting
from lgsim.optimize.dynamics import DiscreteDynamics
from lgsim.optimize.ilqr import ILQR
from lgsim.optimize.problem import Problem
from lgsim.optimize.solve import solve
from lgsim.optimize.solver import RESULTS
from lgsim.optimize.standard_costs import ControlEffort, StateDistance
from tests.optimize.problems import swing

PLANE, HORIZON = Translation(2), 12


def bent(t, y, u, args):
    """A pendulum under two torques, in units of the controls (2,)."""
    unit, stiffness = args[0], args[1]
    force = u[0] / unit[0] + 0.5 * u[1] / unit[1]
    return jnp.stack([y[0] + 0.2 * y[1], y[1] + 0.2 * (force - stiffness * jnp.sin(y[0]))])


def random_problem(key, bounded, dtype):
    """A problem whose controls and cost have units from 1e-6 to 1e6."""
    keys = jax.random.split(key, 5)
    unit = 10 ** jax.random.uniform(keys[0], (2,), dtype, -6, 6)
    scale = 10 ** jax.random.uniform(keys[1], (), dtype, -6, 6)
    weight = 10 ** jax.random.uniform(keys[2], (2,), dtype, -2, 0)
    goal = jax.random.normal(keys[3], (2,), dtype)
    stiffness, width = jax.random.uniform(keys[4], (2,), dtype, 0.2, 1.5)

    def effort(t, y, u, args):
        return jnp.sqrt(args[2] * args[3]) * u / args[0]

    def gap(t, y, u, args):
        return jnp.sqrt(10 * args[2]) * (y - args[4])

    return Problem(
        DiscreteDynamics(PLANE, bent, 2, 0.2),
        jnp.zeros(2, dtype),
        horizon=HORIZON,
        running=LeastSquares(effort),
        terminal=LeastSquares(gap),
        lower=-width * unit if bounded else None,
        upper=width * unit if bounded else None,
        args=(unit, stiffness, scale, weight, goal),
    )


def away(key, bounded, solver, dtype):
    """(claimed, how far an independent look finds the solution from an optimum, in units of the problem) by a key."""
    problem = random_problem(key, bounded, dtype)
    found = solve(problem, solver=solver)
    # in float64, in controls and costs of order one
    unit, stiffness, _, weight, goal = jax.tree.map(lambda x: x.astype(jnp.float64), problem.args)
    args = jnp.ones(2), stiffness

    def cost(us):
        def step(y, u):
            return bent(0.0, y, u, args), jnp.sum(weight * u * u) / 2

        y, efforts = jax.lax.scan(step, jnp.zeros(2), us)
        return jnp.sum(efforts) + 5 * jnp.sum((y - goal) ** 2)

    us = found.us.astype(jnp.float64) / unit[None]
    to = us - jax.grad(cost)(us)
    if bounded:
        lower, upper = ((x.astype(jnp.float64) / unit)[None] for x in (problem.lower, problem.upper))
        to = jnp.clip(to, lower, upper)
    return found.result == RESULTS.successful, jnp.max(jnp.abs(to - us)), cost(us), found.iterations


@pytest.mark.parametrize(
    "bounded, dtype, count",
    [
        (True, jnp.float64, 100),
        *(
            pytest.param(*case, 250, marks=pytest.mark.slow)
            for case in ((True, jnp.float64), (False, jnp.float64), (True, jnp.float32), (False, jnp.float32))
        ),
    ],
)
def test_random_problems_in_units_of_a_trillion(bounded, dtype, count):
    """None that is no optimum is called one, and at most one in a hundred optima is not."""
    keys = jax.random.split(jax.random.key(7), count)
    claimed, off, _, _ = jax.jit(jax.vmap(lambda key: away(key, bounded, ILQR(), dtype)))(keys)
    claimed, off = np.asarray(claimed), np.asarray(off)
    assert np.max(off[claimed]) < (2e-6 if dtype == jnp.float64 else 5e-3)
    assert np.sum(~claimed) <= count // 100


def rolled(problem):
    """The cost of a problem by its controls."""
    return lambda us: problem.cost(problem.rollout(us), us)


@pytest.mark.parametrize("iterations", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_what_is_told_is_of_the_trajectory_that_is_returned(iterations):
    """After few iterations, with controls at their bounds: gradient, cost and gaps by reverse mode."""
    problem = swing(horizon=20, lower=-5.0, upper=5.0)
    found = solve(problem, solver=ILQR(max_iterations=iterations))
    assert int(found.iterations) == iterations and found.result == RESULTS.max_iterations
    slope = np.asarray(jax.jit(jax.grad(rolled(problem)))(found.us))
    us = np.asarray(found.us)
    pressed = ((us == 5) & (slope < 0)) | ((us == -5) & (slope > 0))
    assert np.any(pressed)
    np.testing.assert_allclose(found.gradient, np.max(np.abs(slope[~pressed])), rtol=1e-9)
    assert float(found.gradient) > 1
    np.testing.assert_allclose(found.cost, rolled(problem)(found.us), rtol=1e-12)
    assert float(found.feasibility) < 1e-14 and float(found.optimality.decrement) > 1e-6


@pytest.mark.slow
def test_single_precision_goes_on_to_the_optimum():
    double, single = (solve(swing(horizon=20, dtype=dtype)) for dtype in (jnp.float64, jnp.float32))
    assert double.message == single.message == ""
    np.testing.assert_allclose(single.cost, double.cost, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("solver", [ILQR(), DirectShooting(optax.lbfgs())], ids=["ILQR", "L-BFGS"])
@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_unit_of_the_cost_makes_no_optimum(unit, solver):
    problem = swing(horizon=20)
    plain = solve(problem, solver=ILQR())
    scaled = problem.replace(running=problem.running * jnp.array(unit), terminal=problem.terminal * jnp.array(unit))
    found = solve(scaled, solver=solver)
    if found.result == RESULTS.successful:
        np.testing.assert_allclose(found.cost / unit, plain.cost, rtol=1e-6)
    else:
        assert isinstance(solver, DirectShooting) and found.optimality.decrement > 1e-11


def passed(effort):
    """A point mass past a disk of radius 0.3 m in the middle of its way, 2 m in 2 s; it starts around it."""

    def step(t, y, u, args):
        return jnp.concatenate([y[:2] + 0.1 * y[2:] + 0.005 * u, y[2:] + 0.1 * u])

    space = Translation(4)
    return Problem(
        DiscreteDynamics(space, step, 2, 0.1),
        jnp.zeros(4),
        horizon=20,
        running=ControlEffort(effort),
        terminal=StateDistance(space, jnp.array([2.0, 0, 0, 0]), 100.0),
        constraints=[
            PathConstraint(lambda t, y, u, args: 0.09 - (y[:1] - 1) ** 2 - (y[1:2] + 0.05) ** 2, equality=False)
        ],
    )


@pytest.mark.parametrize("effort", [0.1, pytest.param(0.001, marks=pytest.mark.slow)])
def test_a_path_touches_what_it_goes_around(effort):
    """The optimum of sequential quadratic programming; a multiplier stays only where the path touches."""
    problem = passed(effort)
    around = jnp.zeros((20, 2)).at[:5, 1].set(2.0).at[5:15, 1].set(-2.0).at[15:, 1].set(2.0)
    found = solve(problem, around, solver=AugmentedLagrangian())
    assert found.message == "" and float(found.optimality.complementarity) < 1e-6

    value = jax.jit(jax.value_and_grad(lambda x: rolled(problem)(x.reshape(20, 2)) / effort))

    def clear(x):
        ys = problem.rollout(x.reshape(20, 2))[1:-1]
        return (ys[:, 0] - 1) ** 2 + (ys[:, 1] + 0.05) ** 2 - 0.09

    rows, slopes = jax.jit(clear), jax.jit(jax.jacrev(clear))
    oracle = minimize(
        lambda x: tuple(map(np.asarray, value(x))), np.asarray(around).ravel(), jac=True, method="SLSQP",
        constraints={"type": "ineq", "fun": lambda x: np.asarray(rows(x)), "jac": lambda x: np.asarray(slopes(x))},
        options={"maxiter": 500, "ftol": 1e-12},
    )  # fmt: skip
    np.testing.assert_allclose(found.cost, effort * oracle.fun, rtol=1e-5)
    touching = np.asarray(found.multipliers.path[0][1:, 0]) > 1e-6
    gaps = np.asarray(rows(found.us.ravel()))
    assert np.any(touching) and np.max(gaps[touching[: len(gaps)]]) < 1e-5


@pytest.mark.slow
def test_what_the_start_breaks_is_left_behind():
    """A start a tenth of a millimeter below its bound, as one that is measured: from the next node on it is kept."""
    problem = passed(0.1).replace(constraints=[StateBounds(-jnp.ones(4) * 0.01, jnp.ones(4) * 2)])
    outside = eqx.tree_at(lambda p: p.y0, problem, problem.y0.at[1].set(-0.0101))
    found = solve(outside, solver=AugmentedLagrangian())
    assert found.message == "" and float(found.violation) < 1e-6
    assert np.min(found.ys[1:, :2]) > -0.01 - 1e-6


def test_a_multiplier_of_what_is_not_active_is_told():
    """min u^2 / 2 for u <= 1, with a multiplier of 0.5 at a penalty of 10: it falls to zero in one outer iteration."""
    problem = Problem(
        DiscreteDynamics(Translation(1), lambda t, y, u, args: y + u, 1),
        jnp.zeros(1),
        horizon=1,
        running=ControlEffort(1.0),
        constraints=[PathConstraint(lambda t, y, u, args: u - 1, equality=False)],
    )
    solver = AugmentedLagrangian()
    first = solver.begin(problem, jnp.zeros((1, 1)), None)
    held = (jnp.full((1, 1), 0.5),), jnp.array(10.0)
    first = eqx.tree_at(lambda s: (s.penalties.path, s.penalties.weight), first, held)
    once = solver.iterate(problem, first)
    found = solver.finish(problem, once)
    assert found.result == RESULTS.not_complementary and float(found.violation) == 0
    np.testing.assert_allclose(found.optimality.complementarity, 0.05, rtol=1e-12)
    found = solver.finish(problem, solver.iterate(problem, once))
    assert found.result == RESULTS.successful and float(found.multipliers.path[0][0, 0]) == 0


def test_least_fuel_within_bounds():
    """min sum (a + b), a double integrator under a - b from 0 to 1 m: the Hessian is zero, the optimum a linear
    program's."""

    def step(t, y, u, args):
        force = u[0] - u[1]
        return jnp.stack([y[0] + 0.1 * y[1] + 0.005 * force, y[1] + 0.1 * force])

    problem = Problem(
        DiscreteDynamics(PLANE, step, 2, 0.1),
        jnp.zeros(2),
        horizon=40,
        running=lambda t, y, u, args: u[0] + u[1],
        lower=0.0,
        upper=1.0,
        constraints=[EndConstraint(lambda t, y, args: y - jnp.array([1.0, 0.0]))],
    )
    found = solve(problem, solver=AugmentedLagrangian())
    assert found.message == ""
    left = 4.0 - 0.1 * np.arange(1, 41)
    rows = np.stack([0.1 * left + 0.005, np.full(40, 0.1)])
    oracle = linprog(np.ones(80), A_eq=np.hstack([rows, -rows]), b_eq=[1.0, 0.0], bounds=(0, 1))
    np.testing.assert_allclose(found.cost, oracle.fun, rtol=1e-6)


@pytest.mark.slow
def test_a_guess_that_is_the_optimum_stays():
    problem = swing(horizon=20)
    found = solve(problem)
    again = solve(problem, found.us)
    assert again.message == "" and int(again.iterations) <= 2
    np.testing.assert_allclose(again.us, found.us, atol=1e-5)
