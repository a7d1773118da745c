"""Workspace control of legged robots: feedback makes the central body behave as a body with six degrees of freedom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim._compile.xla import number_field
from lgsim.dynamics.inverse_dynamics import inverse_dynamics
from lgsim.dynamics.kinematics import forward_kinematics, frame_twists
from lgsim.dynamics.momentum import center_of_mass, center_of_mass_velocity
from lgsim.dynamics.workspace.feet import Foot
from lgsim.dynamics.workspace.support_legs import BASE, SupportLegs, support_legs
from lgsim.dynamics.workspace.workspace_dynamics import WorkspaceDynamics, workspace_dynamics
from lgsim.integrators.method import Number
from lgsim.lie import quaternion
from lgsim.lie.conversions import quaternion_from_matrix
from lgsim.multibody.model import Model
from lgsim.multibody.topology import ModelError
from lgsim.simulation.controls.control_laws import Configuration, ControlLaw, Force, Gain, Velocity
from lgsim.simulation.controls.wrench_split import LeastNorm, WrenchSplit
from lgsim.support.check import is_traced

Pose = Float[Array, " 7"]
PoseTarget = Pose | Callable[[Number], tuple[Pose, Float[Array, " 6"], Float[Array, " 6"]]]
"""A constant pose (p, quaternion), or ``target(t)`` with pose, body twist and its derivative."""
SINGULAR = 1e-6
"""A leg counts as singular where the smallest singular value of its Jacobian is below this fraction of the largest."""


class WorkspaceForces(NamedTuple):
    """The output of a ``Workspace`` controller at a state.

    Attributes:
        tau: Joint forces (nv,), zero on the floating base, N m or N.
        feet: Ground wrenches on the feet (feet, 6), in their frames, N and N m.
        acceleration: The acceleration V' of the central body (6,), in the convention of ``v``.
        accelerations: The accelerations of all degrees of freedom (nv,) if the feet do not move.
        missing: The wrench (6,) on the central body that the feet cannot provide, in its axes; zero if they can.
        inertia: Lambda (6, 6).
        bias: p (6,).
    """

    tau: Force
    feet: Float[Array, "feet 6"]
    acceleration: Float[Array, " 6"]
    accelerations: Velocity
    missing: Float[Array, " 6"]
    inertia: Float[Array, "6 6"]
    bias: Float[Array, " 6"]


class Workspace(ControlLaw):
    """Feedback on the pose of the central body of a legged robot, whose feet are assumed fixed to the ground.

    The central body obeys ``Lambda V' + p = F`` (``workspace_dynamics``), F being the wrench that the joint forces
    ``tau = -J_i^T F_i`` of the legs exert on it, ``F = sum_i F_i``. V' is chosen such that

        c'' = c_d'' + damping (c_d' - c') + stiffness (c_d - c),                            (4.13), (4.14)
        w'  = w_d' - spin (w - w_d) - attitude e,     (e_0, e) = +- q_d^-1 q with e_0 >= 0,        (4.26)

    c being a point of the body. Both rows are exact if only the ground touches the robot, and only at its feet. The
    errors then obey ``c_e'' + damping c_e' + stiffness c_e = 0`` and near zero, e being half of the angle,
    ``a'' + spin a' + attitude/2 a = 0``: the signs of the gains are those with which both decay. ``split`` distributes
    F among the feet.

    Joints that lead to no foot, such as those of arms or of a swing leg, are driven to ``posture``.

    Source: Wendlandt, Control and simulation of multibody systems, 1997, chapter 4.

    Attributes:
        feet: The feet on the ground, ``FlatFoot`` or ``PointFoot``: frames at the ends of legs that branch off the
            central body.
        target: Pose of the central body in the world, (p, quaternion) (7,), or a function of time with pose, body twist
            and the derivative of that.
        center: The point c in the body's frame, (3,), m; its target is that of the pose.
        stiffness: Gain on the position, in the world's axes, 1/s^2: a number, one for each axis (3,), or a symmetric
            positive definite matrix (3, 3).
        damping: Gain on its rate, 1/s, likewise.
        attitude: Gain on e, in the body's axes, 1/s^2, likewise.
        spin: Gain on w, in the body's axes, 1/s, likewise.
        split: Distribution of the wrench among the feet, ``LeastNorm()`` or another ``WrenchSplit``.
        settling: Damping rate of foot motions, 1/s; zero leaves the damping to the ground. Large values excite the
            feet on soft ground: the biped of ``lgsim.systems`` is unstable with 60 1/s.
        posture: Configuration (nq,), used for joints that lead to no foot; None if there are none.
        posture_stiffness: Gains of those joints, 1/s^2, a number or (nv,).
        posture_damping: Their gains on velocities, 1/s, a number or (nv,).
    """

    feet: tuple[Foot, ...] = eqx.field(converter=tuple)
    target: PoseTarget
    center: Float[Array, " 3"]
    stiffness: Gain = number_field(16.0)
    damping: Gain = number_field(8.0)
    attitude: Gain = number_field(60.0)
    spin: Gain = number_field(14.0)
    split: WrenchSplit = LeastNorm()
    settling: Number = 0.0
    posture: Configuration | None = None
    posture_stiffness: Gain = number_field(100.0)
    posture_damping: Gain = number_field(20.0)

    @classmethod
    def from_model(
        cls,
        model: Model,
        q: Float[ArrayLike, " nq"],
        feet: Sequence[Foot],
        *,
        shift: Any = (0.0, 0.0, 0.0),
        **rest: Any,
    ) -> Workspace:
        """The controller that holds a robot in its standing configuration q; c is the center of mass there.

        Args:
            model: A model with a floating base.
            shift: Desired displacement of the body from there, in the world, (3,), m.
            rest: Further attributes of the controller by name.

        Raises:
            ModelError: the robot does not stand on these feet, or a leg is singular at q.
            ValueError: there is no such frame, or a gain is not positive definite.
        """
        q = jnp.asarray(q, model.dtype)
        support_legs(model.topology, _frames(feet))
        pose = forward_kinematics(model, q)[0]
        R, p = pose[:3, :3], pose[:3, 3]
        turn = quaternion_from_matrix(R)
        target = jnp.concatenate([p + jnp.asarray(shift, model.dtype), turn])
        rest = {"target": target, "center": R.T @ (center_of_mass(model, q) - p), "posture": q, **rest}
        law = cls(tuple(feet), **rest)
        law.check(model, q)
        return law

    def __call__(self, t: Number, q: Configuration, v: Velocity, model: Model) -> Force:
        """The joint forces (nv,), zero on the floating base, N m or N.

        Raises:
            ModelError: the robot does not stand on these feet.
            ValueError: there is no such frame.
        """
        return self.forces(t, q, v, model).tau

    def forces(self, t: Number, q: Configuration, v: Velocity, model: Model) -> WorkspaceForces:
        """The joint forces with the wrenches and accelerations from which they are computed.

        Raises:
            ModelError: the robot does not stand on these feet.
            ValueError: there is no such frame.
        """
        legs = support_legs(model.topology, _frames(self.feet))
        if legs.other_dofs.size and self.posture is None:
            joint = model.joint_names[int(np.searchsorted(legs.tree.v_starts, legs.other_dofs[0], "right")) - 1]
            raise ModelError(f"posture: expected a configuration, since the joint {joint!r} leads to no foot, got None")
        other = self._posture_acceleration(q, v, model, legs)
        dynamics = workspace_dynamics(model, q, v, legs, self.feet, self._foot_accelerations(q, v, model, legs), other)
        A = self._demand(t, q, v, model, legs, dynamics)
        F, total, accelerations, passive = _needed(legs, dynamics, A)
        # distribute the total among the feet; joint forces of a leg provide its wrench minus the passive one
        wrenches = self.split(self.feet, dynamics.held, total)
        shares = (dynamics.held @ (wrenches - passive)[..., None])[..., 0]
        tau = _leg_forces(legs, dynamics, shares)
        accelerations = accelerations.at[:BASE].set(A)
        if legs.other_dofs.size:
            # forces of other joints do not depend on the ground reaction at the feet
            accelerations = accelerations.at[legs.other_dofs].set(other[legs.other_dofs])
            tau = tau.at[legs.other_dofs].set(inverse_dynamics(model, q, v, accelerations)[legs.other_dofs])
        missing = F - jnp.sum(shares, axis=0)
        return WorkspaceForces(tau, wrenches, A, accelerations, missing, dynamics.inertia, dynamics.bias)

    def acceleration(self, t: Number, q: Configuration, v: Velocity, model: Model) -> Float[Array, " 6"]:
        """The acceleration V' (6,) of the central body by the feedback, the derivative of its body twist."""
        pose = forward_kinematics(model, q)[0]
        R, c = pose[:3, :3], self.center
        place, speed, _ = _point_motion(R, pose[:3, 3], v[:3], v[3:6], jnp.zeros_like(c), jnp.zeros_like(c), c)
        wanted, turning = self._feedback(t, v, pose, place, speed)
        # c'' = R (u' + w x u + w' x c + w x (w x c))
        w = v[3:6]
        pushing = R.T @ wanted - jnp.cross(w, v[:3]) - jnp.cross(turning, c) - jnp.cross(w, jnp.cross(w, c))
        return jnp.concatenate([pushing, turning])

    def _demand(
        self, t: Number, q: Configuration, v: Velocity, model: Model, legs: SupportLegs, dynamics: WorkspaceDynamics
    ) -> Float[Array, " 6"]:
        """The desired V' (6,), which may depend on the dynamics."""
        del legs, dynamics
        return self.acceleration(t, q, v, model)

    def _feedback(
        self, t: Number, v: Velocity, pose: Float[Array, "4 4"], place: Float[Array, " 3"], speed: Float[Array, " 3"]
    ) -> tuple[Float[Array, " 3"], Float[Array, " 3"]]:
        """(acceleration of the controlled point in the world, given its position and velocity; w' of the body)."""
        R, w, still = pose[:3, :3], v[3:6], jnp.zeros_like(v[:6])
        goal, V_d, A_d = self.target(t) if callable(self.target) else (self.target, still, still)
        R_d = quaternion.Ad(goal[3:])
        goal_place, goal_speed, goal_rate = _point_motion(
            R_d, goal[:3], V_d[:3], V_d[3:], A_d[:3], A_d[3:], self.center
        )
        # (4.13), (4.14)
        wanted = goal_rate + _gain(self.damping, goal_speed - speed) + _gain(self.stiffness, goal_place - place)
        # the left error quaternion, and the desired motion in the body's axes
        error = quaternion.compose(quaternion.inverse(goal[3:]), quaternion_from_matrix(R))
        e = jnp.where(error[0] < 0, -error[1:], error[1:])
        relative = R.T @ R_d
        w_d = relative @ V_d[3:]
        # (4.26)
        turning = relative @ A_d[3:] - jnp.cross(w, w_d) - _gain(self.spin, w - w_d) - _gain(self.attitude, e)
        return wanted, turning

    def check(self, model: Model, q: Float[ArrayLike, " nq"]) -> None:
        """Check that the controller suits a robot in the standing configuration q, outside of compiled programs.

        Raises:
            ModelError: the robot does not stand on these feet, a leg is singular at q or has too few joints, or the
                feet together cannot exert a force in some direction.
            ValueError: there is no such frame, or a gain is not symmetric and positive definite.
        """
        for name in ("stiffness", "damping", "attitude", "spin"):
            _check_gain(name, getattr(self, name))
        legs = support_legs(model.topology, _frames(self.feet))
        zero = jnp.zeros(model.nv, model.dtype)
        still = jnp.zeros((len(self.feet), 6), model.dtype)
        dynamics = workspace_dynamics(model, jnp.asarray(q, model.dtype), zero, legs, self.feet, still, zero)
        if is_traced(dynamics.bias):
            return
        for foot, reach in zip(self.feet, np.asarray(dynamics.reach), strict=True):
            _, sizes, directions = np.linalg.svd(reach.T)
            if sizes[-1] < SINGULAR * sizes[0]:
                direction = ", ".join(f"{x:.2g}" for x in directions[-1])
                raise ModelError(
                    f"feet: the leg to {foot.frame!r} is singular: with the foot fixed the central body cannot move"
                    f" along the twist ({direction}) of its frame; bend the leg, or give it more joints or a PointFoot"
                )
        held = np.concatenate(list(np.asarray(dynamics.held)), axis=1)
        sizes = np.linalg.svd(held, compute_uv=False)
        if sizes[-1] < SINGULAR * sizes[0]:
            raise ModelError(
                f"feet: {len(self.feet)} feet together cannot press in all six directions; take a FlatFoot, or three"
                " points that are not collinear"
            )

    def _posture_acceleration(self, q: Configuration, v: Velocity, model: Model, legs: SupportLegs) -> Velocity:
        if self.posture is None:
            return jnp.zeros_like(v)
        error = model.difference(q, self.posture)
        return jnp.multiply(self.posture_stiffness, error) - jnp.multiply(self.posture_damping, v)

    def _foot_accelerations(
        self, q: Configuration, v: Velocity, model: Model, legs: SupportLegs
    ) -> Float[Array, "feet 6"]:
        """The derivatives of the feet's twists that damp their motions; for a point foot, that of its velocity."""
        V = frame_twists(model, q, v)[np.array(legs.frames)]
        turned = jnp.cross(V[:, 3:], V[:, :3])
        free = np.array([not foot.held[3] for foot in self.feet])[:, None]
        along = jnp.where(free, turned, jnp.zeros_like(turned))
        return -jnp.multiply(self.settling, V) - jnp.concatenate([along, jnp.zeros_like(along)], axis=1)


class CentroidalFeedback(Workspace):
    """``Workspace`` control of the center of mass of the whole robot instead of a point of the central body.

    The legs' accelerations, which follow from that of the central body, are included: ``m (c'' - g)`` is the total
    force of all feet, c'' of (4.13) being the acceleration of the center of mass. Its target is the point ``center``
    of the target pose. The linear errors of the center of mass and the angular ones of the central body obey the
    equations of ``Workspace``.

    Source: Orin, Goswami and Lee, Centroidal dynamics of a humanoid robot, Autonomous Robots 35, 2013, for the force.
    """

    def _demand(
        self, t: Number, q: Configuration, v: Velocity, model: Model, legs: SupportLegs, dynamics: WorkspaceDynamics
    ) -> Float[Array, " 6"]:
        """V' (6,) for which the center of mass has the acceleration that the feedback demands."""
        pose = forward_kinematics(model, q)[0]
        wanted, turning = self._feedback(t, v, pose, center_of_mass(model, q), center_of_mass_velocity(model, q, v))
        force = pose[:3, :3].T @ (wanted - model.gravity) * jnp.sum(model.inertias[:, 0])

        def of(A: Array) -> Array:
            return _needed(legs, dynamics, A)[1][:3]

        turned = jnp.concatenate([jnp.zeros_like(turning), turning])
        units = jnp.eye(6, dtype=turning.dtype)[:3]
        here = of(turned)
        by_push = jax.vmap(lambda unit: of(turned + unit) - here)(units).T
        return turned.at[:3].set(jnp.linalg.solve(by_push, force - here))


def _needed(
    legs: SupportLegs, dynamics: WorkspaceDynamics, A: Float[Array, " 6"]
) -> tuple[Float[Array, " 6"], Float[Array, " 6"], Velocity, Float[Array, "feet 6"]]:
    """(F, the total wrench of the feet, the legs' accelerations, wrenches on the feet without joint forces)."""
    F = dynamics.inertia @ A + dynamics.bias
    accelerations, passive = dynamics.outward(legs, A)
    # the feet carry F in addition to their load without joint forces
    return F, F + jnp.sum(dynamics.held @ passive[..., None], axis=0)[:, 0], accelerations, passive


def _leg_forces(legs: SupportLegs, dynamics: WorkspaceDynamics, shares: Float[Array, "feet 6"]) -> Force:
    """``-S . F_i`` for each joint of each leg, in the axes of the central body, where wrenches are the same."""
    dofs, _, _ = legs.rows
    tau = jnp.zeros_like(dynamics.screws[0])
    for rows, F in zip(dofs, shares, strict=True):
        own = rows[rows >= 0]
        tau = tau.at[own].set(-(F @ dynamics.screws[:, own]))
    return tau


def _point_motion(
    R: Float[Array, "3 3"], p: Array, u: Array, w: Array, u_dot: Array, w_dot: Array, c: Array
) -> tuple[Array, Array, Array]:
    """Position, velocity and acceleration in the world of a point c of a body with the twist (u, w)."""
    velocity = u + jnp.cross(w, c)
    rate = u_dot + jnp.cross(w_dot, c) + jnp.cross(w, velocity)
    return p + R @ c, R @ velocity, R @ rate


def _gain(gain: Gain, x: Float[Array, " 3"]) -> Float[Array, " 3"]:
    """A gain, a number, (3,) or (3, 3), applied to a vector (3,)."""
    gain = jnp.asarray(gain, x.dtype)
    return gain @ x if gain.ndim == 2 else gain * x


def _check_gain(name: str, gain: Gain) -> None:
    """Check a gain unless it is traced.

    Raises:
        ValueError: it is not symmetric and positive definite.
    """
    if is_traced(gain):
        return
    value = np.asarray(gain, float)
    if value.shape not in ((), (3,), (3, 3)):
        raise ValueError(f"{name}: expected a number, shape (3,) or (3, 3), got {value.shape}")
    matrix = value if value.ndim == 2 else np.diag(np.broadcast_to(value, 3))
    if not np.allclose(matrix, matrix.T) or not np.all(np.linalg.eigvalsh(matrix) > 0):
        raise ValueError(
            f"{name}: expected a symmetric positive definite gain, got {gain}; with any other the error does not decay"
        )


def _frames(feet: Sequence[Foot]) -> tuple[str, ...]:
    """The frame names of feet.

    Raises:
        TypeError: one of them is not a foot.
    """
    for foot in feet:
        if not isinstance(foot, Foot):
            raise TypeError(f"feet: expected FlatFoot or PointFoot of lgsim.controls, got {foot!r}")
    return tuple(foot.frame for foot in feet)
