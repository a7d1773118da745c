"""Joint types, one per file. A new one is a subclass of ``ScrewJoint`` or ``GroupJoint``, added to ``JOINTS``."""

from lgsim.multibody.joint import Joint
from lgsim.multibody.joints.angles import SphericalAngles
from lgsim.multibody.joints.compound import Compound
from lgsim.multibody.joints.cylindrical import Cylindrical
from lgsim.multibody.joints.fixed import Fixed
from lgsim.multibody.joints.free import Free
from lgsim.multibody.joints.helical import Helical
from lgsim.multibody.joints.planar import Planar
from lgsim.multibody.joints.prismatic import Prismatic
from lgsim.multibody.joints.revolute import Continuous, Revolute
from lgsim.multibody.joints.spherical import Spherical
from lgsim.multibody.joints.translational import Translational
from lgsim.multibody.joints.universal import Universal

JOINTS: tuple[type[Joint], ...] = (
    Fixed, Revolute, Continuous, Prismatic, Helical, Cylindrical, Universal, Spherical, SphericalAngles, Planar,
    Translational, Free, Compound,
)  # fmt: skip
"""All joint types, for generated tests."""

__all__ = [
    "JOINTS",
    "Compound",
    "Continuous",
    "Cylindrical",
    "Fixed",
    "Free",
    "Helical",
    "Planar",
    "Prismatic",
    "Revolute",
    "Spherical",
    "SphericalAngles",
    "Translational",
    "Universal",
]
