"""Operational space: the inertia against Pinocchio, and the equation of motion that it stands in."""

import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

from lgsim.dynamics.forces import bias_forces
from lgsim.dynamics.jacobians import frame_jacobian, frame_jacobian_rate
from lgsim.dynamics.mass_matrix import mass_matrix
from lgsim.dynamics.operational_space import operational_space
from tests.dynamics.machines import close, lanes
from tests.multibody import trees
from tests.multibody.twin import Twin


@pytest.mark.slow
@pytest.mark.parametrize("case", lanes(["revolute chain"], ["floating chain"]))
def test_equation_of_motion_of_a_frame(case):
    model = trees.build(*trees.CASES[case])
    q, v, _ = trees.state(model)
    frame = f"body{model.topology.bodies - 1}"
    inertia, inverse, bias = operational_space(model, q, v, frame)
    twin = Twin(model)
    x = twin.q(q)
    J = pin.computeJointJacobian(twin.pin, twin.data, x, twin.ids[-1])
    mass = pin.crba(twin.pin, twin.data, x)
    mass = np.triu(mass) + np.triu(mass, 1).T
    close(inverse, J @ np.linalg.solve(mass, J.T), 1e-11)
    close(inertia @ inverse, np.eye(6), 1e-9)
    assert np.array_equal(inertia, inertia.T)
    # under joint forces J^T F and the wrench alone
    F = jnp.asarray(np.random.default_rng(1).normal(size=6))
    J = frame_jacobian(model, q, frame)
    a = np.linalg.solve(mass_matrix(model, q), J.T @ F - bias_forces(model, q, v))
    close(inertia @ (J @ a + frame_jacobian_rate(model, q, v, frame) @ v) + bias, F, 1e-9)


def test_batch_is_one_by_one_and_errors():
    model = trees.build(["revolute", "revolute"], [-1, 0])
    q, v, _ = trees.state(model, batch=(2,))
    whole = operational_space(model, q, v, 1)
    for found, one in zip(whole[1:2], operational_space(model, q[1], v[1], "body1")[1:2], strict=True):
        close(found[1], one, 1e-11)
    with pytest.raises(ValueError, match="frame: expected one of body0, body1, got 'hand'"):
        operational_space(model, q, v, "hand")


def test_too_few_directions_leave_the_inverse_finite():
    model = trees.build(["revolute", "revolute"], [-1, 0])
    q, v, _ = trees.state(model)
    inertia, inverse, _ = operational_space(model, q, v, "body1")
    assert np.all(np.isfinite(inverse)) and np.linalg.matrix_rank(inverse) == 2
    assert not np.all(np.isfinite(inertia)) or np.abs(inertia).max() > 1e10
