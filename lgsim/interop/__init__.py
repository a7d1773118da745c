"""Coordinates, velocities, forces, Jacobians, inertias and frames to and from other tools' conventions.

``lgsim.interop.pinocchio``, ``mujoco`` and ``drake`` have the same functions. None of the tools need be installed.
"""

from lgsim.interop import drake as drake
from lgsim.interop import mujoco as mujoco
from lgsim.interop import pinocchio as pinocchio
