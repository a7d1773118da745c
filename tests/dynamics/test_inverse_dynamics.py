"""Inverse dynamics against Pinocchio for every joint type, with and without external wrenches."""

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

from lgsim.dynamics.inverse_dynamics import inverse_dynamics
from tests.dynamics.machines import cases
from tests.multibody import trees
from tests.multibody.twin import Twin


def largest(found, right):
    return np.abs(np.asarray(found) - right).max() / np.abs(right).max()


def wrenches(model, batch=()):
    return jnp.asarray(np.random.default_rng(5).normal(size=(*batch, model.topology.bodies, 6)))


@pytest.mark.parametrize("name", cases(quick=["floating chain"]))
def test_equals_pinocchio(name):
    model = trees.build(*trees.CASES[name], armature=True)
    twin = Twin(model)
    q, v, a = trees.state(model)
    external = wrenches(model)
    right = pin.rnea(twin.pin, twin.data, twin.q(q), twin.v(v), twin.v(a), twin.forces(external))
    assert largest(inverse_dynamics(model, q, v, a, external), twin.back(right)) < 1e-12


def test_without_wrenches_and_in_another_gravity():
    model = trees.build(*trees.CASES["floating chain"], gravity=(1.0, -2.0, 3.0))
    twin = Twin(model)
    q, v, a = trees.state(model)
    right = pin.rnea(twin.pin, twin.data, twin.q(q), twin.v(v), twin.v(a))
    assert largest(inverse_dynamics(model, q, v, a), twin.back(right)) < 1e-12


@pytest.mark.parametrize("name", cases("two roots"))
def test_batches_are_single_states(name):
    model = trees.build(*trees.CASES[name])
    q, v, a = trees.state(model, batch=(2, 3))
    found = inverse_dynamics(model, q, v, a[0, 0], wrenches(model, (3,)))
    one = jax.jit(inverse_dynamics)
    for i, j in np.ndindex(2, 3):
        right = one(model, q[i, j], v[i, j], a[0, 0], wrenches(model, (3,))[j])
        assert largest(found[i, j], np.asarray(right)) < 1e-13


def test_batches_of_models():
    """brax and others assumed the numbers of a body constant over a batch."""
    model = trees.build(["free", "revolute"], [-1, 0])
    q, v, a = trees.state(model)
    scales = jnp.array([0.5, 1.0, 2.0])
    models = jax.vmap(lambda s: model.replace(inertias=model.inertias * s))(scales)
    found = jax.vmap(inverse_dynamics, in_axes=(0, None, None, None))(models, q, v, a)
    partly = jax.vmap(lambda s: inverse_dynamics(model.replace(inertias=model.inertias * s), q, v, a))(scales)
    np.testing.assert_allclose(partly, found, rtol=1e-13, atol=1e-13)
    right = np.asarray(inverse_dynamics(model, q, v, a))
    for scale, tau in zip(scales, found, strict=True):
        assert largest(tau, right * float(scale)) < 1e-13


@pytest.mark.float32
def test_float32():
    model = trees.build(*trees.CASES["revolute tree"], dtype=jnp.float32)
    twin = Twin(model)
    q, v, a = trees.state(model)
    tau = inverse_dynamics(model, q, v, a)
    assert tau.dtype == jnp.float32
    assert largest(tau, twin.back(pin.rnea(twin.pin, twin.data, twin.q(q), twin.v(v), twin.v(a)))) < 1e-5


def test_bodies_split_into_fixed_parts_are_one_body():
    """A machine whose body is two parts on a fixed joint moves as with their sum (mujoco #3553)."""
    from lgsim.multibody import ModelBuilder, joints

    rng = np.random.default_rng(2)
    parts, pose = [trees.body(rng) for _ in range(3)], trees.pose(rng)
    split = (
        ModelBuilder()
        .add_body("base", "world", joints.Free(), **parts[0])
        .add_body("part", "base", joints.Fixed(), placement=pose, **parts[1])
        .add_body("arm", "part", joints.Revolute(), placement=trees.pose(rng), axis=trees.unit(rng), **parts[2])
        .build()
    )
    assert split.body_names == ("base", "arm") and split.frame_names == ("base", "arm", "part")
    twin = pin.Model()
    base = twin.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "base")
    for part, T in zip(parts[:2], (np.eye(4), pose), strict=True):
        inertia = pin.Inertia(part["mass"], part["center"], part["inertia"])
        twin.appendBodyToJoint(base, inertia, pin.SE3(T[:3, :3], T[:3, 3]))
    T = np.asarray(split.placements[1])
    arm = twin.addJoint(
        base, pin.JointModelRevoluteUnaligned(np.asarray(split.axes[6])), pin.SE3(T[:3, :3], T[:3, 3]), "arm"
    )
    last = parts[2]
    twin.appendBodyToJoint(arm, pin.Inertia(last["mass"], last["center"], last["inertia"]), pin.SE3.Identity())
    q, v, a = trees.state(split)
    theirs = np.concatenate([q[:3], q[4:7], q[3:4], q[7:]])
    right = pin.rnea(twin, twin.createData(), theirs, np.asarray(v), np.asarray(a))
    assert largest(inverse_dynamics(split, q, v, a), right) < 1e-12


@pytest.mark.usefixtures("without_import_hook")
def test_q_of_length_nv_names_the_joint():
    model = trees.build(*trees.CASES["floating chain"])
    q, v, a = trees.state(model)
    with pytest.raises(ValueError, match=r"q: expected shape \(\.\.\., 13\).*nq = 13 and nv = 11.*'joint0' \(Free\)"):
        inverse_dynamics(model, v, v, a)
    with pytest.raises(ValueError, match=r"v: expected shape \(\.\.\., 11\).*'joint0'"):
        inverse_dynamics(model, q, q, a)
    with pytest.raises(TypeError, match="q: expected float64, the dtype of the model, got float32"):
        inverse_dynamics(model, *(x.astype(np.float32) for x in (q, v, a)))
    with pytest.raises(TypeError, match=r"model: expected an lgsim\.Model"):
        inverse_dynamics("panda.urdf", q, v, a)
