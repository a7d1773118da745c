"""A characteristic length of the model, to compare lengths with angles."""

from __future__ import annotations

from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.dynamics import rows as row
from lgsim.dynamics.loops.loop_residuals import Placed
from lgsim.multibody.model import Model
from lgsim.multibody.topology import Topology


def machine_length(model: Model, at: Placed) -> Array:
    """The characteristic length of a model (*batch), m, to which loop gaps are relative.

    This is the largest extent, along an axis, of the body origins and loop ends. It is ``sqrt(tr(I) / (2 m))`` of a
    body with mass m and inertia I about its origin if that is larger, as for bodies that all rotate about one point.
    """
    points = [at.poses.p, *(end.p for ends in at.ends.values() for end in (ends.a, ends.b))]
    p = jax.tree.map(lambda *parts: jnp.concatenate(parts), *points)
    extents = [_largest(c) + _largest(-c) for c in p]
    bodies = row.inertias(model)
    trace = bodies.I.xx + bodies.I.yy + bodies.I.zz
    heavy = bodies.m > 0
    size = _largest(jnp.where(heavy, jnp.sqrt(jnp.where(heavy, 0.5 * trace, 0) / jnp.where(heavy, bodies.m, 1)), 0))
    found = reduce(jnp.maximum, extents, jnp.broadcast_to(size, extents[0].shape))
    return jnp.where(found > 0, found, 1)


def turning(tree: Topology) -> np.ndarray:
    """True where a velocity component is an angular velocity, rad/s, False for m/s, (nv,)."""
    own = tree.row_source == np.arange(tree.rows)
    found = np.ones(tree.nv, bool)
    found[tree.row_v[own]] = tree.row_turns[own]
    return found


def _largest(x: Array) -> Array:
    return reduce(jnp.maximum, list(x))
