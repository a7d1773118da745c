"""The ends of kinematic loops at one state, in the root frame: poses, motions, constraint rows and their rates.

Loops of one kind are processed together, so that a program grows with the number of kinds and not of loops. The rows
of all loops are in the order of ``Topology.loops``.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim._compile.spatial import Force, Mat, Motion, Transform, Vec, to_child, to_parent
from lgsim._compile.xla import fusion_barrier
from lgsim.dynamics import linearization
from lgsim.dynamics import rows as row
from lgsim.dynamics.linearization import WorldFrameState
from lgsim.multibody.loops.loop import FrameLoop, JointLoop, LoopKind, Relative
from lgsim.multibody.model import Model
from lgsim.multibody.topology import WORLD, Topology


class KindEnds:
    """Indices of the loops of one kind: static data of a topology.

    Attributes:
        loops: Indices of the loops in ``Topology.loops``, g of them.
        rows: Indices of their rows (kind.rows, g).
    """

    def __init__(self, tree: Topology, kind: LoopKind, loops: list[int]) -> None:
        self.tree, self.kind, self.loops = tree, kind, loops
        starts = np.array([tree.loop_row_starts[i] for i in loops])
        self.rows = starts[None] + np.arange(kind.rows)[:, None]

    def numbers(self, model: Model) -> list[Array]:
        """The parameters of the loops, each (g, *batch)."""
        starts = np.array([self.tree.loop_number_starts[i] for i in self.loops])
        return [model.loops[starts + i] for i in range(len(self.kind.number_names))]

    @cached_property
    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """(bodies, frames) of the ends a, then b, (2, g); WORLD for no body, -1 for the body's own frame."""
        names = [[self.tree.loops[i].a for i in self.loops], [self.tree.loops[i].b for i in self.loops]]
        found = [[self.tree.frame_place(name) for name in end] for end in names]
        bodies = np.array([[body for body, _ in end] for end in found])
        return bodies, np.array([[-1 if place is None else place for _, place in end] for end in found])

    @cached_property
    def joint_rows(self) -> np.ndarray:
        """The tree rows of the coupled joints a, then b, (2, g)."""
        start = {name: self.tree.row_starts[i] for i, name in enumerate(self.tree.joint_names)}
        return np.array([[start[self.tree.loops[i].a], start[self.tree.loops[i].b]] for i in self.loops]).T

    @cached_property
    def carries(self) -> np.ndarray:
        """True where a row of the tree carries the end a, the end b, (2, g, k)."""
        below = np.concatenate([self.tree.row_carried[self.tree.body_row], np.zeros((1, self.tree.rows), bool)])
        return below[self.places[0]]

    @cached_property
    def signs(self) -> np.ndarray:
        """1 for rows of the tree that carry only b, -1 for only a, 0 for both or none, (g, k)."""
        return self.carries[1].astype(int) - self.carries[0]

    @cached_property
    def pushes(self) -> np.ndarray:
        """1 at the row of the tree to which b is attached, -1 at that of a, (g, k)."""
        out = np.zeros((len(self.loops), self.tree.rows), int)
        for sign, bodies in zip((-1, 1), self.places[0], strict=True):
            for loop, body in enumerate(bodies):
                if body != WORLD:
                    out[loop, self.tree.body_row[body]] += sign
        return out


@lru_cache(maxsize=64)
def kinds(tree: Topology) -> tuple[KindEnds, ...]:
    """The loops of a model by kind."""
    found: dict[LoopKind, list[int]] = {}
    for i, loop in enumerate(tree.loops):
        found.setdefault(loop.kind, []).append(i)
    return tuple(KindEnds(tree, kind, loops) for kind, loops in found.items())


class End(NamedTuple):
    """The ends of loops of one kind (g, *batch), in the root frame."""

    pose_b: Transform
    relative: Relative
    wrenches: list[Force]
    """The constraint wrenches on b, one for each row of the kind."""
    V: tuple[Motion, Motion]
    """Twists of a and b."""
    A: tuple[Motion, Motion]
    """Accelerations of a and b, relative to free fall."""


class Ends(NamedTuple):
    """The loops of a model at one state."""

    frames: dict[int, End]
    """Ends of loops between frames, by the index of the kind in ``kinds``."""
    slopes: dict[int, tuple[Array, ...]]
    """(f, f', f'', f''') of coupled joints, (g, *batch), by the index of the kind."""
    rows: Force
    """The constraint wrench of every row on b, (m, *batch); zero for couplings."""
    rates: Array
    """Second derivatives of the residuals (m, *batch) at the given accelerations."""


def _frame_ends(model: Model, ends: KindEnds, frozen: WorldFrameState, world: Transform, A: Motion) -> End:
    """The ends of loops between frames."""
    tree = model.topology
    bodies, _ = ends.places
    last = tree.body_row
    zero = jax.tree.map(jnp.zeros_like, frozen.fall)
    V, A = (
        jax.tree.map(lambda x, w: jnp.concatenate([x[last], w[None]]), value, of_world)
        for value, of_world in ((_of_units(tree, frozen.V), zero), (A, frozen.fall))
    )
    X = end_poses(model, ends, frozen.poses, world)
    (Va, Vb), (Aa, Ab) = ([row.select(value, bodies[end]) for end in (0, 1)] for value in (V, A))
    # V_b - V_a and A_b - A_a + V_b x V_a, in axes fixed to b
    relative = Relative(
        fusion_barrier(relative_pose(*X)),
        fusion_barrier(to_child(X[1], Vb - Va)),
        fusion_barrier(to_child(X[1], Ab - Aa + Vb.cross(Va))),
    )
    assert isinstance(ends.kind, FrameLoop)
    T = ends.kind.wrenches(relative.pose, ends.numbers(model))
    return End(X[1], relative, [fusion_barrier(to_parent(X[1], t)) for t in T], (Va, Vb), (Aa, Ab))


def loop_ends(model: Model, q: Array, v: Array, frozen: WorldFrameState, A: Motion, y: Array) -> Ends:
    """The ends of all loops.

    Args:
        model: Model with the batch axis of its leaves last.
        q: Configuration (nq, *batch).
        v: Rates of the rows (k, *batch).
        frozen: The model at (q, v).
        A: Accelerations of the rows relative to free fall (k, *batch), in the root frame.
        y: Accelerations of the row coordinates (k, *batch) that belong to A.
    """
    tree = model.topology
    world = world_pose(model, q)
    x = row.coordinates(model, q)
    frames, slopes = {}, {}
    wrenches: list[Force] = []
    rates: list[Array] = []
    order: list[np.ndarray] = []
    for number, ends in enumerate(kinds(tree)):
        order.append(ends.rows.ravel())
        if isinstance(ends.kind, FrameLoop):
            end = frames[number] = _frame_ends(model, ends, frozen, world, A)
            wrenches += end.wrenches
            rates += ends.kind.rates(end.relative, ends.numbers(model))
        else:
            assert isinstance(ends.kind, JointLoop)
            a, b = ends.joint_rows
            # couplings: c'' = y_b - f' y_a - f'' v_a^2
            f, f1, f2, _ = slopes[number] = ends.kind.values(x[a], ends.numbers(model))
            rates.append(y[b] - f1 * y[a] - f2 * v[a] * v[a])
            nothing = Vec(*(jnp.zeros_like(f),) * 3)
            wrenches.append(Force(nothing, nothing))
    back = np.argsort(np.concatenate(order))
    rows = jax.tree.map(lambda *parts: jnp.concatenate(parts)[back], *wrenches)
    return Ends(frames, slopes, rows, in_order(rates, order))


def in_order(parts: list[Array], order: list[np.ndarray]) -> Array:
    """Rows by kind as one array (m, *batch) in the order of the loops."""
    joined = jnp.concatenate(parts)
    places = np.concatenate(order)
    return joined if np.all(places == np.arange(len(places))) else joined[np.argsort(places)]


def velocity_rates(tree: Topology, S: Motion, ends: Ends, v: Array) -> Array:
    """``J v`` (m, *batch) at rates v of the rows (k, *batch) with screws S."""
    parts, order = [], []
    rows = row.select(linearization.order(tree).down(fusion_barrier(S * v)), tree.body_row)
    zero = jax.tree.map(lambda x: jnp.zeros_like(x[:1]), rows)
    V = jax.tree.map(lambda x, w: jnp.concatenate([x, w]), rows, zero)
    for number, at in enumerate(kinds(tree)):
        order.append(at.rows.ravel())
        if number in ends.frames:
            a, b = (row.select(V, bodies) for bodies in at.places[0])
            parts += [T.power(b - a) for T in ends.frames[number].wrenches]
        else:
            a, b = at.joint_rows
            parts.append(v[b] - ends.slopes[number][1] * v[a])
    return in_order(parts, order)


def row_signs(tree: Topology, which: str) -> np.ndarray:
    """``KindEnds.signs`` or ``.pushes`` of the loop of each row, (m, k); zero for couplings."""
    out = np.zeros((tree.loop_rows, tree.rows), int)
    for ends in kinds(tree):
        if isinstance(ends.kind, FrameLoop):
            for rows in ends.rows:
                out[rows] = getattr(ends, which)
    return out


def beside(signs: np.ndarray, like: Array) -> np.ndarray:
    """Static signs (n, k) with axes to broadcast to (n, k, *batch), the batch being that of an array (n, *batch)."""
    return signs.reshape(signs.shape + (1,) * (like.ndim - 1)).astype(like.dtype)


def joint_units(tree: Topology, ends: Ends, like: Array) -> Array | None:
    """The coordinate forces of a unit force of each row, (m, k, *batch); None without couplings."""
    if not ends.slopes:
        return None
    out: Any = 0
    for number, (_, slope, _, _) in ends.slopes.items():
        at = kinds(tree)[number]
        on_b, on_a = (np.zeros((len(at.loops), tree.loop_rows, tree.rows), bool) for _ in range(2))
        for g, (a, b) in enumerate(at.joint_rows.T):
            on_a[g, at.rows[0, g], a] = on_b[g, at.rows[0, g], b] = True
        for g in range(len(at.loops)):
            out = out + _spread(on_b[g], jnp.ones_like(slope[g])) - _spread(on_a[g], slope[g])
    return out + jnp.zeros_like(like)[None]


def world_pose(model: Model, q: Array) -> Transform:
    """The pose of the world (*batch) in the root frame, which is the frame of a floating base or else the world."""
    batch = q.shape[1:]
    one, zero = jnp.ones(batch, q.dtype), jnp.zeros(batch, q.dtype)
    if not model.topology.floats:
        return Transform(Mat(Vec(one, zero, zero), Vec(zero, one, zero), Vec(zero, zero, one)), Vec(zero, zero, zero))
    joint = model.topology.base
    pose = row.transform(model.placements[:1]) @ joint.transform([q[i : i + 1] for i in range(joint.nq)])
    return jax.tree.map(lambda x: jnp.broadcast_to(x[0], batch), pose.inverse())


def relative_poses(model: Model, ends: KindEnds, q: Array) -> Transform:
    """The poses of the ends b relative to a, (g, *batch), of loops between frames at q (nq, *batch)."""
    tree = model.topology
    rows = row.rows(model)
    relative = row.poses(model, rows, q)
    if tree.floats:
        relative, _ = linearization.from_base(model, rows, relative, _still(q), q)
    poses = linearization.world_poses(linearization.order(tree), relative, q.shape[1:])
    return relative_pose(*end_poses(model, ends, poses, world_pose(model, q)))


def end_poses(model: Model, ends: KindEnds, poses: Transform, world: Transform) -> tuple[Transform, Transform]:
    """The poses of the ends a and b (g, *batch) from those of the rows (k, *batch) and of the world (*batch)."""
    bodies, places = ends.places
    own = row.body_transforms(model.topology, row.rows(model), poses)
    carriers = jax.tree.map(lambda x, w: jnp.concatenate([x, w[None]]), own, world)
    a, b = (_framed(model, row.select(carriers, bodies[end]), places[end]) for end in (0, 1))
    return a, b


def relative_pose(a: Transform, b: Transform) -> Transform:
    """The pose of b relative to a, from poses in one frame."""
    return Transform(a.R.T @ b.R, a.R.transpose_apply(b.p - a.p))


def _still(q: Array) -> Motion:
    zero = jnp.zeros(q.shape[1:], q.dtype)
    return Motion(Vec(zero, zero, zero), Vec(zero, zero, zero))


def _framed(model: Model, carriers: Transform, places: np.ndarray) -> Transform:
    """Poses of frames from those of the bodies that carry them; index -1 means the body's own frame."""
    if np.all(places < 0):
        return carriers
    moved = carriers @ row.transform(model.frames[np.maximum(places, 0)])
    if np.all(places >= 0):
        return moved
    framed = (places >= 0).reshape((-1,) + (1,) * (carriers.p.x.ndim - 1))
    return jax.tree.map(lambda x, y: jnp.where(framed, x, y), moved, carriers)


def _of_units(tree: Topology, V: Motion) -> Motion:
    return V if not tree.groups else row.select(V, tree.row_unit[1])


def _spread(mask: np.ndarray, value: Array) -> Array:
    return jnp.where(mask.reshape(mask.shape + (1,) * value.ndim), value[None, None], 0)
