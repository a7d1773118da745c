"""Universal joint."""

from dataclasses import dataclass

from lgsim.multibody.joint import Row, ScrewJoint


@dataclass(frozen=True)
class Universal(ScrewJoint):
    """Two rotations, the second about an axis carried by the first: two angles in rad."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """The elementary screws."""
        return (Row(True, 0), Row(True, 1))
