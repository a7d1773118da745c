"""The way from a path of poses to a frame, against matrix logarithms of scipy."""

import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.optimize.standard_costs import FramePosePath

linalg = pytest.importorskip("scipy.linalg")


def matrix(axis, angle, p):
    T = np.eye(4)
    T[:3, :3] = linalg.expm(angle * np.cross(np.eye(3), axis))
    T[:3, 3] = p
    return T


def test_poses_between_are_screw_motions_and_ends_are_held():
    """A free body at a pose X: the residual is the twist of ``log(T(t)^-1 X)`` with ``T = A (A^-1 B)^s``."""
    model = lgsim.ModelBuilder().add_body("body", "world", lgsim.joints.Free(), mass=1.0, inertia=jnp.eye(3)).build()
    A, B = matrix([0, 0, 1], 0.3, [1, 2, 3]), matrix([0.6, 0, 0.8], 1.2, [0, 1, 2])
    X = matrix([0, 0.8, 0.6], -0.7, [0.5, 0.2, 1])
    quaternion = np.array([np.cos(-0.35), *(np.sin(-0.35) * np.array([0, 0.8, 0.6]))])
    y = jnp.concatenate([jnp.asarray(X[:3, 3]), jnp.asarray(quaternion), jnp.zeros(6)])
    cost = FramePosePath(model, "body", jnp.array([1.0, 3.0]), jnp.asarray(np.stack([A, B])), 2.0)
    for t, share in ((1.5, 0.25), (0.0, 0.0), (1.0, 0.0), (3.0, 1.0), (9.0, 1.0)):
        T = A @ linalg.expm(share * linalg.logm(np.linalg.inv(A) @ B))
        twist = linalg.logm(np.linalg.inv(T) @ X).real
        wanted = np.array([*twist[:3, 3], twist[2, 1], twist[0, 2], twist[1, 0]])
        np.testing.assert_allclose(cost.residual(t, y, None, None), wanted, rtol=0, atol=1e-12)
        np.testing.assert_allclose(cost.value(t, y, None, None), wanted @ wanted, rtol=1e-12)


def test_times_and_shapes_are_checked():
    model = lgsim.ModelBuilder().add_body("body", "world", lgsim.joints.Free(), mass=1.0, inertia=jnp.eye(3)).build()
    with pytest.raises(ValueError, match="times: expected at least two times"):
        FramePosePath(model, "body", jnp.zeros(1), jnp.eye(4)[None])
    with pytest.raises(ValueError, match="poses: expected shape"):
        FramePosePath(model, "body", jnp.array([0.0, 1.0]), jnp.eye(4)[None])
