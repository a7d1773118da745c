"""A program as text for a compiler or another language, one target a file; each is an object that takes an
``Interface`` and gives ``Code``, or what its language has in its place.
"""

from lgsim._compile.programs.targets.c import C as C
from lgsim._compile.programs.targets.casadi import Casadi as Casadi
from lgsim._compile.programs.targets.cuda import Cuda as Cuda
from lgsim._compile.programs.targets.numpy import NumPy as NumPy
from lgsim._compile.programs.targets.source import Code as Code
from lgsim._compile.programs.targets.source import Described as Described
from lgsim._compile.programs.targets.source import Interface as Interface
