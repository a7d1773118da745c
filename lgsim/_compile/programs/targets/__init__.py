"""Targets: programs as text for a compiler or another language, one target per file.

Each target is an object that takes an ``Interface`` and returns ``Code``, or the equivalent of its language.
"""

from lgsim._compile.programs.targets.c import C as C
from lgsim._compile.programs.targets.casadi import Casadi as Casadi
from lgsim._compile.programs.targets.cuda import Cuda as Cuda
from lgsim._compile.programs.targets.numpy import NumPy as NumPy
from lgsim._compile.programs.targets.source import Code as Code
from lgsim._compile.programs.targets.source import Described as Described
from lgsim._compile.programs.targets.source import Interface as Interface
