"""Forward kinematics: poses, twists and accelerations of all frames of a model."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim._compile.spatial import Mat, Motion, Transform, Vec, pack, to_child
from lgsim._compile.xla import batch_last, fusion_barrier, native_with_derivatives
from lgsim.dynamics import row_tree, validation
from lgsim.dynamics import rows as row
from lgsim.multibody.model import Model
from lgsim.multibody.topology import WORLD, Topology

Moving = tuple[Motion, Motion]
"""A twist and its time derivative."""


def forward_kinematics(model: Model, q: Float[Array, "*batch nq"]) -> Float[Array, "*batch frames 4 4"]:
    """The poses of all frames in the world: ``T_i = T_parent M_i exp(S_i q_i)``.

    Args:
        q: Configuration.

    Returns:
        Homogeneous matrices (m) in the order of ``model.frame_names``: the body frames, then the frames fixed to bodies
        or to the world.

    Raises:
        ValueError: q has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.

    Source: Ploen and Park 1999, (1): the product of exponentials.
    """
    return validation.call(_poses, model, q=(q, "q"))


def frame_twists(
    model: Model, q: Float[Array, "*#batch nq"], v: Float[Array, "*#batch nv"]
) -> Float[Array, "*batch frames 6"]:
    """The body twists of all frames: ``V_i = Ad_{T_pi}^-1 V_p + S_i v_i``.

    Args:
        q: Configuration.
        v: Velocity, rad/s or m/s; for group joints and a floating base in the child's frame.

    Returns:
        Twists (v, w) in the order of ``model.frame_names``: velocity of the frame origin and angular velocity, both in
        the axes of the frame, m/s and rad/s.

    Raises:
        ValueError: an array has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.

    Source: Ploen and Park 1999, (11).
    """
    return validation.call(_twists, model, q=(q, "q"), v=(v, "v"))


def frame_accelerations(
    model: Model, q: Float[Array, "*#batch nq"], v: Float[Array, "*#batch nv"], a: Float[Array, "*#batch nv"]
) -> Float[Array, "*batch frames 6"]:
    """The time derivatives of the body twists of all frames: ``A_i = Ad_{T_pi}^-1 A_p + S_i a_i + [V_i, S_i v_i]``.

    This is the componentwise derivative of ``frame_twists``, without gravity. The acceleration of the frame origin
    as a point of the world, in the axes of the frame, is ``A.v + w x v``.

    Args:
        q: Configuration.
        v: Velocity, rad/s or m/s; for group joints and a floating base in the child's frame.
        a: Time derivative of v, componentwise.

    Returns:
        (A.v, A.w) in the order of ``model.frame_names``, in the axes of the frame, m/s^2 and rad/s^2.

    Raises:
        ValueError: an array has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.

    Source: Ploen and Park 1999, (12).
    """
    return validation.call(_accelerations, model, q=(q, "q"), v=(v, "v"), a=(a, "v"))


def _poses(model: Model, q: Array) -> Array:
    R, p = _frame_poses(model, q)
    bottom = (0.0, 0.0, 0.0, 1.0)
    return pack([*(c for r, x in zip(R, p, strict=True) for c in (*r, x)), *bottom], (4, 4))


def _twists(model: Model, q: Array, v: Array) -> Array:
    V = _frame_twists(model, q, v)
    return pack([*V.v, *V.w], (6,))


def _accelerations(model: Model, q: Array, v: Array, a: Array) -> Array:
    A = _frame_accelerations(model, q, v, a)
    return pack([*A.v, *A.w], (6,))


@native_with_derivatives
def _frame_poses(model: Model, q: Array) -> Transform:
    (q,) = row_tree.full(model, q)
    m = row_tree.machine(model, q)
    poses = body_poses(model, m, world_poses(model, m))
    return frames_of(model, poses, identity(m), lambda T, pose: pose @ T)


@batch_last
def _frame_twists(model: Model, q: Array, v: Array) -> Motion:
    q, v = row_tree.full(model, q, v)
    m = row_tree.machine(model, q)
    base, rows = row_twists(model, m, v)
    return frames_of(model, body_motions(model, m, base, rows), at_rest(m), to_child)


@batch_last
def _frame_accelerations(model: Model, q: Array, v: Array, a: Array) -> Motion:
    q, v, a = row_tree.full(model, q, v, a)
    m = row_tree.machine(model, q)
    (_, base), (_, rows) = row_accelerations(model, m, v, a)
    return frames_of(model, body_motions(model, m, base, rows), at_rest(m), to_child)


def world_poses(model: Model, m: row_tree.Machine, root: Transform | None = None) -> Transform:
    """The pose of every row (k, *batch) in the world; the base is at ``m.base.pose``.

    ``root``, a pose (*batch), replaces the pose of the carrier of the rows (the base or the world).
    """
    if root is None:
        root = identity(m) if m.base is None else m.base.pose

    def outward(parent: Transform, T: Transform) -> tuple[Transform, Transform]:
        pose = fusion_barrier(parent @ T)
        return pose, pose

    return row_tree.sweep(model.topology).outward(outward, root, m.poses, m.batch)


def row_twists(model: Model, m: row_tree.Machine, v: Array) -> tuple[Motion, Motion]:
    """(twist of the carrier of the rows, twists of the rows), each in its own frame."""
    V0, _ = row_tree.root_motion(model, m, v)

    def outward(V: Motion, x: tuple) -> tuple[Motion, Motion]:
        T, S, rate = x
        V = fusion_barrier(S.moved(to_child(T, V), rate))
        return V, V

    xs = (m.poses, m.screws, row.speeds(model, v)[rest(model.topology)])
    return V0, row_tree.sweep(model.topology).outward(outward, V0, xs, m.batch)


def row_accelerations(model: Model, m: row_tree.Machine, v: Array, a: Array) -> tuple[Moving, Moving]:
    """(twist and derivative of the carrier of the rows, those of the rows), each in its own frame, without gravity."""
    V0, _ = row_tree.root_motion(model, m, v)
    A0 = at_rest(m) if m.base is None else row_tree.motion(a[: row_tree.BASE])
    bias = row_tree.group_biases(model, v)
    y = a if bias is None else a - bias

    def outward(parent: Moving, x: tuple) -> tuple[Moving, Moving]:
        (V, A), (T, S, rate, acceleration) = parent, x
        V = fusion_barrier(S.moved(to_child(T, V), rate))
        A = to_child(T, A) + S.carried(V, rate)
        A = fusion_barrier(S.moved(A, acceleration))
        return (V, A), (V, A)

    rates, accelerations = (row.speeds(model, x)[rest(model.topology)] for x in (v, y))
    xs = (m.poses, m.screws, rates, accelerations)
    return (V0, A0), row_tree.sweep(model.topology).outward(outward, (V0, A0), xs, m.batch)


def body_poses(model: Model, m: row_tree.Machine, world: Transform) -> Transform:
    """The poses of the body frames (n, *batch) from those of the rows."""
    if m.base is not None and model.topology.bodies == 1:
        return jax.tree.map(lambda x: x[None], m.base.pose)
    last, align = _own(model, m)
    X = row.select(world, last)
    own = Transform(X.R @ align.T, X.p)
    return own if m.base is None else _joined(m.base.pose, own)


def body_motions(model: Model, m: row_tree.Machine, base: Motion, rows: Motion) -> Motion:
    """Twists of the body frames (n, *batch) from those of the base and the rows, each in its own frame."""
    if m.base is not None and model.topology.bodies == 1:
        return jax.tree.map(lambda x: x[None], base)
    last, align = _own(model, m)
    V = row.select(rows, last)
    own = Motion(align @ V.v, align @ V.w)
    return own if m.base is None else _joined(base, own)


def frames_of(model: Model, bodies, world, carry):
    """A value of every frame (frames, *batch) from those of the bodies; ``world`` (*batch) is the value of the world.

    ``carry(T, value)`` is the value in a frame with pose T in the frame of ``value``.
    """
    tree = model.topology
    if not tree.frame_names:
        return bodies
    held = np.array(tree.frame_bodies)
    if WORLD in tree.frame_bodies:
        held = np.where(held == WORLD, tree.bodies, held)
        carriers = jax.tree.map(lambda x, w: jnp.concatenate([x, w[None]]), bodies, world)
    else:
        carriers = bodies
    fixed = carry(row.transform(model.frames), row.select(carriers, held))
    return jax.tree.map(lambda x, y: jnp.concatenate([x, y]), bodies, fixed)


def frame_index(tree: Topology, frame: str | int) -> int:
    """Index of a frame in ``model.frame_names``, from its name or index.

    Raises:
        ValueError: the frame does not exist.
    """
    names = tree.body_names + tree.frame_names
    if isinstance(frame, str):
        if frame not in names:
            raise ValueError(f"frame: expected one of {', '.join(names)}, got {frame!r}")
        return names.index(frame)
    if not 0 <= frame < len(names):
        raise ValueError(f"frame: expected a name or an index from 0 to {len(names) - 1}, got {frame}")
    return int(frame)


def rest(tree: Topology) -> slice:
    """The rows without those of a floating base, among all rows."""
    return slice(row_tree.BASE if tree.floats else 0, None)


def identity(m: row_tree.Machine) -> Transform:
    """The identity pose, (*batch)."""
    zero = jnp.zeros(m.batch, m.poses.p.x.dtype)
    one = zero + 1
    R = Mat(Vec(one, zero, zero), Vec(zero, one, zero), Vec(zero, zero, one))
    return Transform(R, Vec(zero, zero, zero))


def at_rest(m: row_tree.Machine) -> Motion:
    """The twist of the world, (*batch)."""
    zero = jnp.zeros(m.batch, m.poses.p.x.dtype)
    return Motion(Vec(zero, zero, zero), Vec(zero, zero, zero))


def _own(model: Model, m: row_tree.Machine) -> tuple[np.ndarray, Mat]:
    """(the last row of each body that rows carry, its axes in those of the body)."""
    tree = model.topology
    last = tree.body_row[1:] if tree.floats else tree.body_row
    return last - (row_tree.BASE if tree.floats else 0), row.select(m.align, last)


def _joined(base, own):
    return jax.tree.map(lambda x, y: jnp.concatenate([x[None], y]), base, own)
