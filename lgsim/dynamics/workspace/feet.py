"""Feet: frames that count as fixed to the ground, by what they can press on it.

Of each foot six numbers count, a wrench (f, n) at the origin of its frame and in its axes, z being the ground's
normal. A kind says which of them it can press at all, the others being directions in which it turns or slides freely,
and within which cone.
"""

from __future__ import annotations

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

Number = int | float | Float[np.ndarray, ""] | Float[Array, ""]


class Foot(eqx.Module):
    """The contract of a foot. A new kind is a subclass: ``held``, and the rows of its cone.

    Attributes:
        frame: Name of its frame, at the sole, z away from the ground.
    """

    frame: eqx.AbstractVar[str]

    @property
    @abstractmethod
    def held(self) -> tuple[bool, ...]:
        """Which of the six numbers of a wrench it can press, six flags; static."""

    @abstractmethod
    def cone(self) -> Float[Array, "rows 6"]:
        """Rows C of the cone ``C (f, n) >= 0`` of the wrenches that neither lift, slide nor tilt it."""


class PointFoot(Foot):
    """A foot that touches in one point, at the origin of its frame: a force inside a friction pyramid.

    Attributes:
        frame: Name of its frame.
        friction: Coefficient mu, ``|f_x|, |f_y| <= mu f_z``.
    """

    frame: str = eqx.field(static=True)
    friction: Number = 0.7

    @property
    def held(self) -> tuple[bool, ...]:
        """The force."""
        return (True, True, True, False, False, False)

    def cone(self) -> Float[Array, "5 6"]:
        """``f_z >= 0`` and the pyramid."""
        return _pyramid(jnp.asarray(self.friction))


class FlatFoot(Foot):
    """A foot with a rectangular sole: a wrench in a friction pyramid whose center of pressure lies on the sole.

    Attributes:
        frame: Name of its frame, in the plane of the sole.
        front: The sole reaches forward to x = front, m.
        back: It reaches back to x = -back, m.
        side: It reaches from y = -side to y = side, m.
        friction: Coefficient mu, ``|f_x|, |f_y| <= mu f_z``.
        torsion: ``|n_z| <= torsion f_z``, m.
    """

    frame: str = eqx.field(static=True)
    front: Number
    back: Number
    side: Number
    friction: Number = 0.7
    torsion: Number = 0.05

    @property
    def held(self) -> tuple[bool, ...]:
        """All of it."""
        return (True,) * 6

    def cone(self) -> Float[Array, "11 6"]:
        """The pyramid; ``-back f_z <= -n_y <= front f_z``; ``|n_x| <= side f_z``; ``|n_z| <= torsion f_z``."""
        rows = _pyramid(jnp.asarray(self.friction))
        up, (x, y, z) = jnp.eye(6)[2], jnp.eye(6)[3:]
        of_pressure = [
            jnp.multiply(reach, up.astype(rows.dtype)) + sign * axis.astype(rows.dtype)
            for reach, sign, axis in (
                (self.front, 1, y), (self.back, -1, y), (self.side, 1, x), (self.side, -1, x), (self.torsion, 1, z),
                (self.torsion, -1, z),
            )
        ]  # fmt: skip
        return jnp.concatenate([rows, jnp.stack(of_pressure)])


def _pyramid(friction: Float[Array, ""]) -> Float[Array, "5 6"]:
    """``f_z >= 0`` and ``mu f_z -+ f_x >= 0``, ``mu f_z -+ f_y >= 0``."""
    x, y, z = (row.astype(friction.dtype) for row in jnp.eye(6)[:3])
    return jnp.stack([z, *(friction * z + sign * axis for axis in (x, y) for sign in (1, -1))])
