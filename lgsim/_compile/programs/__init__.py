"""What a function of one state computes, as data: straight-line programs of scalars, and what is made of them.

``call.compile_batch`` makes LLVM, where llvmlite is installed, the compiler of batches on the CPU.
"""

from lgsim._compile.programs.evaluate import evaluate as evaluate
from lgsim._compile.programs.evaluate import python_operations as python_operations
from lgsim._compile.programs.program import NotAProgram as NotAProgram
from lgsim._compile.programs.program import Program as Program
from lgsim._compile.programs.program_bytes import ProgramFormatError as ProgramFormatError
from lgsim._compile.programs.read import read as read
