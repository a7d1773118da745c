"""Revolute joint, and continuous joint: the same without limits."""

from dataclasses import dataclass

from lgsim.multibody.joint import Row, ScrewJoint


@dataclass(frozen=True)
class Revolute(ScrewJoint):
    """Rotation about an axis: ``q`` in rad, not wrapped."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """The elementary screws."""
        return (Row(True, 2),)


@dataclass(frozen=True)
class Continuous(Revolute):
    """A revolute joint without position limits."""
