"""Languages for ``compile``: each takes an ``Interface`` and returns ``Code``, or a function of the language."""

from lgsim._compile.programs.targets import C as C
from lgsim._compile.programs.targets import Casadi as Casadi
from lgsim._compile.programs.targets import Code as Code
from lgsim._compile.programs.targets import Cuda as Cuda
from lgsim._compile.programs.targets import Interface as Interface
from lgsim._compile.programs.targets import NumPy as NumPy
