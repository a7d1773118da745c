"""A quadrotor that every guess of controls lets tumble away: states as the guess, with gaps, lead it home."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.lie import quaternion
from lgsim.optimize import RESULTS, ControlEffort, MultibodyDynamics, Problem, StateDistance, solve


@pytest.mark.exhaustive
def test_states_at_the_goal_are_a_guess_that_arrives():
    """From two thirds of half a turn about x to hovering a metre away, by MK4: from the hovering thrusts alone the
    search ends in fast spins from most starts. The controls found are rolled out, since gaps might hide a fault."""
    inertia = np.diag([0.01, 0.01, 0.018])
    model = lgsim.ModelBuilder().add_body("body", "world", lgsim.joints.Free(), mass=1.0, inertia=inertia).build()
    arm, drag = 0.2, 0.02
    lift, roll, pitch = jnp.ones(4), arm * jnp.array([0, 1.0, 0, -1]), -arm * jnp.array([1.0, 0, -1, 0])
    S = jnp.stack([jnp.zeros(4), jnp.zeros(4), lift, roll, pitch, drag * jnp.array([1.0, -1, 1, -1])])
    dynamics = MultibodyDynamics(model, 0.02, selection=S)
    hover = jnp.full(4, 9.81 / 4)
    goal = jnp.array([1.0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    start = jnp.concatenate([jnp.zeros(3), quaternion.exp(jnp.array([2.0, 0, 0])), jnp.zeros(6)])
    near = ControlEffort(0.1, hover) + StateDistance(dynamics.action, goal, jnp.array([1.0] * 6 + [0.1] * 6))
    end = StateDistance(dynamics.action, goal, 1e3)
    problem = Problem(dynamics, start, horizon=100, running=0.02 * near, terminal=end, lower=0.0, upper=10.0)

    def arrive(y0):
        here = problem.replace(y0=y0)
        return solve(here, jnp.tile(hover, (100, 1)), jnp.tile(goal, (101, 1)))

    moves = 0.05 * np.random.default_rng(2).normal(size=(4, 12))
    found = jax.jit(jax.vmap(arrive))(jax.vmap(dynamics.action.move, (0, None))(jnp.asarray(moves), start))
    assert np.all(found.result == RESULTS.successful)
    assert np.max(found.cost) < 6 and np.max(found.iterations) < 60
    for y0, us in zip(found.ys[:, 0], found.us, strict=True):
        last = problem.replace(y0=y0).rollout(us)[-1]
        assert np.max(np.abs(dynamics.action.difference(goal, last))) < 0.05
