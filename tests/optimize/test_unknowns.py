"""Free final times, starts and parameters against closed forms."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import lgsim
from lgsim.lie.action import Translation
from lgsim.optimize import (
    ILQR,
    RESULTS,
    AugmentedLagrangian,
    ControlEffort,
    DirectShooting,
    DiscreteDynamics,
    EndConstraint,
    FieldDynamics,
    FreeParameters,
    FreeStart,
    FreeTime,
    InteriorPoint,
    MultibodyDynamics,
    Problem,
    RateControlledDynamics,
    StateBounds,
    StateDistance,
    SymplecticEulerDynamics,
    mpc,
    plan_error,
    settled_problem,
    solve,
    to_trajectory,
)
from lgsim.optimize.solver import IterativeSolver

CONSTRAINED = AugmentedLagrangian(tolerance=1e-8)


def double_integrator(t, y, u, args):
    return jnp.array([y[1], u[0]])


def put_args(problem, args):
    return eqx.tree_at(lambda p: p.args, problem, args)


def at_goal(t, y, args):
    return y - jnp.array([args, 0])


def to_rest(distance, *, horizon=20, dtype=jnp.float64, guess=3.0, **more):
    """From rest to rest at a distance by a double integrator."""
    dynamics = FieldDynamics(Translation(2), double_integrator, controls=1, dt=jnp.asarray(guess / horizon, dtype))
    more = {"constraints": [EndConstraint(at_goal)]} | more
    return Problem(dynamics, jnp.zeros(2, dtype), horizon=horizon, args=jnp.asarray(distance, dtype), **more)


def shortest(distance, **more):
    more = {"free": [FreeTime(0.1, 20.0, weight=1.0)]} | more
    return to_rest(distance, lower=-1.0, upper=1.0, **more)


@pytest.mark.parametrize("guess", [0.2, 3.0, 15.0])
def test_shortest_time(guess):
    """From rest to rest at distance d with |u| <= 1: T = 2 sqrt(d), the switch half way."""
    found = solve(shortest(1.0, guess=guess), solver=CONSTRAINED)
    assert bool(found.result == RESULTS.successful)
    np.testing.assert_allclose(found.ts[-1], 2, atol=5e-6)
    np.testing.assert_allclose(found.us[:, 0], np.repeat([1.0, -1.0], 10), atol=1e-4)
    np.testing.assert_allclose(found.ts, np.linspace(0, found.ts[-1], 21), atol=1e-12)
    np.testing.assert_allclose(found.ys[-1], [1, 0], atol=2e-6)
    assert found.us.shape == (20, 1) and found.ys.shape == (21, 2) and found.gains.shape == (20, 1, 2)


@pytest.mark.parametrize("solver", [AugmentedLagrangian(), InteriorPoint()], ids=["lagrangian", "interior"])
@pytest.mark.parametrize("scale", [1e-9, 1e-6, 1e6])
def test_no_unit_of_time_makes_an_optimum(solver, scale):
    """A way of scale^2 takes 2 scale, by tolerances that are relative."""
    free = [FreeTime(0.1 * scale, 10 * scale, weight=1.0)]
    found = solve(shortest(scale**2, guess=3 * scale, free=free), solver=solver)
    assert bool(found.result == RESULTS.successful)
    np.testing.assert_allclose(found.ts[-1], 2 * scale, rtol=1e-6)


def test_shortest_time_with_a_bound_of_speed():
    """|v| <= 0.5: T = d / v + v / a = 2.5."""
    bounds = StateBounds(jnp.array([-jnp.inf, -0.5]), jnp.array([jnp.inf, 0.5]))
    found = solve(shortest(1.0, constraints=[EndConstraint(at_goal), bounds]), solver=CONSTRAINED)
    assert bool(found.result == RESULTS.successful)
    np.testing.assert_allclose(found.ts[-1], 2.5, atol=5e-6)


@pytest.mark.slow
def test_shortest_time_in_single_precision():
    problem = shortest(1.0, dtype=jnp.float32)
    found = solve(problem, solver=AugmentedLagrangian())
    assert {leaf.dtype for leaf in (found.ts, found.ys, found.us, found.cost)} == {np.dtype("float32")}
    assert bool(found.result == RESULTS.successful)
    np.testing.assert_allclose(found.ts[-1], 2, atol=3e-3)


@pytest.mark.parametrize("weight", [1e-4, 1.0, 1e6])
def test_time_against_effort(weight):
    """min 1/2 int u^2 + w T: with controls constant on N steps T^4 = 18 d^2 / (w (1 - 1/N^2))."""
    best = (18 / (weight * (1 - 1 / 20**2))) ** 0.25
    problem = to_rest(
        1.0, guess=best * 1.7, free=[FreeTime(best / 50, best * 50, weight=weight)], running_rate=ControlEffort()
    )
    found = solve(problem, solver=CONSTRAINED)
    assert bool(found.result == RESULTS.successful)
    np.testing.assert_allclose(found.ts[-1], best, rtol=1e-5)
    np.testing.assert_allclose(found.cost, 4 / 3 * weight * best, rtol=1e-6)


@pytest.mark.parametrize("side", [0.3, 9.0])
def test_time_at_its_bound(side):
    """Without a cost of time the longest one is best, and with a large one the shortest."""
    weight, bounds = (1e4, (side, 10.0)) if side < 1 else (0.0, (0.1, side))
    problem = to_rest(1.0, free=[FreeTime(*bounds, weight=weight)], running_rate=ControlEffort())
    found = solve(problem, solver=CONSTRAINED)
    assert bool(found.result == RESULTS.successful)
    np.testing.assert_allclose(found.ts[-1], side, rtol=1e-12)


@pytest.mark.parametrize("width", [0.005, 0.05, 0.5])
def test_shortest_time_from_a_free_start(width):
    """Up to the width ahead at rest, which costs nothing: T = 2 sqrt(1 - width)."""
    free = [FreeTime(0.1, 20.0, weight=1.0), FreeStart(jnp.zeros(2), jnp.array([width, 0.0]))]
    found = solve(shortest(1.0, free=free), solver=AugmentedLagrangian())
    assert bool(found.result == RESULTS.successful)
    np.testing.assert_allclose(found.ts[-1], 2 * (1 - width) ** 0.5, rtol=5e-6)


@pytest.mark.parametrize("mode", [jax.grad, pytest.param(jax.jacfwd, marks=pytest.mark.slow)])
def test_derivative_of_the_shortest_time(mode):
    """dT/dd = 1 / sqrt(d) in both modes."""

    def time(distance):
        return solve(shortest(distance), solver=CONSTRAINED).ts[-1]

    np.testing.assert_allclose(mode(time)(2.0), 1 / np.sqrt(2), rtol=1e-4)


@pytest.mark.slow
def test_a_batch_of_shortest_times():
    distances = jnp.array([0.25, 1.0, 4.0])
    found = jax.vmap(lambda d: solve(shortest(d), solver=CONSTRAINED))(distances)
    np.testing.assert_allclose(found.ts[:, -1], 2 * np.sqrt(distances), atol=1e-5)


def test_another_number_compiles_nothing(monkeypatch):
    traced, advance = [], IterativeSolver.advance
    monkeypatch.setattr(IterativeSolver, "advance", lambda *args: traced.append(1) or advance(*args))
    # a horizon that no other test has compiled
    solve(shortest(1.0, horizon=7, free=[FreeTime(0.1, 20.0, weight=1)]), solver=CONSTRAINED)
    first = len(traced)
    solve(shortest(2.0, horizon=7, free=[FreeTime(0.2, 30, weight=2.0)], guess=2.0), solver=CONSTRAINED)
    assert len(traced) == first


def test_free_start():
    """x(1) = 1 from x = 0 by least effort: v(0) = 1 costs nothing; within half of that effort does the rest."""

    def end(t, y, args):
        return y[:1] - 1

    def problem(bound):
        side = jnp.array([0.0, bound])
        return to_rest(
            1.0,
            guess=1.0,
            constraints=[EndConstraint(end)],
            free=[FreeStart(-side, side)],
            running_rate=ControlEffort(),
        )

    free = solve(problem(3.0), solver=CONSTRAINED)
    assert bool(free.result == RESULTS.successful)
    np.testing.assert_allclose(free.ys[0], [0, 1], atol=1e-5)
    np.testing.assert_allclose(free.cost, 0, atol=1e-9)
    bound = solve(problem(0.5), solver=CONSTRAINED)
    # x(1) = v(0) + sum w_k u_k with w_k = dt (1 - t_k - dt / 2)
    dt = 1 / 20
    weights = dt * (1 - dt * (np.arange(20) + 0.5))
    np.testing.assert_allclose(bound.ys[0], [0, 0.5], atol=1e-12)
    np.testing.assert_allclose(bound.cost, 0.5 * 0.25 / np.sum(weights**2 / dt), rtol=1e-6)


def test_free_parameters():
    """y' = u + w from 0 to 1 in 1 s: the wind w takes what it may, u the rest; costs nothing where it may all."""

    def put_wind(problem, wind):
        return eqx.tree_at(lambda p: p.args["wind"], problem, wind)

    def blown(t, y, u, args):
        return u + args["wind"]

    def end(t, y, args):
        return y - 1

    def problem(bound):
        dynamics = FieldDynamics(Translation(1), blown, controls=1, dt=0.1)
        return Problem(
            dynamics, jnp.zeros(1), horizon=10, running_rate=ControlEffort(), args={"wind": jnp.full(1, 0.1)},
            constraints=[EndConstraint(end)],
            free=[FreeParameters(put_wind, [0.0], -bound, bound)],
        )  # fmt: skip

    found = solve(problem(0.6), solver=CONSTRAINED)
    assert bool(found.result == RESULTS.successful)
    np.testing.assert_allclose(found.parameters[0], [0.6], rtol=1e-12)
    np.testing.assert_allclose(found.cost, 0.08, rtol=1e-5)
    np.testing.assert_allclose(solve(problem(2.0), solver=CONSTRAINED).parameters[0], [1.0], rtol=1e-5)


@pytest.mark.slow
def test_time_start_and_parameters_at_once():
    """More unknowns than controls: the motion under a free acceleration g and start needs no control."""

    def falling(t, y, u, args):
        return jnp.array([y[1], u[0] + args])

    dynamics = FieldDynamics(Translation(2), falling, controls=1, dt=0.1)
    problem = Problem(
        dynamics, jnp.array([0.0, 0.0]), horizon=10, running_rate=ControlEffort(), args=jnp.asarray(-1.0),
        constraints=[EndConstraint(lambda t, y, args: jnp.stack([y[0], y[1] + 2, t - 1.5, args + 8 / 3]))],
        free=[FreeTime(0.5, 4.0), FreeStart(jnp.array([0.0, -9.0]), 9.0), FreeParameters(put_args, -1.0, -20.0, 0.0)],
    )  # fmt: skip
    found = solve(problem.replace(free=problem.free), solver=CONSTRAINED)
    assert bool(found.result == RESULTS.successful)
    # x = v t + g t^2 / 2 with x(1.5) = 0, x'(1.5) = -2: g = -8/3, v = 2
    np.testing.assert_allclose(found.ts[-1], 1.5, atol=1e-5)
    np.testing.assert_allclose(found.ys[0], [0, 2], atol=1e-5)
    np.testing.assert_allclose(found.parameters[0], -8 / 3, atol=1e-5)
    np.testing.assert_allclose(found.us, 0, atol=1e-4)


def test_a_rate_and_bounds_of_each_step():
    """1/2 int u^2 keeps its value as the nodes become more; a step whose bounds are zero has no control."""
    for n in (10, 40):
        wide = np.full((n, 1), 100.0)
        problem = to_rest(1.0, horizon=n, guess=2.0, running_rate=ControlEffort(), lower=-wide, upper=wide)
        np.testing.assert_allclose(solve(problem, solver=CONSTRAINED).cost, 6 / 8 / (1 - 1 / n**2), rtol=1e-6)
    bound = np.full((10, 1), 5.0)
    bound[3:6] = 0
    problem = to_rest(1.0, horizon=10, guess=2.0, running_rate=ControlEffort(), lower=-bound, upper=bound)
    found = solve(problem, solver=CONSTRAINED)
    assert bool(found.result == RESULTS.successful)
    np.testing.assert_array_equal(found.us[3:6], 0)
    # least squares under x(2) = 1, v(2) = 0 by the controls that are left
    dt, left = 0.2, np.r_[0:3, 6:10]
    A = np.stack([dt * (2 - dt * (left + 0.5)), np.full(7, dt)])
    np.testing.assert_allclose(found.us[left, 0], np.linalg.pinv(A) @ [1, 0], atol=1e-5)


@pytest.mark.slow
def test_bounds_of_each_step_by_the_gradient():
    bound = np.full((10, 1), 5.0)
    bound[3:6] = 0
    by_gradient = solve(
        to_rest(
            1.0, horizon=10, guess=2.0, lower=-bound, upper=bound, constraints=[],
            running=ControlEffort(), terminal=StateDistance(Translation(2), jnp.array([1.0, 0.0]), 50.0),
        ),
        solver=DirectShooting(optax.lbfgs()),
    )  # fmt: skip
    np.testing.assert_array_equal(by_gradient.us[3:6], 0)


@pytest.fixture(scope="module")
def cart():
    """3 kg on a rail."""
    return lgsim.ModelBuilder().add_body("cart", "world", lgsim.joints.Prismatic(), axis=(1, 0, 0), mass=3.0).build()


def carried(dynamics, **more):
    """From rest to rest over half a metre under |F| <= 2 N, as fast as possible."""
    return Problem(
        dynamics, dynamics.state(), horizon=16, lower=-2.0, upper=2.0,
        constraints=[EndConstraint(lambda t, y, args: y - jnp.array([0.5, 0.0]))],
        **({"free": [FreeTime(0.1, 10.0, weight=1.0)]} | more),
    )  # fmt: skip


@pytest.mark.repeats("SymplecticEulerDynamics")
@pytest.mark.parametrize("kind", [MultibodyDynamics, SymplecticEulerDynamics])
def test_shortest_time_of_a_machine(cart, kind):
    """A cart of mass m under |F| <= 2: T = 2 sqrt(m d / 2); its motion is timed by what was found."""
    problem = carried(kind(cart, 0.1))
    found = solve(problem, solver=CONSTRAINED)
    assert bool(found.result == RESULTS.successful)
    # v+ before q+: of n Euler steps the way is d = a T^2 / 4 whichever end of a step counts, for an even n
    best = 2 * np.sqrt(3.0 * 0.5 / 2)
    np.testing.assert_allclose(found.ts[-1], best, rtol=1e-5)
    settled = settled_problem(problem, found)
    assert not settled.free
    np.testing.assert_allclose(settled.rollout(found.us), found.ys, atol=1e-9)
    np.testing.assert_allclose(settled.time(16), best, rtol=1e-5)
    motion = to_trajectory(problem, found)
    np.testing.assert_allclose(motion.time[-1], best, rtol=1e-5)
    np.testing.assert_allclose(motion.time[1], best / 16, rtol=1e-5)
    plan_error(problem, found)


@pytest.mark.slow
def test_a_number_of_a_machine_is_free(cart):
    """A spring so stiff that the cart swings over in half a period, pi sqrt(m / k) = 1.6 s, without any force."""

    def put(problem, stiffness):
        model = problem.dynamics.model.replace(stiffness=stiffness)
        return eqx.tree_at(lambda p: p.dynamics.model, problem, model)

    dynamics = MultibodyDynamics(cart.replace(rest=0.25), 0.1)
    problem = carried(dynamics, running_rate=ControlEffort(), free=[FreeParameters(put, [4.0], 0.0)])
    found = solve(problem, solver=CONSTRAINED)
    assert bool(found.result == RESULTS.successful)
    best = 3.0 * (np.pi / 1.6) ** 2
    # steps of fourth order, of a fifth of a radian
    np.testing.assert_allclose(found.parameters[0], [best], rtol=0.2**4 / 30)
    np.testing.assert_array_equal(settled_problem(problem, found).dynamics.model.stiffness, found.parameters[0])
    np.testing.assert_allclose(found.us, 0, atol=1e-4)


def test_errors():
    with pytest.raises(ValueError, match="FreeTime: lower, upper: infeasible"):
        FreeTime(2.0, 1.0)
    with pytest.raises(ValueError, match="lower: expected a positive time in s, got 0"):
        FreeTime(0, 1.0)
    with pytest.raises(ValueError, match="FreeStart: 0, upper"):
        FreeStart(-1.0, -0.5)
    with pytest.raises(TypeError, match=r"free: expected a list such as \[FreeTime"):
        to_rest(1.0, free=FreeTime(1.0, 2.0))
    with pytest.raises(TypeError, match=r"free\[0\]: expected FreeTime"):
        to_rest(1.0, free=["time"])
    with pytest.raises(ValueError, match="at most one FreeTime"):
        to_rest(1.0, free=[FreeTime(1.0, 2.0)] * 2)
    with pytest.raises(ValueError, match="problem: expected a problem without free unknowns"):
        mpc(to_rest(1.0, free=[FreeTime(1.0, 2.0)], constraints=[], running=ControlEffort()))
    with pytest.raises(ValueError, match=r"FreeParameters: upper: expected a scalar or shape \(\), got \(2,\)"):
        solve(to_rest(1.0, free=[FreeParameters(put_args, 1.0, 0.0, np.ones(2))]), solver=CONSTRAINED)
    with pytest.raises(ValueError, match=r"FreeStart: lower: expected a scalar or shape \(2,\)"):
        solve(to_rest(1.0, free=[FreeStart(jnp.zeros(3), jnp.zeros(3))]), solver=CONSTRAINED)
    blind = DiscreteDynamics(Translation(1), lambda t, y, u, args: y + u, controls=1, dt=0.1)
    with pytest.raises(TypeError, match="DiscreteDynamics does not depend"):
        solve(Problem(blind, jnp.zeros(1), horizon=3, free=[FreeTime(1.0, 2.0)]), solver=ILQR())
    smooth = RateControlledDynamics(blind)
    with pytest.raises(TypeError, match="DiscreteDynamics does not depend"):
        y0 = jnp.zeros(1), jnp.zeros(1)
        solve(Problem(smooth, y0, horizon=3, free=[FreeTime(1.0, 2.0)]), solver=ILQR())
    with pytest.raises(ValueError, match=r"lower: expected a scalar or shape \(1,\)"):
        to_rest(1.0, lower=np.zeros((3, 1)))
