"""The compiler of batches that is asked before XLA: where it is registered, without JAX, and where it is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

COMPILERS: list[Callable[..., Any]] = []
"""The compiler that is asked first, or none; see ``lgsim.xla.compilers.BatchCompiler``."""


def register_batch_compiler(compiler: Callable[..., Any]) -> None:
    """Ask this compiler first for what ``lgsim.xla.batch_last`` and ``linear_last`` lower to on the CPU.

    Args:
        compiler: Of the program of one state, what compiles it, or None.
    """
    COMPILERS[:] = [compiler]
