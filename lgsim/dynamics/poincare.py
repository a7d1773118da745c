"""Poincare's equations: Lagrange's equations in quasi-velocities, for all joint types and without charts."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.dynamics import validation
from lgsim.dynamics.energy import potential_energy
from lgsim.dynamics.mass_matrix import mass_matrix
from lgsim.multibody.joint import GroupJoint
from lgsim.multibody.model import Model


class PoincareEquations(NamedTuple):
    """``M p' + C p + F = Q_p`` and ``q' = V p``; Q_p are the forces dual to p, those of ``inverse_dynamics``."""

    V: Array
    """The vector fields of the quasi-velocities, (..., nq, nv)."""
    M: Array
    """The mass matrix, armature included, (..., nv, nv)."""
    C: Array
    """``d(Mp)/dq V - 1/2 [d(Mp)/dq V]^T - [sum_j p_j X_j^T] V^-T M``, (..., nv, nv)."""
    F: Array
    """``V^T dU/dq``, U being the gravitational potential energy, (..., nv)."""


def poincare_equations(model: Model, q: Float[Array, "*#batch nq"], p: Float[Array, "*#batch nv"]) -> PoincareEquations:
    """The matrices of Poincare's equations in the quasi-velocities p, the velocities v of lgsim.

    ``d/dt dL/dp_k - sum_ij c^i_jk (dL/dp_i) p_j - v_k(L) = Q_k``. The fields v_k are those of the joints, d/dq_k for
    coordinates and left-invariant fields for groups, so that the c are constant: ``structure_coefficients``.

    Args:
        q: Configuration.
        p: Quasi-velocities.

    Raises:
        ValueError: an array has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.

    Source: Kwatny and Blankenship 1995, (38)-(41), (53). In print (53b) has the opposite sign and (53c) the inverse of
    V^T.
    """
    return validation.call(_equations, model, q=(q, "q"), p=(p, "v"))


def structure_coefficients(model: Model) -> np.ndarray:
    """Structure coefficients ``c[k, i, j]`` of the joint fields, ``[v_i, v_j] = sum_k c[k, i, j] v_k``, (nv, nv, nv).

    Source: Kwatny and Blankenship 1995, (38).
    """
    tree = model.topology
    c = np.zeros((tree.nv, tree.nv, tree.nv))
    for joint, start, mimic in zip(tree.joints, tree.v_starts, tree.mimics, strict=False):
        if isinstance(joint, GroupJoint) and mimic is None:
            for i, j, k, value in joint.brackets:
                c[start + k, start + i, start + j] += value
                c[start + k, start + j, start + i] -= value
    return c


@jax.jit
def _equations(model: Model, q: Array, p: Array) -> PoincareEquations:
    V = jax.vmap(lambda e: model.rate(q, e), out_axes=1)(jnp.eye(model.nv, dtype=q.dtype))
    # the armature of a group adds inertia without momentum: it does not rotate with the child
    bare = model.replace(armature=jnp.zeros_like(model.armature))
    M = mass_matrix(bare, q)
    D = jax.jacfwd(lambda q: mass_matrix(bare, q) @ p)(q) @ V
    # the columns of X_j are [v_j, v_k], those of V^-1 X_j their coordinates
    coordinates = jnp.tensordot(jnp.asarray(structure_coefficients(model), q.dtype), p, axes=([1], [0]))
    C = D - 0.5 * D.T - coordinates.T @ M
    F = V.T @ jax.grad(lambda q: potential_energy(model, q))(q)
    return PoincareEquations(V, M + jnp.diag(model.armature), C, F)
