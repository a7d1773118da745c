"""What a function of one state computes, as data: straight-line programs of scalars, and what is made of them.

``lgsim.programs.call.compile_batch`` makes LLVM, where llvmlite is installed, the compiler of batches on the CPU.
"""

from lgsim.programs.evaluate import evaluate, python_operations
from lgsim.programs.program import NotAProgram, Program
from lgsim.programs.program_bytes import ProgramFormatError
from lgsim.programs.read import read

__all__ = ["NotAProgram", "Program", "ProgramFormatError", "evaluate", "python_operations", "read"]
