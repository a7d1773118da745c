"""Compound joint: a sequence of elementary screws without bodies between them, from a joint map matrix."""

from __future__ import annotations

from dataclasses import dataclass

from lgsim.multibody.joint import Row, ScrewJoint


@dataclass(frozen=True)
class Compound(ScrewJoint):
    """Elementary screws, the first one next to the parent; one coordinate each (rad or m).

    Source: Kwatny and Blankenship 1995, Proposition 3: a compound joint is a sequence of simple joints.
    """

    sequence: tuple[Row, ...] = ()

    @property
    def pitched(self) -> bool:
        """True."""
        return True

    @property
    def rows(self) -> tuple[Row, ...]:
        """The elementary screws."""
        return self.sequence
