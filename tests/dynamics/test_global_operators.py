"""Ploen and Park's operators of velocities and of the tip: the velocity forces and Jacobians that they make."""

import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.dynamics import (
    forward_kinematics,
    frame_jacobian,
    global_matrices,
    gravity_forces,
    inverse_dynamics,
    tip_operator,
    velocity_operators,
)
from lgsim.lie import se3
from tests.dynamics.machines import close
from tests.multibody import trees

KINDS, PARENTS = ["revolute", "helical", "prismatic", "universal", "revolute"], [-1, 0, 1, 1, 3]


@pytest.fixture(scope="module")
def case():
    model = trees.build(KINDS, PARENTS).add_frame("tip", "body4", trees.pose(np.random.default_rng(3)))
    q, v, a = trees.state(model)
    return model, q, v, a, global_matrices(model, q)


@pytest.mark.slow
@pytest.mark.typed
def test_velocity_forces(case):
    """(12), and the recursion (6)-(9) as a whole, against inverse dynamics."""
    model, q, v, a, m = case
    o = velocity_operators(model, q, v)
    C = m.S.T @ m.G.T @ (m.J @ m.G @ o.ad_Sq @ m.Gamma + o.ad_V @ m.J) @ m.G @ m.S
    close(C @ v, inverse_dynamics(model, q, v, jnp.zeros_like(v)) - gravity_forces(model, q), 1e-12)
    fall = jnp.concatenate([-model.gravity, jnp.zeros(3)])
    V = m.G @ m.S @ v
    V_dot = m.G @ (m.S @ a + o.ad_Sq @ m.Gamma @ V + m.P0 @ fall)
    F = m.G.T @ (m.J @ V_dot + o.ad_V @ m.J @ V)
    close(m.S.T @ F, inverse_dynamics(model, q, v, a), 1e-12)


@pytest.mark.slow
@pytest.mark.typed
def test_the_tip(case):
    """(14), and a wrench on the tip in (8)."""
    model, q, v, _, m = case
    for frame in ("tip", "body2"):
        P = tip_operator(model, frame)
        close(P @ m.G @ m.S, frame_jacobian(model, q, frame), 1e-12)
        h = 1e-6
        T = [forward_kinematics(model, q + s * h * v)[model.frame_names.index(frame)] for s in (-1, 1)]
        moved = se3.log(se3.inverse(T[0]) @ T[1]) / (2 * h)
        np.testing.assert_allclose(P @ m.G @ m.S @ v, moved, atol=1e-8)
    with pytest.raises(ValueError, match="'world'"):
        tip_operator(model, "world")
