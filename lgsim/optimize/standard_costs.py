"""The usual costs: distances on a group, effort, and what a machine's frames, posture and centre of mass should do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from lgsim.dynamics.jacobians import frame_jacobian
from lgsim.dynamics.kinematics import forward_kinematics, frame_index
from lgsim.dynamics.momentum import center_of_mass
from lgsim.lie import se3
from lgsim.lie.action import Action, Point
from lgsim.lie.group import SE3, SO3, LieGroup
from lgsim.multibody.model import Model
from lgsim.optimize.cost import OfState, Quadratic, Residual, of_squares, weight_of
from lgsim.simulation.state_space import StateSpace
from lgsim.support import check


class StateDistance(OfState):
    """The tangent vector from a target state, ``r = difference(target, y)``; weights choose its components."""

    action: Action
    target: Point
    weight: Any = 1.0

    def __check_init__(self):
        weight_of("StateDistance", self.weight)

    def residual(self, t: Any, y: Point, u: Array | None, args: Any) -> Array:
        return self.action.difference(self.target, y)

    def quadratic(self, action: Action, t: Any, y: Point, u: Array | None, args: Any, full: bool) -> Quadratic:
        """By the Jacobian that the action has, where states are moved by that of the distance."""
        if full or not _same(action, self.action):
            return super().quadratic(action, t, y, u, args, full)
        r, J = action.difference_jacobian(self.target, y)
        return of_squares(J, self._weights(r), r, r.size + (0 if u is None else u.size))


class GeodesicDistance(OfState):
    """The shortest way on a group from a target, ``r = log(target^-1 g)``, g being ``of(y)``: an attitude, a pose.

    Half its squares with weight one are half the squared angle on SO(3).

    Attributes:
        group: Such as ``lgsim.SO3``.
        target: An element.
        of: The element in a state, by default the state.
        weight: One number or (group.dim,).
    """

    group: LieGroup
    target: Any
    of: Callable[[Point], Any] | None = None
    weight: Any = 1.0

    def __check_init__(self):
        weight_of("GeodesicDistance", self.weight)

    def residual(self, t: Any, y: Point, u: Array | None, args: Any) -> Array:
        g = y if self.of is None else self.of(y)
        return self.group.log(self.group.compose(self.group.inverse(self.target), g))


class ControlEffort(Residual):
    """The control, or its gap to a reference (controls,): ``r = u - reference``; of ``RateControlled``: smoothness."""

    weight: Any = 1.0
    reference: Any = 0.0

    def __check_init__(self):
        weight_of("Effort", self.weight)

    def residual(self, t: Any, y: Point, u: Array | None, args: Any) -> Array:
        if u is None:
            raise ValueError("terminal: an Effort has no control at the end of the horizon; make it a running cost")
        return u - jnp.broadcast_to(jnp.asarray(self.reference, u.dtype), u.shape)

    def quadratic(self, action: Action, t: Any, y: Point, u: Array | None, args: Any, full: bool) -> Quadratic:
        r = self.residual(t, y, u, args)
        w, n = self._weights(r), action.dim
        return Quadratic(jnp.sum(w * r * r) / 2, jnp.pad(w * r, (n, 0)), jnp.diag(jnp.pad(w, (n, 0))))


class Posture(OfState):
    """The tangent vector (nv,) from a configuration of a machine to its own; rad or m."""

    model: Model
    target: Any
    weight: Any = 1.0

    def __check_init__(self):
        weight_of("Posture", self.weight)
        check.floating("target", self.target, self.model.nq)

    def residual(self, t: Any, y: Point, u: Array | None, args: Any) -> Array:
        return self.model.difference(self.target, _q(self.model, y))


class JointVelocity(OfState):
    """The velocity (nv,) of a machine, or its gap to a target."""

    model: Model
    weight: Any = 1.0
    target: Any = 0.0

    def __check_init__(self):
        weight_of("JointVelocity", self.weight)

    def residual(self, t: Any, y: Point, u: Array | None, args: Any) -> Array:
        nq, nv = self.model.nq, self.model.nv
        return y[nq : nq + nv] - jnp.broadcast_to(jnp.asarray(self.target, y.dtype), (nv,))


class FramePose(OfState):
    """The twist from a pose in the world to that of a frame, ``r = log(target^-1 T(q))``, linear first; m and rad.

    Attributes:
        model: The machine.
        frame: Its name or place in ``model.frame_names``.
        target: T (4, 4), m.
        weight: One number or (6,).
    """

    model: Model
    frame: str | int = eqx.field(static=True)
    target: Any
    weight: Any = 1.0

    def __check_init__(self):
        _checked(self, target=(4, 4))

    def residual(self, t: Any, y: Point, u: Array | None, args: Any) -> Array:
        return SE3.log(SE3.compose(SE3.inverse(self.target), _pose(self.model, self.frame, y)))

    def linear(self, action: Action, t: Any, y: Point, u: Array | None, args: Any) -> tuple[Array, Array]:
        """By the frame's Jacobian, where the action is that of a machine's states: ``r' = dexpinv(-r) J v``."""
        if not isinstance(action, StateSpace) or u is not None:
            return super().linear(action, t, y, u, args)
        r = self.residual(t, y, u, args)
        J = se3.dexpinv(-r) @ frame_jacobian(self.model, _q(self.model, y), self.frame)
        return r, jnp.pad(J, ((0, 0), (0, action.dim - self.model.nv)))


class FrameAttitude(OfState):
    """The rotation vector (3,) from an attitude in the world to that of a frame; rad."""

    model: Model
    frame: str | int = eqx.field(static=True)
    target: Any
    weight: Any = 1.0

    def __check_init__(self):
        _checked(self, target=(3, 3))

    def residual(self, t: Any, y: Point, u: Array | None, args: Any) -> Array:
        return SO3.log(SO3.compose(SO3.inverse(self.target), _pose(self.model, self.frame, y)[:3, :3]))


class FramePosition(OfState):
    """The gap (3,) from a point of the world to a frame's origin; m."""

    model: Model
    frame: str | int = eqx.field(static=True)
    target: Any
    weight: Any = 1.0

    def __check_init__(self):
        _checked(self, target=(3,))

    def residual(self, t: Any, y: Point, u: Array | None, args: Any) -> Array:
        return _pose(self.model, self.frame, y)[:3, 3] - self.target


class FramePath(OfState):
    """The gap (3,) from a path in the world to a frame's origin; m.

    Attributes:
        model: The machine.
        frame: Its name or place in ``model.frame_names``.
        times: Of the path's points (points,), s, rising; straight lines between them, held outside.
        points: (points, 3), m.
        weight: One number or (3,).
    """

    model: Model
    frame: str | int = eqx.field(static=True)
    times: Any
    points: Any
    weight: Any = 1.0

    def __check_init__(self):
        _checked(self, points=(_count(self.times), 3))

    def residual(self, t: Any, y: Point, u: Array | None, args: Any) -> Array:
        now = jnp.asarray(t, y.dtype)
        wanted = jnp.stack([jnp.interp(now, self.times, self.points[:, i]) for i in range(3)])
        return _pose(self.model, self.frame, y)[:3, 3] - wanted


class FramePosePath(OfState):
    """The twist from a path of poses in the world to the pose of a frame, linear first; m and rad.

    Attributes:
        model: The machine.
        frame: Its name or place in ``model.frame_names``.
        times: Of the path's poses (poses,), s, rising; screw motions between them, held outside.
        poses: (poses, 4, 4), m.
        weight: One number or (6,).
    """

    model: Model
    frame: str | int = eqx.field(static=True)
    times: Any
    poses: Any
    weight: Any = 1.0

    def __check_init__(self):
        _checked(self, poses=(_count(self.times), 4, 4))

    def residual(self, t: Any, y: Point, u: Array | None, args: Any) -> Array:
        now = jnp.asarray(t, y.dtype)
        after = jnp.clip(jnp.searchsorted(self.times, now, side="right"), 1, len(self.times) - 1)
        start, stop = self.times[after - 1], self.times[after]
        share = jnp.clip((now - start) / (stop - start), 0, 1)
        wanted = se3.interpolate(self.poses[after - 1], self.poses[after], share)
        return SE3.log(SE3.compose(SE3.inverse(wanted), _pose(self.model, self.frame, y)))


class CenterOfMass(OfState):
    """The gap (3,) from a point of the world to a machine's centre of mass; m."""

    model: Model
    target: Any
    weight: Any = 1.0

    def __check_init__(self):
        weight_of("CenterOfMass", self.weight)
        check.floating("target", self.target, 3)

    def residual(self, t: Any, y: Point, u: Array | None, args: Any) -> Array:
        return center_of_mass(self.model, _q(self.model, y)) - self.target


def _same(a: Action, b: Action) -> bool:
    """Whether two actions are equal as far as can be known while tracing: they have no numbers of their own."""
    return not jax.tree.leaves((a, b)) and jax.tree.structure(a) == jax.tree.structure(b)


def _q(model: Model, y: Array) -> Array:
    return y[: model.nq]


def _pose(model: Model, frame: str | int, y: Array) -> Array:
    return forward_kinematics(model, _q(model, y))[frame_index(model.topology, frame)]


def _count(times: Any) -> int:
    """The number of times of a path."""
    times = check.floating("times", times)
    if times.ndim != 1 or len(times) < 2:
        raise ValueError(f"times: expected two times or more, got shape {times.shape}")
    return len(times)


def _checked(cost: Any, **arrays: tuple[int, ...]) -> None:
    """Raise where the frame is unknown, a weight negative or an array has a wrong shape."""
    weight_of(type(cost).__name__, cost.weight)
    frame_index(cost.model.topology, cost.frame)
    for name, shape in arrays.items():
        check.floating(name, getattr(cost, name), *shape)
