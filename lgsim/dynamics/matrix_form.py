"""Matrix form of a model at one state, for algorithms on dense matrices.

Each body is described in the frame of its tree, with world axes and the origin at the first row of the tree. The motion
of a tree is independent of its position in the world, and so are these matrices and their rounding errors.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim._compile.spatial import Mat, Transform, Vec
from lgsim.dynamics import rows as row
from lgsim.dynamics.row_tree import Sweep
from lgsim.lie import se3, so3
from lgsim.multibody.inertia import rotational_inertia
from lgsim.multibody.model import Model
from lgsim.multibody.topology import WORLD, Topology


class Bodies(NamedTuple):
    """Poses, screws, Jacobians and inertias of n bodies and k rows."""

    poses: Array
    """Body poses in the frames of their trees, (n, 4, 4)."""
    origins: Array
    """Origins of these frames in the world, (n, 3)."""
    screws: Array
    """Screws of the rows in these frames, (k, 6)."""
    jacobians: Array
    """Body Jacobians in these frames: the twists are ``jacobians @ v``, (n, 6, nv)."""
    inertias: Array
    """Inertias in these frames, (n, 6, 6)."""


def bodies(model: Model, q: Array) -> Bodies:
    """The bodies at the configuration q (nq,)."""
    tree = model.topology
    rows = row.rows(model)
    relative = row.poses(model, rows, q)
    poses = _in_trees(tree, relative)
    screws = se3.Ad_action(homogeneous(poses), own_screws(rows))
    placed = homogeneous(row.body_transforms(tree, rows, poses))
    root = np.argmax(tree.carried, axis=1)  # the first body that carries a body is the root of its tree
    first = np.array(tree.row_starts[:-1], int)[root]
    origins = jnp.stack(relative.p, axis=-1)[first]
    back = se3.Ad(se3.inverse(placed))
    inertias = back.mT @ inertia_matrices(model.inertias) @ back
    return Bodies(placed, origins, screws, _jacobians(model, screws), inertias)


def _in_trees(tree: Topology, relative: Transform) -> Transform:
    """The poses of the rows in the frames of their trees, from those relative to their parents."""
    away = np.array(tree.row_parent != WORLD)
    relative = Transform(relative.R, Vec(*(jnp.where(away, p, jnp.zeros_like(p)) for p in relative.p)))
    one, zero = jnp.ones_like(relative.p.x[0]), jnp.zeros_like(relative.p.x[0])
    start = Transform(Mat(Vec(one, zero, zero), Vec(zero, one, zero), Vec(zero, zero, one)), Vec(zero, zero, zero))

    def outward(parent: Transform, T: Transform) -> tuple[Transform, Transform]:
        return parent @ T, parent @ T

    return Sweep(tree.row_parent).outward(outward, start, relative, ())


def own_screws(rows: row.Rows) -> Array:
    """``S = a w_z + b v_z`` of each row in its own frame, (k, 6)."""
    zero = jnp.zeros_like(rows.a)
    return jnp.stack([zero, zero, rows.b, zero, zero, rows.a], axis=-1)


def homogeneous(T: Transform) -> Array:
    """Transforms with components (m,) as (m, 4, 4)."""
    top = [jnp.stack([*r, p], axis=-1) for r, p in zip(T.R, T.p, strict=True)]
    bottom = jnp.zeros_like(top[0]).at[..., 3].set(1)
    return jnp.stack([*top, bottom], axis=-2)


def inertia_matrices(parameters: Array) -> Array:
    """``[[m 1, -[h]], [[h], I]]`` of ten parameters (..., 10), (..., 6, 6)."""
    h = so3.hat(parameters[..., 1:4])
    identity = jnp.broadcast_to(jnp.eye(3, dtype=h.dtype), h.shape)
    top = jnp.concatenate([parameters[..., :1, None] * identity, -h], axis=-1)
    return jnp.concatenate([top, jnp.concatenate([h, rotational_inertia(parameters)], axis=-1)], axis=-2)


def jacobian_rates(model: Model, machine: Bodies, v: Array) -> Array:
    """The time derivative of the body Jacobians at velocity v (nv,), (n, 6, nv): ``ad_V s`` of each screw s.

    V is the twist of the frame in which the screw is constant: the child's for a joint that is a group, else the row's.
    """
    moves = jnp.asarray(model.topology.row_carried, v.dtype)
    twists = moves @ (row.speeds(model, v)[:, None] * machine.screws)
    return _jacobians(model, se3.bracket(twists, machine.screws))


def fall(model: Model) -> Array:
    """The acceleration (6,) relative to free fall of a frame at rest in the world, in world axes."""
    return jnp.concatenate([-model.gravity, jnp.zeros_like(model.gravity)])


def _jacobians(model: Model, screws: Array) -> Array:
    """The screws (k, 6) of the rows that move each body, per unit of v: (n, 6, nv)."""
    tree = model.topology
    moves = jnp.asarray(tree.row_carried[tree.body_row], screws.dtype)
    columns = moves[:, None, :] * screws.T[None]
    if not tree.has_mimic:
        return columns
    speeds = jax.vmap(lambda v: row.speeds(model, v), out_axes=1)(jnp.eye(tree.nv, dtype=screws.dtype))
    return columns @ speeds
