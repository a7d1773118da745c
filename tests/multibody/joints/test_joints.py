"""Every joint keeps its contract. A type added to ``joints.JOINTS`` must be in ``trees.KINDS``, and then is tested."""

import inspect
from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim._compile.spatial import Transform
from lgsim.lie import se3
from lgsim.multibody import joints
from lgsim.multibody.joint import GroupJoint, Joint, Row, ScrewJoint
from tests.multibody.trees import KINDS

MOVING = {name: joint for name, joint in KINDS.items() if joint.nv}
GROUPS = {name: joint for name, joint in KINDS.items() if isinstance(joint, GroupJoint)}
PITCH = 0.2
"""The advance of a turning row of a joint that has one, m/rad."""


def each(kinds):
    return pytest.mark.parametrize("joint", kinds.values(), ids=kinds.keys())


@cache
def mapped(joint, verb):
    """A method on arrays (..., n), over leading axes, compiled once."""

    def whole(x, y):
        parts = [[a[..., i] for i in range(a.shape[-1])] for a in (x, y)]
        return jnp.stack(getattr(joint, verb)(*parts), axis=-1)

    return jax.jit(whole)


def points(joint, count=4, seed=0):
    """Configurations by the joint's own generator, and velocities."""
    q = jnp.stack(joint.random(jax.random.key(seed), (count,), np.dtype(float)), axis=-1)
    return q, jnp.asarray(np.random.default_rng(seed).normal(size=(count, joint.nv)))


def screws(joint):
    """The columns (nv, 6) of the body twist of the child's frame, each screw about its row's own axis."""
    out = np.zeros((joint.nv, 6))
    for screw, row in zip(out, joint.rows, strict=True):
        screw[3 * row.turns + row.axis] = 1
        if isinstance(joint, joints.Helical):
            screw[row.axis] = PITCH
    return jnp.asarray(out)


def pose(joint, q):
    """The pose of C in P, by SE(3): the joint's own transform, or its screws one after another."""
    T = joint.transform(list(q))
    if T is None:
        T = se3.identity(q.dtype)
        for screw, x in zip(screws(joint), q, strict=True):
            T = se3.compose(T, se3.exp(screw * x))
        return T
    return matrix(T)


def matrix(T: Transform):
    top = [jnp.stack([*row, p]) for row, p in zip(T.R, T.p, strict=True)]
    return jnp.stack([*top, jnp.array([0.0, 0.0, 0.0, 1.0])])


def test_every_type_is_tested():
    assert {type(joint) for joint in KINDS.values()} == set(joints.JOINTS) - {joints.Fixed}
    public = {value for name, value in inspect.getmembers(joints, inspect.isclass) if name in joints.__all__}
    assert public == set(joints.JOINTS)
    assert all(issubclass(kind, Joint) and not inspect.isabstract(kind) for kind in joints.JOINTS)


def test_a_fixed_joint_has_no_motion():
    joint = joints.Fixed()
    assert (joint.nq, joint.nv, joint.rows, joint.neutral) == (0, 0, (), ())
    assert joint.retract([], []) == joint.difference([], []) == joint.rate([], []) == joint.velocity([], []) == []
    assert joint.random(jax.random.key(0), (3,), np.dtype(float)) == []


@each(KINDS)
@pytest.mark.quick
def test_lengths(joint):
    q, v = points(joint)
    assert (joint.nq, joint.nv) == (q.shape[-1], v.shape[-1]) == (len(joint.neutral), len(joint.rows))
    assert all(isinstance(row, Row) and row.axis in (0, 1, 2) for row in joint.rows)
    assert isinstance(joint, GroupJoint | ScrewJoint)
    assert replace(joint) == joint and hash(replace(joint)) == hash(joint)


@each(MOVING)
def test_neutral_is_where_the_frames_coincide(joint):
    np.testing.assert_allclose(pose(joint, jnp.array(joint.neutral)), np.eye(4), rtol=0, atol=1e-16)


@each(MOVING)
@pytest.mark.quick
def test_retract_and_difference_undo_each_other(joint):
    q, dv = points(joint)
    q = jnp.concatenate([q, jnp.array([joint.neutral])])
    # rotations by less than pi, so that the way back is the same; and none at all
    dv = jnp.concatenate([dv / jnp.linalg.norm(dv, axis=-1, keepdims=True) * jnp.array([[3.0], [1.0], [1e-5], [1e-9]]),
                          jnp.zeros((1, joint.nv))])  # fmt: skip
    end = mapped(joint, "retract")(q, dv)
    back = np.asarray(mapped(joint, "difference")(q, end))
    scale = np.maximum(1, np.abs(np.asarray(q)).max())
    np.testing.assert_allclose(back, dv, rtol=0, atol=1e-14 * scale)
    np.testing.assert_array_equal(mapped(joint, "difference")(q, q)[-1], np.zeros(joint.nv))
    other, _ = points(joint, 5, seed=1)
    there = mapped(joint, "retract")(q, mapped(joint, "difference")(q, other))
    for found, right in zip(there, other, strict=True):
        np.testing.assert_allclose(pose(joint, found), pose(joint, right), rtol=0, atol=1e-13)


@each(MOVING)
def test_no_step_stays(joint):
    q, v = points(joint)
    np.testing.assert_allclose(mapped(joint, "retract")(q, 0 * v), q, rtol=0, atol=1e-16)


@pytest.mark.repeats
@each(GROUPS)
def test_half_a_turn(joint):
    """An angle of pi about each axis comes back as itself or as the opposite rotation, and leads to the same pose."""
    q, _ = points(joint, joint.nv)
    turns = np.array([row.turns for row in joint.rows])
    dv = jnp.asarray(np.eye(joint.nv)[turns] * np.pi)
    q = q[: len(dv)]
    end = mapped(joint, "retract")(q, dv)
    back = mapped(joint, "difference")(q, end)
    np.testing.assert_allclose(jnp.linalg.norm(back, axis=-1), np.full(len(dv), np.pi), rtol=1e-12)
    for a, b in zip(mapped(joint, "retract")(q, back), end, strict=True):
        np.testing.assert_allclose(pose(joint, a), pose(joint, b), rtol=0, atol=1e-13)
    slope = jax.jvp(lambda x: mapped(joint, "difference")(q, x), (end,), (jnp.ones_like(end),))[1]
    assert bool(jnp.all(jnp.isfinite(slope)))


@each(GROUPS)
def test_retract_is_the_exponential_of_the_body_twist(joint):
    q, dv = points(joint)
    end = mapped(joint, "retract")(q, dv)
    for i in range(len(q)):
        right = se3.compose(pose(joint, q[i]), se3.exp(dv[i] @ screws(joint)))
        np.testing.assert_allclose(pose(joint, end[i]), right, rtol=0, atol=1e-14 * (1 + float(jnp.abs(right).max())))


@each(MOVING)
@pytest.mark.quick
def test_rate_is_the_derivative_of_retract(joint):
    q, v = points(joint)
    q, v = jnp.concatenate([q, jnp.array([joint.neutral])]), jnp.concatenate([v, v[:1]])
    slope = jax.jvp(lambda s: mapped(joint, "retract")(q, s * v), (0.0,), (1.0,))[1]
    rate = mapped(joint, "rate")(q, v)
    np.testing.assert_allclose(rate, slope, rtol=0, atol=1e-14)
    np.testing.assert_allclose(mapped(joint, "velocity")(q, rate), v, rtol=0, atol=1e-14)


@each(MOVING)
def test_the_pose_moves_with_the_rows(joint):
    """``T' = T hat(V)``: V the sum of the columns for a group, of carried screws for others."""
    q, v = points(joint, 1)
    q, v = q[0], v[0]
    T, dT = jax.jvp(lambda q: pose(joint, q), (q,), (mapped(joint, "rate")(q, v),))
    twist = se3.vee(se3.inverse(T) @ dT)
    if isinstance(joint, GroupJoint):
        right = v @ screws(joint)
    else:
        right = jnp.zeros(6)
        for screw, x, speed in zip(screws(joint), q, v, strict=True):
            right = se3.Ad_action(se3.inverse(se3.exp(screw * x)), right) + screw * speed
    np.testing.assert_allclose(twist, right, rtol=0, atol=1e-14)


@pytest.mark.repeats("free")
@each(MOVING)
def test_bias_is_what_a_chain_of_the_rows_lacks(joint):
    """Of the chain ``exp(s_1 x_1) ... exp(s_n x_n)`` with ``x' = v, x'' = y`` at x = 0, the twist's rate is
    ``sum s_i (y_i + bias_i)``."""
    _, v = points(joint, 2)
    v, y = v
    columns = screws(joint)

    def chain(x):
        T = se3.identity(x.dtype)
        for screw, part in zip(columns, x, strict=True):
            T = se3.compose(T, se3.exp(screw * part))
        return T

    def twist(t):
        T, dT = jax.jvp(lambda t: chain(v * t + y * (0.5 * t * t)), (t,), (jnp.ones_like(t),))
        return se3.vee(se3.inverse(T) @ dT)

    rate = jax.jvp(twist, (jnp.zeros(()),), (jnp.ones(()),))[1]
    bias = joint.bias(list(v))
    if not isinstance(joint, GroupJoint):
        assert bias is None
        return
    np.testing.assert_allclose(rate, (y + jnp.stack(bias)) @ columns, rtol=0, atol=1e-14)


@each({name: joint for name, joint in GROUPS.items() if joint.nq > joint.nv})
def test_quaternions_stay_unit(joint):
    """1e4 steps without normalization."""
    (q,), (v,) = points(joint, 1)

    @jax.jit
    def last(q):
        return jax.lax.scan(lambda q, _: (mapped(joint, "retract")(q, 0.1 * v), None), q, length=10_000)[0]

    assert abs(float(jnp.linalg.norm(last(q)[-4:])) - 1) < 1e-11


@each({name: joint for name, joint in GROUPS.items() if joint.nq > joint.nv})
def test_the_norm_of_a_quaternion_counts_for_nothing(joint):
    """Where drake #10654 had a wrong Jacobian: pose, difference and velocity are those of the direction."""
    q, v = points(joint)
    q1, _ = points(joint, seed=1)
    scaled = q.at[:, -4:].multiply(2.5)
    rate = mapped(joint, "rate")(scaled, v)
    np.testing.assert_allclose(mapped(joint, "velocity")(scaled, rate), v, rtol=0, atol=1e-14)
    for a, b in zip(q, scaled, strict=True):
        np.testing.assert_allclose(pose(joint, a), pose(joint, b), rtol=0, atol=1e-15)
    right = mapped(joint, "difference")(q, q1)
    np.testing.assert_allclose(mapped(joint, "difference")(scaled, -2 * q1 if joint.nq == 4 else q1), right, atol=1e-13)


@pytest.mark.slow
@each(MOVING)
def test_derivatives_are_finite_at_zero_to_second_order(joint):
    q, v = points(joint, 1)
    q, zero = q[0], jnp.zeros(joint.nv)

    def there(dv):
        return mapped(joint, "retract")(q, dv)

    def back(dv):
        return mapped(joint, "difference")(q, there(dv))

    @jax.jit
    def derivatives(dv):
        return [
            jax.jacfwd(there)(dv), jax.jacrev(back)(dv), jax.jacfwd(jax.jacrev(there))(dv),
            jax.jacfwd(jax.jacfwd(back))(dv),
        ]  # fmt: skip

    first, unit, second, none = derivatives(zero)
    np.testing.assert_allclose(unit, np.eye(joint.nv), rtol=0, atol=1e-14)
    np.testing.assert_allclose(none, 0, rtol=0, atol=1e-13)
    step = 1e-5
    ends = [np.asarray(derivatives(jnp.asarray(s * step * v[0]))[0]) for s in (1, -1)]
    np.testing.assert_allclose(second @ v[0], (ends[0] - ends[1]) / (2 * step), rtol=0, atol=1e-8)
    assert bool(jnp.all(jnp.isfinite(first)))


@each(MOVING)
@pytest.mark.float32
def test_dtype(joint, dtype):
    q = joint.random(jax.random.key(0), (2,), np.dtype(dtype))
    v = [jnp.full(2, 0.1, dtype)] * joint.nv
    end = joint.retract(q, v)
    for parts in (q, end, joint.difference(q, end), joint.rate(q, v), joint.velocity(q, q)):
        assert {x.dtype for x in parts} == {np.dtype(dtype)} and {x.shape for x in parts} == {(2,)}


@each(MOVING)
def test_random_angles_and_rotations(joint):
    """Angles fill [-pi, pi] and do not leave it; distances are standard normal; rotations are uniform."""
    q = np.stack(joint.random(jax.random.key(3), (2000,), np.dtype(float)), axis=-1)
    if isinstance(joint, ScrewJoint) or joint.nq == joint.nv:
        for x, row in zip(q.T, joint.rows, strict=True):
            bound = np.pi if row.turns else np.inf
            assert np.abs(x).max() <= bound
            np.testing.assert_allclose([x.mean(), x.std()], [0, np.pi / np.sqrt(3) if row.turns else 1], atol=0.15)
        return
    turn = q[:, -4:]
    np.testing.assert_allclose(np.linalg.norm(turn, axis=1), 1, atol=1e-15)
    np.testing.assert_allclose(turn.T @ turn / len(q), np.eye(4) / 4, atol=0.03)
    assert np.abs(np.corrcoef(q.T) - np.eye(joint.nq)).max() < 0.1
