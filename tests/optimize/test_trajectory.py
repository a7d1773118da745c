"""A solution as a Trajectory: states, forces of the drives, and what it says about the solver."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.actions import Translation
from lgsim.optimize import (
    ILQR,
    RESULTS,
    ControlEffort,
    DiscreteDynamics,
    MultibodyDynamics,
    Problem,
    RateControlledDynamics,
    plan_error,
    solve,
    to_trajectory,
)


@pytest.fixture(scope="module")
def arm():
    """Two hinges, of which the second is driven through a gear of -3."""
    rod = {"mass": 1.0, "center": [0, 0, -0.5], "inertia": 0.1 * np.eye(3)}
    down = np.eye(4)
    down[2, 3] = -1.0
    model = (
        lgsim.ModelBuilder()
        .add_body("upper", "world", lgsim.joints.Revolute(), axis=[0, 1, 0], **rod)
        .add_body("lower", "upper", lgsim.joints.Revolute(), axis=[0, 1, 0], placement=down, **rod)
        .build()
    )
    return MultibodyDynamics(model, 0.02, lgsim.MK2, jnp.array([[0.0], [-3.0]]))


def cost(t, y, u, args):
    return jnp.sum((u - 0.1) ** 2)


@pytest.mark.slow
def test_a_solution_becomes_the_motion_that_simulation_gives(arm, tmp_path):
    """The states are those of rollout under the forces of the trajectory, which are the controls through the gear."""
    problem = Problem(arm, arm.state(jnp.array([0.3, -0.2])), horizon=5, running=cost)
    result = solve(problem)
    trajectory = to_trajectory(problem, result)
    assert trajectory.result == "" and trajectory.method == "MK2" and trajectory.dt == 0.02
    np.testing.assert_allclose(trajectory.time, 0.02 * np.arange(6), rtol=1e-15)
    np.testing.assert_allclose(trajectory.tau[:, 1], -0.3, rtol=1e-12)
    np.testing.assert_array_equal(trajectory.tau[:, 0], 0)
    again = lgsim.rollout(arm.model, result.ys[0, :2], result.ys[0, 2:], dt=0.02, steps=5, method=lgsim.MK2,
                          torques=jnp.asarray(trajectory.tau[:-1]))  # fmt: skip
    np.testing.assert_allclose(trajectory.q, again.q, atol=1e-14)
    np.testing.assert_allclose(trajectory.v, again.v, atol=1e-13)
    back = lgsim.Trajectory.load(trajectory.save(tmp_path / "found.npz"))
    np.testing.assert_array_equal(back.q, trajectory.q)
    batch = jax.tree.map(lambda x: x[None], result)
    with pytest.raises(ValueError, match=r"solution: expected states of shape \(6, 4\), got \(1, 6, 4\)"):
        to_trajectory(problem, batch)


@pytest.mark.slow
def test_the_error_of_a_plan(arm):
    """Steps of half the length, against MK8 at a sixteenth under the same forces."""
    problem = Problem(arm, arm.state(jnp.array([0.3, -0.2])), horizon=20, running=cost)
    result = solve(problem, solver=ILQR(max_iterations=1))
    told = plan_error(problem, result)
    forces = jnp.repeat(result.us @ arm.selection.T, 16, axis=0)
    exact = lgsim.rollout(arm.model, result.ys[0, :2], result.ys[0, 2:], dt=0.02 / 16, steps=320, method=lgsim.MK8,
                          torques=forces, save_every=16)  # fmt: skip
    true = np.abs(result.ys[:, :2] - exact.q).max()
    assert told.resolved and told.claimed == 2 and true / 3 < told.largest[0] < 3 * true
    coarse = Problem(MultibodyDynamics(arm.model, 1.0, lgsim.MK2, arm.selection), problem.y0, horizon=8, running=cost)
    told = plan_error(coarse, solve(coarse, solver=ILQR(max_iterations=1)))
    assert not told.resolved and told.reason.endswith("increase substeps")


@pytest.mark.slow
def test_controls_that_are_states_drive_the_steps(arm):
    """The force of a step is the control after it has moved; a solver that did not converge is quoted."""
    problem = Problem(RateControlledDynamics(arm), (arm.state(), jnp.zeros(1)), horizon=4, running=cost)
    result = solve(problem)
    assert to_trajectory(problem, result).result == ""
    result = eqx.tree_at(lambda r: r.result, result, RESULTS.max_iterations)
    trajectory = to_trajectory(problem, result)
    assert "maximum number of iterations" in trajectory.result
    np.testing.assert_allclose(trajectory.tau[:4, 1], -3 * 0.02 * 0.1 * np.arange(1, 5), rtol=1e-12)


def test_states_that_belong_to_no_machine_are_told():
    dynamics = DiscreteDynamics(Translation(1), lambda t, y, u, args: y + u, 1)
    problem = Problem(dynamics, jnp.zeros(1), horizon=2, running=ControlEffort())
    with pytest.raises(TypeError, match=r"problem: expected MultibodyDynamics or .* got Discrete"):
        to_trajectory(problem, solve(problem))
