"""iLQR and DDP: the optimum of linear problems in one step, gradients at the end, swing-ups, a slew, bounds, gaps."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.actions import Translation
from lgsim.optimize.dynamics import DiscreteDynamics, RateControlledDynamics
from lgsim.optimize.ilqr import ILQR
from lgsim.optimize.problem import Problem
from lgsim.optimize.solve import solve
from lgsim.optimize.solver import RESULTS
from lgsim.optimize.standard_costs import ControlEffort, StateDistance
from tests.optimize.problems import cart_swing, slew, swing


def whole_gradient(problem, us):
    """The gradient of the rolled-out cost by plain reverse mode."""
    return jax.jit(jax.grad(lambda us: problem.cost(problem.rollout(us), us)))(us)


def finished(result):
    assert result.message == ""
    assert bool(result.result == RESULTS.successful)


def double_integrator(t, y, u, args):
    return jnp.stack([y[0] + 0.1 * y[1], y[1] + 0.1 * u[0]])


def linear_problem(horizon=20):
    line = Translation(2)
    return Problem(
        DiscreteDynamics(line, double_integrator, 1, 0.1),
        jnp.array([1.0, 0.5]),
        horizon=horizon,
        running=ControlEffort(0.3) + StateDistance(line, jnp.zeros(2), jnp.array([1.0, 0.1])),
        terminal=StateDistance(line, jnp.array([0.2, 0.0]), 5.0),
    )


@pytest.mark.slow
def test_a_linear_problem_is_solved_by_one_step_from_any_guess():
    """Sequential and parallel; from controls, and from states that do not follow each other. Gains are Riccati's."""
    problem = linear_problem()
    A, B = np.array([[1, 0.1], [0, 1]]), np.array([[0.0], [0.1]])
    V = 5 * np.eye(2)
    gains = []
    for _ in range(20):
        F = 0.3 + B.T @ V @ B
        K = -np.linalg.solve(F, B.T @ V @ A)
        V = np.diag([1, 0.1]) + A.T @ V @ A + A.T @ V @ B @ K
        gains.append(K)
    scattered = jnp.sin(jnp.arange(42.0)).reshape(21, 2)
    found = [solve(problem), solve(problem, None, scattered), solve(problem, solver=ILQR(parallel=True))]
    for result in found:
        finished(result)
        assert int(result.iterations) == 2
        assert float(result.feasibility) < 1e-14
        np.testing.assert_allclose(result.us, found[0].us, atol=1e-12)
        np.testing.assert_allclose(result.gains, gains[::-1], atol=1e-12)
    assert np.max(np.abs(whole_gradient(problem, found[0].us))) < 1e-12
    history = found[1].history
    assert float(history.feasibility[0]) > 0.5 and float(history.step[0]) == 1.0
    assert history.cost.shape == (200,) and np.all(np.asarray(history.cost[2:]) == 0)


@pytest.fixture(scope="module")
def swung():
    problem = swing()
    return problem, solve(problem)


@pytest.mark.slow
def test_pendulum_swings_up_from_rest(swung):
    """The end is near the top, and the gradient that the solver reports is that of reverse mode through the motion."""
    problem, result = swung
    finished(result)
    assert abs(float(result.ys[-1, 0]) - np.pi) < 0.02
    gradient = whole_gradient(problem, result.us)
    np.testing.assert_allclose(np.max(np.abs(gradient)), result.gradient, rtol=1e-3)
    np.testing.assert_allclose(result.ys, problem.rollout(result.us), atol=1e-10)
    costs = np.asarray(result.history.cost[: int(result.iterations)])
    assert np.all(np.diff(costs) <= 1e-12 * costs[0])
    assert costs[0] > 100 * costs[-1]


def test_second_order_converges_faster_to_the_same(swung):
    problem, first = swung
    result = solve(problem, solver=ILQR(exact_hessian=True, gradient_tolerance=1e-9))
    finished(result)
    assert float(result.gradient) < 1e-9
    assert int(result.iterations) < int(first.iterations)
    np.testing.assert_allclose(result.cost, first.cost, rtol=1e-8)
    slopes = np.asarray(result.history.gradient[: int(result.iterations)])
    # quadratic convergence at the end: the last step squares the error
    assert slopes[-1] < 1e-2 * slopes[-2]


@pytest.mark.slow
def test_the_unit_of_the_cost_changes_nothing():
    """A cost 1024 times as large: the same iterations, to the last bit."""
    problem = swing(horizon=20)
    found = []
    for unit in (1.0, 1024.0):
        costs = {"running": problem.running * jnp.array(unit), "terminal": problem.terminal * jnp.array(unit)}
        solver = ILQR(exact_hessian=True, gradient_tolerance=1e-7 * unit, line_search_steps=2)
        found.append(solve(problem.replace(**costs), solver=solver))
    one, many = found
    finished(one)
    assert np.max(np.asarray(one.history.regularization)) > 0
    assert int(one.iterations) == int(many.iterations)
    np.testing.assert_array_equal(one.us, many.us)


@pytest.mark.slow
def test_bounded_controls_meet_the_conditions_of_an_optimum():
    problem = swing(lower=-5.0, upper=5.0)
    result = solve(problem, solver=ILQR(exact_hessian=True))
    finished(result)
    us = np.asarray(result.us)
    assert np.max(np.abs(us)) <= 5.0 and np.sum(np.abs(us) == 5.0) > 3
    gradient = np.asarray(whole_gradient(problem, result.us))
    assert np.max(np.abs(us - np.clip(us - gradient, -5, 5))) < 1e-6
    assert abs(float(result.ys[-1, 0]) - np.pi) < 0.02


@pytest.mark.slow
def test_cart_pole_swings_up_with_a_bounded_force():
    result = solve(cart_swing(), solver=ILQR(exact_hessian=True))
    finished(result)
    assert np.max(np.abs(result.ys[-1] - np.array([0, np.pi, 0, 0]))) < 3e-3
    assert np.max(np.abs(result.us)) <= 20


@pytest.fixture(scope="module")
def many():
    """Slews from several attitudes in one call, and one of them alone."""
    problem = slew(method=lgsim.LieEuler)
    starts = jax.jit(jax.vmap(lgsim.so3.exp))(jnp.array([[0.0, 0.0, 0.0], [0.5, -0.3, 1.0], [-1.0, 1.5, 0.2]]))
    run = jax.jit(jax.vmap(lambda R: solve(problem.replace(y0=(R, jnp.zeros(3))))))
    return problem, run(starts)


@pytest.mark.slow
def test_slew_on_the_rotation_group(many):
    """From rest to rest over 2.95 rad, off the group by rounding alone, with the gap that the weight leaves."""
    problem, results = many
    R, w = results.ys
    assert np.all(np.asarray(results.result == RESULTS.successful))
    goal = problem.terminal.target[0]
    gaps = jax.jit(jax.vmap(lambda R: lgsim.so3.log(goal.T @ R)))(R[:, -1])
    assert np.max(np.abs(gaps)) < 1e-4 and np.max(np.abs(w[:, -1])) < 1e-4
    assert np.max(np.abs(np.asarray(R @ R.mT) - np.eye(3))) < 1e-13
    assert np.max(np.abs(whole_gradient(problem, results.us[0]))) < 1e-5


@pytest.mark.slow
def test_a_batch_gives_what_each_problem_gives(many):
    problem, results = many
    alone = solve(problem)
    np.testing.assert_allclose(results.us[0], alone.us, atol=1e-7)
    assert int(results.iterations[0]) == int(alone.iterations)


def test_gaps_in_the_guess_are_closed():
    """States on the straight way to the top, which no control follows."""
    problem = swing()
    guess = jnp.linspace(jnp.zeros(2), problem.terminal.target, 61)
    result = solve(problem, None, guess)
    finished(result)
    assert float(result.history.feasibility[0]) > 0.1
    assert float(result.feasibility) < 1e-12
    np.testing.assert_allclose(result.ys, problem.rollout(result.us), atol=1e-9)


def test_smoothness_by_the_rate_of_the_control():
    """The held control is the sum of its rates."""
    base = linear_problem()
    dynamics = RateControlledDynamics(base.dynamics)
    problem = Problem(dynamics, (base.y0, jnp.zeros(1)), horizon=20, running=ControlEffort(1.0),
                      terminal=lambda t, y, args: 50 * jnp.sum(y[0] ** 2))  # fmt: skip
    result = solve(problem)
    finished(result)
    np.testing.assert_allclose(result.ys[1][1:], 0.1 * np.cumsum(result.us, axis=0), atol=1e-12)
    assert np.max(np.abs(whole_gradient(problem, result.us))) < 1e-6


@pytest.mark.slow
def test_what_is_not_finite_is_named():
    """A state that overflows, a cost and a derivative, with the node."""
    line = Translation(2)

    def explode(t, y, u, args):
        return y + jnp.where(t > 0.45, jnp.inf, 1.0) * (1 + u[0])

    blown = Problem(DiscreteDynamics(line, explode, 1, 0.1), jnp.zeros(2), horizon=9, running=ControlEffort())
    result = solve(blown)
    assert bool(result.result == RESULTS.nonfinite_start)
    assert "the state after the step at node 6" in result.message

    root = linear_problem(6).replace(running=lambda t, y, u, args: jnp.sqrt(jnp.sum(u * u)) + jnp.sum(y**2))
    result = solve(root)
    assert bool(result.result == RESULTS.nonfinite_derivative)
    assert "the gradient of the cost at node 0, t = 0 s" in result.message
    assert np.all(np.isfinite(result.us)) and np.isfinite(result.cost)

    log = linear_problem(6).replace(running=lambda t, y, u, args: jnp.where(t > 0.25, jnp.nan, 0) + jnp.sum(u * u))
    result = solve(log)
    assert "the running cost at node 3, t = 0.3 s" in result.message


class Spoilt(DiscreteDynamics):
    """A sum whose derivative is said to be infinite in one place at two times."""

    entry: tuple[int, int] = eqx.field(static=True, default=(0, 0))

    def linearized(self, t, y, u, y_next, args):
        A, B, c = super().linearized(t, y, u, y_next, args)
        G = jnp.concatenate([A, B], axis=1)
        here = jnp.any(jnp.abs(t - jnp.array([0.2, 0.4])) < 0.01)
        G = G.at[self.entry].add(jnp.where(here, jnp.inf, 0.0))
        return G[:, :2], G[:, 2:], c


@pytest.mark.repeats
@pytest.mark.parametrize("bound", [None, 1.0])
@pytest.mark.parametrize(
    "name, entry",
    [
        ("the derivative of the step with respect to the state", (1, 0)),
        ("the derivative of the step with respect to the control", (0, 2)),
    ],
)
def test_the_derivative_of_a_step_that_is_not_finite_is_named(name, entry, bound):
    dynamics = Spoilt(Translation(2), lambda t, y, u, args: y + 0.1 * u[0], 1, 0.1, entry)
    bounds = {} if bound is None else {"lower": -bound, "upper": bound}
    result = solve(linear_problem(6).replace(dynamics=dynamics, **bounds))
    assert bool(result.result == RESULTS.nonfinite_derivative)
    assert f"{name} at node 2, t = 0.2 s" in result.message
    assert np.all(np.isfinite(result.us)) and np.all(np.isfinite(result.gains))


@pytest.mark.slow
@pytest.mark.parametrize("node", [0, 3])
def test_the_hessian_that_is_not_finite_is_named(node):
    """The first one that the sweep meets, where values and gradients are finite."""

    def running(t, y, u, args):
        here = (jnp.abs(t - 0.1 * node) < 0.01) | ((node == 3) & (t < 0.01))
        return u[0] ** 2 + jnp.sum((y - 0.5) ** 2) + jnp.where(here, jnp.where(here, y[1], 1.0) ** 1.5, 0.0)

    result = solve(linear_problem(6).replace(y0=jnp.zeros(2), running=running))
    assert f"the Hessian of the cost at node {node}, t = {0.1 * node:.9g} s" in result.message


def test_a_terminal_cost_whose_hessian_is_not_finite_is_named():
    problem = linear_problem(6).replace(y0=jnp.zeros(2), terminal=lambda t, y, args: jnp.sum(y**2) + y[0] ** 1.5)
    assert "the Hessian of the cost at node 6" in solve(problem).message


def test_too_few_iterations_are_told():
    result = solve(swing(), solver=ILQR(max_iterations=3))
    assert "maximum number of iterations" in result.message
    assert int(result.iterations) == 3
    text = repr(result)
    assert text.startswith("Solution(") and result.message in text and text.count("\n") < 10


@pytest.mark.slow
@pytest.mark.float32
def test_single_precision():
    result = solve(swing(dtype=jnp.float32), solver=ILQR(gradient_tolerance=5e-4))
    assert result.us.dtype == jnp.float32 and result.message == ""
    assert abs(float(result.ys[-1, 0]) - np.pi) < 0.02
