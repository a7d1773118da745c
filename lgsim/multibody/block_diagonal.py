"""Block-diagonal matrices with one block for each joint, such as functions of ad in the Lie algebras of joints."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.lie.ad_functions import AdFunction, matrix_on_motion
from lgsim.multibody.configuration import kinds
from lgsim.multibody.joint import GroupJoint
from lgsim.multibody.topology import Topology

Blocks = list[Array]
"""Blocks (d, d, joints, *batch) for each kind of joint whose configuration space is a group, d its dimension."""


def of_ad(topology: Topology, phi: AdFunction, s: Array) -> Blocks:
    """``phi(ad_{-s})`` of a tangent vector s (nv, *batch); phi must be 1 at zero.

    The sign is that of right translations: ``dexpinv`` gives the derivative of ``difference(q0, q)`` along the
    tangent at q, ``dexp`` that of ``retract(q, s)`` with respect to s, and ``Ad(exp)`` maps tangents at q to those at
    the result.
    """
    found = []
    for joint, places in _groups(topology):
        A, B = matrix_on_motion(phi, -joint.twist([s[p] for p in places]))
        zero = jnp.zeros_like(A.r0.x)
        rows = [[*a, *b] for a, b in zip(A, B, strict=True)] + [[zero] * 3 + [*a] for a in A]
        at = [3 * row.turns + row.axis for row in joint.rows]
        found.append(jnp.stack([jnp.stack([rows[i][j] for j in at]) for i in at]))
    return found


def chained(first: Blocks, *others: Blocks) -> Blocks:
    """The product of block-diagonal matrices."""
    for other in others:
        first = [_product(a, b) for a, b in zip(first, other, strict=True)]
    return first


def transposed(blocks: Blocks) -> Blocks:
    """The transposed blocks."""
    return [jnp.swapaxes(block, 0, 1) for block in blocks]


def applied(topology: Topology, blocks: Blocks, X: Array) -> Array:
    """The product with a matrix (nv, columns, *batch)."""
    groups = list(_groups(topology))
    if not groups:
        return X
    changed = [(places.ravel(), _rows(block, X, places)) for (_, places), block in zip(groups, blocks, strict=True)]
    if all(np.all(np.diff(at) == 1) for at, _ in changed):
        for at, rows in changed:
            X = jax.lax.dynamic_update_slice_in_dim(X, rows, at[0], 0)
        return X
    # one gather: XLA compiles a scatter to a loop on CPU
    taken = np.concatenate([at for at, _ in changed])
    others = np.setdiff1d(np.arange(topology.nv), taken)
    order = np.argsort(np.concatenate([others, taken]))
    return jnp.concatenate([X[others], *(rows for _, rows in changed)])[order]


def _rows(block: Array, X: Array, places: np.ndarray) -> Array:
    """The product of the blocks of a kind with its rows of X (d, joints), in their order."""
    taken = jnp.moveaxis(jnp.stack([X[p] for p in places]), 2, 1)
    out = sum(block[:, k][:, None] * taken[k][None] for k in range(len(places)))
    return jnp.moveaxis(out, 1, 2).reshape(places.size, *X.shape[1:])


def matrix(topology: Topology, blocks: Blocks, like: Array) -> Array:
    """The dense matrix (nv, nv, *batch), with the batch of a vector (nv, *batch)."""
    eye = jnp.eye(topology.nv, dtype=like.dtype).reshape((topology.nv,) * 2 + (1,) * (like.ndim - 1))
    return applied(topology, blocks, eye + 0 * like[:1, None])


def derivative(topology: Topology, f: Callable[[Array], Array], dtype: jnp.dtype, mixed: bool) -> Array:
    """The derivative (nv, nv) at zero of a map of tangent vectors (nv,) that acts on each joint separately.

    It takes one forward pass, or as many as the largest joint has degrees of freedom if joints mix theirs.
    """
    zero = jnp.zeros(topology.nv, dtype)
    if not mixed:
        return jnp.diag(jax.jvp(f, (zero,), (jnp.ones_like(zero),))[1])
    slices = [topology.v_slice(i) for i in range(len(topology.joints))]
    lengths = [part.stop - part.start for part in slices]
    owner = np.repeat(np.arange(len(lengths)), lengths)
    place = np.concatenate([np.arange(n) for n in lengths])
    seeds = jnp.asarray(np.arange(place.max() + 1)[:, None] == place[None], dtype)
    slopes = jax.vmap(jax.linearize(f, zero)[1])(seeds)
    return jnp.where(owner[:, None] == owner[None], slopes.T[:, place], 0)


def _groups(topology: Topology) -> list[tuple[GroupJoint, np.ndarray]]:
    return [(joint, places) for joint, _, places in kinds(topology) if isinstance(joint, GroupJoint)]


def _product(a: Array, b: Array) -> Array:
    return sum((a[:, k][:, None] * b[k][None] for k in range(1, len(b))), a[:, 0][:, None] * b[0][None])
