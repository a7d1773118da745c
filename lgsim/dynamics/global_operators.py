"""Velocity-dependent operators of Ploen and Park's global equations, and the tip selection operator, as matrices."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.dynamics import matrix_form, validation
from lgsim.dynamics import rows as row
from lgsim.dynamics.factorization import assembled, diagonal, row_parts
from lgsim.dynamics.kinematics import frame_index
from lgsim.lie import se3
from lgsim.multibody.model import Model, check_model
from lgsim.multibody.topology import WORLD


class VelocityOperators(NamedTuple):
    """Operators of the velocity forces ``S^T G^T (J G ad_Sq Gamma + ad_V J) G S q'``; ``ad_V`` is the paper's ad_V*."""

    ad_Sq: Array
    """``diag(-ad_{S_i q'_i})``, (..., 6 k, 6 k)."""
    ad_V: Array
    """``diag(-ad*_{V_i})`` of the rows' twists ``V = G S q'``, (..., 6 k, 6 k)."""


def velocity_operators(model: Model, q: Float[Array, "*#batch nq"], v: Float[Array, "*#batch nv"]) -> VelocityOperators:
    """The operators of the velocity forces over the rows of ``global_matrices``.

    ``V' = G S q'' + G ad_Sq Gamma V + G P0 V0'`` and ``F = G^T (J V' + ad_V J V)`` with ``V = G S q'``, for joints
    that are sequences of screws. For a joint that is a group, the rows are taken at its present pose; the difference
    between their second derivatives and the joint acceleration is ``lgsim.multibody.joint.Joint.bias``.

    Args:
        model: A model with k rows.
        q: Configuration.
        v: Velocity.

    Raises:
        ValueError: an array has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.

    Source: Ploen and Park 1999, (7), (8), (12), with the blocks linear first.
    """
    return validation.call(_operators, model, q=(q, "q"), v=(v, "v"))


@jax.jit
def _operators(model: Model, q: Array, v: Array) -> VelocityOperators:
    rows, poses, inertias = row_parts(model, q)
    m = assembled(model, rows, poses, inertias)
    rates = row.speeds(model, v)
    screws = matrix_form.own_screws(rows) * rates[:, None]
    twists = (m.G @ (m.S @ rates)).reshape(-1, 6)
    return VelocityOperators(-diagonal(se3.ad(screws)), -diagonal(se3.ad_dual(twists)))


def tip_operator(model: Model, frame: str) -> Float[Array, "6 six_k"]:
    """The operator ``P_t`` of a frame, (6, 6 k): ``P_t G S`` is its body Jacobian, ``P_t^T`` maps its wrenches.

    Args:
        model: A model with k rows.
        frame: The name of a frame on a body, or of the body itself.

    Raises:
        ValueError: the frame does not exist, or is fixed to the world.

    Source: Ploen and Park 1999, (9), (14), with the frame in the role of the paper's n + 1.
    """
    check_model(model)
    tree = model.topology
    index = frame_index(tree, frame)
    body, pose = index, jnp.eye(4, dtype=model.dtype)
    if index >= tree.bodies:
        body, pose = tree.frame_bodies[index - tree.bodies], model.frames[index - tree.bodies]
    if body == WORLD:
        raise ValueError(f"frame: expected a moving frame, got {frame!r}, which is fixed to the world")
    last = int(tree.body_row[body])
    align = row.select(row.rows(model).align, last).T
    own = jnp.eye(4, dtype=model.dtype).at[:3, :3].set(jnp.stack([jnp.stack(list(r)) for r in align]))
    block = se3.Ad(se3.inverse(own @ pose))
    return jnp.zeros((6, 6 * tree.rows), model.dtype).at[:, 6 * last : 6 * last + 6].set(block)
