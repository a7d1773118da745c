"""The equation of motion of a central body with fixed feet, by an inward recursion from the feet.

All quantities are in the axes of the central body, about its current origin. Spatial accelerations A along a chain then
differ only by its joints, and wrenches are passed on unchanged.

The motion that a chain allows at its inner end is a set of pairs (A, F) of the acceleration there and the wrench into
the chain:

    A = X z + x,    F = Y z + y,    z being six free numbers.

A foot starts with X = 0 in the directions in which it is held and Y = 0 in those in which it is free; the ground is not
modeled as a big mass. A body adds ``F += I A + p``. A joint subtracts from A the rate that is free of its own force,
``A -= S s + c``, ``S . F + armature s = 0``. After the last joint ``Y X^-1`` is the articulated-body inertia of the
leg. It is infinite in directions in which a singular leg cannot move; no earlier step divides by it, and bodies may
be massless.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim._compile.xla import control_flow
from lgsim.dynamics.jacobians import screws_about_base
from lgsim.dynamics.kinematics import forward_kinematics, frame_accelerations, frame_twists
from lgsim.dynamics.workspace.feet import Foot
from lgsim.dynamics.workspace.support_legs import BASE, SupportLegs
from lgsim.lie import se3
from lgsim.multibody.inertia import rotational_inertia
from lgsim.multibody.model import Model

Twist = Float[Array, " 6"]
Matrix = Float[Array, "6 6"]
_Chain = tuple[Array, Array, Array, Array]
"""(X, Y, x, y) of a chain."""


class _Bodies(NamedTuple):
    """The bodies that the legs consist of (bodies,), in the axes of the central body about its origin."""

    inertia: Float[Array, "bodies 6 6"]
    force: Float[Array, "bodies 6"]
    """The wrench p at zero acceleration, gravity included, of the body and all that it carries besides the leg."""
    drift: Float[Array, "bodies 6"]
    """The acceleration if neither the leg joints nor the central body accelerate."""


class _Row(NamedTuple):
    """Data of each row of each leg, (feet, rows, ...), from the foot inward."""

    screw: Float[Array, "feet rows 6"]
    armature: Float[Array, "feet rows"]
    inertia: Float[Array, "feet rows 6 6"]
    force: Float[Array, "feet rows 6"]
    drift: Float[Array, "feet rows 6"]


class _Passed(NamedTuple):
    """Recovery of the parameters of a chain from those after a joint: ``(z, s) = w-part + start``."""

    mirror: Float[Array, "feet rows 7"]
    start: Float[Array, "feet rows 7"]


class WorkspaceDynamics(NamedTuple):
    """``inertia V' + bias = F``: the twist V of the central body under a wrench F, with fixed feet and no joint forces.

    In the axes of the central body about its origin, N and N m, m/s^2 and rad/s^2.

    Attributes:
        inertia: Lambda, (6, 6): the articulated-body inertia of the whole model; not finite where a leg is singular.
        bias: p, (6,), gravity included.
        reach: X of each foot, (feet, 6, 6): the accelerations of the central body that its leg allows are
            ``reach z + x``. Its rank is that of the leg.
        held: Wrenches of each foot on the central body, (feet, 6, 6), per component in the foot's frame.
        screws: Screw of each degree of freedom, (6, nv).
        passed: Recovery of the joint accelerations, see ``outward``.
        start: x of each foot, (feet, 6).
    """

    inertia: Matrix
    bias: Twist
    reach: Float[Array, "feet 6 6"]
    held: Float[Array, "feet 6 6"]
    screws: Float[Array, "6 nv"]
    passed: _Passed
    start: Float[Array, "feet 6"]

    def outward(self, legs: SupportLegs, A: Twist) -> tuple[Float[Array, " nv"], Float[Array, "feet 6"]]:
        """(accelerations of the leg joints (nv,), wrenches on the feet (feet, 6)) for V' = A, without joint forces.

        The wrenches act from the ground on the feet, in the axes of the feet; the other accelerations are zero.
        """
        dofs, _, _ = legs.rows
        w = jax.vmap(jnp.linalg.solve)(self.reach, (A[None] - self.start)[..., None])[..., 0]

        def step(w: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
            u = jax.vmap(_unmirrored)(*row, w)
            return u[:, :6], u[:, 6]

        rows = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), tuple(self.passed))
        z, rates = control_flow.scan(step, w, rows, reverse=True)
        is_row = (dofs[..., None] == np.arange(legs.tree.nv)).astype(A.dtype)
        return jnp.sum(is_row * rates.T[..., None], axis=(0, 1)), -z


def workspace_dynamics(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    legs: SupportLegs,
    feet: Sequence[Foot],
    foot_accelerations: Float[Array, "feet 6"],
    other: Float[Array, " nv"],
) -> WorkspaceDynamics:
    """The equation of motion of the central body of a model with fixed feet, O(n).

    Args:
        q: Configuration.
        v: Velocity.
        legs: ``support_legs(model.topology, frames of the feet)``.
        foot_accelerations: Derivatives of the foot twists in the held directions, (feet, 6), in the axes of the feet.
        other: Accelerations (nv,) of the joints that are in no leg; the others are ignored.

    Source: Wendlandt, Control and simulation of multibody systems, 1997, chapter 4; Lilly, Efficient dynamic
    simulation of robotic mechanisms, 1993, for the articulated inertia of a chain on a big base.
    """
    with jax.default_matmul_precision("highest"):
        poses = forward_kinematics(model, q)
        to_base = se3.inverse(poses[0])
        T = jnp.broadcast_to(to_base, poses.shape) @ poses
        bodies = _bodies(model, q, v, legs, T, to_base, other)
        # the rows of a joint are consecutive: per-joint data go with the first of them
        dofs, carriers, first = legs.rows
        real = dofs >= 0
        screws = screws_about_base(model, q)
        parents = np.array([0, *legs.tree.parents[1:]])[carriers]
        # inertia and wrench p per body; the drift enters as a difference between body and parent
        rows = _Row(
            _where(real, screws.T[dofs]),
            jnp.where(real, model.armature[dofs], jnp.ones_like(model.armature[dofs])),
            _where(first, bodies.inertia[carriers]),
            _where(first, bodies.force[carriers]),
            _where(first, bodies.drift[carriers] - bodies.drift[parents]),
        )
        # at the foot: A = X z + x, F = Y z + y with X = 0 where it is held, Y = 0 where it is free
        frames = T[np.array(legs.frames)]
        on_body = se3.Ad_dual(se3.inverse(frames))
        held = np.array([foot.held for foot in feet])
        X = jnp.where(held[:, None, :], jnp.zeros_like(on_body), se3.Ad(frames))
        Y = jnp.where(held[:, None, :], on_body, jnp.zeros_like(on_body))
        x = _product(se3.Ad(frames), jnp.where(held, foot_accelerations, jnp.zeros_like(foot_accelerations)))
        # inward to the central body; the leg then acts as the articulated inertia Y X^-1
        (X, Y, x, y), passed = _inward(rows, X, Y, x)
        inertia = Y @ jnp.linalg.inv(X)
        inertia = 0.5 * (inertia + jnp.swapaxes(inertia, 1, 2))
        of_legs = y - _product(inertia, x)
        armature = jnp.diag(model.armature[:BASE])
        return WorkspaceDynamics(
            bodies.inertia[0] + armature + jnp.sum(inertia, axis=0),
            bodies.force[0] + jnp.sum(of_legs, axis=0),
            X,
            jnp.where(held[:, None, :], on_body, jnp.zeros_like(on_body)),
            screws,
            passed,
            x,
        )


def _bodies(
    model: Model, q: Array, v: Array, legs: SupportLegs, T: Array, to_base: Array, other: Float[Array, " nv"]
) -> _Bodies:
    """Inertias, wrenches and drifts of the central body and the leg bodies, with all that they carry."""
    n = legs.tree.bodies
    T = T[:n]
    inverse = se3.Ad(se3.inverse(T))
    inertia = jnp.swapaxes(inverse, 1, 2) @ _inertias(model.inertias) @ inverse
    V = _product(se3.Ad(T), frame_twists(model, q, v)[:n])
    is_other = np.isin(np.arange(legs.tree.nv), legs.other_dofs)
    moving = jnp.where(is_other, other, jnp.zeros_like(other))
    drift = _product(se3.Ad(T), frame_accelerations(model, q, v, moving)[:n])
    fall = jnp.concatenate([to_base[:3, :3] @ model.gravity, jnp.zeros_like(model.gravity)])
    carried = _product(inertia, drift - drift[legs.carrier] - fall[None])
    force = carried - jax.vmap(se3.ad_dual_action)(V, _product(inertia, V))
    whole = (legs.carrier == np.arange(n)[:, None]).astype(force.dtype)
    return _Bodies(jnp.tensordot(whole, inertia, 1), whole @ force, drift)


def _inertias(parameters: Float[Array, "bodies 10"]) -> Float[Array, "bodies 6 6"]:
    """The matrices of bodies, ``(m v + w x h, h x v + I w)``, in and about their frames."""
    m, h = parameters[:, 0], parameters[:, 1:4]
    zero = jnp.zeros_like(m)
    H = jnp.stack(
        [
            jnp.stack([zero, -h[:, 2], h[:, 1]], -1),
            jnp.stack([h[:, 2], zero, -h[:, 0]], -1),
            jnp.stack([-h[:, 1], h[:, 0], zero], -1),
        ],
        axis=1,
    )
    M = m[:, None, None] * jnp.eye(3, dtype=m.dtype)[None]
    top, bottom = jnp.concatenate([M, -H], -1), jnp.concatenate([H, rotational_inertia(parameters)], -1)
    return jnp.concatenate([top, bottom], axis=1)


def _inward(rows: _Row, X: Array, Y: Array, x: Array) -> tuple[_Chain, _Passed]:
    """((X, Y, x, y) after the last joints of all legs, the data to recover each row)."""

    def step(chain: _Chain, row: _Row) -> tuple[_Chain, tuple[Array, Array]]:
        X, Y, x, y = chain
        Y = Y + row.inertia @ X
        y = y + row.inertia @ x + row.force
        # the force balance of the joint in (z, s): S . F + armature s = 0
        force = jnp.concatenate([row.screw @ Y, row.armature[None]])
        size = jnp.sum(force * force)
        start = -force * (row.screw @ y) / size
        mirror = force.at[6].add(jnp.sqrt(size)) / jnp.sqrt(size)
        XS = jnp.concatenate([X, -row.screw[:, None]], axis=1)
        x = x + XS @ start - row.drift
        y = y + Y @ start[:6]
        X = _mirrored(XS, mirror)
        Y = _mirrored(jnp.concatenate([Y, jnp.zeros_like(y)[:, None]], axis=1), mirror)
        return (X, Y, x, y), (mirror, start)

    def one(chain: _Chain, row: _Row) -> tuple[_Chain, tuple[Array, Array]]:
        return jax.vmap(step)(chain, row)

    start = (X, Y, x, jnp.zeros_like(x))
    chain, (mirror, begin) = control_flow.scan(one, start, jax.tree.map(lambda r: jnp.swapaxes(r, 0, 1), rows))
    return chain, _Passed(jnp.swapaxes(mirror, 0, 1), jnp.swapaxes(begin, 0, 1))


def _mirrored(M: Float[Array, "6 7"], mirror: Float[Array, " 7"]) -> Matrix:
    """``M H`` without its last column, H = 1 - 2 m m^T / m.m: the six of seven parameters free of joint force."""
    along = M @ mirror * (2 / jnp.sum(mirror * mirror))
    return (M - along[:, None] * mirror[None])[:, :6]


def _unmirrored(mirror: Float[Array, " 7"], start: Float[Array, " 7"], w: Float[Array, " 6"]) -> Float[Array, " 7"]:
    """The seven parameters (z, s) from the six."""
    full = jnp.concatenate([w, jnp.zeros_like(w[:1])])
    return full - mirror * (2 * jnp.sum(mirror * full) / jnp.sum(mirror * mirror)) + start


def _product(A: Float[Array, "n 6 6"], x: Float[Array, "n 6"]) -> Float[Array, "n 6"]:
    """``A_i x_i``."""
    return jnp.sum(A * x[:, None, :], axis=-1)


def _where(flags: np.ndarray, x: Array) -> Array:
    """The entries of x (feet, rows, ...) where the flags are set, zero elsewhere."""
    return jnp.where(flags.reshape(flags.shape + (1,) * (x.ndim - 2)), x, jnp.zeros_like(x))
