"""The interior-point method against closed forms, linear programs, sequential quadratic programming and differences."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog, minimize, nnls

from lgsim.actions import Translation
from lgsim.optimize.augmented_lagrangian import AugmentedLagrangian
from lgsim.optimize.constraints.constraint import EndConstraint, PathConstraint
from lgsim.optimize.constraints.state_bounds import StateBounds
from lgsim.optimize.dynamics import DiscreteDynamics
from lgsim.optimize.ilqr import ILQR
from lgsim.optimize.interior_point.method import InteriorPoint
from lgsim.optimize.problem import Problem
from lgsim.optimize.solve import solve
from lgsim.optimize.solver import RESULTS
from lgsim.optimize.standard_costs import ControlEffort
from tests.optimize.problems import swing
from tests.optimize.test_optimality import passed, random_problem, rolled

LINE, SOLVER = Translation(2), InteriorPoint()
GOAL = np.array([1.0, 0.0])


def push(t, y, u, args):
    """A mass of 1 kg, pushed for steps of 0.1 s."""
    return jnp.stack([y[0] + 0.1 * y[1] + 0.005 * u[0], y[1] + 0.1 * u[0]])


def at_goal(t, y, args):
    return y - jnp.array(GOAL, y.dtype)


def effort(*constraints, dtype=float, **more):
    """The least effort of a push by 1 m in 2 s."""
    return Problem(DiscreteDynamics(LINE, push, 1, 0.1), jnp.zeros(2, dtype), horizon=20, running=ControlEffort(1.0),
                   constraints=(EndConstraint(at_goal), *constraints), **more)  # fmt: skip


def transfer():
    """(effect of the controls on the end (2, H), on the speeds (H, H))."""
    lag = np.arange(20)[:, None] - np.arange(20)[None, :]
    position, speed = np.where(lag >= 0, 0.005 + 0.01 * lag, 0), np.where(lag >= 0, 0.1, 0)
    return np.stack([position[-1], speed[-1]]), speed


def quadratic_program(lower=-np.inf, upper=np.inf, rows=None, limits=None):
    """The cost of the least effort by sequential quadratic programming, in controls."""
    to_end, _ = transfer()
    more = [] if rows is None else [{"type": "ineq", "fun": lambda u: limits - rows @ u, "jac": lambda u: -rows}]
    found = minimize(
        lambda u: u @ u / 2, np.linalg.pinv(to_end) @ GOAL, jac=lambda u: u, method="SLSQP",
        bounds=[(lower, upper)] * 20,
        constraints=[{"type": "eq", "fun": lambda u: to_end @ u - GOAL, "jac": lambda u: to_end}, *more],
        options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    return found.fun


def test_bounds_of_the_controls():
    found = solve(effort(lower=-1.3, upper=1.3), solver=SOLVER)
    assert found.message == "" and int(found.iterations) < 20
    np.testing.assert_allclose(found.cost, quadratic_program(-1.3, 1.3), rtol=1e-8)
    us = np.asarray(found.us)
    # those that press are on their bounds, not next to them
    assert np.max(np.abs(us)) == 1.3 and np.sum(np.abs(us) == 1.3) > 3
    np.testing.assert_allclose(found.ys[-1], GOAL, atol=1e-9)
    assert float(found.feasibility) < 1e-14 and float(found.optimality.potential) < 1e-8


def test_a_speed_limit():
    limit = StateBounds(np.array([-np.inf, -0.6]), np.array([np.inf, 0.6]))
    found = solve(effort(limit), solver=SOLVER)
    assert found.message == ""
    _, speed = transfer()
    np.testing.assert_allclose(found.cost, quadratic_program(rows=speed, limits=0.6), rtol=1e-7)
    assert np.sum(np.asarray(found.ys[:, 1]) > 0.6 - 1e-7) > 3 and np.max(found.ys[:, 1]) < 0.6 + 1e-9
    # multipliers of the upper speed, where it is reached only
    presses = np.asarray(found.multipliers.path[0][:, 3]) > 1e-6
    np.testing.assert_array_equal(presses, np.asarray(found.ys[:-1, 1]) > 0.6 - 1e-6)


def test_least_fuel_is_a_linear_program():
    """min sum (a + b), a double integrator under a - b: there is no curvature but the barrier's."""

    def step(t, y, u, args):
        return push(t, y, u[:1] - u[1:], args)

    problem = Problem(
        DiscreteDynamics(LINE, step, 2, 0.1), jnp.zeros(2), horizon=40, running=lambda t, y, u, args: u[0] + u[1],
        lower=0.0, upper=1.0, constraints=[EndConstraint(at_goal)],
    )  # fmt: skip
    found = solve(problem, solver=SOLVER)
    assert found.message == ""
    left = 4.0 - 0.1 * np.arange(1, 41)
    rows = np.stack([0.1 * left + 0.005, np.full(40, 0.1)])
    oracle = linprog(np.ones(80), A_eq=np.hstack([rows, -rows]), b_eq=GOAL, bounds=(0, 1))
    np.testing.assert_allclose(found.cost, oracle.fun, rtol=1e-8)


def around_disk(problem, cost, side):
    """The cost of the shortest way past the disk, by sequential quadratic programming from one side."""
    value = jax.jit(jax.value_and_grad(lambda x: rolled(problem)(x.reshape(20, 2)) / cost))

    def clear(x):
        ys = problem.rollout(x.reshape(20, 2))[:-1]
        return -jax.vmap(lambda y: problem.constraints[0].value(0.0, y, None, None)[0])(ys)

    rows, slopes = jax.jit(clear), jax.jit(jax.jacrev(clear))
    guess = np.zeros((20, 2))
    guess[:5, 1], guess[5:15, 1], guess[15:, 1] = 2 * side, -2 * side, 2 * side
    oracle = minimize(
        lambda x: tuple(map(np.asarray, value(x))), guess.ravel(), jac=True, method="SLSQP",
        constraints={"type": "ineq", "fun": lambda x: np.asarray(rows(x)), "jac": lambda x: np.asarray(slopes(x))},
        options={"maxiter": 500, "ftol": 1e-13},
    )  # fmt: skip
    return cost * oracle.fun


def test_past_a_disk():
    """From controls that are zero, which do not go around it."""
    problem = passed(0.1)
    found = solve(problem, solver=SOLVER)
    assert found.message == "" and float(found.violation) < 1e-9
    np.testing.assert_allclose(found.cost, around_disk(problem, 0.1, 1), rtol=1e-7)


@pytest.mark.slow
def test_what_is_symmetric_does_not_stay_so():
    """The straight way, which ends before the disk, is a saddle; both ways around are minima."""
    ahead = PathConstraint(lambda t, y, u, args: 0.09 - (y[:1] - 1) ** 2 - y[1:2] ** 2, equality=False)
    problem = passed(0.1).replace(constraints=[ahead])
    found = solve(problem, solver=SOLVER)
    assert found.message == ""
    np.testing.assert_allclose(found.cost, around_disk(problem, 0.1, 1), rtol=1e-7)


def bryson(nodes):
    """Bryson and Denham: least effort to turn around within 1/9 m, from 1 m/s to -1 m/s in 1 s."""
    h = 1 / nodes

    def step(t, y, u, args):
        return jnp.stack([y[0] + h * y[1] + h * h / 2 * u[0], y[1] + h * u[0]])

    return Problem(
        DiscreteDynamics(LINE, step, 1, h), jnp.array([0.0, 1.0]), horizon=nodes,
        running=lambda t, y, u, args: h / 2 * u[0] ** 2,
        constraints=[
            StateBounds(-np.inf, np.array([1 / 9]), lambda y: y[:1]),
            EndConstraint(lambda t, y, args: y - jnp.array([0.0, -1.0])),
        ],
    )  # fmt: skip


@pytest.mark.slow
def test_turning_around_at_a_wall():
    """Cost 4 / (9 l) = 4 for l = 1/9, at the wall from 3 l to 1 - 3 l (Bryson and Ho 1975, sec. 3.11)."""
    costs = []
    for nodes in (30, 60):
        found = solve(bryson(nodes), solver=SOLVER)
        assert found.message == "" and np.max(found.ys[:, 0]) < 1 / 9 + 1e-9
        costs.append(float(found.cost))
        touching = found.ts[:-1][np.asarray(found.multipliers.path[0][:, 1]) > 1e-3]
        np.testing.assert_allclose([touching[0], touching[-1]], [1 / 3, 2 / 3], atol=1.01 / nodes)
    assert 0 < costs[1] - 4 < 0.3 * (costs[0] - 4) < 0.01


@pytest.mark.slow
def test_past_the_unit_circle():
    """The shortest way from (-2, -0.1) to (2, 0), all but its turn in 40 steps; by sequential quadratic programming."""
    problem = Problem(
        DiscreteDynamics(LINE, lambda t, y, u, args: y + 0.1 * u, 2, 0.1), jnp.array([-2.0, -0.1]), horizon=40,
        running=ControlEffort(0.1),
        constraints=[
            PathConstraint(lambda t, y, u, args: 1 - jnp.sum(y * y)[None], equality=False),
            EndConstraint(lambda t, y, args: y - jnp.array([2.0, 0.0])),
        ],
    )  # fmt: skip
    found = solve(problem, solver=SOLVER)
    assert found.message == "" and float(found.violation) < 1e-8
    start, end = np.array([-2.0, -0.1]), np.array([2.0, 0.0])

    def path(x):
        return np.vstack([start, x.reshape(39, 2), end])

    def length(x):
        steps = np.diff(path(x), axis=0)
        return 5 * np.sum(steps**2), 10 * (steps[:-1] - steps[1:]).ravel()

    def outside(x):
        return np.sum(x.reshape(39, 2) ** 2, axis=1) - 1

    def slopes(x):
        return (2 * x.reshape(39, 1, 2) * np.eye(39)[:, :, None]).reshape(39, 78)

    angles = np.linspace(np.pi, 2 * np.pi, 41)[1:-1]
    guess = np.stack([2 * np.cos(angles), 1.2 * np.sin(angles)], axis=1)
    oracle = minimize(length, guess.ravel(), jac=True, method="SLSQP", options={"maxiter": 500, "ftol": 1e-13},
                      constraints={"type": "ineq", "fun": outside, "jac": slopes})  # fmt: skip
    np.testing.assert_allclose(found.cost, oracle.fun, rtol=1e-6)


def fastest(speed=np.inf, steps=20):
    """A mass of 1 kg from 0 to 1 m at rest in the least time, |u| <= 1 N.

    The time of a step is a state, which the second control sets at a node before the first one.
    """

    def step(t, y, u, args):
        x, v, h = y
        after = jnp.stack([x + h * v + h * h / 2 * u[0], v + h * u[0], h])
        return jnp.where(t > 0.5, after, jnp.stack([x, v, h + u[1]]))

    return Problem(
        DiscreteDynamics(Translation(3), step, 2, 1.0), jnp.array([0.0, 0.0, 1 / steps]), horizon=steps + 1,
        terminal=lambda t, y, args: steps * y[2],
        lower=np.array([-1.0, -0.9 / steps]), upper=np.array([1.0, 9 / steps]),
        constraints=[
            EndConstraint(lambda t, y, args: y[:2] - jnp.array(GOAL)),
            StateBounds(-np.inf, np.array([speed]), lambda y: y[1:2]),
        ],
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("speed, time", [(np.inf, 2.0), (0.5, 2.5)])
def test_least_time(speed, time):
    """Forward until half of the way, then back; with a limit of the speed, at it in between."""
    found = solve(fastest(speed), solver=SOLVER)
    assert found.message == ""
    np.testing.assert_allclose(found.cost, time, rtol=1e-7)
    if speed == np.inf:
        # the switch is at a node
        np.testing.assert_allclose(found.us[1:, 0], np.repeat([1.0, -1.0], 10), atol=1e-6)


@pytest.mark.slow
def test_a_rocket_in_the_least_time():
    """10 m from rest to rest with a speed limit and drag; the time of other solvers, 7.41899 s."""
    steps = 150

    def field(y, u):
        return jnp.stack([y[1], (u - 0.2 * y[1] ** 2) / y[2], -0.01 * u * u])

    def step(t, y, u, args):
        x, h = y[:3], y[3]
        a = field(x, u[0])
        b = field(x + h / 2 * a, u[0])
        c = field(x + h / 2 * b, u[0])
        d = field(x + h * c, u[0])
        after = jnp.concatenate([x + h / 6 * (a + 2 * b + 2 * c + d), y[3:]])
        return jnp.where(t > 0.5, after, jnp.concatenate([x, y[3:] + u[1:]]))

    problem = Problem(
        DiscreteDynamics(Translation(4), step, 2, 1.0), jnp.array([0.0, 0.0, 1.0, 8 / steps]), horizon=steps + 1,
        terminal=lambda t, y, args: steps * y[3],
        lower=np.array([-1.1, -7 / steps]), upper=np.array([1.1, 22 / steps]),
        constraints=[
            EndConstraint(lambda t, y, args: y[:2] - jnp.array([10.0, 0.0])),
            StateBounds(np.array([-0.1]), np.array([1.7]), lambda y: y[1:2]),
        ],
    )  # fmt: skip
    found = solve(problem, solver=SOLVER)
    assert found.message == ""
    np.testing.assert_allclose(found.cost, 7.41899, rtol=1e-4)
    np.testing.assert_allclose(found.ys[-1, 2], 0.947091, rtol=3e-4)


def stuck():
    """A state that nothing moves, in a ball that it must not be in."""
    return Problem(
        DiscreteDynamics(Translation(1), lambda t, y, u, args: y, 1), jnp.zeros(1), horizon=5,
        running=ControlEffort(1.0),
        constraints=[PathConstraint(lambda t, y, u, args: 1 - y**2, equality=False)],
    )  # fmt: skip


@pytest.mark.parametrize(
    "problem, least",
    [
        (lambda: effort(lower=-0.5, upper=0.5), 0.2),
        pytest.param(lambda: effort(EndConstraint(lambda t, y, args: y + 1.0)), 0.9, marks=pytest.mark.slow),
        pytest.param(stuck, 1 - 1e-12, marks=pytest.mark.slow),
    ],
    ids=["unreachable", "contradiction", "stuck"],
)
def test_what_cannot_be_is_no_success(problem, least):
    found = solve(problem(), solver=SOLVER)
    assert found.result == RESULTS.constraints_violated and float(found.violation) > least
    assert all(np.all(np.isfinite(x)) for x in (found.ys, found.us, found.cost))


def in_units(unit, scale, dtype=float):
    """Least effort with a speed limit, in other units of the constraints, controls and cost."""
    rows, control = jnp.asarray(unit, dtype), jnp.asarray(scale, dtype)
    bent = DiscreteDynamics(LINE, lambda t, y, u, args: push(t, y, u / args[1], args), 1, 0.1)
    return Problem(
        bent, jnp.zeros(2, dtype), horizon=20, running=lambda t, y, u, args: args[1] * jnp.sum((u / args[1]) ** 2),
        lower=-4 * control, upper=4 * control, args=(rows, control),
        constraints=[
            EndConstraint(lambda t, y, args: args[0] * at_goal(t, y, args)),
            PathConstraint(lambda t, y, u, args: args[0] * (y[1:] - 0.6), equality=False),
        ],
    )  # fmt: skip


@pytest.mark.slow
def test_units_change_nothing():
    units = jnp.array([[1.0, 1.0], [1e-6, 1e6], [1e6, 1e-6], [1e6, 1e6]])
    found = jax.jit(jax.vmap(lambda unit: solve(in_units(unit[0], unit[1]), solver=SOLVER)))(units)
    assert np.all(found.result == RESULTS.successful) and np.ptp(found.iterations) <= 1
    np.testing.assert_allclose(found.us[:, :, 0] / units[:, 1:], np.tile(found.us[:1, :, 0], (4, 1)), atol=1e-6)
    np.testing.assert_allclose(found.cost / units[:, 1], np.full(4, found.cost[0]), rtol=1e-9)


def random_constrained(key, dtype):
    """A bounded pendulum under two torques with three constraints; all in units from 1e-6 to 1e6, and in none.

    Returns:
        (the problem, the same in controls, costs and rows of order one, unit of the controls, unit of the cost).
    """
    problem = random_problem(key, True, jnp.float64)
    unit, stiffness, scale, weight, goal = problem.args
    keys = jax.random.split(jax.random.fold_in(key, 1))
    rows = 10 ** jax.random.uniform(keys[0], (3,), minval=-6, maxval=6)
    limits = jax.random.uniform(keys[1], (2,), minval=0.05, maxval=0.6)
    constraints = [
        PathConstraint(lambda t, y, u, a: a[5][:1] * (jnp.sum(y * y)[None] - 4 * a[6][:1]), equality=False),
        PathConstraint(lambda t, y, u, a: a[5][2:] * (u[:1] / a[0][:1] - u[1:] / a[0][1:] - a[6][1:]), equality=False),
        EndConstraint(lambda t, y, a: a[5][1:2] * (y[1:] - jnp.sin(y[:1]))),
    ]
    ones = jnp.ones(2), stiffness, jnp.ones(()), weight, goal, jnp.ones(3), limits
    plain = problem.replace(args=ones, lower=problem.lower / unit, upper=problem.upper / unit, constraints=constraints)
    other = problem.replace(args=(unit, stiffness, scale, weight, goal, rows, limits), constraints=constraints)
    other = jax.tree.map(lambda x: x.astype(dtype) if eqx.is_inexact_array(x) else x, other)
    return other, plain, unit, scale


@pytest.mark.slow
@pytest.mark.parametrize(
    "dtype, met, iterations",
    [
        (jnp.float64, 1e-5, 200), (jnp.float64, 1e-5, 8), (jnp.float32, 1e-3, 200),
        (jnp.float64, 1e-5, None), (jnp.float32, 1e-2, None),
    ],
)  # fmt: skip
def test_random_problems_with_constraints(dtype, met, iterations):
    """None that is no optimum is called one, and few optima are not: by nonnegative multipliers from least squares.

    By the interior point, after 8 iterations of which some are not at their optimum yet, and by the augmented
    Lagrangian.
    """
    small = 1e-5 if dtype == jnp.float64 else 1e-3
    solver = AugmentedLagrangian() if iterations is None else InteriorPoint(max_iterations=iterations)

    def run(key):
        problem, plain, unit, _ = random_constrained(key, dtype)
        found = solve(problem, solver=solver)
        us = found.us.astype(float) / unit[None]

        def rows(us):
            ys = plain.rollout(us)
            path = [
                jax.vmap(lambda y, u, c=c: c.value(0.0, y, u, plain.args))(ys[:-1], us) for c in plain.constraints[:2]
            ]
            # no control moves the first state
            path[0] = path[0].at[0].set(-1.0)
            bounds = [plain.lower[None] - us, us - plain.upper[None]]
            less = jnp.concatenate([x.ravel() for x in (*path, *bounds)])
            return plain.constraints[2].value(0.0, ys[-1], None, plain.args), less

        values, slopes = rows(us), jax.jacrev(rows)(us)
        return found.result == RESULTS.successful, jax.grad(rolled(plain))(us), values, slopes

    keys = jax.random.split(jax.random.key(3), 100)
    claimed, gradients, (equal, less), slopes = jax.tree.map(np.asarray, jax.jit(jax.vmap(run))(keys))
    if iterations == 8:
        assert 10 < np.sum(~claimed) < 100
    else:
        assert np.sum(~claimed) <= (4 if dtype == jnp.float32 and iterations else 1)
    assert np.max(np.abs(equal[claimed])) < met and np.max(less[claimed]) < met
    for i in np.flatnonzero(claimed):
        up, active = slopes[0][i].reshape(1, -1), slopes[1][i].reshape(len(less[i]), -1)[less[i] > -10 * small]
        g = gradients[i].ravel()
        _, rest = nnls(np.vstack([up, -up, active]).T, -g)
        assert rest < 30 * small * np.linalg.norm(g)


@pytest.mark.slow
def test_single_precision():
    limits = {"lower": -1.3, "upper": 1.3}
    double, single = (solve(effort(dtype=dtype, **limits), solver=SOLVER) for dtype in (jnp.float64, jnp.float32))
    assert single.message == double.message == "" and single.us.dtype == jnp.float32
    np.testing.assert_allclose(single.cost, double.cost, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("bounded", [False, True])
def test_without_constraints_it_finds_what_another_solver_finds(bounded):
    problem = swing(horizon=20, **({"lower": -5.0, "upper": 5.0} if bounded else {}))
    found, other = solve(problem, solver=SOLVER), solve(problem, solver=ILQR())
    assert found.message == "" and int(found.iterations) < int(other.iterations)
    np.testing.assert_allclose(found.cost, other.cost, rtol=1e-8)
    assert found.multipliers is None


@pytest.mark.slow
def test_a_control_whose_bounds_agree_is_fixed():
    """The second one adds 0.2 N: as if the first one's bounds were other ones."""

    def both(t, y, u, args):
        return push(t, y, u[:1] + u[1:], args)

    problem = Problem(
        DiscreteDynamics(LINE, both, 2, 0.1), jnp.zeros(2), horizon=20,
        running=lambda t, y, u, args: (u[0] + 0.2) ** 2 / 2,
        constraints=[EndConstraint(at_goal)], lower=np.array([-1.5, 0.2]), upper=np.array([1.1, 0.2]),
    )  # fmt: skip
    found = solve(problem, solver=SOLVER)
    assert found.message == "" and np.all(np.asarray(found.us[:, 1]) == 0.2)
    np.testing.assert_allclose(found.cost, quadratic_program(-1.3, 1.3), rtol=1e-8)


@pytest.mark.slow
def test_a_guess_of_states_closes_its_gaps():
    states = jnp.broadcast_to(jnp.array(GOAL), (21, 2))
    found = solve(effort(lower=-1.3, upper=1.3), None, states, solver=SOLVER)
    assert found.message == "" and float(found.history.feasibility[0]) > 0.5 and float(found.feasibility) < 1e-12
    np.testing.assert_allclose(found.cost, quadratic_program(-1.3, 1.3), rtol=1e-8)


@pytest.mark.slow
def test_gauss_newton_finds_it_too():
    found = solve(effort(lower=-1.3, upper=1.3), solver=InteriorPoint(exact_hessian=False))
    assert found.message == ""
    np.testing.assert_allclose(found.cost, quadratic_program(-1.3, 1.3), rtol=1e-8)


@pytest.mark.slow
def test_an_iteration_too_few_is_no_success():
    """What is told is of the point that is returned: its slopes by reverse mode, its violation, its cost."""
    problem = effort(lower=-1.3, upper=1.3)
    found = solve(problem, solver=InteriorPoint(max_iterations=3))
    assert int(found.iterations) == 3 and found.result != RESULTS.successful
    np.testing.assert_allclose(found.cost, problem.cost(found.ys, found.us), rtol=1e-12)
    np.testing.assert_allclose(found.violation, np.max(np.abs(found.ys[-1] - GOAL)), rtol=1e-9)

    def lagrangian(us):
        ys = problem.rollout(us)
        return problem.cost(ys, us) + found.multipliers.end[0] @ at_goal(0.0, ys[-1], None)

    slopes = np.asarray(jax.grad(lagrangian)(found.us))
    us = np.asarray(found.us)
    free = ~(((us >= 1.3) & (slopes < 0)) | ((us <= -1.3) & (slopes > 0)))
    np.testing.assert_allclose(found.gradient, np.max(np.abs(slopes[free])), rtol=1e-6)


@pytest.mark.slow
def test_derivatives_of_what_is_found():
    """By the end and by the speed limit, against differences."""

    def problem(numbers):
        return effort(
            PathConstraint(lambda t, y, u, args: y[1:] - args[1], equality=False), args=numbers, lower=-5.0, upper=5.0
        ).replace(constraints=[
            EndConstraint(lambda t, y, args: y - args[0] * jnp.array(GOAL)),
            PathConstraint(lambda t, y, u, args: y[1:] - args[1], equality=False),
        ])  # fmt: skip

    def first(numbers):
        found = solve(problem(numbers), solver=SOLVER)
        return jnp.stack([found.cost, found.us[0, 0]])

    at, h = jnp.array([1.0, 0.6]), 1e-4
    steps = jnp.stack([at + h * e for e in jnp.eye(2)] + [at - h * e for e in jnp.eye(2)])
    values = np.asarray(jax.jit(jax.vmap(first))(steps))
    slopes = np.asarray(jax.jit(jax.jacrev(first))(at))
    np.testing.assert_allclose(slopes, (values[:2] - values[2:]).T / (2 * h), rtol=1e-5)


@pytest.mark.slow
def test_it_can_be_interrupted(tmp_path):
    """In pieces it finds the same, and tells each iteration."""
    problem, rows = effort(lower=-1.3, upper=1.3), []
    found = solve(problem, solver=SOLVER, progress=rows.append, checkpoint=tmp_path / "state")
    again = solve(problem, solver=SOLVER, checkpoint=tmp_path / "state")
    np.testing.assert_array_equal(found.us, again.us)
    assert len(rows) == int(found.iterations) and rows[-1].feasibility < 1e-8 < rows[0].feasibility


def test_numbers_that_cannot_be():
    with pytest.raises(ValueError, match="max_iterations"):
        InteriorPoint(max_iterations=0)
    with pytest.raises(ValueError, match="sweeps"):
        InteriorPoint(sweeps=0)
    root = Problem(
        DiscreteDynamics(Translation(1), lambda t, y, u, args: y + u, 1), jnp.zeros(1), horizon=2,
        running=lambda t, y, u, args: jnp.sqrt(u[0]) + y[0] ** 2,
    )  # fmt: skip
    found = solve(root, solver=SOLVER)
    assert found.result == RESULTS.nonfinite_derivative and int(found.bad_node) == 0
