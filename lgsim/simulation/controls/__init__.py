"""Controllers for ``control`` and external wrenches for ``wrenches``.

A control is any function ``(t, q, v, model) -> joint forces (nv,)``. The classes here are such functions whose
parameters are pytree leaves, so that they can be differentiated, mapped and changed without recompilation.

- joint space: ``PD``; model-based: ``GravityCompensation``, ``ComputedTorque``, ``Hover``; sums of controllers by
  ``+``; ``MotorLimits`` around another controller;
- legged robots (``FlatFoot``, ``PointFoot``): ``Workspace`` controls the central body, ``CentroidalFeedback`` the
  center of mass; the wrench is distributed among the feet by ``LeastNorm`` in closed form, or by ``ConeSplit`` within
  friction cones and foot soles;
- fully actuated robots: ``TaskSpace`` is operational-space control of prioritized tasks, ``FramePlace``, ``FrameTurn``,
  ``Posture`` or another ``Task``;
- ``FrameWrench`` and sums of wrenches apply external forces.
"""

from lgsim.dynamics.workspace.feet import FlatFoot as FlatFoot
from lgsim.dynamics.workspace.feet import PointFoot as PointFoot
from lgsim.simulation.controls.control_laws import PD as PD
from lgsim.simulation.controls.control_laws import ComputedTorque as ComputedTorque
from lgsim.simulation.controls.control_laws import ControlLaw as ControlLaw
from lgsim.simulation.controls.control_laws import FrameWrench as FrameWrench
from lgsim.simulation.controls.control_laws import GravityCompensation as GravityCompensation
from lgsim.simulation.controls.control_laws import Hover as Hover
from lgsim.simulation.controls.control_laws import MotorLimits as MotorLimits
from lgsim.simulation.controls.task_space import TaskSpace as TaskSpace
from lgsim.simulation.controls.tasks import FramePlace as FramePlace
from lgsim.simulation.controls.tasks import FrameTurn as FrameTurn
from lgsim.simulation.controls.tasks import Posture as Posture
from lgsim.simulation.controls.tasks import Task as Task
from lgsim.simulation.controls.workspace import CentroidalFeedback as CentroidalFeedback
from lgsim.simulation.controls.workspace import Workspace as Workspace
from lgsim.simulation.controls.wrench_split import ConeSplit as ConeSplit
from lgsim.simulation.controls.wrench_split import LeastNorm as LeastNorm
