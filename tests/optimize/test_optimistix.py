"""Direct shooting with optimistix: the same optima as iLQR, and what these solvers refuse."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import optimistix
import pytest

from lgsim.actions import Translation
from lgsim.optimize import (
    RESULTS,
    ControlEffort,
    DiscreteDynamics,
    LeastSquares,
    Problem,
    ShootingMinimizer,
    StateDistance,
    solve,
)
from tests.optimize.problems import swing
from tests.optimize.test_ilqr import linear_problem

SQUARES = optimistix.LevenbergMarquardt(rtol=1e-13, atol=1e-13)


@pytest.mark.repeats("L-BFGS", "Levenberg-Marquardt")
@pytest.mark.parametrize(
    "solver",
    [
        ShootingMinimizer(),
        ShootingMinimizer(optimistix.BFGS(rtol=1e-12, atol=1e-12)),
        ShootingMinimizer(SQUARES),
        ShootingMinimizer(optimistix.GaussNewton(rtol=1e-12, atol=1e-12)),
    ],
    ids=["L-BFGS", "BFGS", "Levenberg-Marquardt", "Gauss-Newton"],
)
def test_a_linear_problem_has_one_optimum(solver):
    problem = linear_problem()
    problem = problem.replace(running=0.5 * problem.running)
    result = solve(problem, solver=solver)
    assert result.message == "" and bool(result.result == RESULTS.successful)
    np.testing.assert_allclose(result.us, solve(problem).us, atol=2e-5)
    gradient = jax.jit(jax.grad(lambda us: problem.cost(problem.rollout(us), us)))(result.us)
    np.testing.assert_allclose(np.max(np.abs(gradient)), result.gradient, atol=1e-12)
    n = int(result.iterations)
    history = result.history
    np.testing.assert_allclose(history.gradient[n - 1], result.gradient, rtol=1e-6, atol=1e-14)
    assert float(history.cost[n - 1]) < float(history.cost[0]) and np.all(np.asarray(history.cost[n:]) == 0)


@pytest.mark.slow
def test_pendulum_swings_up_by_least_squares():
    result = solve(swing(horizon=30), solver=ShootingMinimizer(SQUARES))
    assert result.message == ""
    assert abs(float(result.ys[-1, 0]) - np.pi) < 0.05


def test_what_they_refuse():
    with pytest.raises(ValueError, match="ShootingMinimizer does not support bounds of the controls"):
        solve(swing(lower=-5.0), solver=ShootingMinimizer())
    bent = linear_problem().replace(terminal=lambda t, y, args: jnp.sum(jnp.cos(y)))
    with pytest.raises(
        TypeError, match="expected a sum of squares such as ControlEffort or LeastSquares, got EndFunction"
    ):
        solve(bent, solver=ShootingMinimizer(SQUARES))


def test_without_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "optimistix", None)
    with pytest.raises(ModuleNotFoundError, match=r"the package optimistix, .* pip install 'lgsim\[optimize\]'"):
        solve(linear_problem(7), solver=ShootingMinimizer())


@pytest.mark.slow
def test_what_goes_wrong_is_told():
    """Too few iterations; a derivative that is not finite; no smooth minimum."""
    few = solve(linear_problem(), solver=ShootingMinimizer(max_iterations=3))
    assert "maximum number of iterations" in few.message and int(few.iterations) == 3
    line = Translation(1)
    steady = Problem(
        DiscreteDynamics(line, lambda t, y, u, args: y + u, 1), jnp.zeros(1), horizon=2, running=ControlEffort()
    )
    root = steady.replace(terminal=lambda t, y, args: jnp.sqrt(jnp.sum(y * y)))
    assert "A derivative is not finite" in solve(root, solver=ShootingMinimizer()).message
    kink = steady.replace(running=lambda t, y, u, args: jnp.sum(jnp.abs(u - 0.3)))
    stuck = solve(kink, solver=ShootingMinimizer())
    assert np.all(np.isfinite(stuck.us)) and not bool(stuck.result == RESULTS.successful)


@pytest.mark.float32
def test_single_precision():
    one = jnp.ones(1, jnp.float32)
    problem = Problem(
        DiscreteDynamics(Translation(1), lambda t, y, u, args: y + u, 1),
        one,
        horizon=4,
        running=ControlEffort() + LeastSquares(lambda t, y, u, args: y),
        terminal=StateDistance(Translation(1), 0 * one),
    )
    for solver in (ShootingMinimizer(), ShootingMinimizer(SQUARES)):
        if jax.config.jax_enable_x64:
            with pytest.raises(TypeError, match="default precision, which is float64, and the problem is of float32"):
                solve(problem, solver=solver)
        else:
            result = solve(problem, solver=solver)
            assert result.us.dtype == jnp.float32 and result.message == ""
