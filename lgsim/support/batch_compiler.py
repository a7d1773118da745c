"""The compilers of batches that are asked before XLA: registered and found here, without JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

COMPILERS: dict[str, Callable[..., Any]] = {}
"""By platform the compiler that is asked first; see ``lgsim.xla.compilers.BatchCompiler``."""


def register_batch_compiler(compiler: Callable[..., Any], platform: str = "cpu") -> None:
    """Ask this compiler first for what ``lgsim.xla.batch_last`` and ``linear_last`` lower to on a platform.

    Args:
        compiler: Of the program of one state, what compiles it, or None.
        platform: "cpu" or "cuda".
    """
    COMPILERS[platform] = compiler
