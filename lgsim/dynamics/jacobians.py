"""Jacobians of frames, and their time derivatives."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim._compile.spatial import Mat, Transform, Vec
from lgsim._compile.xla import batch_last, fusion_barrier
from lgsim.dynamics import row_tree, validation
from lgsim.dynamics import rows as row
from lgsim.dynamics.kinematics import body_poses, frame_index, identity, world_poses
from lgsim.dynamics.row_tree import full
from lgsim.multibody.model import Model, check_model
from lgsim.multibody.topology import WORLD


class Reference(Enum):
    """Reference point and axes of a twist."""

    BODY = "body"
    """At the frame's origin, in its own axes."""
    SPACE = "space"
    """At the world origin, in world axes: the velocity is that of the body point there."""
    WORLD = "world"
    """At the frame's origin, in world axes."""


def frame_jacobian(
    model: Model, q: Float[Array, "*batch nq"], frame: str | int, reference: Reference = Reference.BODY
) -> Float[Array, "*batch 6 nv"]:
    """The geometric Jacobian of a frame, such as an end effector: ``V = J(q) v``; column j is ``Ad_{T_f^-1 T_j} S_j``.

    Args:
        q: Configuration.
        frame: Name of the frame, or its index in ``model.frame_names``; static.
        reference: Reference point and axes of the twist; static.

    Returns:
        Rows (v, w), linear first; m or 1 for the first three rows, 1 or 1/m for the others.

    Raises:
        ValueError: q has a wrong length, or the frame does not exist.
        TypeError: dtypes differ, or are not float32 or float64.

    Source: Ploen and Park 1999, (11), by columns; Murray, Li and Sastry, A Mathematical Introduction to Robotic
    Manipulation, 1994, (3.54) and (3.55).
    """
    check_model(model)
    core = _value(frame_index(model.topology, frame), reference)
    return validation.call(core, model, q=(q, "q"))


def frame_jacobian_rate(
    model: Model,
    q: Float[Array, "*#batch nq"],
    v: Float[Array, "*#batch nv"],
    frame: str | int,
    reference: Reference = Reference.BODY,
) -> Float[Array, "*batch 6 nv"]:
    """The time derivative J' of ``frame_jacobian`` at velocity v: the frame's ``V' = J a + J' v``.

    Args:
        q: Configuration.
        v: Velocity, rad/s or m/s; for group joints and a floating base in the child's frame.
        frame: Name of the frame, or its index in ``model.frame_names``; static.
        reference: Reference point and axes of the twist; static.

    Returns:
        Componentwise derivative of the Jacobian, 1/s times its units.

    Raises:
        ValueError: an array has a wrong length, or the frame does not exist.
        TypeError: dtypes differ, or are not float32 or float64.
    """
    check_model(model)
    core = _rate(frame_index(model.topology, frame), reference)
    return validation.call(lambda model, q, v: core(model, q, model.rate(q, v)), model, q=(q, "q"), v=(v, "v"))


@cache
def _value(frame: int, reference: Reference) -> Callable[[Model, Array], Array]:
    return batch_last(partial(jacobian, frame=frame, reference=reference))


@cache
def _rate(frame: int, reference: Reference) -> Callable[[Model, Array, Array], Array]:
    def along(model: Model, q: Array, dq: Array) -> Array:
        q, dq = full(model, q, dq)
        f = partial(jacobian, model, frame=frame, reference=reference)
        return jax.jvp(f, (q,), (dq,))[1]

    return batch_last(along)


def jacobian(model: Model, q: Array, frame: int, reference: Reference) -> Array:
    """J (6, nv, *batch) of q (nq, *batch)."""
    (q,) = full(model, q)
    tree = model.topology
    m = row_tree.machine(model, q)
    world = world_poses(model, m)
    pose, body = _pose(model, m, world, frame)
    J = _columns(m, world, pose, reference)
    moves = np.zeros(tree.rows, bool) if body == WORLD else tree.row_carried[tree.body_row[body]]
    if not moves.all():
        J = jnp.where(moves.reshape((-1,) + (1,) * (J.ndim - 1)), J, 0) if moves.any() else jnp.zeros_like(J)
    if not tree.has_mimic:
        return J.swapaxes(0, 1)
    return jnp.stack([row.gathered(model, J[:, i]) for i in range(6)])


def screws_about_base(model: Model, q: Float[Array, " nq"]) -> Float[Array, "6 nv"]:
    """The screw of each degree of freedom of a model with a floating base, in the base axes about the base origin.

    The twist of a body, transformed to this frame, is the sum of these columns times the rates over all rows that carry
    it. There are no mimic joints.
    """
    return _of_base(model, q)


@batch_last
def _of_base(model: Model, q: Array) -> Array:
    (q,) = full(model, q)
    m = row_tree.machine(model, q)
    world = world_poses(model, m)
    return _columns(m, world, _pose(model, m, world, 0)[0], Reference.BODY).swapaxes(0, 1)


def _columns(m: row_tree.Machine, world: Transform, pose: Transform, reference: Reference) -> Array:
    """The screws of all rows (rows, 6, *batch) at a pose (1, *batch)."""
    axis, origin, a, b = screws(m, world)
    # from the difference of two positions, so that no digits are lost far from the world origin
    arm = origin if reference is Reference.SPACE else origin - pose.p
    w = fusion_barrier(axis * a)
    v = fusion_barrier(axis * b + arm.cross(w))
    if reference is Reference.BODY:
        v, w = pose.R.transpose_apply(v), pose.R.transpose_apply(w)
    return jnp.stack([*v, *w], axis=1)


def _pose(model: Model, m: row_tree.Machine, world: Transform, frame: int) -> tuple[Transform, int]:
    """(pose (1, *batch) of a frame in the world, the body that carries it)."""
    tree = model.topology
    fixed = frame - tree.bodies
    body = frame if fixed < 0 else tree.frame_bodies[fixed]
    if body == WORLD:
        carrier = jax.tree.map(lambda x: x[None], identity(m))
    else:
        carrier = row.select(body_poses(model, m, world), slice(body, body + 1))
    return (carrier if fixed < 0 else carrier @ row.transform(model.frames[fixed : fixed + 1])), body


def screws(m: row_tree.Machine, world: Transform) -> tuple[Vec, Vec, Array, Array]:
    """Axis, a point on it, and coefficients a, b of the screw of each row (k, *batch), a floating base first."""
    R, p = world
    axis = Vec(R.r0.z, R.r1.z, R.r2.z)
    if m.base is None:
        return axis, p, m.a, m.b
    turns = np.repeat([0.0, 1.0], 3).reshape((6,) + (1,) * len(m.batch)).astype(m.a.dtype)
    own, place = _base_axes(m.base.pose.R), Vec(*(jnp.stack([x] * 6) for x in m.base.pose.p))
    if not p.x.shape[0]:
        return own, place, jnp.asarray(turns), jnp.asarray(1 - turns)
    join = partial(jax.tree.map, lambda x, y: jnp.concatenate([x, y]))
    return join(own, axis), join(place, p), join(turns, m.a), join(1 - turns, m.b)


def _base_axes(R: Mat) -> Vec:
    """The axes of the six coordinates of a floating base: x, y, z twice."""
    return Vec(*(jnp.stack([*r, *r]) for r in R))
