"""A plane."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from lgsim._compile.spatial import Vec
from lgsim.multibody.contacts.contact import Sized, Sizes, Surface


@dataclass(frozen=True)
class Plane(Surface):
    """The plane ``z = height`` of its frame; outside is above."""

    sizes = ("height",)
    signed = ("height",)

    def gap(self, sizes: Sizes, p: Vec) -> tuple[Array, Vec]:
        """``z - height`` and the z axis."""
        gap = p.z - sizes["height"]
        zero = jnp.zeros_like(gap)
        return gap, Vec(zero, zero, zero + 1)


def plane(height: float = 0.0) -> Sized:
    """A plane at a height above the x-y plane of its frame.

    A slope is a plane on a rotated frame: ``builder.add_frame("slope", "world", pose)``, then ``against="slope"``.

    Args:
        height: m, of any sign.
    """
    return Sized(Plane(), {"height": height})
