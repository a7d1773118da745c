"""What a function of one state computes, as data: straight-line programs of scalars, and what is made of them."""

from lgsim.programs.program import NotAProgram, Program
from lgsim.programs.read import read

__all__ = ["NotAProgram", "Program", "read"]
