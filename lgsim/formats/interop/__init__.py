"""Conversion of coordinates, velocities, forces, Jacobians, inertias and frames to and from other tools' conventions.

``pinocchio``, ``mujoco`` and ``drake`` have the same functions. The tools need not be installed.
"""

from lgsim.formats.interop import drake as drake
from lgsim.formats.interop import mujoco as mujoco
from lgsim.formats.interop import pinocchio as pinocchio
