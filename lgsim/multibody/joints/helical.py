"""Helical joint."""

from dataclasses import dataclass

from lgsim.multibody.joint import Row, ScrewJoint


@dataclass(frozen=True)
class Helical(ScrewJoint):
    """A screw: ``q`` is the angle in rad, and the model's ``pitch`` is in m/rad."""

    @property
    def pitched(self) -> bool:
        """True."""
        return True

    @property
    def rows(self) -> tuple[Row, ...]:
        """One screw along z: a rotation by q rad with a translation of ``pitch * q`` m."""
        return (Row(True, 2),)
