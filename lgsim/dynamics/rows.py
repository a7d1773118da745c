"""Screws of rows by components: the effect of a rate along the local z axis on motions and forces.

Two classes share one interface. Most robots have only revolute joints, and skipping products with zeros and ones saves
a tenth of the time of a single state.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim._compile.spatial import Articulated, Force, Inertia, Mat, Motion, Sym, Transform, Vec, sincos
from lgsim._compile.xla import fusion_barrier
from lgsim.multibody.configuration import kinds
from lgsim.multibody.model import Model
from lgsim.multibody.topology import Topology


class Turn(NamedTuple):
    """``S = w_z``: rows that all rotate without pitch; nothing is stored."""

    def along(self, rate: Array) -> Motion:
        """``S rate``."""
        zero = jnp.zeros_like(rate)
        return Motion(Vec(zero, zero, zero), Vec(zero, zero, rate))

    def moved(self, V: Motion, rate: Array) -> Motion:
        """``V + S rate``."""
        v, (p, q, r) = V
        return Motion(v, Vec(p, q, r + rate))

    def carried(self, V: Motion, rate: Array) -> Motion:
        """``V x S rate``: the acceleration of a screw that moves with V."""
        zero = jnp.zeros_like(rate)
        return Motion(Vec(rate * V.v.y, -(rate * V.v.x), zero), Vec(rate * V.w.y, -(rate * V.w.x), zero))

    def power(self, F: Force) -> Array:
        """``S . F``."""
        return F.n.z

    def column(self, A: Articulated) -> Force:
        """``A S``."""
        return Force(A.H.r2, Vec(A.I.xz, A.I.yz, A.I.zz))


class Screw(NamedTuple):
    """``S = a w_z + b v_z``."""

    a: Array
    b: Array

    def along(self, rate: Array) -> Motion:
        """``S rate``."""
        zero = jnp.zeros_like(rate)
        return Motion(Vec(zero, zero, self.b * rate), Vec(zero, zero, self.a * rate))

    def moved(self, V: Motion, rate: Array) -> Motion:
        """``V + S rate``."""
        (x, y, z), (p, q, r) = V
        return Motion(Vec(x, y, z + self.b * rate), Vec(p, q, r + self.a * rate))

    def carried(self, V: Motion, rate: Array) -> Motion:
        """``V x S rate``: the acceleration of a screw that moves with V."""
        p, s = self.a * rate, self.b * rate
        zero = jnp.zeros_like(p)
        return Motion(Vec(p * V.v.y + s * V.w.y, -(p * V.v.x + s * V.w.x), zero), Vec(p * V.w.y, -(p * V.w.x), zero))

    def power(self, F: Force) -> Array:
        """``S . F``."""
        return self.a * F.n.z + self.b * F.f.z

    def column(self, A: Articulated) -> Force:
        """``A S``."""
        a, b = self
        f = Vec(b * A.M.xz + a * A.H.r2.x, b * A.M.yz + a * A.H.r2.y, b * A.M.zz + a * A.H.r2.z)
        n = Vec(a * A.I.xz + b * A.H.r0.z, a * A.I.yz + b * A.H.r1.z, a * A.I.zz + b * A.H.r2.z)
        return Force(f, n)


class Rows(NamedTuple):
    """The constants of rows, each component an array (k, *batch)."""

    rest: Transform
    """Pose of the row's frame at coordinate zero, relative to its parent row."""
    align: Mat
    """Axes of the row's frame in those of its joint; the third column is the screw axis."""
    a: Array
    b: Array
    """``S = a w_z + b v_z``."""


def matrix(array: Array) -> Mat:
    """The leading 3x3 block of (m, 3 or 4, 3 or 4, *batch) by components."""
    return Mat(*(Vec(*(array[:, i, j] for j in range(3))) for i in range(3)))


def transform(array: Array) -> Transform:
    """Homogeneous matrices (m, 4, 4, *batch) by components."""
    return Transform(matrix(array), Vec(*(array[:, i, 3] for i in range(3))))


def vector(array: Array, start: int = 0) -> Vec:
    """Three entries of (m, k, *batch) by components."""
    return Vec(*(array[:, start + i] for i in range(3)))


def select(tree: Any, index: Any) -> Any:
    """The same rows of every component."""
    return jax.tree.map(lambda x: x[index], tree)


def spread(tree: Any, index: np.ndarray, count: int) -> Any:
    """The rows of every component at the indices ``index`` of ``count``, and zeros elsewhere.

    By a gather: native functions do not support a scatter with several indices on CPU.
    """
    source = np.full(count, len(index))
    source[index] = np.arange(len(index))
    return jax.tree.map(lambda x: jnp.concatenate([x, jnp.zeros_like(x[:1])])[source], tree)


def inertias(model: Model) -> Inertia:
    """The inertia of each body in its own frame, (n, *batch)."""
    p = model.inertias
    return Inertia(p[:, 0], vector(p, 1), Sym(p[:, 4], p[:, 5], p[:, 7], p[:, 6], p[:, 8], p[:, 9]))


def basis(axis: Vec) -> Mat:
    """A rotation whose third column is the direction of ``axis``; results do not depend on the choice of the others.

    Source: Duff et al., Building an orthonormal basis, revisited, Journal of Computer Graphics Techniques 6(1), 2017.
    """
    n = axis * (1 / jnp.sqrt(axis.dot(axis)))
    sign = jnp.copysign(jnp.ones_like(n.z), n.z)
    a = -1 / (sign + n.z)
    b = n.x * n.y * a
    return Mat(
        Vec(1 + sign * n.x * n.x * a, b, n.x), Vec(sign * b, sign + n.y * n.y * a, n.y), Vec(-sign * n.x, -n.y, n.z)
    )


def rows(model: Model) -> Rows:
    """The rows of a model whose leaves have their own axes first."""
    tree = model.topology
    align = basis(_axes(model))
    first, parent = tree.row_first, tree.row_parent
    # a first row is attached to the last row of the parent body, rotated back; any other to the row before
    carrier = select(align, np.maximum(parent, 0))
    root = _column(parent < 0, align.r0.x)
    back = jax.tree.map(lambda x, e: jnp.where(root, jnp.full_like(x, e), x), carrier.T, _IDENTITY)
    placed = select(transform(model.placements), tree.row_joint)
    is_first = _column(first, align.r0.x)
    R = jax.tree.map(lambda x, e: jnp.where(is_first, x, jnp.full_like(x, e)), placed.R, _IDENTITY)
    p = jax.tree.map(lambda x: jnp.where(is_first, x, jnp.zeros_like(x)), placed.p)
    turns = _column(tree.row_turns, align.r0.x)
    a = jnp.where(turns, jnp.ones_like(model.pitches), 0)
    b = jnp.where(_column(tree.row_pitched, align.r0.x), model.pitches, jnp.where(turns, jnp.zeros_like(a), 1))
    return Rows(Transform(back @ (R @ align), back @ p), align, a, b)


def row_inertias(tree: Topology, rows: Rows, bodies: Inertia) -> Inertia:
    """The inertia of each row in its frame: the body's for the last row of a joint, else zero."""
    align = select(rows.align, tree.body_row)
    A = align.T
    own = Inertia(bodies.m, A @ bodies.h, bodies.I.rotated(A))
    return own if tree.rows == tree.bodies else spread(own, tree.body_row, tree.rows)


def coordinates(model: Model, q: Array) -> Array:
    """The coordinate of each row (k, *batch): q, or the function of q for a mimic joint; 0 for rows of a group."""
    tree = model.topology
    x = q if _is_range(tree.row_q, q.shape[0]) else q[tree.row_q]
    if tree.has_mimic:
        x = mimic_ratios(model) * x + _only_of_followers(tree, model.mimic[:, 1], 0.0)
    if tree.groups:
        grouped = np.zeros(tree.rows, bool)
        for _, bodies in tree.groups:
            for body in bodies:
                grouped[tree.row_starts[body] : tree.row_starts[body + 1]] = True
        x = jnp.where(_column(grouped, x), jnp.zeros_like(x), x)
    return x


def speeds(model: Model, v: Array) -> Array:
    """The rate of each row (k, *batch) for velocities or accelerations v (nv, *batch)."""
    tree = model.topology
    x = v if _is_range(tree.row_v, v.shape[0]) else v[tree.row_v]
    return mimic_ratios(model) * x if tree.has_mimic else x


def mimic_ratios(model: Model) -> Array:
    """The factor k of each row (k, *batch): 1 where its joint mimics none, whatever value is stored."""
    return _only_of_followers(model.topology, model.mimic[:, 0], 1.0)


def _only_of_followers(tree: Topology, numbers: Array, other: float) -> Array:
    """Parameters of joints (n, *batch) by row, replaced by ``other`` for joints that mimic none."""
    follows = np.array([mimic is not None for mimic in tree.mimics], bool)[tree.row_joint]
    return jnp.where(_column(follows, numbers), numbers[tree.row_joint], jnp.full_like(numbers[tree.row_joint], other))


def gathered(model: Model, forces: Array) -> Array:
    """Joint forces (nv, ..., *batch) from forces on the rows (k, ..., *batch): the transpose of ``speeds``."""
    tree = model.topology
    if not tree.has_mimic:
        return forces
    ratio = mimic_ratios(model)
    forces = ratio.reshape(ratio.shape[:1] + (1,) * (forces.ndim - ratio.ndim) + ratio.shape[1:]) * forces
    own = tree.row_source == np.arange(tree.rows)
    out = forces[np.flatnonzero(own)]
    for follower in np.flatnonzero(~own):
        here = _column(np.arange(tree.nv) == tree.row_v[follower], out)
        out = out + jnp.where(here, forces[follower], 0)
    return out


def poses(model: Model, rows: Rows, q: Array) -> Transform:
    """The pose of every row relative to its parent."""
    x = coordinates(model, q)
    rest = rows.rest
    for joint, bodies in model.topology.groups:
        rest = _moved_by_groups(model, rows, rest, joint.transform, bodies, q)
    sine, cosine = fusion_barrier(sincos(rows.a * x))
    slide = rows.b * x
    R = Mat(*(Vec(cosine * r.x + sine * r.y, cosine * r.y - sine * r.x, r.z + 0 * sine) for r in rest.R))
    return fusion_barrier(Transform(R, Vec(*(p + r.z * slide for p, r in zip(rest.p, rest.R, strict=True)))))


def _moved_by_groups(model: Model, rows: Rows, rest: Transform, group: Any, bodies: Any, q: Array) -> Transform:
    """Insert the group elements of joints of one kind between the placement and the alignment of their first rows."""
    tree = model.topology
    places = next(p for joint, p, _ in kinds(tree) if joint == tree.joints[bodies[0]])
    first = np.array([tree.row_starts[body] for body in bodies])
    T = group([q[p] for p in places])
    E = _frame_of_axes(rows, first, tree.joints[bodies[0]])
    R, p = E @ T.R @ E.T, E @ T.p
    align = select(rows.align, first)
    held = select(rest, first)
    back = held.R @ align.T  # the placement without alignment
    new = Transform(back @ R @ align, held.p + back @ p)
    moved = _column(np.isin(np.arange(tree.rows), first), new.p.x)
    return jax.tree.map(lambda x, y: jnp.where(moved, y, x), rest, spread(new, first, tree.rows))


def _axes(model: Model) -> Vec:
    """The axis of each row (k, *batch); the axes of a joint that is a group form one frame.

    It is orthonormal for all parameter values: x along the first axis, y in the plane of the first two. Other
    components of these axes have no meaning, nor have the axes of a floating base, whose frame is the body frame.
    """
    tree = model.topology
    axes = vector(model.axes)
    parts, source = [axes], np.arange(tree.rows)
    for joint, bodies in tree.groups:
        frame = [_IDENTITY] if tree.floats and 0 in bodies else []
        for column in frame:
            parts.append(Vec(*(jnp.stack([jnp.full_like(axes.x[0], e) for e in r]) for r in column)))
            source[: joint.nv] = _places(parts, 1, joint, 0)
        first = np.array([tree.row_starts[body] for body in bodies[len(frame) :]], int)
        if len(first):
            own = {row.axis: vector(model.axes[first + offset]) for offset, row in enumerate(joint.rows)}
            x = own[0] * (1 / jnp.sqrt(own[0].dot(own[0])))
            y = own[1] - x * x.dot(own[1])
            y = y * (1 / jnp.sqrt(y.dot(y)))
            parts.append(jax.tree.map(lambda *columns: jnp.concatenate(columns), x, y, x.cross(y)))
            for number, start in enumerate(first):
                source[start : start + joint.nv] = _places(parts, len(first), joint, number)
    if len(parts) == 1:
        return axes
    return Vec(*(jnp.concatenate(columns)[source] for columns in zip(*parts, strict=True)))


def _places(parts: list[Vec], joints: int, joint: Any, number: int) -> list[int]:
    """Indices of the row axes of joint ``number`` of a kind in the last of ``parts``, which has x, y, z of all."""
    start = sum(len(part.x) for part in parts[:-1])
    return [start + row.axis * joints + number for row in joint.rows]


def _frame_of_axes(rows: Rows, first: np.ndarray, joint: Any) -> Mat:
    """The axes x, y, z of a joint's group as columns, for joints with the given first rows."""
    axis = Vec(*(r.z for r in rows.align))
    found = {row.axis: select(axis, first + offset) for offset, row in enumerate(joint.rows)}
    return Mat(*(found[i] for i in range(3))).T


def body_transforms(tree: Topology, rows: Rows, world: Transform) -> Transform:
    """The pose of every body frame from that of its last row."""
    last = select(world, tree.body_row)
    return Transform(last.R @ select(rows.align, tree.body_row).T, last.p)


def gravity(model: Model) -> Motion:
    """The acceleration of a base at rest relative to free fall, in world axes."""
    g = model.gravity
    zero = jnp.zeros_like(g[0])
    return Motion(Vec(-g[0], -g[1], -g[2]), Vec(zero, zero, zero))


def _column(flags: np.ndarray, like: Array) -> np.ndarray:
    return flags.reshape(flags.shape + (1,) * (like.ndim - 1))


def _is_range(index: np.ndarray, length: int) -> bool:
    return len(index) == length and bool(np.all(index == np.arange(length)))


_IDENTITY = Mat(Vec(1.0, 0.0, 0.0), Vec(0.0, 1.0, 0.0), Vec(0.0, 0.0, 1.0))
