"""Programs: what a function of one state computes, as data, a straight line of operations on scalars."""

from lgsim._compile.programs.evaluate import evaluate as evaluate
from lgsim._compile.programs.evaluate import python_operations as python_operations
from lgsim._compile.programs.program import Program as Program
from lgsim._compile.programs.program import UnsupportedProgramError as UnsupportedProgramError
from lgsim._compile.programs.program_bytes import ProgramFormatError as ProgramFormatError
from lgsim._compile.programs.read import read as read
