"""Bad input is told before anything is compiled; the library of costs against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.actions import Coadjoint, Translation
from lgsim.optimize import (
    AugmentedLagrangian,
    CenterOfMass,
    ControlEffort,
    DiscreteDynamics,
    FramePose,
    FramePosition,
    JointVelocity,
    LeastSquares,
    MultibodyDynamics,
    Posture,
    Problem,
    ShootingMinimizer,
    inverse_kinematics,
    joint_limits,
    solve,
)
from lgsim.optimize.constraints.state_bounds import StateBounds
from lgsim.optimize.standard_costs import FramePath, GeodesicDistance

LINE = Translation(2)


def drift(t, y, u, args):
    return y + 0.1 * u


def given(**changes):
    settings = {
        "dynamics": DiscreteDynamics(LINE, drift, 2, 0.1),
        "y0": jnp.zeros(2),
        "horizon": 3,
        "running": ControlEffort(),
    }
    return Problem(**(settings | changes))


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"horizon": 0}, "horizon: expected at least 1, got 0"),
        ({"lower": 1.0, "upper": -1.0}, "infeasible, entry 0 has the lower bound 1 and the upper bound -1"),
        ({"lower": jnp.zeros(3)}, r"lower: expected a scalar or shape \(2,\)"),
        ({"running": lambda t, y, u, args: u}, r"running: expected a scalar cost, got shape \(2,\)"),
        ({"terminal": lambda t, y, args: y}, r"terminal: expected a scalar cost, got shape \(2,\)"),
        ({"terminal": ControlEffort()}, "terminal: there is no control at the end"),
        ({"dynamics": DiscreteDynamics(LINE, lambda t, y, u, args: y[:1], 2)}, "expected a step to states like y0"),
        (
            {"constraints": (StateBounds(jnp.array([0.5, 0.5]), jnp.ones(2)),)},
            "infeasible, y0 is outside of the state's bounds by 0.5",
        ),
    ],
)
def test_what_does_not_fit_is_told(changes, message, without_import_hook):
    with pytest.raises(ValueError, match=message):
        given(**changes)


def test_kinds_that_do_not_fit_are_told(without_import_hook):
    with pytest.raises(TypeError, match="dynamics: expected MultibodyDynamics"):
        given(dynamics=drift)
    with pytest.raises(TypeError, match="Coadjoint does not define the difference"):
        given(dynamics=DiscreteDynamics(Coadjoint(lgsim.SE2), drift, 2))
    with pytest.raises(TypeError, match="cost: expected a cost"):
        given(running=3.0)
    with pytest.raises(ValueError, match="weight: ControlEffort expected finite nonnegative numbers"):
        ControlEffort(-1.0)


def test_a_cost_that_is_not_finite_at_the_guess_is_told():
    with pytest.raises(ValueError, match="running: the cost is nan at y0 with the first control"):
        solve(given(running=lambda t, y, u, args: jnp.sqrt(jnp.sum(u) - 1)))
    with pytest.raises(ValueError, match="terminal: the cost is -inf at y0"):
        solve(given(terminal=lambda t, y, args: jnp.log(jnp.sum(y))))
    with pytest.raises(ValueError, match=r"us: expected shape \(3, 2\), got \(4, 2\)"):
        solve(given(), jnp.zeros((4, 2)))
    with pytest.raises(ValueError, match="ys: expected states with a leading axis of 4 nodes"):
        solve(given(), None, jnp.zeros((3, 2)))


def test_what_is_no_problem_is_told():
    with pytest.raises(ValueError, match=r"dynamics.dt: expected a positive time between nodes in s, got -0.1"):
        given(dynamics=DiscreteDynamics(given().dynamics.action, drift, 2, -0.1))
    with pytest.raises(ValueError, match="running, terminal: expected a cost, got none"):
        given(running=None, terminal=None)
    arm = lgsim.load_urdf(lgsim.data.arm7())
    with pytest.raises(ValueError, match=r"target: expected a point .* R\^T R = 1 fails by 3"):
        FramePose(arm, "flange", jnp.ones((4, 4)))
    with pytest.raises(ValueError, match=r"target of 'flange': expected a point .* R\^T R = 1 fails by 3"):
        inverse_kinematics(arm, "flange", jnp.ones((4, 4)))
    free = MultibodyDynamics(lgsim.load_urdf(lgsim.data.arm7(), floating_base=True), 0.02)
    with pytest.raises(ValueError, match=r"y0: expected a unit quaternion .* got norm 2"):
        Problem(free, free.state() * 2, horizon=3, running=ControlEffort())
    for solver in (AugmentedLagrangian, ShootingMinimizer):
        with pytest.raises(TypeError, match="max_iterations: expected an integer, got the truth value True"):
            solver(max_iterations=True)


def test_controls_are_of_any_numbers():
    problem = given()
    found = [solve(problem, us).cost for us in ([[0.0, 1.0]] * 3, np.array([[0, 1]] * 3), np.float32([[0, 1]] * 3))]
    assert found[0] == found[1] == found[2]


def test_costs_of_a_machine_at_a_configuration():
    model = lgsim.load_urdf(lgsim.data.arm7())
    with pytest.raises(ValueError, match=r"frame: expected one of .* got 'hand'"):
        FramePose(model, "hand", jnp.eye(4))
    with pytest.raises(ValueError, match="target: expected shape"):
        FramePosition(model, "flange", jnp.zeros(2))
    q, v = jnp.linspace(-1.0, 0.5, 7), jnp.linspace(0.2, -0.3, 7)
    dynamics = MultibodyDynamics(model, 0.01)
    y = dynamics.state(q, v)
    pose = np.asarray(lgsim.forward_kinematics(model, q)[model.frame_names.index("flange")])
    shift = np.array([0.1, -0.2, 0.3])
    target = pose.copy()
    target[:3, 3] += shift
    twist = np.concatenate([-pose[:3, :3].T @ shift, np.zeros(3)])
    path = jnp.array(pose[None, :3, 3]) + jnp.array([[0.0, 0.0, 0.0], [0.4, 0.0, -0.8]])
    costs = [
        (FramePose(model, "flange", jnp.array(target)), twist),
        (FramePosition(model, "flange", jnp.array(target[:3, 3])), -shift),
        (FramePath(model, "flange", jnp.array([0.0, 2.0]), path), np.array([-0.1, 0.0, 0.2])),
        (CenterOfMass(model, jnp.array(shift)), np.asarray(lgsim.center_of_mass(model, q)) - shift),
        (Posture(model, jnp.zeros(7)), np.asarray(q)),
        (JointVelocity(model), np.asarray(v)),
    ]
    rows = jax.jit(lambda y: [cost.residual(0.5, y, None, None) for cost, _ in costs])(y)
    for row, (_, wanted) in zip(rows, costs, strict=True):
        np.testing.assert_allclose(row, wanted, atol=1e-12)
    bounds = joint_limits(model)
    assert bounds.lower.shape == (14,)
    np.testing.assert_allclose(bounds.upper[:7], model.upper)


def test_costs_on_groups_add_and_scale():
    """Half the squared angle; sums and factors."""
    angle = GeodesicDistance(lgsim.SO3, jnp.eye(3))
    R = lgsim.so3.exp(jnp.array([0.0, 1.2, 0.0]))
    np.testing.assert_allclose(angle.value(0.0, R, None, None), 0.72, rtol=1e-14)
    both = 3.0 * angle + LeastSquares(lambda t, y, u, args: u, jnp.array([1.0, 4.0]))
    u = jnp.array([1.0, -1.0])
    np.testing.assert_allclose(both.value(0.0, R, u, None), 3 * 0.72 + 2.5, rtol=1e-14)
