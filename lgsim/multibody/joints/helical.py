"""Helical."""

from dataclasses import dataclass

from lgsim.multibody.joint import Row, ScrewJoint


@dataclass(frozen=True)
class Helical(ScrewJoint):
    """A screw: ``q`` is the angle in rad, and the model's ``pitch`` is the advance in m/rad."""

    @property
    def pitched(self) -> bool:
        """Whether the turn of a row also advances along its axis: always."""
        return True

    @property
    def rows(self) -> tuple[Row, ...]:
        """One screw along z: a turn by q rad that advances by ``pitch * q`` m."""
        return (Row(True, 2),)
