"""A sphere; a point if its radius is zero."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp

from lgsim._compile.spatial import Vec
from lgsim.multibody.contacts.contact import Shape, Sized, Sizes, Surface


@dataclass(frozen=True)
class Sphere(Shape):
    """All points within ``radius`` of the frame's origin."""

    sizes = ("radius",)

    def count(self, surface: Surface) -> int:
        """One point."""
        return 1

    def points(self, sizes: Sizes) -> Vec:
        """The origin."""
        zero = jnp.zeros_like(sizes["radius"])
        return Vec(zero, zero, zero)


def sphere(radius: float = 0.0) -> Sized:
    """A sphere about the origin of its frame; by default a point.

    Args:
        radius: m, nonnegative.
    """
    return Sized(Sphere(), {"radius": radius})
