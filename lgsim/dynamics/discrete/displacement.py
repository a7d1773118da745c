"""Kinematics of a step: the model at t_k in one frame, and the displacements of its bodies from t_k to t_(k+1) there.

All quantities are in the root frame at t_k, or in the frame of a floating base. A body is displaced by a product of
exponentials of the screws at t_k, ``E_i = exp(S_1 d_1) ... exp(S_i d_i)``. E and the displacement of a center of mass
are not computed as a difference of poses, so that their rounding error is relative to the displacement.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim._compile.spatial import Mat, Motion, Sym, Transform, Vec, sincos_of_twice
from lgsim._compile.xla import fusion_barrier
from lgsim.dynamics import linearization
from lgsim.dynamics import rows as row
from lgsim.dynamics.discrete.rotation_maps import less_identity
from lgsim.lie import so3_components
from lgsim.lie.ad_functions import DEXP, on_rotation
from lgsim.multibody import block_diagonal
from lgsim.multibody.configuration import kinds
from lgsim.multibody.joint import GroupJoint
from lgsim.multibody.model import Model
from lgsim.multibody.topology import Topology


class Node(NamedTuple):
    """A model at a time t_k, by rows (k, *batch)."""

    axes: Vec
    """The axis of each row."""
    origins: Vec
    """A point on the axis."""
    moment: Vec
    """The moment of the axis about the frame origin: a point on the axis x the axis."""
    a: Array
    b: Array
    """``S = a w + b v`` along the axis."""
    screws: Motion
    mass: Array
    center: Vec
    inertia: Sym
    """Inertia of the body on each row about its center of mass, in the axes of the frame."""
    gravity: Vec
    """(*batch)."""


class Displacement(NamedTuple):
    """``y -> y + (R - 1) y + shift``, R of the unit quaternion (s, x)."""

    s: Array
    x: Vec
    shift: Vec
    turn: Mat
    """``R - 1``."""

    def way(self, y: Vec) -> Vec:
        """The displacement of a point, without a difference of positions."""
        return self.turn @ y + self.shift

    def carried(self, S: Motion) -> Motion:
        """``Ad_E S``: a screw that moves with the displacement."""
        w = S.w + self.turn @ S.w
        return Motion(S.v + self.turn @ S.v + self.shift.cross(w), w)


def node(model: Model, q: Array) -> Node:
    """The model at q (nq, *batch) with a full batch.

    One row at a time from the roots: intermediate values stay in registers and none is stored for all rows.
    """
    tree, batch = model.topology, q.shape[1:]
    rows = row.rows(model)
    relative = row.poses(model, rows, q)
    fall = jax.tree.map(lambda x: jnp.broadcast_to(x, batch), row.gravity(model))
    if tree.floats:
        relative, fall = linearization.from_base(model, rows, relative, fall, q)
    body = row.row_inertias(tree, rows, row.inertias(model))
    # center of mass and inertia about it; massless bodies have center 0
    inverse = jnp.where(body.m == 0, 0, 1 / jnp.where(body.m == 0, 1, body.m))
    middle = body.h * inverse
    about = body.I - _squared_lever(middle, body.h)

    def step(parent: Transform, x: tuple) -> tuple[Transform, tuple]:
        own, a, b, middle, about = x
        T = fusion_barrier(Transform(fusion_barrier(parent.R) @ own.R, parent.R @ own.p + parent.p))
        z = Vec(T.R.r0.z, T.R.r1.z, T.R.r2.z)
        # the screw at this pose, b v_z + a (w_z + p x z)
        moment = fusion_barrier(T.p.cross(z))
        screw = Motion(z * b + moment * a, z * a)
        return T, fusion_barrier((z, T.p, moment, screw, T.R @ middle + T.p, about.rotated(T.R)))

    one, zero = jnp.ones(batch, q.dtype), jnp.zeros(batch, q.dtype)
    zero_vector = Vec(zero, zero, zero)
    root = Transform(Mat(Vec(one, zero, zero), Vec(zero, one, zero), Vec(zero, zero, one)), zero_vector)
    xs = relative, rows.a, rows.b, middle, about
    z, origins, moment, screws, center, inertia = linearization.order(tree).outward(step, root, xs, batch)
    mass, a, b = (jnp.broadcast_to(x, z.x.shape) for x in (body.m, rows.a, rows.b))
    return Node(z, origins, moment, a, b, screws, mass, center, inertia, -fall.v)


def _squared_lever(c: Vec, h: Vec) -> Sym:
    """``(c . h) 1 - c h^T`` of parallel vectors."""
    x, y, z = c.x * h.x, c.y * h.y, c.z * h.z
    return Sym(y + z, -(c.x * h.y), -(c.x * h.z), x + z, -(c.y * h.z), x + y)


Own = tuple[Array, Vec, Vec]
"""(s, x, shift): the displacement of a row by its own joint."""


def own_displacements(tree: Topology, at: Node, d: Array) -> tuple[Any, Callable[[Any], Own]]:
    """(data by rows, a function from these data to the displacement by the row's joint) for d (k, *batch)."""
    # sine and cosine of half the angle; the angle is below half a turn where a step is unique
    sine, s = sincos_of_twice(0.25 * d * at.a)
    known = at.axes, at.moment, sine, s, at.b * d

    def hinge(known: tuple) -> Own:
        z, m, sine, s, slide = known
        twice = 2 * sine
        # a rotation about the axis moves the frame origin by sin m + (1 - cos) z x m
        return s, z * sine, m * (twice * s) + z.cross(m) * (twice * sine) + z * slide

    if not tree.groups:
        return known, hinge
    own = hinge(known)
    for joint, bodies in tree.groups:
        own = _by_groups(tree, joint, bodies, at, d, own)
    return fusion_barrier(own), lambda own: own


def following(parent: Displacement, own: Own) -> Displacement:
    """The displacement of a row: the displacement of its parent followed by ``own`` of its joint."""
    (s, x, b, turn), (s1, x1, b1) = parent, own
    s2, x2 = s * s1 - x.dot(x1), x1 * s + x * s1 + x.cross(x1)
    return fusion_barrier(Displacement(s2, x2, b + b1 + turn @ b1, less_identity(s2, x2)))


def at_rest(like: Array) -> Displacement:
    """The zero displacement, for the carrier of the roots; shape (*batch) as an array."""
    zero = jnp.zeros_like(like)
    zero_vector = Vec(zero, zero, zero)
    return Displacement(jnp.ones_like(like), zero_vector, zero_vector, Mat(zero_vector, zero_vector, zero_vector))


def turns(tree: Topology, at: Node, d: Array) -> Array:
    """Rotation angle of each row's joint for displacements d of the rows (k, *batch), rad.

    Each row of a group has the rotation angle of the whole joint.
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
    """Displacements d (nv,) with hinge angles reduced to within half a turn.

    Near a gimbal singularity Newton's method may add many turns to one hinge and subtract them from the next.
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

    Rows of a group share their origin, and displace it by the exponential of the sum of their screws.
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
    t1 = on_rotation(DEXP, w, v) - less_identity(s1, x1) @ row.select(at.origins, index[0])
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
    """(rows of a joint, joints): the rows of all joints of one kind."""
    return np.array([range(tree.row_starts[body], tree.row_starts[body] + joint.nv) for body in bodies]).T


def _placed(like: Array, index: np.ndarray, values: Array) -> Array:
    """``like`` with some rows replaced, by a gather: native functions do not support a scatter on CPU."""
    source = np.arange(len(like))
    source[index] = len(like) + np.arange(len(index))
    return jnp.concatenate([like, values])[source]


def end_columns(tree: Topology, d: Array, moved: Motion) -> Motion:
    """Derivatives of the body positions at t_(k+1) with respect to each component of the displacement d (nv, *batch).

    For a joint that is a group these are its screws times ``dexp(-d)``, from its chart.

    Args:
        d: Displacement of each degree of freedom.
        moved: The screws at t_(k+1), ``Ad_E S``.
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
