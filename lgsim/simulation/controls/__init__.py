"""What drives a machine in a simulation: feedback laws for ``control``, external wrenches for ``wrenches``.

A control is any function ``(t, q, v, model) -> joint forces (nv,)``; the laws here are such functions whose numbers are
leaves, so that they can be differentiated, mapped and changed without compiling again.

- joint by joint: ``PD``; the whole machine: ``GravityCompensation``, ``ComputedTorque``, ``Hover``; sums of laws by
  ``+``; ``MotorLimits`` around another law;
- a machine that stands on feet (``FlatFoot``, ``PointFoot`` or another ``Foot``): ``Workspace`` moves its central body,
  ``CentroidalFeedback`` its center of mass, and a ``WrenchSplit`` shares the wrench among the feet, ``LeastNorm`` in
  closed form, ``ConeSplit`` within friction and soles; ``WorkspaceForces`` is all that they ask for;
- a machine whose joints are all driven: ``TaskSpace`` brings it to do tasks in priority, ``FramePlace``, ``FrameTurn``,
  ``Posture`` or another ``Task``, which says what it wants by a ``TaskMotion``; ``TaskForces`` is all that it asks for;
- ``FrameWrench`` and sums of wrenches push it.
"""

from lgsim.dynamics.workspace.feet import FlatFoot, Foot, PointFoot
from lgsim.simulation.controls.control_laws import (
    PD,
    ComputedTorque,
    ControlLaw,
    ControlSum,
    FrameWrench,
    GravityCompensation,
    Hover,
    MotorLimits,
)
from lgsim.simulation.controls.task_space import TaskForces, TaskSpace
from lgsim.simulation.controls.tasks import FramePlace, FrameTurn, Posture, Task, TaskMotion
from lgsim.simulation.controls.workspace import CentroidalFeedback, Workspace, WorkspaceForces
from lgsim.simulation.controls.wrench_split import ConeSplit, LeastNorm, WrenchSplit

__all__ = [
    "PD",
    "CentroidalFeedback",
    "ComputedTorque",
    "ConeSplit",
    "ControlLaw",
    "ControlSum",
    "FlatFoot",
    "Foot",
    "FramePlace",
    "FrameTurn",
    "FrameWrench",
    "GravityCompensation",
    "Hover",
    "LeastNorm",
    "MotorLimits",
    "PointFoot",
    "Posture",
    "Task",
    "TaskForces",
    "TaskMotion",
    "TaskSpace",
    "Workspace",
    "WorkspaceForces",
    "WrenchSplit",
]
