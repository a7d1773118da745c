"""Fixed joint."""

from dataclasses import dataclass

from lgsim.multibody.joint import Row, ScrewJoint


@dataclass(frozen=True)
class Fixed(ScrewJoint):
    """No motion; a model merges the child into the parent and keeps its frame."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """The elementary screws."""
        return ()
