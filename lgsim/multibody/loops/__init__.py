"""What closes loops, one kind a file of at most 60 lines: its rows and its residual.

A new kind subclasses ``FrameLoop``, ``SteadyLoop`` or ``JointLoop`` and is added to ``KINDS``.
"""

from lgsim.multibody.loops.closing_joints import CLOSING
from lgsim.multibody.loops.joint_polynomial import Coupling
from lgsim.multibody.loops.joint_tie import JointTie
from lgsim.multibody.loops.loop import FrameLoop, JointLoop, Loop, LoopKind, Relative
from lgsim.multibody.loops.rod import Rod
from lgsim.multibody.loops.steady_loop import SteadyLoop

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
    "SteadyLoop",
]
