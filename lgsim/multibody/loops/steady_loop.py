"""Loops that constrain elementary motions of b: their rows T are unit wrenches along the axes of b."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from lgsim._compile.spatial import Force, Transform, Vec
from lgsim.multibody.loops.loop import FrameLoop, Numbers


@dataclass(frozen=True)
class SteadyLoop(FrameLoop):
    """A constraint whose rows are constant in b; subclasses list the constrained motions and define the residual."""

    @property
    @abstractmethod
    def forbidden(self) -> tuple[tuple[bool, int], ...]:
        """(True for a rotation, axis) of each row."""

    @property
    def steady(self) -> bool:
        """True."""
        return True

    @property
    def row_names(self) -> tuple[str, ...]:
        """Names of the constrained translations and rotations."""
        return tuple(("turn about " if turns else "slide along ") + "xyz"[axis] for turns, axis in self.forbidden)

    @property
    def row_turns(self) -> tuple[bool, ...]:
        """True for rotations."""
        return tuple(turns for turns, _ in self.forbidden)

    def wrenches(self, pose: Transform, numbers: Numbers) -> list[Force]:
        """Unit forces and moments along axes of b."""
        zero, one = jnp.zeros_like(pose.p.x), jnp.ones_like(pose.p.x)
        nothing = Vec(zero, zero, zero)
        units = [Vec(*(one if i == axis else zero for i in range(3))) for axis in range(3)]
        return [Force(nothing, units[axis]) if turns else Force(units[axis], nothing) for turns, axis in self.forbidden]

    def entries(self, slides: Vec, turns: Vec) -> list[Array]:
        """Components of a displacement in the directions of the rows."""
        return [(turns if turning else slides)[axis] for turning, axis in self.forbidden]
