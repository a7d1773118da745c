"""The linear systems of linearly implicit steps, reduced to the degrees of freedom.

In the chart of a step, ``q' = dexpinv_{-sigma}(v)`` and ``M(q) v' = tau(t, q, v) - h(q, v)`` have the Jacobian

    J = [[-ad_v/2, 1], [M^-1 B_q, M^-1 B_v]],    B_q = d(tau - inverse dynamics)/dq,    B_v the same by v,

and ``(1 - s J) (x, y) = (r, w)`` becomes, with ``E = 1 + s ad_v/2``,

    (M - s B_v - s^2 B_q E^-1) y = M w + s B_q E^-1 r,    x = E^-1 (r + s y):

This takes one factorization of size nv, which has the zeros of the tree's mass matrix if forces act joint by joint.
Source: Hairer, Wanner, Solving ODEs II, IV.7, for equations of second order; the derivatives of inverse dynamics are
those of ``linearization.py``.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from lgsim._compile.linalg import dense, elimination
from lgsim._compile.xla import fusion_barrier, native_with_derivatives
from lgsim.dynamics import linearization
from lgsim.lie.ad_functions import HALF_RESOLVENT
from lgsim.multibody import block_diagonal
from lgsim.multibody.model import Model
from lgsim.multibody.topology import Topology


class StepSystem(NamedTuple):
    """Factors of the linear systems of linearly implicit steps at one state.

    Attributes:
        acceleration: v' (nv,), rad/s^2 or m/s^2.
        acceleration_rate: Partial derivative of v' with respect to time (nv,), rad/s^3 or m/s^3.
        mass: The mass matrix M (nv, nv).
        pull: ``s B_q E^-1`` (nv, nv).
        turn: ``E^-1`` by kinds of joints that are groups.
        factors: Factors of ``M - s B_v - s^2 B_q E^-1`` (nv, nv).
    """

    acceleration: Array
    acceleration_rate: Array
    mass: Array
    pull: Array
    turn: block_diagonal.Blocks
    factors: Array


@native_with_derivatives
def step_system(
    model: Model,
    q: Array,
    v: Array,
    tau: Array,
    wrenches: Array | None,
    force_derivatives: tuple[Array, Array, Array],
    s: Array,
) -> StepSystem:
    """The system of steps with ``s = h gamma`` from the state (q, v).

    Args:
        q: Configuration (nq,).
        v: Velocity (nv,), rad/s or m/s.
        tau: All joint forces (nv,), N m or N.
        wrenches: External wrenches on the bodies (bodies, 6), in the body frames, or None.
        force_derivatives: Derivatives of the joint forces, equivalent forces of the wrenches included: along the
            tangent at q (nv, nv), with respect to v (nv, nv) and to time (nv,).
        s: The time s, s.
    """
    by_q, by_v, by_time = force_derivatives
    a, dq, dv, M, factors = linearization.forward_by(model, q, v, tau, wrenches, elimination.factor, elimination.solve)
    turn = block_diagonal.of_ad(model.topology, HALF_RESOLVENT, -s[None] * v)
    pull = fusion_barrier(s[None, None] * _times_blocks(model.topology, by_q - dq, turn))
    system = fusion_barrier(M - s[None, None] * (by_v - dv + pull))
    return StepSystem(a, elimination.solve(factors, by_time), M, pull, turn, elimination.factor(system))


def solve_step(
    topology: Topology, system: StepSystem, s: Array, r: Array, w: Array, force: Array
) -> tuple[Array, Array]:
    """(x, y) with ``(1 - s J) (x, y) = (r, w + s M^-1 force)``.

    Args:
        system: Result of ``step_system``.
        s: The time s, s.
        r: Right-hand side of the configuration (nv,).
        w: Right-hand side of the velocity (nv,).
        force: Additional joint forces (nv,).
    """
    return _solve(topology)(system, s, r, w, force)


@cache
def _solve(topology: Topology) -> Any:
    def core(system: StepSystem, s: Array, r: Array, w: Array, force: Array) -> tuple[Array, Array]:
        right = dense.times(system.mass, w) + dense.times(system.pull, r) + s[None] * force
        y = elimination.solve(system.factors, fusion_barrier(right))
        return block_diagonal.applied(topology, system.turn, (r + s[None] * y)[:, None])[:, 0], y

    return native_with_derivatives(core)


def _times_blocks(topology: Topology, A: Array, blocks: block_diagonal.Blocks) -> Array:
    """The product of a matrix (nv, nv, *batch) with a block-diagonal matrix on its right."""
    back = block_diagonal.applied(topology, block_diagonal.transposed(blocks), jnp.swapaxes(A, 0, 1))
    return jnp.swapaxes(back, 0, 1)
