"""Cylindrical joint."""

from dataclasses import dataclass

from lgsim.multibody.joint import Row, ScrewJoint


@dataclass(frozen=True)
class Cylindrical(ScrewJoint):
    """Rotation about an axis and translation along it: ``q = (angle, distance)``."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """The elementary screws."""
        return (Row(True, 2), Row(False, 2))
