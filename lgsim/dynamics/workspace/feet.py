"""Feet: frames fixed to the ground, and the wrenches that the ground can exert on them.

The contact wrench (f, n) of a foot has six components at the origin of its frame and in its axes, z being the ground
normal. The type of foot defines which of them are constrained and within which friction cone. In the other directions
the foot rotates or translates freely.
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
    """The base class of feet. A new type is a subclass with ``held`` and the rows of its cone.

    Attributes:
        frame: Name of the frame, at the sole, z pointing away from the ground.
    """

    frame: eqx.AbstractVar[str]

    @property
    @abstractmethod
    def held(self) -> tuple[bool, ...]:
        """Flags of the six wrench components that the contact can exert; static."""

    @abstractmethod
    def cone(self) -> Float[Array, "rows 6"]:
        """Rows C of the friction cone ``C (f, n) >= 0``: wrenches without liftoff, slip or tilt."""


class PointFoot(Foot):
    """A foot with a point contact at the origin of its frame: a force inside a friction pyramid.

    Attributes:
        frame: Name of its frame.
        friction: Coefficient mu, ``|f_x|, |f_y| <= mu f_z``.
    """

    frame: str = eqx.field(static=True)
    friction: Number = 0.7

    @property
    def held(self) -> tuple[bool, ...]:
        """The three force components."""
        return (True, True, True, False, False, False)

    def cone(self) -> Float[Array, "5 6"]:
        """``f_z >= 0`` and the friction pyramid."""
        return _pyramid(jnp.asarray(self.friction))


class FlatFoot(Foot):
    """A foot with a rectangular sole: a wrench in a friction pyramid with its center of pressure on the sole.

    Attributes:
        frame: Name of its frame, in the plane of the sole.
        front: Extent of the sole forward, to x = front, m.
        back: Extent of the sole backward, to x = -back, m.
        side: Half width of the sole, from y = -side to y = side, m.
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
        """All six components."""
        return (True,) * 6

    def cone(self) -> Float[Array, "11 6"]:
        """The friction pyramid; ``-back f_z <= -n_y <= front f_z``; ``|n_x| <= side f_z``; ``|n_z| <= torsion f_z``."""
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
