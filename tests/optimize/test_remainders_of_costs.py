"""What Gauss-Newton's model leaves out of a cost: its Hessian by reverse and forward mode less that model."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.optimize import (
    ControlEffort,
    FramePose,
    FramePosition,
    LeastSquares,
    MultibodyDynamics,
    Posture,
    StateDistance,
)
from tests.multibody import trees


@pytest.mark.slow
@pytest.mark.parametrize(
    "kinds",
    [
        (["revolute", "revolute"], [-1, 0]),
        pytest.param((["revolute", "spherical"], [-1, 0]), marks=pytest.mark.slow),
        pytest.param(trees.CASES["floating"], marks=pytest.mark.slow),
        pytest.param((["free", "universal", "planar"], [-1, 0, 1]), marks=pytest.mark.slow),
    ],
)
def test_the_remainder_of_each_cost(kinds):
    model = trees.build(*kinds)
    rng = np.random.default_rng(4)
    dynamics = MultibodyDynamics(model, 0.1)
    action = dynamics.action
    y = dynamics.state(trees.configuration(model, rng), jnp.asarray(rng.normal(size=model.nv)))
    other = trees.configuration(model, rng)
    u, frame = jnp.asarray(rng.normal(size=dynamics.controls)), model.frame_names[-1]
    target = lgsim.forward_kinematics(model, other)[-1]
    w = jnp.asarray(rng.uniform(1, 2, 6))
    costs = [
        FramePose(model, frame, target, w),
        FramePosition(model, frame, target[:3, 3], w[:3]),
        Posture(model, other) + 0.3 * StateDistance(action, dynamics.state(other), 2.0),
        2.0 * ControlEffort(0.1) + LeastSquares(lambda t, y, u, args: jnp.sin(u) * y[0], 0.5),
    ]

    def pairs(y, u):
        for cost in costs:
            for control in (u, None) if cost is not costs[-1] else (u,):
                full, part = (cost.quadratic(action, 0.0, y, control, None, exact).hessian for exact in (True, False))
                yield cost.remainder(action, 0.0, y, control, None), full - part, jnp.max(jnp.abs(full))

    sizes = []
    for found, wanted, size in jax.jit(lambda y, u: list(pairs(y, u)))(y, u):
        np.testing.assert_allclose(found, wanted, atol=1e-12 * (1 + size))
        sizes.append(np.max(np.abs(found)))
    assert np.sum(np.array(sizes) > 1e-3) >= 5
