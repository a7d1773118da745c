"""Loop errors for closure searches: smooth functions, their Jacobian and their curvature.

The residuals of loops also vanish at half turns; the errors c of ``FrameLoop.misfit`` do not. Angles among them are
multiplied by a length of the model, so that all are lengths. Let S_j be the screw of row j of the tree. s_gj = 1 where
it carries only the end b of the loop g and -1 where it carries only a. w is the derivative of ``sum_r lambda_r c_r``
with respect to the relative displacement xi of b, in the axes of b. Displacements dx of the rows give

    dxi = sum_j Ad(b)^-1 S_j s_gj dx_j,    d(w . xi_i)/dx_j = xi_i . (dw/dxi) xi_j + s_gi w . Ad(b)^-1 (S_j x S_i) n_ij,

where n_ij is 1 if row j carries row i, minus 1 if it carries b.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim._compile.linalg import dense
from lgsim._compile.spatial import Force, Motion, Transform, Vec, to_child, to_parent
from lgsim._compile.xla import fusion_barrier
from lgsim.dynamics import linearization
from lgsim.dynamics import rows as row
from lgsim.dynamics.loops import loop_ends
from lgsim.dynamics.loops.loop_ends import KindEnds
from lgsim.dynamics.loops.residual_derivatives import displaced
from lgsim.multibody.loops.loop import FrameLoop, JointLoop
from lgsim.multibody.model import Model
from lgsim.multibody.topology import Topology


class PlacedEnds(NamedTuple):
    """The ends of loops of one kind.

    Attributes:
        a: The poses of the first frames (g, *batch).
        b: The poses of the second frames (g, *batch).
        relative: Pose of b relative to a.
        xi: Displacement of b relative to a per row of the tree, in the axes of b, (g, k, *batch).
    """

    a: Transform
    b: Transform
    relative: Transform
    xi: Motion


class Placed(NamedTuple):
    """A model at one configuration, in the root frame.

    Attributes:
        S: The screws of the rows (k, *batch).
        ends: Ends of loops between frames, by the index of their kind in ``loop_ends.kinds``.
        x: Coordinates of the rows (k, *batch).
        poses: Poses of the bodies (n, *batch).
    """

    S: Motion
    ends: dict[int, PlacedEnds]
    x: Array
    poses: Transform


def placed(model: Model, q: Array) -> Placed:
    """The model at q (nq, *batch)."""
    tree = model.topology
    zero_rates = jnp.zeros((tree.nv, *q.shape[1:]), q.dtype)
    frozen = linearization.freeze(model, q, zero_rates, None)
    world = loop_ends.world_pose(model, q)
    ends = {}
    for number, at in enumerate(loop_ends.kinds(tree)):
        if isinstance(at.kind, FrameLoop):
            a, b = loop_ends.end_poses(model, at, frozen.poses, world)
            S = jax.tree.map(lambda c: c[None], frozen.S) * _static(at.signs, q)
            xi = to_child(jax.tree.map(lambda c: c[:, None], b), S)
            ends[number] = fusion_barrier(PlacedEnds(a, b, loop_ends.relative_pose(a, b), xi))
    poses = row.body_transforms(tree, row.rows(model), frozen.poses)
    return Placed(frozen.S, ends, row.coordinates(model, q), poses)


def loop_residuals(model: Model, at: Placed, length: Array) -> tuple[Array, Array]:
    """(c (r, *batch), m, its Jacobian in the degrees of freedom (r, nv, *batch)) for a length (*batch), m."""
    tree = model.topology
    # c and dc/dx of frame loops: dc along the displacements xi_j of b with each row
    values, slopes = [], []
    for number, ends in enumerate(loop_ends.kinds(tree)):
        numbers = ends.numbers(model)
        if isinstance(ends.kind, FrameLoop):
            _, _, pose, xi = at.ends[number]
            values += _lengths(ends.kind, pose, numbers, length)
            wide = jax.tree.map(lambda c, d=xi.v.x: jnp.broadcast_to(c[:, None], d.shape), pose)
            slopes += _along(ends.kind, wide, [x[:, None] for x in numbers], xi, length)
        elif isinstance(ends.kind, JointLoop):
            a, b = ends.joint_rows
            f, slope, _, _ = ends.kind.values(at.x[a], numbers)
            off = at.x[b] - f
            values.append(off * _unit(ends, length, off.ndim))
            on_a, on_b = (_static(np.eye(tree.rows)[x], at.x) for x in (a, b))
            moved = on_b - on_a * slope[:, None]
            slopes.append(moved * _unit(ends, length, moved.ndim))
    J = fusion_barrier(jnp.concatenate(slopes))
    return fusion_barrier(jnp.concatenate(values)), jnp.swapaxes(row.gathered(model, jnp.swapaxes(J, 0, 1)), 0, 1)


def pushes(model: Model, at: Placed, length: Array, multipliers: Array, v: Array) -> tuple[Array, Array, Array]:
    """(``J' multipliers`` (nv, *batch), ``J v`` (r, *batch), c (r, *batch)), without J."""
    tree = model.topology
    speeds = row.speeds(model, v)
    forces, rates, values = jnp.zeros_like(speeds), [], []
    for number, ends, own in _by_kind(model, at, multipliers):
        numbers = ends.numbers(model)
        if isinstance(ends.kind, FrameLoop):
            _, b, pose, _ = at.ends[number]
            values += _lengths(ends.kind, pose, numbers, length)
            rates += _along(ends.kind, pose, numbers, velocity(ends, at, number, speeds), length)
            w = _slope(ends.kind, pose, numbers, length, own)
            W = to_parent(b, Force(Vec(*w[:3]), Vec(*w[3:])))
            on_rows = jax.tree.map(lambda c, n=ends.signs: dense.sum_rows(_static(n, c) * c[:, None]), W)
            forces = forces + on_rows.power(at.S)
        elif isinstance(ends.kind, JointLoop):
            a, b = ends.joint_rows
            f, slope, _, _ = ends.kind.values(at.x[a], numbers)
            unit = _unit(ends, length, f.ndim)
            values.append((at.x[b] - f) * unit)
            rates.append((speeds[b] - slope * speeds[a]) * unit)
            on_a, on_b = (_static(np.eye(tree.rows)[x], f) for x in (a, b))
            forces = forces + dense.sum_rows((on_b - on_a * slope[:, None]) * (own[0] * unit)[:, None])
    c, u = jnp.concatenate(values), jnp.concatenate(rates)
    return fusion_barrier((row.gathered(model, forces), u, c))


def velocity(ends: KindEnds, at: Placed, number: int, speeds: Array) -> Motion:
    """The motion of the ends b relative to a in the axes of b (g, *batch), at rates of the rows of the tree."""
    moved = jax.tree.map(lambda c: c * speeds, at.S)
    V = jax.tree.map(lambda c: dense.sum_rows(_static(ends.signs.T, c) * c[:, None]), moved)
    return to_child(at.ends[number].b, V)


def curvature(model: Model, at: Placed, length: Array, multipliers: Array) -> Array:
    """The derivative of ``sum_r multipliers_r J_r`` with respect to displacements, as columns, (nv, nv, *batch)."""
    tree = model.topology
    total: Array | float = 0.0
    for number, ends, own in _by_kind(model, at, multipliers):
        numbers = ends.numbers(model)
        if isinstance(ends.kind, FrameLoop):
            total = total + _curved(tree, ends, at.S, at.ends[number], numbers, length, own)
        elif isinstance(ends.kind, JointLoop):
            a = ends.joint_rows[0]
            second = ends.kind.values(at.x[a], numbers)[2] * own[0] * _unit(ends, length, own[0].ndim)
            squares = np.eye(tree.rows)[a][:, :, None] * np.eye(tree.rows)
            total = total - dense.sum_rows(_static(squares, second) * second[:, None, None])
    return linearization.reduced(model, fusion_barrier(jnp.asarray(total)))


def _by_kind(model: Model, at: Placed, multipliers: Array) -> Iterator[tuple[int, KindEnds, Array]]:
    """(index of the kind, its loops, their multipliers (rows, g, *batch)) of all kinds."""
    start = 0
    for number, ends in enumerate(loop_ends.kinds(model.topology)):
        rows, loops = 1, len(ends.loops)
        if isinstance(ends.kind, FrameLoop):
            rows = len(ends.kind.misfit(at.ends[number].relative, ends.numbers(model)))
        own = multipliers[start : start + rows * loops]
        yield number, ends, own.reshape(rows, loops, *own.shape[1:])
        start += rows * loops


def _slope(kind: FrameLoop, pose: Transform, numbers: list[Array], length: Array, own: Array) -> Array:
    """The derivative w (6, *shape of the pose) of ``sum_r own_r c_r`` with respect to the displacement of b."""
    wide = _six(pose)
    rank = wide.p.x.ndim
    rows = _along(kind, wide, [_ranked(x, rank) for x in numbers], _units(wide), length)
    return dense.sum_rows(jnp.stack([r * _ranked(x, rank) for r, x in zip(rows, own, strict=True)]))


def _curved(
    tree: Topology, at: KindEnds, S: Motion, ends: PlacedEnds, numbers: list[Array], length: Array, own: Array
) -> Array:  # fmt: skip
    """``curvature`` of loops of one kind between frames, by rows of the tree (k, k, *batch)."""
    _, b, pose, xi = ends
    kind = at.kind
    assert isinstance(kind, FrameLoop)

    def slope(pose: Transform) -> Array:
        return _slope(kind, pose, numbers, length, own)

    # w and its derivative dw/dxi
    w = fusion_barrier(slope(pose))
    wide = _six(pose)
    turned = fusion_barrier(jax.jvp(slope, (wide,), (displaced(wide, _units(wide)),))[1])
    W = to_parent(b, Force(Vec(*w[:3]), Vec(*w[3:])))
    # s_gi w . Ad(b)^-1 (S_j x S_i) n_ij, with the wrench W = Ad(b)^-T w
    count = at.signs[:, :, None] * (tree.row_carried[None].astype(int) - at.carries[1][:, None])
    wrench = jax.tree.map(lambda c: dense.sum_rows(c[:, None, None] * _static(count, c)), W)
    S_i, S_j = (jax.tree.map(lambda c, at=at: jnp.expand_dims(c, at), S) for at in (1, 0))
    bent = wrench.power(S_j.cross(S_i))
    # xi_i . (dw/dxi) xi_j
    X = jnp.stack([*xi.v, *xi.w])
    Y = fusion_barrier(dense.sum_rows(jnp.swapaxes(turned, 0, 1)[:, :, :, None] * X[:, None]))
    flat = (6 * len(at.loops), *X.shape[2:])
    return fusion_barrier(bent + dense.product(jnp.swapaxes(X.reshape(flat), 0, 1), Y.reshape(flat)))


def _lengths(kind: FrameLoop, pose: Transform, numbers: list[Array], length: Array) -> list[Array]:
    return [x * _ranked(length, x.ndim) if turns else x for turns, x in kind.misfit(pose, numbers)]


def _along(kind: FrameLoop, pose: Transform, numbers: list[Array], xi: Motion, length: Array) -> list[Array]:
    """The changes of a kind's loop errors along displacements of b of the same shape as the pose."""
    return jax.jvp(lambda X: _lengths(kind, X, numbers, length), (pose,), (displaced(pose, xi),))[1]


def _unit(at: KindEnds, length: Array, rank: int) -> Array:
    return _ranked(length if at.kind.row_turns[0] else jnp.ones_like(length), rank)


def _six(pose: Transform) -> Transform:
    """Six copies along a new leading axis."""
    return jax.tree.map(lambda c: jnp.broadcast_to(c[None], (6, *c.shape)), pose)


def _units(wide: Transform) -> Motion:
    """The unit motions, of the shape (6, ...) of a pose."""
    shape = wide.p.x.shape
    unit = [_static(np.eye(6)[i], wide.p.x) for i in range(6)]
    full = [jnp.broadcast_to(x, shape) for x in unit]
    return Motion(Vec(*full[:3]), Vec(*full[3:]))


def _static(numbers: np.ndarray, like: Array) -> Array:
    """Static numbers with axes to broadcast to the batch of an array."""
    return jnp.asarray(numbers.reshape(numbers.shape + (1,) * (like.ndim - 1)), like.dtype)


def _ranked(x: Array, rank: int) -> Array:
    """An array with leading axes of length 1."""
    return x.reshape((1,) * (rank - x.ndim) + x.shape)
