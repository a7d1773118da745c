"""What a function of one state computes, as data: straight-line programs of scalars, and what is made of them.

``lgsim.programs.call.compile_batch`` makes LLVM, where llvmlite is installed, the compiler of batches on the CPU.
"""

from lgsim.programs.evaluate import evaluate as evaluate
from lgsim.programs.evaluate import python_operations as python_operations
from lgsim.programs.program import NotAProgram as NotAProgram
from lgsim.programs.program import Program as Program
from lgsim.programs.program_bytes import ProgramFormatError as ProgramFormatError
from lgsim.programs.read import read as read
