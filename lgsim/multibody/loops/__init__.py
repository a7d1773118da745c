"""Constraints of closed kinematic loops, one kind per file: its rows and its residual.

A new kind is a subclass of ``FrameLoop`` or ``JointLoop`` of ``loop.py``, or of ``SteadyLoop``, added to ``KINDS``.
"""

from lgsim.multibody.loops.joint_polynomial import Coupling as Coupling
from lgsim.multibody.loops.joint_tie import JointTie as JointTie
from lgsim.multibody.loops.loop import Loop as Loop
from lgsim.multibody.loops.loop import LoopKind as LoopKind
from lgsim.multibody.loops.rod import Rod as Rod

KINDS: tuple[type[LoopKind], ...] = (JointTie, Rod, Coupling)
"""All kinds, for generated tests."""
