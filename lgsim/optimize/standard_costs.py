"""The usual costs: distances on a group, effort, and goals of a machine's frames, posture and center of mass."""

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
    """The tangent vector from a target state, ``r = difference(target, y)``; weights choose its components.

    Attributes:
        action: How tangent vectors move states, such as ``problem.dynamics.action``.
        weight: One number or (action.dim,).
    """

    action: Action
    target: Point
    weight: Any = number_field(1.0)

    def residual(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        return self.action.difference(self.target, y)

    def quadratic(self, action: Action, t: Number, y: Point, u: Control, args: Any, exact: bool) -> Quadratic:
        """By the Jacobian that the action has, where states are moved by that of the distance."""
        if exact or not _same(action, self.action):
            return super().quadratic(action, t, y, u, args, exact)
        r, J = action.difference_jacobian(self.target, y)
        return gauss_newton_model(J, self._weights(r), r, r.size + (0 if u is None else u.size))


class GeodesicDistance(StateResidual):
    """The shortest way on a group from a target, ``r = log(target^-1 g)``, g being an attitude or a pose in the state.

    With weight one the cost is half the squared angle on SO(3), rad^2.

    Attributes:
        group: The group, such as ``lgsim.SO3``.
        element: ``element(y)``, the element g in a state; by default the state itself.
        weight: One number or (group.dim,).
    """

    group: LieGroup
    target: Any
    element: Callable[[Point], Any] | None = None
    weight: Any = number_field(1.0)

    def residual(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        g = y if self.element is None else self.element(y)
        return self.group.log(self.group.compose(self.group.inverse(self.target), g))


class ControlEffort(Residual):
    """The control, or its gap to a reference: ``r = u - reference``; with ``RateControlledDynamics``: smoothness.

    Attributes:
        weight: One number or (controls,).
        reference: One number or (controls,), in the unit of the controls.
    """

    weight: Any = number_field(1.0)
    reference: Any = number_field(0.0)

    def __check_init__(self):
        check_weight("ControlEffort", self.weight)

    def residual(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        if u is None:
            raise ValueError(
                "terminal: a ControlEffort has no control at the end of the horizon; make it a running cost"
            )
        return u - jnp.broadcast_to(jnp.asarray(self.reference, u.dtype), u.shape)

    def quadratic(self, action: Action, t: Number, y: Point, u: Control, args: Any, exact: bool) -> Quadratic:
        r = self.residual(t, y, u, args)
        w, n = self._weights(r), action.dim
        return Quadratic(jnp.sum(w * r * r) / 2, jnp.pad(w * r, (n, 0)), jnp.diag(jnp.pad(w, (n, 0))))

    def remainder(self, action: Action, t: Number, y: Point, u: Control, args: Any) -> float:
        return 0.0  # linear residuals


class Posture(StateResidual):
    """The tangent vector (nv,) from a target configuration to that of a machine; rad or m.

    Attributes:
        target: Configuration (nq,).
        weight: One number or (nv,).
    """

    model: Model
    target: Any
    weight: Any = number_field(1.0)

    def __check_init__(self):
        check.floating("target", self.target, self.model.nq)

    def residual(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        return self.model.difference(self.target, _q(self.model, y))


class JointVelocity(StateResidual):
    """The velocity (nv,) of a machine, or its gap to a target; rad/s or m/s.

    Attributes:
        weight: One number or (nv,).
        target: One number or (nv,).
    """

    model: Model
    weight: Any = number_field(1.0)
    target: Any = number_field(0.0)

    def residual(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        nq, nv = self.model.nq, self.model.nv
        return y[nq : nq + nv] - jnp.broadcast_to(jnp.asarray(self.target, y.dtype), (nv,))


class FrameTarget(StateResidual):
    """The gap of a frame to a target that rests in the world.

    Attributes:
        frame: Name of the frame, or its place in ``model.frame_names``.
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
    """The twist from a target pose to that of a frame, ``r = log(target^-1 T(q))`` (6,), linear first; m and rad.

    Attributes:
        target: Pose (4, 4) in the world, m.
        weight: One number or (6,).
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
        """In closed form if states are (q, v): that of ``f . r`` for the fixed weighted residuals f.

        With the frame's body Jacobian J, its gradient is ``J^T F(r)``, ``F = dexpinv(-r)^T f``, where r changes by
        ``dexpinv(-r) J dq`` and the column of a row by its bracket with those of the rows that it carries. In
        exponential coordinates the Hessian is the symmetric part of that.
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
    """The rotation vector (3,) from a target attitude to that of a frame, in the target's axes; rad.

    Attributes:
        target: Rotation matrix (3, 3) from the frame's axes to the world's.
        weight: One number or (3,).
    """

    target_shape, target_group = (3, 3), SO3

    def residual(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        return SO3.log(SO3.compose(SO3.inverse(self.target), _pose(self.model, self.frame, y)[:3, :3]))


class FramePosition(FrameTarget):
    """The vector (3,) from a target point to a frame's origin, in the world; m.

    Attributes:
        target: Point (3,) in the world, m.
        weight: One number or (3,).
    """

    target_shape = (3,)

    def residual(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        return _pose(self.model, self.frame, y)[:3, 3] - self.target


class FramePath(StateResidual):
    """The vector (3,) from a point that moves along a path to a frame's origin, in the world; m.

    Between its points the path is straight; before the first and after the last one it rests.

    Attributes:
        frame: Name of the frame, or its place in ``model.frame_names``.
        times: Times of the path's points (points,), s, rising.
        points: Points (points, 3) in the world, m.
        weight: One number or (3,).
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
    """The twist (6,) from a pose that moves along a path to the pose of a frame, linear first; m and rad.

    Between its poses the path is a screw motion; before the first and after the last one it rests.

    Attributes:
        frame: Name of the frame, or its place in ``model.frame_names``.
        times: Times of the path's poses (poses,), s, rising.
        poses: Poses (poses, 4, 4) in the world, m.
        weight: One number or (6,).
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
    """The vector (3,) from a target point to a machine's center of mass, in the world; m.

    Attributes:
        target: Point (3,) in the world, m.
        weight: One number or (3,).
    """

    model: Model
    target: Any
    weight: Any = number_field(1.0)

    def __check_init__(self):
        check.floating("target", self.target, 3)

    def residual(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        return center_of_mass(self.model, _q(self.model, y)) - self.target


def _same(a: Action, b: Action) -> bool:
    """Whether two actions are equal as far as can be known while tracing: they have no numbers of their own."""
    return not jax.tree.leaves((a, b)) and jax.tree.structure(a) == jax.tree.structure(b)


def _q(model: Model, y: Float[Array, " n"]) -> Float[Array, " nq"]:
    """The configuration in a state of a machine."""
    return y[: model.nq]


def _pose(model: Model, frame: str | int, y: Float[Array, " n"]) -> Float[Array, "4 4"]:
    """The pose of a frame in the world in a state of a machine."""
    return forward_kinematics(model, _q(model, y))[frame_index(model.topology, frame)]


def _length_of(times: Any) -> int:
    """The number of times of a path."""
    times = check.floating("times", times)
    if times.ndim != 1 or len(times) < 2:
        raise ValueError(f"times: expected two times or more, got shape {times.shape}")
    return len(times)


def _check_fields(cost: Any, group: LieGroup | None = None, /, **arrays: tuple[int, ...]) -> None:
    """Raise where the frame is unknown, or an array has a wrong shape or is not of a group."""
    frame_index(cost.model.topology, cost.frame)
    for name, shape in arrays.items():
        value = check.floating(name, getattr(cost, name), *shape)
        if group is not None:
            LeftTranslation(group).check_point(value, name)
