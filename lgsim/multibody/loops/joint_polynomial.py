"""A coupling: a polynomial between the coordinates of two joints."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import jax.numpy as jnp
from jax import Array

from lgsim.multibody.loops.loop import JointLoop, Numbers


@dataclass(frozen=True)
class Coupling(JointLoop):
    """``x_b = c_0 + c_1 x_a + ... + c_n x_a^n``, one row; the residual is the difference, rad or m.

    Attributes:
        degree: n.
        turns: True if joint b is revolute, so that the residual is an angle.
    """

    degree: int = 1
    turns: bool = True

    @property
    def row_turns(self) -> tuple[bool, ...]:
        """True if joint b is revolute."""
        return (self.turns,)

    @property
    def number_names(self) -> tuple[str, ...]:
        """The coefficients, the constant first."""
        return tuple(f"c{i}" for i in range(self.degree + 1))

    def values(self, x: Array, numbers: Numbers) -> tuple[Array, Array, Array, Array]:
        """The polynomial and its derivatives by Horner's rule."""
        out = []
        for order in range(4):
            factors = [_falling(i, order) for i in range(order, len(numbers))]
            terms = [c * float(f) for c, f in zip(numbers[order:], factors, strict=True)]
            out.append(reduce(lambda total, c: total * x + c, reversed(terms), jnp.zeros_like(x)))
        return tuple(out)  # type: ignore[return-value]


def _falling(i: int, order: int) -> int:
    """``i (i - 1) ... (i - order + 1)``."""
    return reduce(lambda product, k: product * (i - k), range(order), 1)
