"""Standard costs: distances on a group, control effort, and targets of frames, posture and center of mass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim._compile.xla import number_field
from lgsim.dynamics.jacobians import frame_jacobian
from lgsim.dynamics.kinematics import forward_kinematics, frame_index
from lgsim.dynamics.momentum import center_of_mass
from lgsim.integrators.method import Number
from lgsim.lie import se3
from lgsim.lie.action import Action, LeftTranslation, Point
from lgsim.lie.group import SE3, SO3, LieGroup
from lgsim.multibody.model import Model
from lgsim.optimize.cost import Control, Quadratic, Residual, StateResidual, check_weight, gauss_newton_model
from lgsim.simulation.state_space import StateSpace
from lgsim.support import check


class StateDistance(StateResidual):
    """The tangent vector from a target state, ``r = difference(target, y)``; weights select its components.

    Attributes:
        action: The action of tangent vectors on states, such as ``problem.dynamics.action``.
        weight: A scalar or (action.dim,).
    """

    action: Action
    target: Point
    weight: Any = number_field(1.0)

    def residual(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        return self.action.difference(self.target, y)

    def quadratic(self, action: Action, t: Number, y: Point, u: Control, args: Any, exact: bool) -> Quadratic:
        """With the closed-form Jacobian of the action, if it moves states by the same action."""
        if exact or not _same(action, self.action):
            return super().quadratic(action, t, y, u, args, exact)
        r, J = action.difference_jacobian(self.target, y)
        return gauss_newton_model(J, self._weights(r), r, r.size + (0 if u is None else u.size))


class GeodesicDistance(StateResidual):
    """The geodesic distance on a group from a target, ``r = log(target^-1 g)``.

    The element g is an attitude or a pose in the state.

    With weight one the cost is half the squared angle on SO(3), rad^2.

    Attributes:
        group: The group, such as ``lgsim.SO3``.
        element: ``element(y)``, the group element g in a state; by default the state itself.
        weight: A scalar or (group.dim,).
    """

    group: LieGroup
    target: Any
    element: Callable[[Point], Any] | None = None
    weight: Any = number_field(1.0)

    def residual(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        g = y if self.element is None else self.element(y)
        return self.group.log(self.group.compose(self.group.inverse(self.target), g))


class ControlEffort(Residual):
    """Control effort: the control, or its difference from a reference, ``r = u - reference``.

    With ``RateControlledDynamics`` it penalizes control rates.

    Attributes:
        weight: A scalar or (controls,).
        reference: A scalar or (controls,), in the unit of the controls.
    """

    weight: Any = number_field(1.0)
    reference: Any = number_field(0.0)

    def __check_init__(self):
        check_weight("ControlEffort", self.weight)

    def residual(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        if u is None:
            raise ValueError(
                "terminal: there is no control at the end of the horizon; use ControlEffort as a running cost"
            )
        return u - jnp.broadcast_to(jnp.asarray(self.reference, u.dtype), u.shape)

    def quadratic(self, action: Action, t: Number, y: Point, u: Control, args: Any, exact: bool) -> Quadratic:
        r = self.residual(t, y, u, args)
        w, n = self._weights(r), action.dim
        return Quadratic(jnp.sum(w * r * r) / 2, jnp.pad(w * r, (n, 0)), jnp.diag(jnp.pad(w, (n, 0))))

    def remainder(self, action: Action, t: Number, y: Point, u: Control, args: Any) -> float:
        return 0.0  # linear residuals


class Posture(StateResidual):
    """The tangent vector (nv,) from a target configuration to the configuration of a model; rad or m.

    Attributes:
        target: Configuration (nq,).
        weight: A scalar or (nv,).
    """

    model: Model
    target: Any
    weight: Any = number_field(1.0)

    def __check_init__(self):
        check.floating("target", self.target, self.model.nq)

    def residual(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        return self.model.difference(self.target, _q(self.model, y))


class JointVelocity(StateResidual):
    """The velocity (nv,) of a model, or its difference from a target; rad/s or m/s.

    Attributes:
        weight: A scalar or (nv,).
        target: A scalar or (nv,).
    """

    model: Model
    weight: Any = number_field(1.0)
    target: Any = number_field(0.0)

    def residual(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        nq, nv = self.model.nq, self.model.nv
        return y[nq : nq + nv] - jnp.broadcast_to(jnp.asarray(self.target, y.dtype), (nv,))


class FrameTarget(StateResidual):
    """The difference of a frame from a target that is fixed in the world.

    Attributes:
        frame: Name of the frame, or its index in ``model.frame_names``.
    """

    model: Model
    frame: str | int = eqx.field(static=True)
    target: Any
    weight: Any = number_field(1.0)

    target_shape: ClassVar[tuple[int, ...]]
    target_group: ClassVar[LieGroup | None] = None

    def __check_init__(self):
        _check_fields(self, self.target_group, target=self.target_shape)


class FramePose(FrameTarget):
    """The twist from a target pose to the pose of a frame, ``r = log(target^-1 T(q))`` (6,), linear first; m and rad.

    The frame may be an end effector.

    Attributes:
        target: Pose (4, 4) in the world, m.
        weight: A scalar or (6,).
    """

    target_shape, target_group = (4, 4), SE3

    def residual(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        return SE3.log(SE3.compose(SE3.inverse(self.target), _pose(self.model, self.frame, y)))

    def linear(
        self, action: Action, t: Number, y: Point, u: Control, args: Any
    ) -> tuple[Float[Array, " rows"], Float[Array, "rows n"]]:
        """The residuals and their derivative, ``dexpinv(-r) J`` of the frame's Jacobian J if states are (q, v)."""
        if not isinstance(action, StateSpace) or u is not None:
            return super().linear(action, t, y, u, args)
        r = self.residual(t, y, u, args)
        J = se3.dexpinv(-r) @ frame_jacobian(self.model, _q(self.model, y), self.frame)
        return r, jnp.pad(J, ((0, 0), (0, action.dim - self.model.nv)))

    def remainder(self, action: Action, t: Number, y: Point, u: Control, args: Any) -> Float[Array, "n n"]:
        """In closed form if states are (q, v): the Hessian of ``f . r`` for fixed weighted residuals f.

        With the frame's body Jacobian J, its gradient is ``J^T F(r)``, ``F = dexpinv(-r)^T f``. Here r changes by
        ``dexpinv(-r) J dq``, and the column of a row by its bracket with the columns of the rows that it carries. In
        exponential coordinates the Hessian is the symmetric part of that derivative.
        """
        tree = self.model.topology
        if not isinstance(action, StateSpace) or tree.has_mimic or tree.loops:
            return super().remainder(action, t, y, u, args)
        r = self.residual(t, y, None, args)
        pull = self._weights(r) * r

        def wrench(r: Array) -> Array:
            return se3.dexpinv(-r).T @ pull

        J = frame_jacobian(self.model, _q(self.model, y), self.frame)
        by_residual = J.T @ jax.jacfwd(wrench)(r) @ se3.dexpinv(-r) @ J
        unit, _ = tree.row_unit
        carries = tree.row_carried.T & (unit[:, None] != unit[None, :])
        # F . [J_j, J_k] = (ad(J_j)^T F) . J_k
        brackets = jax.vmap(lambda column: se3.ad(column).T @ wrench(r), in_axes=1)(J) @ J
        H = by_residual + jnp.where(carries, brackets, 0)
        return jnp.pad((H + H.T) / 2, (0, action.dim - self.model.nv + (0 if u is None else u.size)))


class FrameAttitude(FrameTarget):
    """The rotation vector (3,) from a target attitude to the attitude of a frame, in the target's axes; rad.

    Attributes:
        target: Rotation matrix (3, 3) from the frame's axes to the world's.
        weight: A scalar or (3,).
    """

    target_shape, target_group = (3, 3), SO3

    def residual(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        return SO3.log(SO3.compose(SO3.inverse(self.target), _pose(self.model, self.frame, y)[:3, :3]))


class FramePosition(FrameTarget):
    """The vector (3,) from a target point to a frame's origin, such as an end effector, in the world; m.

    Attributes:
        target: Point (3,) in the world, m.
        weight: A scalar or (3,).
    """

    target_shape = (3,)

    def residual(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        return _pose(self.model, self.frame, y)[:3, 3] - self.target


class FramePath(StateResidual):
    """The vector (3,) from a point on a time-parametrized path to a frame's origin, in the world; m.

    The path is linear between its points, and constant before the first and after the last one.

    Attributes:
        frame: Name of the frame, or its index in ``model.frame_names``.
        times: Times of the path's points (points,), s, increasing.
        points: Points (points, 3) in the world, m.
        weight: A scalar or (3,).
    """

    model: Model
    frame: str | int = eqx.field(static=True)
    times: Any
    points: Any
    weight: Any = number_field(1.0)

    def __check_init__(self):
        _check_fields(self, points=(_length_of(self.times), 3))

    def residual(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        now = jnp.asarray(t, y.dtype)
        target = jnp.stack([jnp.interp(now, self.times, self.points[:, i]) for i in range(3)])
        return _pose(self.model, self.frame, y)[:3, 3] - target


class FramePosePath(StateResidual):
    """The twist (6,) from a pose on a time-parametrized path to the pose of a frame, linear first; m and rad.

    The path is a screw motion between its poses, and constant before the first and after the last one.

    Attributes:
        frame: Name of the frame, or its index in ``model.frame_names``.
        times: Times of the path's poses (poses,), s, increasing.
        poses: Poses (poses, 4, 4) in the world, m.
        weight: A scalar or (6,).
    """

    model: Model
    frame: str | int = eqx.field(static=True)
    times: Any
    poses: Any
    weight: Any = number_field(1.0)

    def __check_init__(self):
        _check_fields(self, SE3, poses=(_length_of(self.times), 4, 4))

    def residual(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        now = jnp.asarray(t, y.dtype)
        after = jnp.clip(jnp.searchsorted(self.times, now, side="right"), 1, len(self.times) - 1)
        start, stop = self.times[after - 1], self.times[after]
        share = jnp.clip((now - start) / (stop - start), 0, 1)
        target = se3.interpolate(self.poses[after - 1], self.poses[after], share)
        return SE3.log(SE3.compose(SE3.inverse(target), _pose(self.model, self.frame, y)))


class CenterOfMass(StateResidual):
    """The vector (3,) from a target point to a model's center of mass, in the world; m.

    Attributes:
        target: Point (3,) in the world, m.
        weight: A scalar or (3,).
    """

    model: Model
    target: Any
    weight: Any = number_field(1.0)

    def __check_init__(self):
        check.floating("target", self.target, 3)

    def residual(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        return center_of_mass(self.model, _q(self.model, y)) - self.target


def _same(a: Action, b: Action) -> bool:
    """True if two actions are equal as far as it is known while tracing: they have no arrays."""
    return not jax.tree.leaves((a, b)) and jax.tree.structure(a) == jax.tree.structure(b)


def _q(model: Model, y: Float[Array, " n"]) -> Float[Array, " nq"]:
    """The configuration in a state of a model."""
    return y[: model.nq]


def _pose(model: Model, frame: str | int, y: Float[Array, " n"]) -> Float[Array, "4 4"]:
    """The pose of a frame in the world in a state of a model."""
    return forward_kinematics(model, _q(model, y))[frame_index(model.topology, frame)]


def _length_of(times: Any) -> int:
    """The number of times of a path."""
    times = check.floating("times", times)
    if times.ndim != 1 or len(times) < 2:
        raise ValueError(f"times: expected at least two times, got shape {times.shape}")
    return len(times)


def _check_fields(cost: Any, group: LieGroup | None = None, /, **arrays: tuple[int, ...]) -> None:
    """Raise if the frame is unknown, or an array has a wrong shape or is not a group element."""
    frame_index(cost.model.topology, cost.frame)
    for name, shape in arrays.items():
        value = check.floating(name, getattr(cost, name), *shape)
        if group is not None:
            LeftTranslation(group).check_point(value, name)
