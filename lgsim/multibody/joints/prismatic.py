"""Prismatic joint."""

from dataclasses import dataclass

from lgsim.multibody.joint import Row, ScrewJoint


@dataclass(frozen=True)
class Prismatic(ScrewJoint):
    """Translation along an axis: ``q`` in m."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """The elementary screws."""
        return (Row(False, 2),)
