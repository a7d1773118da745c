"""What a step moves: a machine at t_k in one frame, and the displacement of its bodies from t_k to t_(k+1) there.

Everything is in the frame of the roots at t_k, or where a machine floats in that of its base. What moves a body is a
product of exponentials of the screws at t_k, ``E_i = exp(S_1 d_1) ... exp(S_i d_i)``: E and the way of a center of mass
come without a difference of poses, so that their rounding is relative to the displacement.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.dynamics import linearization
from lgsim.dynamics import rows as row
from lgsim.dynamics.discrete.rotation_maps import outer, scaled_identity
from lgsim.lie import so3_components
from lgsim.lie.ad_functions import DEXP, on_rotation
from lgsim.multibody import block_diagonal
from lgsim.multibody.configuration import kinds
from lgsim.multibody.joint import GroupJoint
from lgsim.multibody.model import Model
from lgsim.multibody.topology import Topology
from lgsim.spatial import Mat, Motion, Vec, sincos
from lgsim.xla import fusion_barrier


class Node(NamedTuple):
    """A machine at a time t_k, by rows (k, *batch)."""

    axes: Vec
    """The axis of each row."""
    origins: Vec
    """A point on it."""
    a: Array
    b: Array
    """``S = a w + b v`` along the axis."""
    screws: Motion
    mass: Array
    center: Vec
    inertia: Mat
    """Of the body on each row: about its center of mass, in the axes of the frame."""
    gravity: Vec
    """(*batch)."""


class Displacement(NamedTuple):
    """``y -> y + (R - 1) y + shift``, R of the unit quaternion (s, x)."""

    s: Array
    x: Vec
    shift: Vec


def node(model: Model, q: Array) -> Node:
    """The machine at q (nq, *batch), the batch being full."""
    tree, batch = model.topology, q.shape[1:]
    rows = row.rows(model)
    relative = row.poses(model, rows, q)
    fall = jax.tree.map(lambda x: jnp.broadcast_to(x, batch), row.gravity(model))
    if tree.floats:
        relative, fall = linearization.from_base(model, rows, relative, fall, q)
    T = linearization.world_poses(linearization.order(tree), relative, batch)
    z = Vec(T.R.r0.z, T.R.r1.z, T.R.r2.z)
    screws = fusion_barrier(Motion(z * rows.b + T.p.cross(z) * rows.a, z * rows.a))
    body = row.row_inertias(tree, rows, row.inertias(model))
    inverse = jnp.where(body.m == 0, 0, 1 / jnp.where(body.m == 0, 1, body.m))
    center = body.h * inverse
    about = body.I.matrix - scaled_identity(center.dot(body.h)) + outer(center, body.h)
    inertia = body.I.of_product(fusion_barrier(T.R @ about), T.R).matrix
    wide = z.x.shape
    mass, a, b = (jnp.broadcast_to(x, wide) for x in (body.m, rows.a, rows.b))
    return fusion_barrier(Node(z, T.p, a, b, screws, mass, T.R @ center + T.p, inertia, -fall.v))


def turned(s: Array, x: Vec, y: Vec) -> Vec:
    """``(R - 1) y`` of the unit quaternion (s, x): exact for small rotations."""
    t = x.cross(y) * 2
    return t * s + x.cross(t)


def displacements(tree: Topology, at: Node, d: Array) -> Displacement:
    """What moves each row's body from t_k to t_(k+1), by the displacements d of the rows (k, *batch)."""
    sine, s = sincos(0.5 * d * at.a)
    x, t = at.axes * sine, at.axes * (at.b * d)
    for joint, bodies in tree.groups:
        s, x, t = _by_groups(tree, joint, bodies, at, d, (s, x, t))
    own = fusion_barrier(Displacement(s, x, t - turned(s, x, at.origins)))

    def step(parent: Displacement, own: Displacement) -> tuple[Displacement, Displacement]:
        (s, x, b), (s1, x1, b1) = parent, own
        out = Displacement(s * s1 - x.dot(x1), x1 * s + x * s1 + x.cross(x1), b + b1 + turned(s, x, b1))
        out = fusion_barrier(out)
        return out, out

    batch = d.shape[1:]
    one, zero = jnp.ones(batch, d.dtype), jnp.zeros(batch, d.dtype)
    still = Vec(zero, zero, zero)
    return linearization.order(tree).outward(step, Displacement(one, still, still), own, batch)


def turns(tree: Topology, at: Node, d: Array) -> Array:
    """How far the joint of each row turns by the displacements d of the rows (k, *batch), rad; on rows of a group the
    whole turn of its joint.
    """
    found = jnp.abs(at.a * d)
    for joint, bodies in tree.groups:
        index = _rows_of(tree, joint, bodies)
        squares = [found[rows] ** 2 for rows in index]
        whole = jnp.sqrt(sum(squares[1:], squares[0]))
        for rows in index:
            found = _placed(found, rows, whole)
    return found


def without_whole_turns(tree: Topology, d: Array) -> Array:
    """The displacements d (nv,) of the degrees of freedom with those of hinges less whole turns, within half a turn.

    Near the singularity of a gimbal Newton's method leads to many turns of one hinge and as many back of the next.
    """
    hinges = np.zeros(tree.nv, bool)
    own = tree.row_turns & ~tree.row_pitched & (tree.row_source == np.arange(tree.rows))
    for _, bodies in tree.groups:
        own = own & ~np.isin(tree.row_joint, bodies)
    hinges[tree.row_v[own]] = True
    whole = 2 * np.pi * jnp.round(d / (2 * np.pi))
    return jnp.where(hinges, d - whole, d)


def _by_groups(
    tree: Topology, joint: GroupJoint, bodies: tuple[int, ...], at: Node, d: Array, found: tuple[Array, Vec, Vec]
) -> tuple[Array, Vec, Vec]:
    """(s, x, t) with the exponential of a group's displacement on the first row of its joint, the identity on others.

    Rows of a group share their origin, and move it by the exponential of the sum of their screws.
    """
    s, x, t = found
    index = _rows_of(tree, joint, bodies)
    axes = [row.select(at.axes, rows) for rows in index]
    zero = jnp.zeros_like(d[index[0]])
    w = v = Vec(zero, zero, zero)
    for rows, axis, kind in zip(index, axes, joint.rows, strict=True):
        if kind.turns:
            w = w + axis * d[rows]
        else:
            v = v + axis * d[rows]
    s1, x1 = so3_components.quaternion_exp(w)
    t1 = on_rotation(DEXP, w, v)
    rest = index[1:].ravel()
    nothing = jax.tree.map(lambda y: jnp.zeros_like(y[rest]), t)
    s = _placed(s, index[0], s1)
    s = _placed(s, rest, jnp.ones_like(s[rest]))
    x, t = (
        jax.tree.map(lambda y, first, none: _placed(_placed(y, index[0], first), rest, none), old, new, nothing)
        for old, new in ((x, x1), (t, t1))
    )
    return s, x, t


def _rows_of(tree: Topology, joint: GroupJoint, bodies: tuple[int, ...]) -> np.ndarray:
    """(rows of a joint, joints): the rows of the joints of a kind."""
    return np.array([range(tree.row_starts[body], tree.row_starts[body] + joint.nv) for body in bodies]).T


def _placed(like: Array, index: np.ndarray, values: Array) -> Array:
    """``like`` with some rows replaced, by a gather: a scatter has no place in a native function on CPU."""
    source = np.arange(len(like))
    source[index] = len(like) + np.arange(len(index))
    return jnp.concatenate([like, values])[source]


def carried(E: Displacement, S: Motion) -> Motion:
    """``Ad_E S``: screws that the displacement of their row carries along."""
    w = S.w + turned(E.s, E.x, S.w)
    return fusion_barrier(Motion(S.v + turned(E.s, E.x, S.v) + E.shift.cross(w), w))


def end_columns(tree: Topology, d: Array, moved: Motion) -> Motion:
    """How the bodies at t_(k+1) move with each number of the displacement d (nv, *batch).

    Those of a joint that is a group are its screws there times ``dexp(-d)``, which its chart brings in.

    Args:
        tree: The topology.
        d: The displacement of each degree of freedom.
        moved: The screws at t_(k+1), ``carried(E, S)``.
    """
    if not tree.groups:
        return moved
    blocks = block_diagonal.of_ad(tree, DEXP, d)
    members = dict(tree.groups)
    groups = [joint for joint, _, _ in kinds(tree) if isinstance(joint, GroupJoint)]
    for joint, block in zip(groups, blocks, strict=True):
        index = _rows_of(tree, joint, members[joint])
        own = [row.select(moved, rows) for rows in index]
        for i, rows in enumerate(index):
            column = own[0] * block[0, i]
            for j in range(1, joint.nv):
                column = column + own[j] * block[j, i]
            moved = jax.tree.map(lambda old, new, rows=rows: _placed(old, rows, new), moved, column)
    return fusion_barrier(moved)
