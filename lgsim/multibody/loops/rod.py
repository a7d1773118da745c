"""A rod: constant distance between the origins of two frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import Array

from lgsim._compile.spatial import Force, Transform, Vec
from lgsim.multibody.loops.loop import FrameLoop, Numbers, Relative


@dataclass(frozen=True)
class Rod(FrameLoop):
    """``(p . p - L^2)/(2 L) = 0`` with p the position of b in a: a massless rod of length L between two ball joints."""

    @property
    def row_names(self) -> tuple[str, ...]:
        """One row."""
        return ("distance",)

    @property
    def row_turns(self) -> tuple[bool, ...]:
        """False: a distance."""
        return (False,)

    @property
    def number_names(self) -> tuple[str, ...]:
        """The length, m."""
        return ("length",)

    def fault(self, numbers: Any) -> str | None:
        """A length that is not positive."""
        return None if numbers[0] > 0 else f"length: expected a positive number, m, got {numbers[0]:g}"

    def residual(self, pose: Transform, numbers: Numbers) -> list[Array]:
        """``(p . p - L^2)/(2 L)``, m: the excess length, to first order."""
        (L,) = numbers
        return [(pose.p.dot(pose.p) - L * L) / (2 * L)]

    def gap(self, pose: Transform, numbers: Numbers) -> tuple[Array, Array]:
        """The square of ``|p| - L``."""
        far = jnp.sqrt(pose.p.dot(pose.p)) - numbers[0]
        return far * far, jnp.zeros_like(far)

    def wrenches(self, pose: Transform, numbers: Numbers) -> list[Force]:
        """A force along the rod: ``p/L`` in b's axes."""
        zero = jnp.zeros_like(pose.p.x)
        return [Force(_along(pose, numbers), Vec(zero, zero, zero))]

    def drift(self, at: Relative, numbers: Numbers) -> list[Array]:
        """``(p . (w x v) + v . v)/L``."""
        v, w = at.velocity
        return [_along(at.pose, numbers).dot(w.cross(v)) + v.dot(v) * (1 / numbers[0])]


def _along(pose: Transform, numbers: Numbers) -> Vec:
    return pose.R.transpose_apply(pose.p) * (1 / numbers[0])
