"""Lie group actions on manifolds, the interface between integrators and states.

A method takes an action and a field with values in the Lie algebra, and needs four operations: ``move``, ``dexpinv``,
``bracket`` and ``distance``. The field xi(t, y) means ``y' = d/ds move(s xi, y)`` at s = 0.
Two more operations define which arrays are points: ``defects`` gives the violated conditions and their size,
``project`` returns a point nearby. A new manifold is a subclass of ``Action``; the tests in
``tests/lie/test_actions.py`` then apply to it.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.lie import quaternion, se3, so3
from lgsim.lie.group import SE3, SO3, Element, Euclidean, LieGroup, UnitQuaternion, defects_of_parts, join, norm, split
from lgsim.support import check
from lgsim.support.check import is_traced

Point = Any
"""A point of the manifold: an array, or a tuple of points."""


class Action(eqx.Module):
    """A left action of a Lie group on a manifold, in terms of the algebra.

    ``bracket`` is that of the algebra for which ``move`` is a left action: for a right translation minus the group's.
    The integrators are thus the same for all actions, and each sign is defined once.
    """

    @property
    @abstractmethod
    def dim(self) -> int:
        """Length of an algebra vector."""

    @abstractmethod
    def move(self, xi: Array, y: Point) -> Point:
        """The point ``exp(xi) . y``."""

    def dexpinv(self, sigma: Array, xi: Array) -> Array:
        """The rate of sigma for which ``exp(sigma(t)) . y`` moves with xi: ``dexp_sigma^-1 xi``."""
        raise NotImplementedError(f"{type(self).__name__} has no dexpinv")

    def bracket(self, a: Array, b: Array) -> Array:
        """The bracket of the algebra for which the action is a left one."""
        raise NotImplementedError(f"{type(self).__name__} has no bracket")

    def distance(self, y0: Point, y1: Point) -> Array:
        """A distance between two points, zero where they are equal: the Euclidean norm of the difference of entries."""
        pairs = zip(jax.tree.leaves(y0), jax.tree.leaves(y1), strict=True)
        return norm(jnp.concatenate([(a - b).ravel() for a, b in pairs]))

    def difference(self, y0: Point, y1: Point) -> Array:
        """The smallest algebra vector sigma with ``move(sigma, y0) = y1``; rotation angles are at most pi."""
        raise NotImplementedError(f"{type(self).__name__} has no difference")

    def difference_jacobian(self, y0: Point, y: Point) -> tuple[Array, Array]:
        """(r, J) of ``r(x) = difference(y0, move(x, y))`` at x = 0. J (m, m) is the Jacobian of the first m entries of
        r with respect to those of x; each other entry of r changes one to one with that of x.
        """

        def along(x: Array) -> tuple[Array, Array]:
            r = self.difference(y0, self.move(x, y))
            return r, r

        J, r = jax.jacfwd(along, has_aux=True)(jnp.zeros(self.dim, jax.tree.leaves(y)[0].dtype))
        return r, J

    def sizes(self, y: Point) -> Array:
        """The size of each algebra component at y, of either sign, relative to which errors are measured.

        On a group all points are equivalent, so that it is the unit of the algebra: 1 rad for a rotation, 1 m for the
        displacement of a pose. In R^n it is the vector itself.
        """
        return jnp.ones(self.dim, jax.tree.leaves(y)[0].dtype)

    def restore(self, field: Any, y: Point, args: Any) -> Point:
        """The state after a step, projected onto the set that motions of the field preserve; by default y itself.

        Methods leave such a set by their error, within the manifold; integrations call this after each step.
        """
        del field, args
        return y

    def project(self, y: Point) -> Point:
        """A point of the manifold close to y, for arrays that are off it by rounding or measurement errors.

        On a group it is the nearest element. Differentiable.
        """
        return y

    def defects(self, y: Point) -> dict[str, Any]:
        """The violation by NumPy arrays y of each condition on a point; empty if any array is a point.

        Violations are relative to the values that a condition compares, and 0 for a point.
        """
        return {}

    def check_point(self, y: Point, name: str = "y") -> None:
        """Raise if y is off the manifold by more than half of the digits of its dtype; no check inside ``jit``.

        That leaves room for the rounding of millions of steps, and detects arrays that were never points.

        Args:
            y: one state or many, with leading axes.
            name: the argument's name in the message.

        Raises:
            ValueError: a condition on a point fails; the message gives the condition, the violation and the remedy.
        """
        leaves = jax.tree.leaves(y)
        if is_traced(leaves):
            return
        gaps = self.defects(jax.tree.map(np.asarray, y))
        limit = 10.0 ** (-0.5 * min(np.finfo(leaf.dtype).precision for leaf in leaves))
        failed = [f"{condition} fails by {float(gap):.3g}" for condition, gap in gaps.items() if not gap <= limit]
        if failed:
            raise ValueError(
                f"{name}: expected a point that {type(self).__name__} moves, but {', '.join(failed)}, where up to "
                f"{limit:.1g} counts as rounding; action.project({name}) gives a point close to it"
            )

    def _vector(self, name: str, value: Array) -> Array:
        return check.floating(name, value, self.dim)

    def provides(self, verb: str) -> bool:
        """True if this action defines the operation ("dexpinv", "bracket" or "difference") itself."""
        return getattr(type(self), verb) is not getattr(Action, verb)


def _element(name: str, value: Element, shapes: Any) -> Element:
    """``value`` if its arrays end in ``shapes``; errors name the argument and the part."""
    if all(isinstance(n, int) for n in shapes):
        return check.floating(name, value, *shapes)
    if not isinstance(value, tuple | list) or len(value) != len(shapes):
        came = f"{len(value)} parts" if isinstance(value, tuple | list) else type(value).__name__
        raise ValueError(f"{name}: expected a tuple of {len(shapes)} parts, got {came}")
    return tuple(
        _element(f"{name}[{i}]", part, shape) for i, (part, shape) in enumerate(zip(value, shapes, strict=True))
    )


class LeftTranslation(Action):
    """A group acting on itself, ``g -> exp(xi) g``: space velocities, ``g' = hat(xi) g``."""

    group: LieGroup

    @property
    def dim(self) -> int:
        return self.group.dim

    def move(self, xi: Array, y: Element) -> Element:
        return self.group.compose(self.group.exp(self._vector("xi", xi)), _element("y", y, self.group.shapes))

    def dexpinv(self, sigma: Array, xi: Array) -> Array:
        return self.group.dexpinv_action(self._vector("sigma", sigma), self._vector("xi", xi))

    def bracket(self, a: Array, b: Array) -> Array:
        return self.group.bracket(self._vector("a", a), self._vector("b", b))

    def difference(self, y0: Element, y1: Element) -> Array:
        return self.group.log(self.group.compose(y1, self.group.inverse(y0)))

    def sizes(self, y: Element) -> Array:
        return self.group.sizes(y)

    def project(self, y: Element) -> Element:
        return self.group.project(_element("y", y, self.group.shapes))

    def defects(self, y: Element) -> dict[str, Any]:
        return self.group.defects(y)


class RightTranslation(Action):
    """A group acting on itself, ``g -> g exp(xi)``: body velocities, ``g' = g hat(xi)``.

    ``g = g0 exp(sigma)`` moves with ``sigma' = dexpinv_{-sigma}(xi) = xi + [sigma, xi]/2 + ...``.
    Source: Park and Chung 2005, eq. (41).
    """

    group: LieGroup

    @property
    def dim(self) -> int:
        return self.group.dim

    def move(self, xi: Array, y: Element) -> Element:
        return self.group.compose(_element("y", y, self.group.shapes), self.group.exp(self._vector("xi", xi)))

    def dexpinv(self, sigma: Array, xi: Array) -> Array:
        return self.group.dexpinv_action(-self._vector("sigma", sigma), self._vector("xi", xi))

    def bracket(self, a: Array, b: Array) -> Array:
        return -self.group.bracket(self._vector("a", a), self._vector("b", b))

    def difference(self, y0: Element, y1: Element) -> Array:
        return self.group.log(self.group.compose(self.group.inverse(y0), y1))

    def sizes(self, y: Element) -> Array:
        return self.group.sizes(y)

    def project(self, y: Element) -> Element:
        return self.group.project(_element("y", y, self.group.shapes))

    def defects(self, y: Element) -> dict[str, Any]:
        return self.group.defects(y)


def Translation(n: int) -> LeftTranslation:
    """R^n acting on itself by addition: every method becomes its classical form."""
    return LeftTranslation(Euclidean(n))


class Coadjoint(Action):
    """The dual of the algebra under ``mu -> Ad*_{g^-1} mu``, ``mu' = -ad*_xi mu``: preserves orbits and Casimirs.

    Source: Celledoni et al. 2021, Example 1 and sec. 3.3 (for a rigid body xi is minus the angular velocity).
    """

    group: LieGroup

    @property
    def dim(self) -> int:
        return self.group.dim

    def move(self, xi: Array, y: Array) -> Array:
        y = check.floating("y", y, self.dim)
        return self.group.Ad_dual_action(self.group.exp(-self._vector("xi", xi)), y)

    def dexpinv(self, sigma: Array, xi: Array) -> Array:
        return self.group.dexpinv_action(self._vector("sigma", sigma), self._vector("xi", xi))

    def bracket(self, a: Array, b: Array) -> Array:
        return self.group.bracket(self._vector("a", a), self._vector("b", b))

    def difference(self, y0: Array, y1: Array) -> Array:
        """The algebra vector with the smallest rotation that moves y0 to y1 on its orbit, or as close as possible.

        Only for the groups of rotations and poses. Undefined where the rotating vectors are zero or opposite.

        Raises:
            NotImplementedError: the group is not one of them.
        """
        y0, y1 = check.arguments(y0=(y0, (self.dim,)), y1=(y1, (self.dim,)))
        if self.group == SE3:
            return _screw_between(y0[..., :3], y0[..., 3:], y1[..., :3], y1[..., 3:])
        if self.group in (SO3, UnitQuaternion):
            return _turn_between(y0, y1)
        raise NotImplementedError(
            f"the orbits of {self.group} have no difference; those of SO3, UnitQuaternion and SE3 do"
        )

    def provides(self, verb: str) -> bool:
        if verb == "difference" and self.group not in (SO3, UnitQuaternion, SE3):
            return False
        return super().provides(verb)


def _turn_between(a: Array, b: Array) -> Array:
    """The rotation vector of the smallest rotation from the direction of a to that of b; NaN for opposite ones."""
    size = jnp.sqrt(jnp.sum(a * a, axis=-1) * jnp.sum(b * b, axis=-1))
    middle = size + jnp.sum(a * b, axis=-1)
    return quaternion.log(jnp.concatenate([middle[..., None], jnp.cross(a, b)], axis=-1))


def _screw_between(p0: Array, m0: Array, p1: Array, m1: Array) -> Array:
    """The twist with ``p1 = R p0`` and ``m1 = R m0 + r x p1``, (R, r) = exp: smallest rotation, r orthogonal to p1."""
    w = _turn_between(p0, p1)
    rest = m1 - so3.Ad_action(so3.exp(w), m0)
    r = jnp.cross(p1, rest) / jnp.sum(p1 * p1, axis=-1, keepdims=True)
    return jnp.concatenate([so3.dexpinv_action(w, r), w], axis=-1)


class TangentSphere(Action):
    """SE(3) on the tangent bundle of the 2-sphere: states (q, omega) in one array (6,), q a direction, omega . q = 0.

    ``(R, r) . (q, omega) = (R q, R omega + r x R q)``; the algebra vector is a twist (v, w), linear part first:
    ``q' = w x q``, ``omega' = w x omega + v x q``. |q| and omega . q are preserved.
    Source: Celledoni et al. 2021, sec. 5.1 (which writes the angular part first).
    """

    @property
    def dim(self) -> int:
        return 6

    def move(self, xi: Array, y: Array) -> Array:
        # (omega, q) transforms like a twist (v, w)
        y = check.floating("y", y, 6)
        moved = se3.Ad_action(se3.exp(self._vector("xi", xi)), jnp.concatenate([y[..., 3:], y[..., :3]], axis=-1))
        return jnp.concatenate([moved[..., 3:], moved[..., :3]], axis=-1)

    def dexpinv(self, sigma: Array, xi: Array) -> Array:
        return SE3.dexpinv_action(self._vector("sigma", sigma), self._vector("xi", xi))

    def bracket(self, a: Array, b: Array) -> Array:
        return SE3.bracket(self._vector("a", a), self._vector("b", b))

    def difference(self, y0: Array, y1: Array) -> Array:
        """The twist with the smallest rotation that moves y0 to y1, and with its displacement orthogonal to q1.

        Undefined where the directions are opposite.
        """
        y0, y1 = check.arguments(y0=(y0, (6,)), y1=(y1, (6,)))
        return _screw_between(y0[..., :3], y0[..., 3:], y1[..., :3], y1[..., 3:])

    def project(self, y: Array) -> Array:
        """The direction of q, and the part of omega orthogonal to it."""
        y = check.floating("y", y, 6)
        q = y[..., :3] / jnp.sqrt(jnp.sum(y[..., :3] ** 2, axis=-1, keepdims=True))
        along = jnp.sum(q * y[..., 3:], axis=-1, keepdims=True)
        return jnp.concatenate([q, y[..., 3:] - along * q], axis=-1)

    def defects(self, y: Any) -> dict[str, Any]:
        q, omega = y[..., :3], y[..., 3:]
        along = np.abs(np.sum(q * omega, axis=-1))
        return {
            "|q| = 1": np.max(np.abs(np.linalg.norm(q, axis=-1) - 1)),
            "q . omega / (1 + |omega|) = 0": np.max(along / (1 + np.linalg.norm(omega, axis=-1))),
        }


class Product(Action):
    """A product of actions: the state is a tuple, algebra vectors are concatenated."""

    actions: tuple[Action, ...]

    def __init__(self, *actions: Action):
        if not actions or not all(isinstance(a, Action) for a in actions):
            raise TypeError(f"actions: expected one or more actions, got {actions}")
        self.actions = actions

    @property
    def dims(self) -> list[int]:
        """The dimensions of the factors."""
        return [a.dim for a in self.actions]

    @property
    def dim(self) -> int:
        return sum(self.dims)

    def move(self, xi: Array, y: Point) -> Point:
        parts = zip(self.actions, split(check.floating("xi", xi, self.dim), self.dims), y, strict=True)
        return tuple(action.move(x, part) for action, x, part in parts)

    def dexpinv(self, sigma: Array, xi: Array) -> Array:
        sigma, xi = check.arguments(sigma=(sigma, (self.dim,)), xi=(xi, (self.dim,)))
        parts = zip(self.actions, split(sigma, self.dims), split(xi, self.dims), strict=True)
        return join([action.dexpinv(s, x) for action, s, x in parts])

    def bracket(self, a: Array, b: Array) -> Array:
        a, b = check.arguments(a=(a, (self.dim,)), b=(b, (self.dim,)))
        parts = zip(self.actions, split(a, self.dims), split(b, self.dims), strict=True)
        return join([action.bracket(x, z) for action, x, z in parts])

    def difference(self, y0: Point, y1: Point) -> Array:
        return join([action.difference(a, b) for action, a, b in zip(self.actions, y0, y1, strict=True)])

    def sizes(self, y: Point) -> Array:
        return join([action.sizes(part) for action, part in zip(self.actions, y, strict=True)])

    def project(self, y: Point) -> Point:
        return tuple(action.project(part) for action, part in zip(self.actions, y, strict=True))

    def defects(self, y: Point) -> dict[str, Any]:
        return defects_of_parts([action.defects(part) for action, part in zip(self.actions, y, strict=True)])

    def provides(self, verb: str) -> bool:
        return all(action.provides(verb) for action in self.actions)
