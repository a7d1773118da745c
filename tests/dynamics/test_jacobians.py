"""Jacobians of frames and their time derivatives against Pinocchio, and as what gives twists and accelerations."""

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

from lgsim.dynamics.jacobians import Reference, frame_jacobian, frame_jacobian_rate
from lgsim.dynamics.kinematics import frame_accelerations, frame_index, frame_twists
from tests.dynamics.framed import framed
from tests.dynamics.machines import close, lanes, mimicking
from tests.multibody import trees

THEIRS = {
    Reference.BODY: pin.ReferenceFrame.LOCAL,
    Reference.SPACE: pin.ReferenceFrame.WORLD,
    Reference.WORLD: pin.ReferenceFrame.LOCAL_WORLD_ALIGNED,
}


# in every reference for one machine, for the others in one each: they differ in the last step alone
REFERENCES = {
    "two roots": list(Reference),
    "floating chain": [Reference.BODY],
    "revolute chain": list(Reference),
    "screws": [Reference.WORLD],
    "groups": [Reference.BODY],
    "floating": [Reference.SPACE],
    "one free body": [Reference.WORLD],
}


@pytest.mark.parametrize("case", lanes(list(REFERENCES)[:2], list(REFERENCES)[2:]))
def test_equal_pinocchio(case):
    model, twin, numbers = framed(case)
    q, *_ = trees.state(model)
    pin.computeJointJacobians(twin.pin, twin.data, twin.q(q))
    pin.updateFramePlacements(twin.pin, twin.data)
    for reference in REFERENCES[case]:
        right = pin.getFrameJacobian(twin.pin, twin.data, numbers[-3], THEIRS[reference])
        close(frame_jacobian(model, q, "tool", reference), twin.back(right))


def test_frames_on_branches_and_on_the_world():
    model, twin, numbers = framed("two roots")
    q, *_ = trees.state(model)
    pin.computeJointJacobians(twin.pin, twin.data, twin.q(q))
    pin.updateFramePlacements(twin.pin, twin.data)
    branch = model.topology.bodies // 2
    right = pin.getFrameJacobian(twin.pin, twin.data, numbers[branch], pin.ReferenceFrame.LOCAL)
    close(frame_jacobian(model, q, branch), twin.back(right))
    assert not np.any(frame_jacobian(model, q, "table"))


@pytest.mark.parametrize("case", lanes(["two roots"], ["revolute chain", "groups"]))
def test_rates_equal_pinocchio(case):
    """Machines without joints that Pinocchio composes of others: it leaves out how their screws move in each other."""
    model, twin, numbers = framed(case)
    q, v, _ = trees.state(model)
    pin.computeJointJacobiansTimeVariation(twin.pin, twin.data, twin.q(q), twin.v(v))
    pin.updateFramePlacements(twin.pin, twin.data)
    for reference in REFERENCES[case]:
        right = pin.getFrameJacobianTimeVariation(twin.pin, twin.data, numbers[-3], THEIRS[reference])
        close(frame_jacobian_rate(model, q, v, "tool", reference), twin.back(right))


@pytest.mark.parametrize("name", lanes(["mimic"], ["screws"]))
def test_twists_and_accelerations(name):
    """``V = J v`` and ``V' = J a + J' v`` for frames that lie off the axes (newton issues 1350 and 2206)."""
    model = mimicking() if name == "mimic" else framed(name)[0]
    q, v, a = trees.state(model)
    frame = "tool" if "tool" in model.frame_names else "body3"
    place = model.frame_names.index(frame)
    J, rate = frame_jacobian(model, q, frame), frame_jacobian_rate(model, q, v, frame)
    close(J @ v, frame_twists(model, q, v)[place])
    close(J @ a + rate @ v, frame_accelerations(model, q, v, a)[place])
    step = 1e-6
    ahead, behind = (frame_jacobian(model, model.retract(q, s * v), frame) for s in (step, -step))
    close(rate, (ahead - behind) / (2 * step), 1e-8)


def test_forces_through_shared_ancestors_count_once():
    """Regression: genesis pull request 3087, where J^T f of two bodies added a shared ancestor twice."""
    model = trees.build(["revolute", "revolute", "revolute"], [-1, 0, 0])
    q, v, _ = trees.state(model)
    forces = jnp.asarray(np.random.default_rng(1).normal(size=(3, 6)))
    tau = sum(frame_jacobian(model, q, i).T @ forces[i] for i in (1, 2))
    twists = frame_twists(model, q, v)
    close(tau @ v, twists[1] @ forces[1] + twists[2] @ forces[2])


def test_batches_are_single_states():
    model, *_ = framed("two roots")
    q, v, _ = trees.state(model, batch=(2, 2))
    J, rate = frame_jacobian(model, q, "tool"), frame_jacobian_rate(model, q, v, "tool")
    for i in np.ndindex(2, 2):
        close(J[i], frame_jacobian(model, q[i], "tool"), 1e-14)
        close(rate[i], frame_jacobian_rate(model, q[i], v[i], "tool"), 1e-14)


def test_far_from_the_worlds_origin():
    """A base 1e6 m away: the body Jacobian does not depend on where the base is, and loses nothing but the input."""
    model, *_ = framed("floating chain")
    q, *_ = trees.state(model)
    far = q.at[:3].add(2.0**20)
    close(frame_jacobian(model, far, "tool"), frame_jacobian(model, q, "tool"), 1e-9)


@pytest.mark.float32
def test_float32():
    model, twin, numbers = framed("revolute chain", dtype=jnp.float32)
    q, *_ = trees.state(model)
    J = jax.jit(lambda q: frame_jacobian(model, q, "tool"))(q)
    assert J.dtype == jnp.float32
    close(J, pin.computeFrameJacobian(twin.pin, twin.data, twin.q(q), numbers[-3]), 2e-6)


def test_unknown_frames():
    model, *_ = framed("two roots")
    q, *_ = trees.state(model)
    with pytest.raises(ValueError, match=r"frame: expected one of body0, .*camera, got 'hand'"):
        frame_jacobian(model, q, "hand")
    with pytest.raises(ValueError, match="frame: expected a name or an index from 0 to 6, got 7"):
        frame_jacobian_rate(model, q, q, 7)


def test_a_frame_is_named_or_counted():
    """From the first to the last of ``frame_names``; others are refused in words."""
    tree = framed("two roots")[0].topology
    names = tree.body_names + tree.frame_names
    for place, name in enumerate(names):
        assert frame_index(tree, place) == frame_index(tree, name) == place
    for frame, got in ((-1, "-1"), (len(names), str(len(names))), ("hand", "'hand'")):
        with pytest.raises(ValueError, match=f"frame: expected .*, got {got}$"):
            frame_index(tree, frame)
