"""Least-squares multipliers against bounded least squares, and optima whose multipliers the iterations do not find."""

from importlib.metadata import distribution

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog, lsq_linear

import lgsim
from lgsim.optimize import (
    EndConstraint,
    FreeTime,
    InteriorPoint,
    Problem,
    StateBounds,
    SymplecticEulerDynamics,
    settled_problem,
    solve,
)
from lgsim.optimize.interior_point.kkt import Conditions, Rows
from lgsim.optimize.interior_point.multipliers import FirstOrder, least_squares_multipliers

HORIZON, STATES, CONTROLS, EQUAL, LESS, ENDS = 6, 3, 2, 1, 3, 2


def random_first_order(seed):
    """(derivatives, slacks, sizes) of a random problem, with a control that is fixed."""
    rng = np.random.default_rng(seed)

    def draw(size):
        return jnp.asarray(rng.normal(size=size))

    z = STATES + CONTROLS
    rows = Conditions(
        Rows(draw(size=(HORIZON, EQUAL, z)).at[jnp.array([0, 1, 2, 4, 5])].set(0), draw(size=(ENDS, STATES))),
        Rows(draw(size=(HORIZON, LESS, z)), draw(size=(1, STATES))),
    )
    first = FirstOrder(
        draw(size=(HORIZON, STATES, STATES)), draw(size=(HORIZON, STATES, CONTROLS)),
        (draw(size=(HORIZON, z)), draw(size=STATES)), rows,
    )  # fmt: skip
    # half of the rows are active
    slacks = Rows(jnp.maximum(draw(size=(HORIZON, LESS)), 0), jnp.zeros(1))
    return first, slacks, jnp.exp(draw(size=(HORIZON, CONTROLS))).at[2, 1].set(0)


def reduced(first):
    """(gradient by the controls (H m,), derivatives of the equalities, of the inequalities (rows, H m)), dense."""
    at = np.zeros((HORIZON + 1, STATES, HORIZON * CONTROLS))
    own = np.zeros((HORIZON, CONTROLS, HORIZON * CONTROLS))
    for k in range(HORIZON):
        own[k, :, k * CONTROLS : (k + 1) * CONTROLS] = np.eye(CONTROLS)
        at[k + 1] = first.A[k] @ at[k] + first.B[k] @ own[k]
    z = np.concatenate([at[:-1], own], axis=1)

    def pulled(path, end):
        return np.einsum("kri,kij->krj", path, z).reshape(-1, z.shape[2]), end @ at[-1]

    path, end = first.costs
    gradient = np.einsum("ki,kij->j", path, z) + end @ at[-1]
    return gradient, *(np.vstack(pulled(np.asarray(C.path), np.asarray(C.end))) for C in first.rows)


@pytest.mark.parametrize("seed", [0, 1, 3, 4])
def test_they_are_those_of_bounded_least_squares(seed):
    first, slacks, sizes = random_first_order(seed)
    live = jax.tree.map(lambda x: jnp.ones(x.shape[:-1], bool), first.rows)
    zero = jax.tree.map(lambda x: jnp.zeros(x.shape), live)
    found = jax.jit(least_squares_multipliers)(first, slacks, live, zero, sizes, 1e-10, jnp.array(True))
    gradient, equal, less = reduced(first)
    D, s = np.asarray(sizes).ravel(), np.concatenate([np.asarray(slacks.path).ravel(), slacks.end])
    columns = np.vstack([equal, less]).T * D[:, None]
    softness = np.hstack([np.zeros((len(s), len(equal))), np.diag(s)])
    least = np.r_[np.full(len(equal), -np.inf), np.zeros(len(less))]
    oracle = lsq_linear(
        np.vstack([columns, softness]),
        np.r_[-D * gradient, np.zeros(len(s))],
        (least, np.inf),
        tol=1e-14,
        method="bvls",
    )
    m = np.concatenate([np.asarray(x).ravel() for x in jax.tree.leaves(found)])
    residual = np.r_[columns @ m + D * gradient, softness @ m]
    start = D * gradient
    np.testing.assert_allclose(residual @ residual / 2, oracle.cost, rtol=1e-9, atol=1e-11 * (start @ start))
    assert np.min(m[len(equal) :]) == 0 < np.max(m[len(equal) :])
    slopes, _ = first.reduced(found)
    np.testing.assert_allclose(np.asarray(slopes).ravel() * D, residual[: D.size], atol=1e-9)


def ur5():
    """(problem, controls, states): a UR5 from pose to pose in the least time, its base bounds it; a guess of 1 s."""
    path = distribution("example-robot-data").locate_file(
        "cmeel.prefix/share/example-robot-data/robots/ur_description/urdf/ur5_robot.urdf"
    )
    model = lgsim.load_urdf(str(path)).replace(damping=jnp.zeros(6), friction=jnp.zeros(6))
    start, goal = np.array([0.0, -1.2, 1.0, -1.4, -1.57, 0.0]), np.array([2.1, -1.0, 1.6, -2.0, -1.2, 0.6])
    horizon, torque, speed = 30, np.array([150.0, 150.0, 150.0, 28.0, 28.0, 28.0]), np.pi
    dynamics = SymplecticEulerDynamics(model, 1.0 / horizon)
    side = np.concatenate([np.full(6, 2 * np.pi), np.full(6, speed)])
    problem = Problem(
        dynamics, dynamics.state(jnp.asarray(start)), horizon=horizon, lower=-torque, upper=torque,
        constraints=[
            EndConstraint(lambda t, y, goal: dynamics.action.difference(goal, y)), StateBounds(-side, side)
        ],
        free=[FreeTime(0.2, 5.0, weight=1.0)], args=dynamics.state(jnp.asarray(goal)),
    )  # fmt: skip
    s = np.linspace(0, 1, horizon + 1)[:, None]
    states = np.hstack([start + (goal - start) * s * s * (3 - 2 * s), (goal - start) * 6 * s * (1 - s)])
    held = np.asarray(lgsim.gravity_forces(model, jnp.asarray(start)))
    return problem, np.tile(held, (horizon, 1)), states


def saved_by_a_small_step(problem, found):
    """The largest saving of time by changes of the controls and the time of up to a tenth, relative to the time, by a
    linear program on the constraints' linearization.
    """
    x = np.append(np.asarray(found.us).ravel(), found.ts[-1])
    torques = np.tile(problem.upper, problem.horizon)

    def rows(x):
        timed = eqx.tree_at(lambda s: s.ts, found, found.ts * x[-1] / found.ts[-1])
        ys = settled_problem(problem, timed).rollout(x[:-1].reshape(found.us.shape))
        return problem.dynamics.action.difference(problem.args, ys[-1]), ys[1:, 6:].ravel()

    (end, speeds), (to_end, to_speeds) = jax.tree.map(np.asarray, (jax.jit(rows)(x), jax.jit(jax.jacfwd(rows))(x)))
    assert np.max(np.abs(end)) < 1e-7 and np.max(np.abs(speeds)) < np.pi + 1e-7
    scale = np.append(torques, x[-1])
    below = np.append(np.maximum((-torques - x[:-1]) / torques, -0.1), -0.1)
    above = np.append(np.minimum((torques - x[:-1]) / torques, 0.1), 0.1)
    step = linprog(
        np.eye(len(x))[-1], A_ub=np.vstack([to_speeds, -to_speeds]) * scale,
        b_ub=np.concatenate([np.pi - speeds, np.pi + speeds]).clip(0), A_eq=to_end * scale, b_eq=np.zeros(len(end)),
        bounds=np.stack([below, above], axis=1),
    )  # fmt: skip
    assert step.status == 0
    return -step.fun


@pytest.mark.slow
def test_a_ur5_in_the_least_time():
    """The joints that do not bound the time have many optimal motions, and barrier multipliers that do not settle."""
    problem, us, states = ur5()
    found = solve(problem, us, states, solver=InteriorPoint())
    assert found.message == "" and float(found.violation) < 1e-7 and int(found.iterations) < 150
    assert saved_by_a_small_step(problem, found) < 1e-9
    # 2.1 rad at the speed limit of pi rad/s, and the way to it and back
    assert 2.1 / np.pi < found.ts[-1] < 0.7


def test_nothing_is_changed_unless_it_is_wanted():
    first, slacks, sizes = random_first_order(2)
    live = jax.tree.map(lambda x: jnp.ones(x.shape[:-1], bool), first.rows)
    guess = jax.tree.map(lambda x: jnp.full(x.shape, 0.3), live)
    found = least_squares_multipliers(first, slacks, live, guess, sizes, 1e-8, jnp.array(False))
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(guess), strict=True):
        np.testing.assert_array_equal(a, b)
