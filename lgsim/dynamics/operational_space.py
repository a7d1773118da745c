"""Operational space dynamics of a frame: operational-space inertia and bias."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.dynamics import validation
from lgsim.dynamics.forces import bias_forces
from lgsim.dynamics.inverse_mass import solve_mass_matrix
from lgsim.dynamics.jacobians import frame_jacobian, frame_jacobian_rate
from lgsim.dynamics.kinematics import frame_index
from lgsim.multibody.loops.refusal import refuse_loops
from lgsim.multibody.model import Model, check_model


class OperationalSpace(NamedTuple):
    """``inertia V' + bias = F``: the twist V of a frame under a wrench F on it, with free joints."""

    inertia: Array
    """``(J M^-1 J^T)^-1``, (..., 6, 6); not finite where J has a rank below six."""
    inverse: Array
    """``J M^-1 J^T``, (..., 6, 6): the frame's acceleration by a wrench, defined everywhere."""
    bias: Array
    """``inertia (J M^-1 h - J' v)``, (..., 6), gravity included."""


def operational_space(
    model: Model, q: Float[Array, "*#batch nq"], v: Float[Array, "*#batch nv"], frame: str | int
) -> OperationalSpace:
    """The operational space dynamics of a frame (end effector): ``Lambda V' + bias = F``, V and F in the frame's axes.

    The twist of the frame obeys it under joint forces ``tau = J^T F``, or under an external wrench F at tau = 0.

    Args:
        q: Configuration.
        v: Velocity.
        frame: Name of the frame, or its index in ``model.frame_names``; static.

    Raises:
        ModelError: the model has loops.
        ValueError: an array has a wrong length, or the frame does not exist.
        TypeError: dtypes differ, or are not float32 or float64.

    Source: Khatib, A unified approach for motion and force control of robot manipulators: the operational space
    formulation, IEEE Journal on Robotics and Automation 3(1), 1987, with Ploen and Park 1999, Proposition 2, for M^-1.
    """
    check_model(model)
    refuse_loops(
        model.topology,
        "operational_space",
        "loops also carry part of the load on a frame",
        "multiply frame_jacobian with forward_dynamics_derivatives(...).dtau, the inverse mass matrix along the loops",
    )
    return validation.call(_core(frame_index(model.topology, frame)), model, q=(q, "q"), v=(v, "v"))


@cache
def _core(frame: int) -> Callable[[Model, Array, Array], OperationalSpace]:
    @jax.jit
    def of_frame(model: Model, q: Array, v: Array) -> OperationalSpace:
        J = frame_jacobian(model, q, frame)
        rate = frame_jacobian_rate(model, q, v, frame)
        right = jnp.concatenate([J, bias_forces(model, q, v)[None]])
        solved = solve_mass_matrix(model, jnp.broadcast_to(q, (7, model.nq)), right)
        inverse = J @ solved[:6].T
        inverse = 0.5 * (inverse + inverse.T)
        inertia = jnp.linalg.inv(inverse)
        inertia = 0.5 * (inertia + inertia.T)
        return OperationalSpace(inertia, inverse, inertia @ (J @ solved[6] - rate @ v))

    return of_frame
