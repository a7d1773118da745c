"""Poses, twists and accelerations of frames against Pinocchio, and as derivatives of each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

from lgsim.dynamics.kinematics import forward_kinematics, frame_accelerations, frame_twists
from lgsim.lie import se3
from tests.dynamics.framed import framed
from tests.dynamics.machines import cases, close, lanes, mimicking
from tests.multibody import trees


@pytest.mark.slow
@pytest.mark.parametrize("case", cases(quick=["floating chain"]))
def test_equal_pinocchio(case):
    model, twin, numbers = framed(case)
    q, v, a = trees.state(model)
    poses, twists = forward_kinematics(model, q), frame_twists(model, q, v)
    rates = frame_accelerations(model, q, v, a)
    pin.forwardKinematics(twin.pin, twin.data, twin.q(q), twin.v(v), twin.v(a))
    pin.updateFramePlacements(twin.pin, twin.data)
    close(poses, np.stack([twin.data.oMf[i].homogeneous for i in numbers]))
    close(twists, np.stack([pin.getFrameVelocity(twin.pin, twin.data, i).vector for i in numbers]))
    close(rates, np.stack([pin.getFrameAcceleration(twin.pin, twin.data, i).vector for i in numbers]))
    classical = np.stack([pin.getFrameClassicalAcceleration(twin.pin, twin.data, i).linear for i in numbers])
    close(rates[:, :3] + jnp.cross(twists[:, 3:], twists[:, :3]), classical)


@pytest.mark.slow
@pytest.mark.parametrize("name", lanes(["mimics"], ["floating chain"]))
def test_derivatives_of_each_other(name):
    """``T' = T hat(V)`` and ``V' = A``, also where joints mimic."""
    model = mimicking() if name == "mimics" else framed(name)[0]
    q, v, a = trees.state(model)

    @jax.jit
    def along(q, v, a):
        speed = model.rate(q, v)
        poses = jax.jvp(lambda q: forward_kinematics(model, q), (q,), (speed,))
        return poses, jax.jvp(lambda q, v: frame_twists(model, q, v), (q, v), (speed, a))

    (poses, moved), (twists, rates) = along(q, v, a)
    close(poses @ se3.hat(twists), moved)
    close(frame_accelerations(model, q, v, a), rates)


@pytest.mark.slow
def test_batches_are_single_states():
    model, *_ = framed("two roots")
    q, v, a = trees.state(model, batch=(2, 3))
    many = (forward_kinematics(model, q), frame_twists(model, q, v[0]), frame_accelerations(model, q, v, a))
    for i, j in np.ndindex(2, 3):
        one = (
            forward_kinematics(model, q[i, j]),
            frame_twists(model, q[i, j], v[0, j]),
            frame_accelerations(model, q[i, j], v[i, j], a[i, j]),
        )
        for found, right in zip(many, one, strict=True):
            close(found[i, j], right, 1e-14)


def test_prismatic_joint_with_an_offset_keeps_its_orientation():
    """Regression: genesis pull request 3087, where the slide of a prismatic joint turned gradients of orientations."""
    model = trees.build(["revolute", "prismatic"], [-1, 0])
    q, *_ = trees.state(model)
    change = jax.jit(jax.jacfwd(lambda q: forward_kinematics(model, q)))(q)
    axis = np.asarray(forward_kinematics(model, q))[1, :3, :3] @ np.asarray(model.axes[1])
    np.testing.assert_array_equal(change[1, :3, :3, 1], 0)
    close(change[1, :3, 3, 1], axis)
    assert np.abs(change[1, :3, :3, 0]).max() > 0.1


@pytest.mark.slow
def test_quaternions_of_any_length_count_as_their_direction():
    """Regression: drake issue 10654, where poses and their Jacobians disagreed about quaternions that are not unit."""
    model = trees.build(["free", "spherical"], [-1, 0])
    q, v, _ = trees.state(model)
    scaled = q.at[3:7].multiply(3.0).at[7:].multiply(0.2)
    close(forward_kinematics(model, scaled), forward_kinematics(model, q))
    along = jax.jit(lambda q, v: jax.jvp(lambda q: forward_kinematics(model, q), (q,), (model.rate(q, v),)))
    _, moved = along(scaled, v)
    close(moved, forward_kinematics(model, q) @ se3.hat(frame_twists(model, q, v)))


@pytest.mark.float32
def test_float32():
    model, twin, numbers = framed("screws", dtype=jnp.float32)
    q, v, a = trees.state(model)
    poses, rates = forward_kinematics(model, q), frame_accelerations(model, q, v, a)
    assert poses.dtype == rates.dtype == jnp.float32
    pin.forwardKinematics(twin.pin, twin.data, twin.q(q), twin.v(v), twin.v(a))
    pin.updateFramePlacements(twin.pin, twin.data)
    close(poses, np.stack([twin.data.oMf[i].homogeneous for i in numbers]), 2e-6)
    close(rates, np.stack([pin.getFrameAcceleration(twin.pin, twin.data, i).vector for i in numbers]), 2e-5)


def test_wrong_arguments():
    model = trees.build(["spherical", "revolute"], [-1, 0])
    q, v, a = trees.state(model)
    with pytest.raises(ValueError, match=r"q: expected shape \(\.\.\., 5\), that is nq, got \(4,\).*'joint0'"):
        forward_kinematics(model, v)
    with pytest.raises(ValueError, match=r"v: expected shape \(\.\.\., 4\), that is nv, got \(5,\)"):
        frame_twists(model, q, q)
    with pytest.raises(TypeError, match="expected one dtype"):
        frame_accelerations(model, q, v, a.astype(jnp.float32))
