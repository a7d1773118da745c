"""A program as text for a compiler or another language, one target a file; each is an object that takes an
``Interface`` and gives ``Code``, or what its language has in its place.
"""

from lgsim.programs.targets.c import C
from lgsim.programs.targets.casadi import Casadi
from lgsim.programs.targets.cuda import Cuda
from lgsim.programs.targets.numpy import NumPy
from lgsim.programs.targets.source import Code, Described, Interface

__all__ = ["C", "Casadi", "Code", "Cuda", "Described", "Interface", "NumPy"]
