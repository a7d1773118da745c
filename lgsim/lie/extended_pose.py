"""SE_2(3), the extended poses of inertial navigation: a rotation, a velocity and a position; and SE_k(3) for any k.

An element is a pair ``(R, x)``: a rotation, and one array of k concatenated vectors (..., 3 k), each of which rotates
with it: ``(R, x)(S, y) = (R S, x + R y)``, where ``R y`` rotates every vector of y. For SE_2(3) it is
``x = (v, p)`` (..., 6), the velocity (m/s) and the position (m) of a body in the world's axes, R its attitude.

An algebra vector (..., 3 k + 3) has the linear parts first, in the order of x, and the rotation last. For SE_2(3) it is
``u = (nu, rho, w)`` (..., 9): nu moves the velocity, rho the position, and w is the rotation vector. Papers that write
``(phi, nu, rho)`` have their blocks in another order. The velocity ``u`` of a moving element is, in body and in
space form,

    right translation, g' = g hat(u):  u = (R^T v', R^T p', w)           with R' = R hat(w)
    left translation,  g' = hat(u) g:  u = (v' - w x v, p' - w x p, w)   with R' = hat(w) R

so that an inertial measurement unit (IMU) that measures the specific force a and the angular velocity w, both in its
own axes, moves with ``u = (a + R^T gravity, R^T v, w)`` by right translation.

Sources: Barrau and Bonnabel 2017, The invariant extended Kalman filter as a stable observer; Brossard, Barrau, Chauchat
and Bonnabel 2021, Associating uncertainty to extended poses for on manifold IMU preintegration.
"""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim._compile.spatial import Motion, Vec
from lgsim.lie.ad_functions import DEXP, DEXPINV, AdFunction, on_motion
from lgsim.lie.group import SO3, ArrayGroup, Element, UnitQuaternion
from lgsim.lie.product import Semidirect
from lgsim.support import check


class ExtendedPoses(Semidirect):
    """SE_k(3): a rotation and k vectors that rotate with it, the adjoint representation k times.

    SE_1(3) is SE(3) as pairs (R, p); SE_2(3) is ``lgsim.SE23``.

    Attributes:
        base: the rotations, ``lgsim.SO3``, or ``lgsim.UnitQuaternion``.
        count: k.

    Raises:
        TypeError: ``base`` is another group.
        ValueError: ``count`` is below 1.
    """

    base: ArrayGroup = SO3
    count: int = eqx.field(static=True, default=2)
    vector_first: ClassVar[bool] = True

    def __check_init__(self) -> None:
        if self.base not in (SO3, UnitQuaternion):
            raise TypeError(f"base: expected the rotations SO3 or UnitQuaternion, got {self.base!r}")
        check.count("count", self.count)

    def __repr__(self) -> str:
        return f"ExtendedPoses({self.base!r}, {self.count})"

    @property
    def vector_dim(self) -> int:
        return 3 * self.count

    def represent(self, g: Element, x: Array) -> Array:
        rows = self._rows(x)
        return self._in_line(self.base.Ad_action(jnp.expand_dims(g, len(self.base.batch_of(g))), rows))

    def generate(self, u: Array, x: Array) -> Array:
        return self._in_line(self.base.bracket(u[..., None, :], self._rows(x)))

    def average(self, u: Array, x: Array) -> Array:
        return self._in_line(self.base.dexp_action(u[..., None, :], self._rows(x)))

    def average_inverse(self, u: Array, x: Array) -> Array:
        return self._in_line(self.base.dexpinv_action(u[..., None, :], self._rows(x)))

    def dexp_action(self, u: Array, v: Array) -> Array:
        return self._by_twists(DEXP, u, v)

    def dexpinv_action(self, u: Array, v: Array) -> Array:
        return self._by_twists(DEXPINV, u, v)

    def matrix(self, g: Element) -> Float[Array, "*batch n n"]:
        """The matrix ``[[R, x_1, ..., x_k], [0, 1]]`` (..., 3 + k, 3 + k) of an element; its product is ``compose``.

        For SE_2(3) it is ``[[R, v, p], [0, 0, 1, 0], [0, 0, 0, 1]]`` by blocks (Barrau and Bonnabel 2017).

        Raises:
            ValueError: g is not a pair of an element of ``base`` and a vector (..., 3 k).
        """
        a, x = self._pair("g", g)
        # the columns of a rotation matrix are the rotated axes
        R = self.base.Ad(a)
        top = jnp.concatenate([R, jnp.swapaxes(self._rows(x), -1, -2)], axis=-1)
        bottom = jnp.eye(3 + self.count, dtype=x.dtype)[3:]
        return jnp.concatenate([top, jnp.broadcast_to(bottom, (*x.shape[:-1], *bottom.shape))], axis=-2)

    def _rows(self, x: Array) -> Array:
        """The vectors (..., k, 3)."""
        x = check.floating("x", x, self.vector_dim)
        return x.reshape(*x.shape[:-1], self.count, 3)

    def _in_line(self, rows: Array) -> Array:
        return rows.reshape(*rows.shape[:-2], self.vector_dim)

    def _by_twists(self, phi: AdFunction, u: Array, v: Array) -> Array:
        """``phi(ad_u) v``: each vector with the rotation is a twist of SE(3), and all share the angular part.

        The closed form of the derivative in ``Semidirect``; its own derivatives compile much faster.
        """
        twists = []
        for w, x in self._vectors(u=u, v=v):
            rows, w = self._rows(x), w[..., None, :]
            linear, angular = ([a[..., i] for i in range(3)] for a in (rows, w))
            twists.append(Motion(Vec(*linear), Vec(*angular)))
        linear, angular = on_motion(phi, *twists)
        return self._joined(jnp.concatenate(angular, axis=-1), self._in_line(jnp.stack(linear, axis=-1)))


SE23 = ExtendedPoses()
"""Extended poses: pairs ``(R, x)`` of a rotation matrix (3, 3) and ``x = (v, p)`` (6,), velocity and position.

Algebra vectors ``(nu, rho, w)`` (9,): velocity, position, rotation.
"""
