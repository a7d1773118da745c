"""Composite rigid-body inertias: everything that a row carries, as one body, in one common frame.

With a floating base, that frame is the base frame. Otherwise it has world axes and its origin at the first row,
which is close to the robot. So no digits are lost far from the world origin.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from lgsim._compile.spatial import Force, Inertia, Motion, Sym, Transform, Vec
from lgsim._compile.xla import fusion_barrier
from lgsim.dynamics import row_tree
from lgsim.dynamics.kinematics import identity, world_poses
from lgsim.multibody.model import Model


class Composite(NamedTuple):
    """Composite inertias of the rows of a model (k, *batch), in the common frame."""

    screws: Motion
    """``S_i``."""
    momenta: Force
    """``I_i S_i``: the momentum of all that row i carries, moving at unit rate of row i."""
    total: Inertia
    """Inertia of the whole model, the base included, (*batch)."""
    axes: Transform
    """The pose of the common frame in the world, (*batch)."""


def composite(model: Model, m: row_tree.Machine) -> Composite:
    """Compute the poses outward and the composite inertias ``I_i + sum I_j`` inward."""
    here = identity(m)
    # the common frame: that of a floating base, else world axes at the first row
    axes = here if m.base is None else m.base.pose
    if m.base is None:
        origin = Vec(*(jnp.broadcast_to(x[0], m.batch) for x in m.poses.p))
        axes = Transform(here.R, origin)
        here = Transform(here.R, -origin)
    world = world_poses(model, m, here)
    screws = fusion_barrier(_space_screws(m, world))

    # inward: I_i = own inertia + sum of the children, and the momentum I_i S_i
    def inward(children: Inertia, x: tuple) -> tuple[Inertia, Force]:
        inertia, T, S = x
        total = fusion_barrier(children + fusion_barrier(inertia.transformed(T)))
        return total, fusion_barrier(total.momentum(S))

    zero = jnp.zeros(m.batch, m.a.dtype)
    nothing = Inertia(zero, Vec(zero, zero, zero), Sym(*(zero,) * 6))
    total, momenta = row_tree.sweep(model.topology).inward(inward, nothing, (m.inertias, world, screws), m.batch)
    if m.base is not None:
        total = total + m.base.inertia
    return Composite(screws, momenta, total, axes)


def _space_screws(m: row_tree.Machine, world: Transform) -> Motion:
    """The screw of each row in the frame of ``world``, about its origin: ``(b z + p x a z, a z)``."""
    z = Vec(world.R.r0.z, world.R.r1.z, world.R.r2.z)
    w = z * m.a
    return Motion(z * m.b + world.p.cross(w), w)


def along_base(total: Inertia) -> list[Force]:
    """``I e_i`` of the six unit twists of a base in its own frame: the columns of its 6x6 inertia matrix."""
    zero = jnp.zeros_like(total.h.x)
    m, (x, y, z), I = zero + total.m, total.h, total.I  # noqa: E741
    linear = [
        Force(Vec(m, zero, zero), Vec(zero, z, -y)),
        Force(Vec(zero, m, zero), Vec(-z, zero, x)),
        Force(Vec(zero, zero, m), Vec(y, -x, zero)),
    ]
    crossed = [Vec(zero, -z, y), Vec(z, zero, -x), Vec(-y, x, zero)]
    return linear + [Force(f, n) for f, n in zip(crossed, I.matrix, strict=True)]


def all_momenta(model: Model, m: row_tree.Machine, c: Composite) -> Force:
    """``I_i S_i`` of all rows of the model, those of a floating base first."""
    if m.base is None:
        return c.momenta
    base = jax.tree.map(lambda *x: jnp.stack(x), *along_base(c.total))
    if model.topology.rows == row_tree.BASE:
        return base
    return jax.tree.map(lambda x, y: jnp.concatenate([x, y]), base, c.momenta)


def stacked(F: Motion | Force) -> Array:
    """Twists or wrenches of rows as an array (6, k, *batch)."""
    return jnp.stack([*F[0], *F[1]])
