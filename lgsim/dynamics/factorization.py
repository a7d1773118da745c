"""Global matrix form of the dynamics, and the square factorizations of the mass matrix and of its inverse.

All matrices are over rows, the k elementary screws of all joints, each with its own frame. Joints with several degrees
of freedom are rows with no mass between them. Blocks are linear first; the paper has angular first.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim._compile.spatial import Articulated, Force, Inertia, Motion, Transform, Vec
from lgsim.dynamics import matrix_form, validation
from lgsim.dynamics import rows as row
from lgsim.dynamics.articulated_body import Eliminated, eliminate
from lgsim.dynamics.row_tree import Sweep
from lgsim.dynamics.rows import Screw
from lgsim.lie import se3
from lgsim.multibody.model import Model
from lgsim.multibody.topology import WORLD


class GlobalMatrices(NamedTuple):
    """Global matrices: ``V = G S q'`` stacks the twists of the rows, ``M = S^T G^T J G S`` excludes the armature."""

    G: Array
    """``(1 - Gamma)^-1``, (..., 6 k, 6 k)."""
    Gamma: Array
    """``Ad_{f_pi}^-1`` where row p is the parent of row i, (..., 6 k, 6 k)."""
    S: Array
    """The screws in the row frames, (..., 6 k, k)."""
    J: Array
    """The inertias in the row frames, (..., 6 k, 6 k)."""
    P0: Array
    """``Ad_{f_0i}^-1`` where the world is the parent of row i, (..., 6 k, 6)."""


class SquareFactors(NamedTuple):
    """``M = factor diag(omega) factor^T`` and ``M^-1 = inverse_factor^T diag(1/omega) inverse_factor``."""

    factor: Array
    """``1 + S^T G^T Pi``, (..., k, k), unit upper triangular."""
    omega: Array
    """``S_i^T J^_i S_i`` + armature: the articulated inertia felt by row i, (..., k)."""
    inverse_factor: Array
    """``1 - S^T Y Pi``, (..., k, k), the inverse of ``factor``."""


def global_matrices(model: Model, q: Float[Array, "*batch nq"]) -> GlobalMatrices:
    """The global matrices of a tree: ``M = S^T G^T J G S`` without armature, gravity ``S^T G^T J G P0 V0'``.

    V0' is the acceleration of the world relative to free fall.

    Args:
        model: A model with k rows.
        q: Configuration.

    Raises:
        ValueError: q has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.

    Source: Ploen and Park 1999, (6)-(13); in a tree, the blocks of Gamma are at the parents of the rows.
    """
    return validation.call(_matrices, model, q=(q, "q"))


def square_factors(model: Model, q: Float[Array, "*batch nq"]) -> SquareFactors:
    """The square factors of the mass matrix (with armature) and of its inverse, from articulated-body inertias.

    ``Phi = Omega^-1 S^T J^``, ``Pi = Gamma^T Phi^T``, ``X^T = Gamma^T (1 - Phi^T S^T)``, ``Y = (1 - X^T)^-1``.

    Args:
        model: A model with k rows, which are its degrees of freedom.
        q: Configuration.

    Raises:
        ValueError: q has a wrong length, or a joint mimics another one.
        TypeError: dtypes differ, or are not float32 or float64.

    Source: Ploen and Park 1999, (39)-(41), Propositions 1 and 2.
    """
    if isinstance(model, Model) and model.topology.has_mimic:
        tree = model.topology
        follower = next(i for i, other in enumerate(tree.mimics) if other is not None)
        raise ValueError(
            f"model: expected no mimic joints, got {tree.joint_names[follower]!r}, which mimics another one: the mass"
            " matrix then has no such factors; use lgsim.mass_matrix"
        )
    return validation.call(_factors, model, q=(q, "q"))


def change_frames(matrices: GlobalMatrices, Q: Float[Array, "*batch k 4 4"]) -> GlobalMatrices:
    """The global matrices in other row frames: ``A = Q S``, ``L = Q G Q^-1``, ``D = Q^-T J Q^-1``.

    Args:
        matrices: Matrices in the present frames.
        Q: Poses of the present frames in the new ones.

    Source: Ploen and Park 1999, (15)-(17), (22), (25).
    """
    k = Q.shape[-3]
    there = diagonal(se3.Ad(Q))
    back = diagonal(se3.Ad(se3.inverse(Q)))
    if matrices.S.shape[-1] != k:
        raise ValueError(f"Q: expected {matrices.S.shape[-1]} poses, one per row, got {k}")
    return GlobalMatrices(
        there @ matrices.G @ back,
        there @ matrices.Gamma @ back,
        there @ matrices.S,
        back.mT @ matrices.J @ back,
        there @ matrices.P0,
    )


@jax.jit
def _matrices(model: Model, q: Array) -> GlobalMatrices:
    return assembled(model, *row_parts(model, q))


@jax.jit
def _factors(model: Model, q: Array) -> SquareFactors:
    rows, poses, inertias = row_parts(model, q)
    G, Gamma, S, _, _ = assembled(model, rows, poses, inertias)
    gain, omega = _articulated(model, rows, poses, inertias)
    identity = jnp.eye(len(omega), dtype=q.dtype)
    # Phi = Omega^-1 S^T J^, Pi = Gamma^T Phi^T, X^T = Gamma^T (1 - Phi^T S^T), Y = (1 - X^T)^-1, (39)-(41)
    PhiT = diagonal(gain[..., None])
    Pi = Gamma.mT @ PhiT
    XT = Gamma.mT - Pi @ S.mT
    Y = jax.scipy.linalg.solve_triangular(jnp.eye(len(XT), dtype=q.dtype) - XT, Pi, unit_diagonal=True)
    return SquareFactors(identity + S.mT @ (G.mT @ Pi), omega, identity - S.mT @ Y)


def row_parts(model: Model, q: Array) -> tuple[row.Rows, Transform, Inertia]:
    """The rows of a model, their poses in their parents at q (nq,), and the inertias that they carry."""
    rows = row.rows(model)
    return rows, row.poses(model, rows, q), row.row_inertias(model.topology, rows, row.inertias(model))


def assembled(model: Model, rows: row.Rows, poses: Transform, inertias: Inertia) -> GlobalMatrices:
    """The global matrices from the results of ``row_parts``, for one state."""
    parents = model.topology.row_parent
    k = len(parents)
    inward = se3.Ad(se3.inverse(matrix_form.homogeneous(poses)))
    carried, roots = np.flatnonzero(parents != WORLD), np.flatnonzero(parents == WORLD)
    # Gamma has Ad^-1 at (row, parent), G = (1 - Gamma)^-1
    Gamma = jnp.zeros((k, 6, k, 6), inward.dtype).at[carried, :, parents[carried], :].set(inward[carried])
    Gamma = Gamma.reshape(6 * k, 6 * k)
    identity = jnp.eye(6 * k, dtype=inward.dtype)
    G = jax.scipy.linalg.solve_triangular(identity - Gamma, identity, lower=True, unit_diagonal=True)
    P0 = jnp.zeros((k, 6, 6), inward.dtype).at[roots].set(inward[roots]).reshape(6 * k, 6)
    m, h, I = inertias  # noqa: E741  the symbol
    ten = jnp.stack([m, *h, I.xx, I.xy, I.yy, I.xz, I.yz, I.zz], axis=-1)
    S, J = matrix_form.own_screws(rows)[..., None], matrix_form.inertia_matrices(ten)
    return GlobalMatrices(G, Gamma, diagonal(S), diagonal(J), P0)


def _articulated(model: Model, rows: row.Rows, poses: Transform, inertias: Inertia) -> tuple[Array, Array]:
    """``J^_i S_i/Omega_i`` (k, 6) and ``Omega_i`` (k,): a unit force on row i accelerates it by 1/Omega_i."""
    one, zero = jnp.ones_like(rows.a[0]), jnp.zeros_like(rows.a[0])
    zero_vector = Vec(zero, zero, zero)

    def inward(children: Articulated, x: tuple) -> tuple[Articulated, Eliminated]:
        T, S, inertia, drive = x
        A = children + inertia.articulated
        left, _, taken = eliminate(A, Force(zero_vector, zero_vector), S, one, drive, Motion(zero_vector, zero_vector))
        return left.to_parent(T), taken

    nothing = jax.tree.map(lambda x: jnp.zeros_like(x[0]), inertias.articulated)
    order = Sweep(model.topology.row_parent)
    _, (gain, free) = order.inward(inward, nothing, (poses, Screw(rows.a, rows.b), inertias, model.armature), ())
    return jnp.stack([*gain.v, *gain.w], axis=-1), 1 / free


def diagonal(blocks: Array) -> Array:
    """The block-diagonal matrix (..., k m, k n) of blocks (..., k, m, n)."""
    *batch, k, m, n = blocks.shape
    i = np.arange(k)
    # two index arrays with a slice between: their axis comes first
    out = jnp.zeros((*batch, k, m, k, n), blocks.dtype).at[..., i, :, i, :].set(jnp.moveaxis(blocks, -3, 0))
    return out.reshape(*batch, k * m, k * n)
