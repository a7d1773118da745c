"""What makes lengths and angles of a machine comparable: a length of it."""

from __future__ import annotations

from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.dynamics import rows as row
from lgsim.dynamics.loops.misfits import Placed
from lgsim.multibody.model import Model
from lgsim.multibody.topology import Topology


def machine_length(model: Model, at: Placed) -> Array:
    """The length of a machine (*batch), m, beside which the gaps of its loops are large or small.

    The largest extent, along an axis, of the origins of bodies and of the ends of loops; or ``sqrt(tr(I) / (2 m))`` of
    a body of mass m and inertia I about its origin where that is more, as of bodies that all turn about one point.
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
    """Whether each velocity number is a turn, rad/s, and not a slide, m/s, (nv,)."""
    own = tree.row_source == np.arange(tree.rows)
    found = np.ones(tree.nv, bool)
    found[tree.row_v[own]] = tree.row_turns[own]
    return found


def _largest(x: Array) -> Array:
    return reduce(jnp.maximum, list(x))
