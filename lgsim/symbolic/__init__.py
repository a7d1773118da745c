"""Formulas and code of lgsim's own functions."""

from lgsim.programs import targets
from lgsim.symbolic.compile import compile
from lgsim.symbolic.shared_library import SharedLibrary, shared_library

__all__ = ["SharedLibrary", "compile", "shared_library", "targets"]
