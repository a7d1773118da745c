"""Translational joint."""

from dataclasses import dataclass

from lgsim.multibody.joint import Row, ScrewJoint


@dataclass(frozen=True)
class Translational(ScrewJoint):
    """Any translation: ``q = p`` in the parent's axes, m."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """The elementary screws."""
        return (Row(False, 0), Row(False, 1), Row(False, 2))
