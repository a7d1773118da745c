"""Propagation of the unit wrenches of loops inward through the articulated-body inertias of a tree.

A wrench on b acts on the rows of the tree that carry only b, the opposite one on a on those that carry only a; their
sum acts on the rows that carry both. Each row i takes ``w = e - S . Q`` from a wrench Q, e being the force of the loop
on the coordinate of the row, and passes ``Q + U d w`` on. The paths of all loops of one kind are followed together,
step by step: the cost is that of the path lengths and not of all rows for each loop.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim._compile.spatial import Force, Motion, Vec
from lgsim._compile.xla import control_flow, fusion_barrier
from lgsim.dynamics.loops import loop_ends
from lgsim.dynamics.loops.loop_ends import Ends, KindEnds
from lgsim.multibody.loops.loop import FrameLoop
from lgsim.multibody.topology import Topology


class Ways(NamedTuple):
    """The rows of the tree on the paths of loops of one kind, inward; the row count means none.

    Attributes:
        apart: Rows that carry only one end, (steps, 2, g), of a, then b.
        common: Rows that carry both ends, (steps, g).
    """

    apart: np.ndarray
    common: np.ndarray


def shares(tree: Topology, ends: Ends, S: Motion, gain: Force) -> Array:
    """The component w of each loop row (m) along each row of the tree (k), (k, m, *batch).

    Args:
        S: The screws of the rows (k, *batch).
        gain: ``U d`` of the rows (k, *batch).
    """
    S, gain = (jax.tree.map(lambda x: jnp.concatenate([x, jnp.zeros_like(x[:1])]), x) for x in (S, gain))
    taken = [_taken_by_kind(at, ends, number, S, gain) for number, at in enumerate(loop_ends.kinds(tree))]
    flat = jnp.concatenate([*(part for parts in taken for part in parts), jnp.zeros_like(taken[0][0][:1])])
    return flat[table(tree)]


def _taken_by_kind(at: KindEnds, ends: Ends, number: int, S: Motion, gain: Force) -> list[Array]:
    """The components along the rows of the paths, for loops of one kind, in the order of ``table``."""
    way = ways(at)
    g, r = len(at.loops), at.kind.rows
    batch = S.v.x.shape[1:]
    pushes: tuple[Any, Any] = (None, None)
    if number in ends.frames:
        T = jax.tree.map(lambda *x: jnp.stack(x, axis=1), *ends.frames[number].wrenches)  # (g, r, *batch)
        Q = jax.tree.map(lambda x: jnp.stack([x, -x]), T)  # reaction on a and b: opposite to the acting wrench
    else:
        nothing = Vec(*(jnp.zeros((2, g, r, *batch), S.v.x.dtype),) * 3)
        Q = Force(nothing, nothing)
        sizes = jnp.stack([-ends.slopes[number][1], jnp.ones((g, *batch), S.v.x.dtype)])
        own = at.joint_rows
        apart = (way.apart == own[None]).astype(sizes.dtype)
        both = (way.common[:, None] == own[None]).astype(sizes.dtype)
        pushes = (_wide(apart, batch) * sizes[None], jnp.sum(_wide(both, batch) * sizes[None], axis=1))
    Q, first = _go(S, gain, way.apart, Q, pushes[0])
    Q = jax.tree.map(lambda x: x[0] + x[1], Q)
    _, second = _go(S, gain, way.common, Q, pushes[1])
    return [part.reshape((-1, *batch)) for part in (first, second)]


def _go(S: Motion, gain: Force, rows: np.ndarray, Q: Force, push: Array | None) -> tuple[Force, Array]:
    """(wrenches (..., r, *batch) at the ends of the paths, components taken (steps, ..., r, *batch))."""

    def step(Q: Force, x: tuple) -> tuple[Force, Array]:
        S, g, *e = x
        w = -Q.power(S)
        w = fusion_barrier(w + e[0] if e else w)
        return fusion_barrier(Q + g * w), w

    axis = rows.ndim
    xs = tuple(jax.tree.map(lambda x: jnp.expand_dims(x[rows], axis), x) for x in (S, gain))
    if push is not None:
        xs = (*xs, jnp.expand_dims(push, axis))
    if not len(rows):
        return Q, jnp.zeros((0, *Q.f.x.shape), Q.f.x.dtype)
    return control_flow.scan(step, Q, xs)


@lru_cache(maxsize=64)
def ways(at: KindEnds) -> Ways:
    """The paths of loops of one kind."""
    tree = at.tree
    if isinstance(at.kind, FrameLoop):
        carries = at.carries
    else:
        carries = np.array([[_carriers(tree, int(row)) for row in end] for end in at.joint_rows])
    a, b = carries
    apart = [[_inward(one & ~other, tree.rows) for one, other in zip(*pair, strict=True)] for pair in ((a, b), (b, a))]
    common = [_inward(one & other, tree.rows) for one, other in zip(a, b, strict=True)]
    return Ways(_padded(apart, tree.rows), _padded([common], tree.rows)[:, 0])


@lru_cache(maxsize=64)
def table(tree: Topology) -> np.ndarray:
    """Index of each tree row and loop row in the components of all kinds, (k, m); the last component is zero."""
    start, entries = 0, []
    for at in loop_ends.kinds(tree):
        way, r = ways(at), at.kind.rows
        for rows in (way.apart, way.common):
            places = start + np.arange(rows.size * r).reshape(*rows.shape, r)
            start += rows.size * r
            for at_step in np.ndindex(rows.shape):
                if rows[at_step] < tree.rows:
                    loop = at_step[-1]
                    entries += [(rows[at_step], at.rows[i, loop], places[(*at_step, i)]) for i in range(r)]
    out = np.full((tree.rows, tree.loop_rows), start)
    for row, column, place in entries:
        out[row, column] = place
    return out


def _carriers(tree: Topology, row: int) -> np.ndarray:
    """True for each row that carries a given row, or is it, (k,)."""
    out = np.zeros(tree.rows, bool)
    while row >= 0:
        out[row] = True
        row = int(tree.row_parent[row])
    return out


def _inward(carries: np.ndarray, none: int) -> list[int]:
    return [int(row) for row in np.flatnonzero(carries)[::-1] if row < none]


def _padded(ends: list[list[list[int]]], none: int) -> np.ndarray:
    """(steps, ends, loops), padded with ``none`` after the end of a path."""
    steps = max((len(way) for end in ends for way in end), default=0)
    out = np.full((steps, len(ends), len(ends[0])), none)
    for i, end in enumerate(ends):
        for j, way in enumerate(end):
            out[: len(way), i, j] = way
    return out


def _wide(mask: np.ndarray, batch: tuple[Any, ...]) -> np.ndarray:
    return mask.reshape(mask.shape + (1,) * len(batch))
