"""Helical."""

from dataclasses import dataclass

from lgsim.multibody.joint import Row, ScrewJoint


@dataclass(frozen=True)
class Helical(ScrewJoint):
    """A screw: ``q`` is the angle in rad, and the model's ``pitch`` is the advance in m/rad."""

    @property
    def pitched(self) -> bool:
        """Yes."""
        return True

    @property
    def rows(self) -> tuple[Row, ...]:
        """The elementary screws."""
        return (Row(True, 2),)
