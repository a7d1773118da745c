"""Constraint forces of closed loops, and the accelerations under them, by one articulated-body elimination.

The elimination also propagates the unit wrenches of the loop rows. In one frame, for each row i of the tree with
articulated inertia A and screw S, inward:

    U = A S,    d = 1/(S . U + armature),    u = x - S . P,    P' = P + U d u,

and the same for the wrenches of each loop row r, ``w_r = -S . P_r``. Then, without a Jacobian,

    G = J M^-1 J' = sum_i d_i w_i w_i',    c = rates at zero accelerations + sum_i d_i u_i w_i,

the loop forces solve ``G f = -c``, and one outward sweep with ``u + sum_r f_r w_r`` gives the accelerations. Dependent
rows make G singular; ``proximal_solution`` then converges to the forces of least norm.

Source: Featherstone, Rigid Body Dynamics Algorithms, 2008, chapter 8; Carpentier, Budhiraja, Mansard, Proximal and
sparse resolution of constrained dynamic equations, RSS 2021; Sathya, Carpentier, Constrained articulated body
dynamics algorithms, 2024.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim._compile.linalg import dense
from lgsim._compile.spatial import Motion
from lgsim._compile.xla import control_flow, fusion_barrier
from lgsim.dynamics import jacobian_products, linearization, row_tree
from lgsim.dynamics.loops import loop_ends, unit_wrenches
from lgsim.multibody.model import Model
from lgsim.multibody.topology import Topology

STEPS = 3
"""Proximal iterations: the relative error at an eigenvalue s of G is ``(mu/s)^STEPS``."""
POWER = 0.55
"""``mu`` is the mean eigenvalue times the rounding unit to this power; smaller eigenvalues mean redundant rows."""


def forward(model: Model, q: Array, v: Array, tau: Array, wrenches: Array | None) -> tuple[Array, Array]:
    """(accelerations (nv, *batch), forces of the loop rows (m, *batch)), without mimic joints."""
    q, v, tau = row_tree.full((model, wrenches), q, v, tau)
    tree = model.topology
    frozen = linearization.freeze(model, q, v, wrenches)
    # net forces at zero accelerations, summed inward
    A, _, _ = linearization.accelerations(tree, frozen, v, None)
    N = linearization.order(tree).up(linearization.net_forces(frozen, A))
    ends = loop_ends.loop_ends(model, q, v, frozen, A, jnp.zeros_like(v))
    # U, d and u of the elimination, and w_r of the loop rows
    left = jacobian_products.eliminate(model, frozen, fusion_barrier(tau - N.power(frozen.S)))
    w = unit_wrenches.shares(tree, ends, frozen.S, left.gain)
    # G f = -c with G = sum_i d_i w_i w_i' and c = rates + sum_i d_i u_i w_i
    c = ends.rates + dense.sum_rows(w * left.free[:, None])
    f = proximal_solution(prepared(mobility(w, left.give)), -c)
    return pushed(tree, frozen.S, left, w, left.free, f), f


def pushed(tree: Topology, S: Motion, left: jacobian_products.Eliminated, w: Array, free: Array, f: Array) -> Array:
    """Accelerations (nv, *batch) under loop forces f (m, *batch), with the components w along the rows of the tree."""
    # outward with u + sum_r f_r w_r
    free = fusion_barrier(free + left.give * dense.sum_rows(jnp.swapaxes(w, 0, 1) * f[:, None]))
    return jacobian_products.substitute(tree, S, left.gain, free)[0]


def correction(model: Model, q: Array) -> Callable[[Array], Array]:
    """The function r -> ``M^-1 J' f`` (nv, *batch), ``J M^-1 J' f = r``, at q (nq, *batch), without mimic joints."""
    zero_rates = jnp.zeros((model.nv, *q.shape[1:]), q.dtype)
    tree = model.topology
    frozen = linearization.freeze(model, q, zero_rates, None)
    A, _, _ = linearization.accelerations(tree, frozen, zero_rates, None)
    ends = loop_ends.loop_ends(model, q, zero_rates, frozen, A, zero_rates)
    left = jacobian_products.eliminate(model, frozen, zero_rates)
    w = unit_wrenches.shares(tree, ends, frozen.S, left.gain)
    solver = prepared(mobility(w, left.give))
    return lambda r: pushed(tree, frozen.S, left, w, zero_rates, proximal_solution(solver, r))


def mobility(w: Array, give: Array) -> Array:
    """``G = J M^-1 J'`` (m, m, *batch)."""
    return dense.mirrored(dense.product(jnp.swapaxes(w * give[:, None], 0, 1), w))


class Mobility(NamedTuple):
    """``G = J M^-1 J'``, factored for solutions.

    Attributes:
        G: (m, m, *batch), positive semidefinite.
        root: The lower triangle W with ``(G + mu)^-1 = W' W``.
        mu: Eigenvalues below this are redundant, (*batch).
    """

    G: Array
    root: Array
    mu: Array


def prepared(G: Array) -> Mobility:
    """G (m, m, *batch) with the inverse of ``G + mu`` in factors, mu being small relative to the mean eigenvalue."""
    m = len(G)
    mean = sum((G[i, i] for i in range(1, m)), G[0, 0]) / m
    mu = mean * float(jnp.finfo(G.dtype).eps ** POWER)
    eye = np.eye(m, dtype=bool).reshape((m, m) + (1,) * (G.ndim - 2))
    return Mobility(G, dense.inverse_root(fusion_barrier(G + jnp.where(eye, mu[None, None], 0))), mu)


def proximal_solution(mobility: Mobility, r: Array) -> Array:
    """The least-norm solution f of ``G f = r``, for r (m, *batch) or columns (m, n, *batch) in the range of G.

    By the iteration ``f += (G + mu)^-1 (r - G f)``. With dependent rows no inverse matrix can replace it: its large
    entries would lose the digits of the residual ``r - G f``. Then forces along eigenvectors far below mu, which
    amplify the rounding errors of r, are removed: ``f -= (mu (G + mu)^-1)^3 f``.
    """
    times = dense.product if r.ndim == mobility.G.ndim else dense.times
    mu = mobility.mu.reshape((1,) * (r.ndim - mobility.mu.ndim) + mobility.mu.shape)

    def solved(r: Array) -> Array:
        return times(dense.transpose(mobility.root), fusion_barrier(times(mobility.root, r)))

    def step(_: Any, f: Array) -> Array:
        left = fusion_barrier(r - times(mobility.G, f))
        return fusion_barrier(f + solved(left))

    def weaken(_: Any, f: Array) -> Array:
        return fusion_barrier(mu * solved(f))

    # STEPS proximal iterations, then removal of components far below mu
    f = control_flow.fori_loop(0, STEPS - 1, step, fusion_barrier(solved(r)))
    return fusion_barrier(f - control_flow.fori_loop(0, STEPS, weaken, f))
