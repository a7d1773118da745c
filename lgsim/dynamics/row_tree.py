"""The rows of a model at a configuration, and recursions over them: the basis of all algorithms.

A recursion runs outward from the root or inward from the leaves, as one ``lax.scan``, so that the program does not grow
with the number of bodies. In a chain, values are passed from row to row. In a tree, they are passed through arrays over
the rows, with one additional entry for the carrier of the roots.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim._compile.spatial import Force, Inertia, Mat, Motion, Transform, Vec, to_child
from lgsim._compile.xla import control_flow
from lgsim.dynamics import rows as row
from lgsim.dynamics.rows import Screw, Turn
from lgsim.multibody.model import Model
from lgsim.multibody.topology import Topology

BASE = 6
"""Degrees of freedom of a floating base, which is solved separately from the rows."""


class Body(NamedTuple):
    """A floating base, components (*batch)."""

    pose: Transform
    inertia: Inertia


class Machine(NamedTuple):
    """A model at a configuration: rows (k, *batch) without those of a floating base, and that base."""

    poses: Transform
    a: Array
    b: Array
    screws: Screw | Turn
    """``S = a w_z + b v_z``."""
    inertias: Inertia
    base: Body | None
    align: Mat
    """Alignment of all rows, those of the base included."""

    @property
    def batch(self) -> tuple[Any, ...]:
        """The batch axes."""
        return self.poses.p.x.shape[1:]


def machine(model: Model, q: Array) -> Machine:
    """The rows of a model at q (nq, *batch) with a full batch."""
    tree = model.topology
    rows = row.rows(model)
    bodies = row.inertias(model)
    poses = row.poses(model, rows, q)
    carried = row.row_inertias(tree, rows, bodies)
    if not tree.floats:
        return Machine(poses, rows.a, rows.b, _screws(tree, rows.a, rows.b), carried, None, rows.align)
    rest = slice(BASE, None)
    # the group element of a floating base is in its first row; its last row has the body frame
    joint = tree.base
    pose = row.transform(model.placements[:1])
    moved = pose @ joint.transform([q[i : i + 1] for i in range(joint.nq)])
    base = Body(row.select(moved, 0), row.select(bodies, 0))
    turned = _from_base(tree, rows, row.select(poses, rest))
    a, b = rows.a[rest], rows.b[rest]
    return Machine(turned, a, b, _screws(tree, a, b), row.select(carried, rest), base, rows.align)


def _screws(tree: Topology, a: Array, b: Array) -> Screw | Turn:
    """The screws of the rows, those of a floating base left out."""
    rest = slice(BASE if tree.floats else 0, None)
    return Turn() if np.all(tree.row_turns[rest] & ~tree.row_pitched[rest]) else Screw(a, b)


def _from_base(tree: Topology, rows: row.Rows, poses: Transform) -> Transform:
    """Poses of the rows on the base, relative to the base frame and not to that of its last row."""
    on_base = np.array([p == BASE - 1 for p in tree.row_parent[BASE:]], bool)
    A = row.select(rows.align, slice(BASE - 1, BASE))
    turned = Transform(A @ poses.R, A @ poses.p)
    mask = on_base.reshape(on_base.shape + (1,) * (poses.p.x.ndim - 1))
    return jax.tree.map(lambda x, y: jnp.where(mask, y, x), poses, turned)


def full(numbers: Any, *vectors: Array) -> list[Array]:
    """Vectors (k, *batch) with full batch axes, whichever of them and of ``numbers`` has a batch."""
    rank = vectors[0].ndim - 1
    batch = jnp.broadcast_shapes(*(x.shape[x.ndim - rank :] for x in (*vectors, *jax.tree.leaves(numbers))))
    return [jnp.broadcast_to(x, (x.shape[0], *batch)) for x in vectors]


def sweep(tree: Topology) -> Sweep:
    """The order of the rows of a model."""
    return Sweep(tree.row_parent[BASE:] - BASE if tree.floats else tree.row_parent)


def on_rows(tree: Topology, machine: Machine, wrenches: Array | None) -> tuple[Force | None, Force | None]:
    """External wrenches (n, 6, *batch) on the bodies, in the body frames, as (on the base, on the rows)."""
    if wrenches is None:
        return None, None
    F = Force(row.vector(wrenches), row.vector(wrenches, 3))
    own = row.select(F, slice(1, None)) if tree.floats else F
    last = tree.body_row[1:] if tree.floats else tree.body_row
    A = row.select(machine.align, last).T
    turned = Force(A @ own.f, A @ own.n)
    offset, count = (BASE, tree.rows - BASE) if tree.floats else (0, tree.rows)
    placed = row.spread(turned, last - offset, count)
    return (row.select(F, 0) if tree.floats else None), placed


def root_motion(model: Model, machine: Machine, v: Array) -> tuple[Motion, Motion]:
    """(twist, acceleration relative to free fall) of the carrier of the rows: the world, or a base with ``v'= 0``."""
    fall = jax.tree.map(lambda x: jnp.broadcast_to(x, machine.batch), row.gravity(model))
    if machine.base is None:
        return jax.tree.map(jnp.zeros_like, fall), fall
    return motion(v[:BASE]), to_child(machine.base.pose, fall)


def motion(v: Array) -> Motion:
    """A twist (6, *batch) by components."""
    return Motion(Vec(*(v[i] for i in range(3))), Vec(*(v[i] for i in range(3, 6))))


def stack(x: Motion | Force) -> Array:
    """A twist or wrench as an array (6, *batch)."""
    return jnp.stack([*x[0], *x[1]])


def group_biases(model: Model, v: Array) -> Array | None:
    """The difference between v' and the accelerations of the rows for group joints: (nv, *batch) or None."""
    tree = model.topology
    parts, here = [], False
    for body, joint in enumerate(tree.joints):
        if tree.mimics[body] is not None:
            continue
        part = v[tree.v_slice(body)]
        apart = body == 0 and tree.floats
        bias = None if apart else joint.bias(list(part))
        here = here or bias is not None
        parts.append(jnp.zeros_like(part) if bias is None else jnp.stack(bias))
    return jnp.concatenate(parts) if here else None


Step = Callable[[Any, Any], tuple[Any, Any]]


class Sweep:
    """The order of rows: ``parents[i] < i`` carries row i, -1 for a root."""

    def __init__(self, parents: np.ndarray):
        self.length = len(parents)
        self.parents = np.where(parents < 0, self.length, parents)
        self.is_chain = bool(np.all(parents == np.arange(self.length) - 1))

    def outward(self, step: Step, root: Any, xs: Any, batch: tuple[Any, ...]) -> Any:
        """The results of ``value, result = step(parent's value, x)``; the roots have the parent value ``root``."""
        if not self.length:
            return self._nothing(step, root, xs)
        if self.is_chain:
            return self._neighbor(step, root, xs, batch, reverse=False)[1]

        def one(values: Any, x: Any) -> tuple[Any, Any]:
            i, parent, x = x
            value, result = step(_get(values, parent), x)
            return _set(values, i, value), result

        places = jax.tree.map(lambda r: self._places(r, batch).at[self.length].set(r), root)
        return control_flow.scan(one, places, (np.arange(self.length), self.parents, xs))[1]

    def inward(self, step: Step, zero: Any, xs: Any, batch: tuple[Any, ...]) -> tuple[Any, Any]:
        """(sum over the roots, results) of ``value, result = step(sum of the children's values, x)``."""
        if not self.length:
            return jax.tree.map(lambda z: _full(z, batch), zero), self._nothing(step, zero, xs)
        if self.is_chain:
            return self._neighbor(step, zero, xs, batch, reverse=True)

        def one(sums: Any, x: Any) -> tuple[Any, Any]:
            i, parent, x = x
            value, result = step(_get(sums, i), x)
            return jax.tree.map(lambda s, v: s.at[parent].add(v), sums, value), result

        places = jax.tree.map(lambda z: self._places(z, batch), zero)
        sums, results = control_flow.scan(one, places, (np.arange(self.length), self.parents, xs), reverse=True)
        return _get(sums, self.length), results

    def down(self, values: Any) -> Any:
        """For each row the sum over the rows that carry it and itself, of components (rows, *batch)."""

        def add(i: Any, x: Any) -> Any:
            return jax.tree.map(lambda c: c.at[i].add(c[parents[i]]), x)

        parents = jnp.asarray(self.parents)
        return self._with_world(lambda first, x: control_flow.fori_loop(first, self.length, add, x), values)

    def up(self, values: Any) -> Any:
        """For each row the sum over the rows that it carries and itself, of components (rows, *batch)."""

        def add(k: Any, x: Any) -> Any:
            i = self.length - k
            return jax.tree.map(lambda c: c.at[parents[i]].add(c[i]), x)

        parents = jnp.asarray(self.parents)
        return self._with_world(lambda first, x: control_flow.fori_loop(1, self.length + 1 - first, add, x), values)

    def _with_world(self, f: Callable[[int, Any], Any], values: Any) -> Any:
        """``f(first row with a parent, values)``; with several roots, a row of zeros represents the world."""
        if np.sum(self.parents == self.length) == 1:
            return f(1, values)
        wide = jax.tree.map(lambda x: jnp.concatenate([x, jnp.zeros_like(x[:1])]), values)
        return jax.tree.map(lambda x: x[:-1], f(0, wide))

    def _neighbor(self, step: Step, start: Any, xs: Any, batch: tuple[Any, ...], reverse: bool) -> tuple[Any, Any]:
        def one(value: Any, x: Any) -> tuple[Any, Any]:
            value, result = step(value, x)
            return jax.tree.map(lambda v: _full(v, batch), value), result

        return control_flow.scan(one, jax.tree.map(lambda s: _full(s, batch), start), xs, reverse=reverse)

    def _nothing(self, step: Step, start: Any, xs: Any) -> Any:
        """Results of length zero for no rows: native functions do not support loops of length zero."""
        first = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), xs)
        result = jax.eval_shape(step, start, first)[1]
        return jax.tree.map(lambda r: jnp.zeros((0, *r.shape), r.dtype), result)

    def _places(self, like: Any, batch: tuple[Any, ...]) -> jax.Array:
        return jnp.zeros((self.length + 1, *_full_shape(like, batch)), like.dtype)


def _full_shape(x: Any, batch: tuple[Any, ...]) -> tuple[Any, ...]:
    """The shape of a value followed by the batch."""
    return (*x.shape[: max(x.ndim - len(batch), 0)], *batch)


def _full(x: Any, batch: tuple[Any, ...]) -> Any:
    return jnp.broadcast_to(x, _full_shape(x, batch))


def _get(tree: Any, i: Any) -> Any:
    return jax.tree.map(lambda x: x[i], tree)


def _set(tree: Any, i: Any, value: Any) -> Any:
    return jax.tree.map(lambda x, y: x.at[i].set(y), tree, value)
