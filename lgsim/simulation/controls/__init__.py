"""What drives a machine in a simulation: feedback laws for ``control``, external wrenches for ``wrenches``.

A control is any function ``(t, q, v, model) -> joint forces (nv,)``; the laws here are such functions whose numbers are
leaves, so that they can be differentiated, mapped and changed without compiling again.

- joint by joint: ``PD``; the whole machine: ``GravityCompensation``, ``ComputedTorque``, ``Hover``; sums of laws by
  ``+``; ``MotorLimits`` around another law;
- a machine that stands on feet (``FlatFoot``, ``PointFoot``): ``Workspace`` moves its central body,
  ``CentroidalFeedback`` its center of mass; the wrench is shared among the feet by ``LeastNorm`` in closed form, by
  ``ConeSplit`` within friction and soles;
- a machine whose joints are all driven: ``TaskSpace`` brings it to do tasks in priority, ``FramePlace``, ``FrameTurn``,
  ``Posture`` or another ``Task``;
- ``FrameWrench`` and sums of wrenches push it.
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
