"""What loops demand and what they carry: residuals, Jacobian, rank, forces, and torques of the driven joints."""

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
    """Torques of driven joints and forces of loops that give an acceleration.

    Attributes:
        tau: Joint forces (..., nv), N m or N, zero for joints that are not driven.
        loops: Forces of the loops' rows (..., m), as ``loop_forces``.
        missing: What joints that are not driven lack (..., nv), N m or N: zero to rounding where the driven joints can
            give the acceleration at all.
    """

    tau: Array
    loops: Array
    missing: Array


def loop_residual(model: Model, q: Float[Array, "*batch nq"]) -> Float[Array, "*batch rows"]:
    """What is zero where the loops are closed, loop by loop in the order of ``model.loop_names``.

    For a joint the position of frame b in frame a (m), in b's axes, and the entries of the rotation that vanish (rad to
    first order), along the directions that the joint forbids; of a rod ``(p . p - L^2)/(2 L)``, m; of a coupling
    ``q_b - f(q_a)``.

    Args:
        model: The machine, m rows of loops.
        q: Configuration.

    Raises:
        ValueError: q has a wrong length, or the machine has no loops.
        TypeError: dtypes differ, or are not float32 or float64.

    Source: Featherstone, Rigid Body Dynamics Algorithms, 2008, section 8.2.
    """
    _check_loops(model)
    return validation.call(_residual, model, q=(q, "q"))


def loop_jacobian(model: Model, q: Float[Array, "*batch nq"]) -> Float[Array, "*batch rows nv"]:
    """J with ``J v = 0`` for velocities that keep the loops closed: the derivative of ``loop_residual`` where it is 0.

    Its rows are ``T' (V_b - V_a)``, relative twists of the ends in b's axes at b's origin.

    Args:
        model: The machine, m rows of loops.
        q: Configuration.

    Raises:
        ValueError, TypeError: as ``loop_residual``.

    Source: Featherstone, Rigid Body Dynamics Algorithms, 2008, (8.5).
    """
    _check_loops(model)
    return validation.call(loop_rows, model, q=(q, "q"))


def loop_rank(model: Model, q: Float[Array, "*batch nq"]) -> Int[Array, "*batch"]:
    """How many of the loops' rows are independent at q: ``nv - loop_rank`` is the mobility of the machine there.

    The rank of ``J M^-1 J'``, eigenvalues below the root of the unit of rounding, times the largest one, taken as zero.

    Args:
        q: Configuration, closed.

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
    """The forces f of the loops' rows that keep them closed: ``M a + h = tau + J' f``, of least norm.

    The force of a row acts on b by ``T f`` in b's axes at b's origin, and on a by the opposite wrench at that place.

    Args:
        q: Configuration, as for ``forward_dynamics``.
        v: Velocity.
        tau: Joint forces.
        wrenches: Wrenches on bodies, as for ``forward_dynamics``.

    Returns:
        N for rows that forbid slides, N m for turns, in the order of ``loop_residual``. Where rows depend on each other
        many forces do the same; these are of least norm.

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
    """Torques of the driven joints that give an acceleration, and the loops' forces: ``S tau + J' f = ID(q, v, a)``.

    Where driven joints share what one of them could do, the torques are those of least norm; then so are the forces.

    Args:
        q: Closed configuration.
        v: Velocity along the loops.
        a: Its derivative, which keeps them closed.
        actuated: Names of the driven joints.

    Returns:
        Torques, forces, and what is missing: not zero where these joints cannot give that acceleration.

    Raises:
        ModelError: there is no such joint.
        ValueError, TypeError: as ``loop_residual``.
    """
    _check_loops(model)
    driven = np.zeros(model.nv, bool)
    if isinstance(actuated, str):
        raise ValueError(f"actuated: expected a list of names of joints, got the string {actuated!r}")
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
    # among the forces that serve the other joints those that leave the least to the driven ones
    share = held @ left
    # beside what the driven joints hold at all: rounding alone is no share
    most, own = (jax.lax.stop_gradient(jnp.sum(x * x)) ** 0.5 for x in (held, share))
    f = f + left @ (jnp.linalg.pinv(share, rtol=rtol * most / jnp.where(own > 0, own, 1)) @ (needed[marks] - held @ f))
    rest = needed - Jt @ f
    return ActuatedForces(jnp.where(marks, rest, 0), f, jnp.where(marks, 0, rest))


def _check_loops(model: Any) -> None:
    check_model(model)
    if not model.topology.loops:
        raise ValueError("model: has no loops; ModelBuilder.add_loop closes one")
