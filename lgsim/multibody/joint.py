"""Interface of joints: rows of elementary screws and a configuration space."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim._compile.spatial import Motion, Transform, Vec

Components = Sequence[Array]
"""Coordinates of one or many joints of a kind, one array for each coordinate."""


class Row(NamedTuple):
    """One degree of freedom: a rotation about an axis, possibly with a pitch, or a translation along it."""

    turns: bool
    axis: int
    """Default axis 0, 1 or 2 of the joint's frame."""


@dataclass(frozen=True)
class Joint(ABC):
    """Interface of a joint between the frame P on its parent and the frame C of its child; they coincide at zero.

    Its velocity is a sum of screws, one for each row, fixed in C: ``V = sum_i s_i v_i``, the body twist of C relative
    to P. All methods act on coordinates by components, of any common shape.
    """

    @property
    @abstractmethod
    def rows(self) -> tuple[Row, ...]:
        """The elementary screws, in the order of the velocity's coordinates."""

    @property
    def pitched(self) -> bool:
        """True if its rotational rows may have a pitch, which is a parameter of the model; else it is zero."""
        return False

    @property
    def nv(self) -> int:
        """Degrees of freedom."""
        return len(self.rows)

    @property
    @abstractmethod
    def nq(self) -> int:
        """Number of configuration coordinates."""

    @property
    @abstractmethod
    def neutral(self) -> tuple[float, ...]:
        """The configuration at which the frames P and C coincide."""

    @abstractmethod
    def retract(self, q: Components, dv: Components) -> list[Array]:
        """The configuration that the constant velocity ``dv`` reaches from ``q`` in unit time."""

    @abstractmethod
    def difference(self, q0: Components, q1: Components) -> list[Array]:
        """The smallest ``dv`` with ``retract(q0, dv) = q1``."""

    @abstractmethod
    def rate(self, q: Components, v: Components) -> list[Array]:
        """The time derivative of the configuration at velocity ``v``."""

    @abstractmethod
    def velocity(self, q: Components, dq: Components) -> list[Array]:
        """The velocity of a configuration with the time derivative ``dq``: the left inverse of ``rate``."""

    def force(self, q: Components, pull: Components) -> list[Array]:
        """``E^T pull`` with ``dq/dt = E v``: the joint force of generalized forces dual to the coordinate rates.

        For joints with as many coordinates as degrees of freedom. If E is a rotation, its transpose is its inverse,
        ``velocity``; other joints override this.
        """
        return self.velocity(q, pull)

    @abstractmethod
    def random(self, key: Array, shape: tuple[int, ...], dtype: jnp.dtype) -> list[Array]:
        """Random configurations: angles uniform in [-pi, pi], rotations uniform, distances standard normal."""

    def transform(self, q: Components) -> Transform | None:
        """The pose of C in P, in the axes of the rows; None if it is the product of the rows' screws."""
        del q

    def bias(self, v: Components) -> list[Array] | None:
        """Difference between the joint acceleration and those of a chain of its rows; None for zero.

        A joint whose configuration is a group element moves like a chain of its rows about its present pose. For such a
        chain ``V' = sum_i s_i y_i + sum_{i<j} [s_i, s_j] v_i v_j`` (coordinates of the second kind at zero), and the
        columns of a subgroup span the brackets, so that ``v' = y + bias(v)``.
        """
        del v

    @property
    def stopped(self) -> bool:
        """True if its limits are not those of its coordinates, see ``stops``."""
        return False

    def stops(self, q: Components, lower: Components, upper: Components) -> tuple[Any, ...]:
        """The limits of a joint that is ``stopped``, one for each degree of freedom.

        Each has ``square``, the squared excess e over the limit, ``slope``, e times n with ``e' = n . v``, and
        ``normal``, n.
        """
        del q, lower, upper
        return ()


@dataclass(frozen=True)
class ScrewJoint(Joint):
    """A chain of screws with one coordinate each: the configuration is a vector, angles are not wrapped."""

    @property
    def nq(self) -> int:
        """Number of configuration coordinates."""
        return self.nv

    @property
    def neutral(self) -> tuple[float, ...]:
        """Zero."""
        return (0.0,) * self.nv

    def retract(self, q: Components, dv: Components) -> list[Array]:
        """``q + dv``."""
        return [a + b for a, b in zip(q, dv, strict=True)]

    def difference(self, q0: Components, q1: Components) -> list[Array]:
        """``q1 - q0``."""
        return [b - a for a, b in zip(q0, q1, strict=True)]

    def rate(self, q: Components, v: Components) -> list[Array]:
        """``v``."""
        return list(v)

    def velocity(self, q: Components, dq: Components) -> list[Array]:
        """``dq``."""
        return list(dq)

    def random(self, key: Array, shape: tuple[int, ...], dtype: jnp.dtype) -> list[Array]:
        """Angles uniform in [-pi, pi], distances standard normal."""
        keys = jax.random.split(key, max(self.nv, 1))
        return [
            jax.random.uniform(k, shape, dtype, -jnp.pi, jnp.pi) if row.turns else jax.random.normal(k, shape, dtype)
            for k, row in zip(keys, self.rows, strict=False)
        ]


@dataclass(frozen=True)
class GroupJoint(Joint):
    """A joint whose configurations are a subgroup of SE(3), spanned by the rows about the axes of one frame."""

    @cached_property
    def brackets(self) -> tuple[tuple[int, int, int, float], ...]:
        """The (i, j, k, c), i < j, with ``[s_i, s_j] = ... + c s_k``."""
        screws = np.zeros((self.nv, 6))
        for screw, row in zip(screws, self.rows, strict=True):
            screw[3 * row.turns + row.axis] = 1
        return tuple(
            (i, j, k, float(c))
            for i in range(self.nv)
            for j in range(i + 1, self.nv)
            for k, c in enumerate(screws @ bracket(screws[i], screws[j]))
            if c
        )

    def bias(self, v: Components) -> list[Array] | None:
        """``sum_{i<j} [s_i, s_j] v_i v_j`` in the coordinates of the rows."""
        if not self.brackets:
            return None
        out = [jnp.zeros_like(v[0])] * self.nv
        for i, j, k, c in self.brackets:
            out[k] = out[k] + c * (v[i] * v[j])
        return out

    @abstractmethod
    def transform(self, q: Components) -> Transform:
        """The pose of C in P, in the axes of the rows."""

    def twist(self, v: Components) -> Motion:
        """The velocity as an element of se(3), in the axes of the rows."""
        out = [jnp.zeros_like(v[0])] * 6
        for row, rate in zip(self.rows, v, strict=True):
            out[3 * row.turns + row.axis] = rate
        return Motion(Vec(*out[:3]), Vec(*out[3:]))

    def rates(self, twist: Motion) -> list[Array]:
        """The joint velocity of an element of the joint's algebra: the inverse of ``twist``."""
        return [twist[row.turns][row.axis] for row in self.rows]


def bracket(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``[a, b]`` of two static screws (v, w)."""
    return np.concatenate([np.cross(a[3:], b[:3]) + np.cross(a[:3], b[3:]), np.cross(a[3:], b[3:])])
