"""Constraints of closed kinematic loops: residuals, Jacobian, rank, forces, and torques of actuated joints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from lgsim._compile.xla import batch_last
from lgsim.dynamics import linearization, row_tree, validation
from lgsim.dynamics.inverse_dynamics import newton_euler
from lgsim.dynamics.loops import closed_jacobians, loop_ends, restoration
from lgsim.dynamics.loops.closed_dynamics import closed_dynamics
from lgsim.multibody.model import Model, check_model
from lgsim.support.messages import unknown_name


class ActuatedForces(NamedTuple):
    """Torques of actuated joints and loop forces for a given acceleration.

    Attributes:
        tau: Joint forces (..., nv), N m or N, zero for joints that are not actuated.
        loops: Forces of the loop rows (..., m), as ``loop_forces``.
        missing: Residual forces of the joints that are not actuated (..., nv), N m or N: zero to rounding if the
            actuated joints can produce the acceleration.
    """

    tau: Array
    loops: Array
    missing: Array


def loop_residual(model: Model, q: Float[Array, "*batch nq"]) -> Float[Array, "*batch rows"]:
    """Residuals of the closed kinematic loops, zero where they are closed, in the order of ``model.loop_names``.

    For a joint these are components of the position of frame b in frame a (m), in the axes of b, and of the rotation
    (rad to first order), along the constrained directions. For a rod it is ``(p . p - L^2)/(2 L)``, m; for a
    coupling ``q_b - f(q_a)``.

    Args:
        model: A model with m loop rows.
        q: Configuration.

    Raises:
        ValueError: q has a wrong length, or the model has no loops.
        TypeError: dtypes differ, or are not float32 or float64.

    Source: Featherstone, Rigid Body Dynamics Algorithms, 2008, section 8.2.
    """
    _check_loops(model)
    return validation.call(_residual, model, q=(q, "q"))


def loop_jacobian(model: Model, q: Float[Array, "*batch nq"]) -> Float[Array, "*batch rows nv"]:
    """The loop constraint Jacobian J, ``J v = 0`` on closed loops: the derivative of ``loop_residual`` at closure.

    Its rows are ``T' (V_b - V_a)``, relative twists of the ends in the axes of b at the origin of b.

    Args:
        model: A model with m loop rows.
        q: Configuration.

    Raises:
        ValueError, TypeError: as ``loop_residual``.

    Source: Featherstone, Rigid Body Dynamics Algorithms, 2008, (8.5).
    """
    _check_loops(model)
    return validation.call(loop_rows, model, q=(q, "q"))


def loop_rank(model: Model, q: Float[Array, "*batch nq"]) -> Int[Array, "*batch"]:
    """The number of independent loop rows at q; ``nv - loop_rank`` is the mobility of the closed chain there.

    This is the rank of ``J M^-1 J'``; eigenvalues below the square root of the rounding unit, relative to the largest
    one, count as zero.

    Args:
        q: Closed configuration.

    Raises:
        ValueError, TypeError: as ``loop_residual``.
    """
    _check_loops(model)
    return validation.call(_rank, model, q=(q, "q"))


def loop_forces(
    model: Model,
    q: Float[Array, "*#batch nq"],
    v: Float[Array, "*#batch nv"],
    tau: Float[Array, "*#batch nv"],
    wrenches: Float[Array, "*#batch bodies 6"] | None = None,
) -> Float[Array, "*batch rows"]:
    """The constraint forces f of the loop rows: ``M a + h = tau + J' f``, of least norm.

    The force of a row acts on b by ``T f`` in the axes of b at its origin, and on a by the opposite wrench there.

    Args:
        q: Configuration, as for ``forward_dynamics``.
        v: Velocity.
        tau: Joint forces.
        wrenches: External wrenches on the bodies, as for ``forward_dynamics``.

    Returns:
        N for rows that constrain a translation, N m for a rotation, in the order of ``loop_residual``. If rows depend
        on each other the forces are not unique; these have the least norm.

    Raises:
        ValueError, TypeError: as ``loop_residual``.
    """
    _check_loops(model)
    named = {"q": (q, "q"), "v": (v, "v"), "tau": (tau, "v"), "wrenches": (wrenches, "wrenches")}
    return validation.call(_forces, model, **named)


def actuated_inverse_dynamics(
    model: Model,
    q: Float[Array, "*#batch nq"],
    v: Float[Array, "*#batch nv"],
    a: Float[Array, "*#batch nv"],
    actuated: Sequence[str],
) -> ActuatedForces:
    """Inverse dynamics of closed chains: actuated torques and loop forces, ``S tau + J' f = ID(q, v, a)``.

    With redundant actuation the torques have the least norm; the loop forces then have the least norm too.

    Args:
        q: Closed configuration.
        v: Velocity that keeps the loops closed.
        a: Acceleration that keeps the loops closed.
        actuated: Names of the actuated joints.

    Returns:
        Torques, forces, and the residual, which is not zero if these joints cannot produce the acceleration.

    Raises:
        ModelError: a joint does not exist.
        ValueError, TypeError: as ``loop_residual``.
    """
    _check_loops(model)
    driven = np.zeros(model.nv, bool)
    if isinstance(actuated, str):
        raise ValueError(f"actuated: expected a list of joint names, got the string {actuated!r}; write [{actuated!r}]")
    for name in actuated:
        if name not in model.joint_names:
            raise ValueError(unknown_name("actuated: expected names of joints", name, model.joint_names))
        driven[model.v_slices[name]] = True
    marks = tuple(driven.tolist())

    def one(model: Model, q: Array, v: Array, a: Array) -> ActuatedForces:
        return _actuated(model, q, v, a, marks)

    return validation.call(one, model, q=(q, "q"), v=(v, "v"), a=(a, "v"))


@batch_last
def _residual(model: Model, q: Array) -> Array:
    (q,) = row_tree.full(model, q)
    return restoration.residual(model, q)


@batch_last
def loop_rows(model: Model, q: Array) -> Array:
    """``loop_jacobian`` of one state, without checks."""
    (q,) = row_tree.full(model, q)
    tree = model.topology
    zero_rates = jnp.zeros((tree.rows, *q.shape[1:]), q.dtype)
    frozen = linearization.freeze(model, q, jnp.zeros((tree.nv, *q.shape[1:]), q.dtype), None)
    A, _, _ = linearization.accelerations(tree, frozen, zero_rates, None)
    return closed_jacobians.jacobian(model, frozen, loop_ends.loop_ends(model, q, zero_rates, frozen, A, zero_rates))


@batch_last
def _mobility(model: Model, q: Array) -> Array:
    (q,) = row_tree.full(model, q)
    return closed_jacobians.mobility(model, q)


@jax.jit
def _rank(model: Model, q: Array) -> Array:
    return jnp.linalg.matrix_rank(_mobility(model, q), rtol=float(jnp.finfo(q.dtype).eps) ** 0.5)


def _forces(model: Model, q: Array, v: Array, tau: Array, wrenches: Any) -> Array:
    return closed_dynamics(model, q, v, tau, wrenches)[1]


@batch_last
def _inverse(model: Model, q: Array, v: Array, a: Array) -> Array:
    return newton_euler(model, q, v, a)


def _actuated(model: Model, q: Array, v: Array, a: Array, driven: tuple[bool, ...]) -> ActuatedForces:
    marks = np.array(driven)
    needed, Jt = _inverse(model, q, v, a), loop_rows(model, q).T
    free, held = Jt[~marks], Jt[marks]
    rtol = float(jnp.finfo(q.dtype).eps ** 0.5)
    back = jnp.linalg.pinv(free, rtol=rtol)
    f = back @ needed[~marks]
    left = jnp.eye(len(f), dtype=q.dtype) - back @ free
    # among the loop forces that balance the other joints, those with the least actuated torques
    share = held @ left
    # relative to the actuated torques: values at rounding level are no torque
    most, own = (jax.lax.stop_gradient(jnp.sum(x * x)) ** 0.5 for x in (held, share))
    f = f + left @ (jnp.linalg.pinv(share, rtol=rtol * most / jnp.where(own > 0, own, 1)) @ (needed[marks] - held @ f))
    rest = needed - Jt @ f
    return ActuatedForces(jnp.where(marks, rest, 0), f, jnp.where(marks, 0, rest))


def _check_loops(model: Any) -> None:
    check_model(model)
    if not model.topology.loops:
        raise ValueError("model: expected a model with loops, got one without; ModelBuilder.add_loop closes one")
