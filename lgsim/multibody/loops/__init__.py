"""What closes loops, one kind a file; a new one subclasses ``FrameLoop`` or ``JointLoop`` and is added to ``KINDS``."""

from lgsim.multibody.loops.joint_polynomial import Coupling
from lgsim.multibody.loops.joint_tie import CLOSING, JointTie
from lgsim.multibody.loops.loop import FrameLoop, JointLoop, Loop, LoopKind, Relative
from lgsim.multibody.loops.rod import Rod

KINDS: tuple[type[LoopKind], ...] = (JointTie, Rod, Coupling)
"""Every kind: what the generated tests run over."""

__all__ = [
    "CLOSING",
    "KINDS",
    "Coupling",
    "FrameLoop",
    "JointLoop",
    "JointTie",
    "Loop",
    "LoopKind",
    "Relative",
    "Rod",
]
