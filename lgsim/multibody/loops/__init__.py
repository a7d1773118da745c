"""What closes loops, one kind a file of at most 60 lines: its rows and its residual.

A new kind subclasses ``FrameLoop`` or ``JointLoop`` of ``loop.py``, or ``SteadyLoop``, and is added to ``KINDS``.
"""

from lgsim.multibody.loops.joint_polynomial import Coupling as Coupling
from lgsim.multibody.loops.joint_tie import JointTie as JointTie
from lgsim.multibody.loops.loop import Loop as Loop
from lgsim.multibody.loops.loop import LoopKind as LoopKind
from lgsim.multibody.loops.rod import Rod as Rod

KINDS: tuple[type[LoopKind], ...] = (JointTie, Rod, Coupling)
"""Every kind: what the generated tests run over."""
