"""Coordinates, velocities, forces, Jacobians, inertias and frames to and from other tools' conventions.

``pinocchio``, ``mujoco`` and ``drake`` have the same functions. None of the tools need be installed.
"""

from lgsim.formats.interop import drake as drake
from lgsim.formats.interop import mujoco as mujoco
from lgsim.formats.interop import pinocchio as pinocchio
