"""The mass matrix by the composite rigid-body algorithm."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim._compile.xla import batch_last, fusion_barrier
from lgsim.dynamics import row_tree, validation
from lgsim.dynamics.composite import Composite, along_base, composite
from lgsim.dynamics.kinematics import rest
from lgsim.dynamics.row_tree import full
from lgsim.dynamics.rows import mimic_ratios
from lgsim.multibody.model import Model
from lgsim.multibody.topology import Topology


def mass_matrix(model: Model, q: Float[Array, "*batch nq"]) -> Float[Array, "*batch nv nv"]:
    """The mass matrix M(q), ``v^T M v / 2`` being the kinetic energy: ``M_ij = S_i . (I_i S_j)`` if j carries i.

    I_i is the composite inertia of all that joint i carries. The armature adds to the diagonal. With mimic joints, the
    matrix is that of the independent coordinates, ``G^T M G``. It is exactly symmetric.

    Args:
        q: Configuration.

    Returns:
        kg m^2, kg m or kg, depending on the joints.

    Raises:
        ValueError: q has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.

    Source: Walker and Orin, Efficient dynamic computer simulation of robotic mechanisms, Journal of Dynamic Systems,
    Measurement, and Control 104(3), 1982, method 3; Ploen and Park 1999, (41).
    """
    return validation.call(_core, model, q=(q, "q"))


@batch_last
def _core(model: Model, q: Array) -> Array:
    return _composite_mass_matrix(model, q)


def _composite_mass_matrix(model: Model, q: Array) -> Array:
    """M (nv, nv, *batch) of q (nq, *batch)."""
    (q,) = full(model, q)
    m = row_tree.machine(model, q)
    c = composite(model, m)
    tree = model.topology
    M = _of_rows(tree, c) if m.base is None else _with_base(tree, c)
    M = _reduced(model, M)
    diagonal = np.eye(tree.nv, dtype=bool).reshape(tree.nv, tree.nv, *(1,) * (q.ndim - 1))
    return M + (jnp.where(diagonal, model.armature[:, None], 0) if tree.nv > 1 else model.armature[:, None])


def _of_rows(tree: Topology, c: Composite) -> Array:
    """``S_j . (I_i S_i)`` where row j carries row i, mirrored, and 0 elsewhere, by rows."""
    lower = np.tril(tree.row_carried)[rest(tree), rest(tree)]
    column = (1,) * (c.screws.v.x.ndim - 1)
    F = jax.tree.map(lambda x: x[:, None], c.momenta)
    S = jax.tree.map(lambda x: x[None], c.screws)
    pairs = fusion_barrier(F.power(S))
    if len(lower) == 1:
        return pairs
    mirrored = jnp.where(lower.reshape(lower.shape + column), pairs, pairs.swapaxes(0, 1))
    either = lower | lower.T
    return mirrored if either.all() else jnp.where(either.reshape(either.shape + column), mirrored, 0)


def _with_base(tree: Topology, c: Composite) -> Array:
    """The matrix with the base coordinates first: ``e_i . (I_j S_j)`` is a component of I_j S_j in the base frame."""
    base = jnp.stack([jnp.stack([*F.f, *F.n]) for F in along_base(c.total)])
    if tree.rows == row_tree.BASE:
        return base
    side = jnp.stack([*c.momenta.f, *c.momenta.n])
    return jnp.concatenate(
        [jnp.concatenate([base, side], 1), jnp.concatenate([side.swapaxes(0, 1), _of_rows(tree, c)], 1)]
    )


def _reduced(model: Model, M: Array) -> Array:
    """``G^T M G`` of a matrix over all rows, with mimic joints."""
    tree = model.topology
    if not tree.has_mimic:
        return M
    ratio = mimic_ratios(model)
    M = M * ratio[:, None] * ratio[None]
    own = tree.row_source == np.arange(tree.rows)
    for _ in range(2):
        out = M[np.flatnonzero(own)]
        for follower in np.flatnonzero(~own):
            out = out.at[int(tree.row_v[follower])].add(M[follower])
        M = out.swapaxes(0, 1)
    return M
