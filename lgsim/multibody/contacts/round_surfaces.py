"""The surface of a sphere or a capsule, for example of another body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import Array

from lgsim._compile.spatial import Vec
from lgsim.multibody.contacts.contact import Sized, Sizes, Surface
from lgsim.multibody.geometry.forms import length


@dataclass(frozen=True)
class RoundSurface(Surface):
    """All points at ``radius`` from a segment of ``length`` on the frame's z axis, centered at the origin.

    The normal is undefined on the segment itself; it is set to zero there, and so is the force.
    """

    sizes = ("radius", "length")

    def half_axis(self, sizes: Sizes) -> Any:
        """Half the length."""
        return 0.5 * sizes["length"]

    def gap(self, sizes: Sizes, p: Vec) -> tuple[Array, Vec]:
        """The distance to the segment minus the radius, and the direction from the nearest point of the segment."""
        half = 0.5 * sizes["length"]
        r = Vec(p.x, p.y, p.z - jnp.clip(p.z, -half, half))
        distance, direction = length(r)
        return distance - sizes["radius"], direction


def round_surface(radius: float, length: float = 0.0) -> Sized:
    """The surface of a sphere about the origin of its frame, or of a capsule about its z axis.

    Args:
        radius: m, nonnegative.
        length: Length of the capsule's segment between the centers of its ends, m; 0 for a sphere.
    """
    return Sized(RoundSurface(), {"radius": radius, "length": length})
