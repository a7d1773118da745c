"""Motions of several phases against linear algebra and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.lie.action import Translation
from lgsim.optimize import (
    RESULTS,
    AugmentedLagrangian,
    ControlEffort,
    EndConstraint,
    FieldDynamics,
    FreeTime,
    PathConstraint,
    Phase,
    Phases,
    Problem,
    mpc,
    settled_problem,
    solve,
    to_trajectory,
)

CONSTRAINED = AugmentedLagrangian(tolerance=1e-8)
PLANE = Translation(2)


def light(t, y, u, args):
    return jnp.array([y[1], u[0]])


def heavy(t, y, u, args):
    return jnp.array([y[1], u[0] / 2 - 0.3 * y[1]])


def braked(t, y, u, args):
    return jnp.stack([y[1], -2 * jnp.ones_like(y[1])])


def bounced(t, y, args):
    return y * jnp.array([1, -0.5])


def at_goal(t, y, args):
    return y - args


def two(**more):
    """Six steps of a light body, a bounce, eight shorter ones of a heavy one."""
    phases = [
        Phase(FieldDynamics(PLANE, light, 1, 0.1), 6, reset=bounced),
        Phase(FieldDynamics(PLANE, heavy, 1, 0.05), 8, running_rate=ControlEffort(3.0)),
    ]
    given = {"running_rate": ControlEffort(), "constraints": [EndConstraint(at_goal)], "args": jnp.array([0.4, 0.2])}
    return Problem(Phases(phases), jnp.array([0.0, 1.0]), horizon=14, **(given | more))


def linear_steps():
    """(A, B, weight of the effort) of each step of ``two``, by the matrix exponential, and the bounce."""
    from scipy.linalg import expm

    steps = []
    for i in range(14):
        drag, gain, dt, weight = (0, 1, 0.1, 1) if i < 6 else (0.3, 0.5, 0.05, 4)
        M = expm(dt * np.array([[0, 1, 0], [0, -drag, gain], [0, 0, 0]]))
        jump = np.diag([1, -0.5]) if i == 5 else np.eye(2)
        steps.append((jump @ M[:2, :2], jump @ M[:2, 2:], weight * dt))
    return steps


def least_effort(goal):
    """(controls, states) of least effort, by linear algebra."""
    first = np.array([0.0, 1.0])
    steps = linear_steps()
    free, push = first, np.zeros((2, 0))
    for A, B, _ in steps:
        free, push = A @ free, np.hstack([A @ push, B])
    weights = np.array([w for _, _, w in steps])
    us = np.linalg.pinv(push / np.sqrt(weights)) @ (goal - free) / np.sqrt(weights)
    ys = [first]
    for (A, B, _), u in zip(steps, us, strict=True):
        ys.append(A @ ys[-1] + B[:, 0] * u)
    return us, np.array(ys)


def test_least_effort_over_two_phases():
    """Dynamics, times between nodes, costs and the jump are those of each phase."""
    found = solve(two(), solver=CONSTRAINED)
    assert bool(found.result == RESULTS.successful)
    us, ys = least_effort(np.array([0.4, 0.2]))
    # steps of fourth order of a drag of 0.3 / s
    np.testing.assert_allclose(found.us[:, 0], us, atol=1e-6)
    np.testing.assert_allclose(found.ys, ys, atol=1e-6)
    np.testing.assert_allclose(found.ts, np.r_[0.1 * np.arange(7), 0.6 + 0.05 * np.arange(1, 9)], atol=1e-12)
    weights = np.array([weight for _, _, weight in linear_steps()])
    np.testing.assert_allclose(found.cost, np.sum(weights * us**2) / 2, rtol=1e-5)


def test_a_condition_of_one_phase():
    """A bound of the second phase's controls leaves the first one's alone."""
    free = solve(two(), solver=CONSTRAINED)
    most = float(jnp.max(jnp.abs(free.us[6:]))) / 2
    low, high = (PathConstraint(lambda t, y, u, args, s=s: s * u - most, equality=False) for s in (-1, 1))
    phases = two().dynamics.phases
    second = Phase(phases[1].dynamics, 8, running_rate=ControlEffort(3.0), constraints=[low, high])
    found = solve(two().replace(dynamics=Phases([phases[0], second])), solver=CONSTRAINED)
    assert bool(found.result == RESULTS.successful)
    assert jnp.max(jnp.abs(found.us[6:])) < most + 1e-7 < jnp.max(jnp.abs(found.us[:6]))
    assert found.cost > free.cost


def thrust_and_brake(distance, **more):
    """Thrust of at most 1 for a free time, then brakes of 2."""
    phases = [
        Phase(FieldDynamics(PLANE, light, 1, 0.1), 5, time=FreeTime(0.1, 9.0, weight=1.0)),
        Phase(FieldDynamics(PLANE, braked, 1, 0.1), 4, time=FreeTime(0.05, 9.0, weight=1.0)),
    ]
    upper = np.ones((9, 1))
    upper[5:] = 0  # nothing drives the second phase
    return Problem(
        Phases(phases), jnp.zeros(2), horizon=9, lower=-upper, upper=upper, args=jnp.stack([distance, jnp.zeros(())]),
        constraints=[EndConstraint(at_goal)], **more,
    )  # fmt: skip


@pytest.mark.slow
def test_derivative_of_free_times_of_two_phases():
    """dT/dd = T / (2 d)."""
    slope = jax.grad(lambda distance: solve(thrust_and_brake(distance), solver=CONSTRAINED).ts[-1])(jnp.asarray(3.0))
    np.testing.assert_allclose(slope, 0.5, rtol=1e-4)


def test_free_times_of_two_phases():
    """x = t1^2 / 2 + t1^2 / 4, t2 = t1 / 2: T = 1.5 sqrt(4 d / 3)."""
    found = solve(thrust_and_brake(jnp.asarray(3.0)), solver=CONSTRAINED)
    assert bool(found.result == RESULTS.successful)
    np.testing.assert_allclose(found.ts[5], 2, rtol=1e-6)
    np.testing.assert_allclose(found.ts[-1], 3, rtol=1e-6)
    np.testing.assert_allclose(found.us[:, 0], [1] * 5 + [0] * 4, atol=1e-6)
    settled = settled_problem(thrust_and_brake(jnp.asarray(3.0)), found)
    np.testing.assert_allclose(settled.dynamics.dts, [0.4, 0.25], rtol=1e-6)
    np.testing.assert_allclose(solve(settled, us=found.us, solver=CONSTRAINED).ts, found.ts, rtol=1e-9)


def test_errors():
    one = Phase(FieldDynamics(PLANE, light, 1, 0.1), 3)
    with pytest.raises(ValueError, match="expected at least one phase"):
        Phases([])
    with pytest.raises(TypeError, match=r"phases\[1\]: expected a Phase, got FieldDynamics"):
        Phases([one, one.dynamics])
    with pytest.raises(ValueError, match=r"phases\[1\]: expected 1 controls and 2 tangent"):
        Phases([one, Phase(FieldDynamics(PLANE, light, 2, 0.1), 3)])
    with pytest.raises(ValueError, match="steps"):
        Phase(one.dynamics, 0)
    with pytest.raises(ValueError, match=r"constraints\[0\]: EndConstraint has no node in a phase"):
        Phase(one.dynamics, 2, constraints=[EndConstraint(at_goal)])
    with pytest.raises(TypeError, match="time: expected FreeTime"):
        Phase(one.dynamics, 2, time=3.0)
    with pytest.raises(ValueError, match="horizon: expected 14, the steps of all phases, got 13"):
        two().replace(horizon=13)
    with pytest.raises(ValueError, match="each phase has its own time"):
        solve(two(free=[FreeTime(0.1, 1.0)]), solver=CONSTRAINED)
    with pytest.raises(TypeError, match="expected one without phases"):
        two().cost(jnp.zeros((15, 2)), jnp.zeros((14, 1)))
    with pytest.raises(TypeError, match="expected one without phases"):
        two().rollout(jnp.zeros((14, 1)))
    with pytest.raises(TypeError, match="expected one without phases"):
        mpc(two(constraints=[]))
    with pytest.raises(TypeError, match="got Phases"):
        to_trajectory(two(), solve(two(), solver=CONSTRAINED))
