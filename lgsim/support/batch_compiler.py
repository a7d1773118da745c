"""The compilers of batches that are asked before XLA: registered and found here, without JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

COMPILERS: dict[str, Callable[..., Any]] = {}
"""By platform the compiler that is asked first; see ``lgsim._compile.xla.compilers.BatchCompiler``."""

LOOP_COMPILERS: dict[str, Callable[..., Any]] = {}
"""By platform the compiler of loops of a step, which only counts its steps."""


def register_batch_compiler(compiler: Callable[..., Any], platform: str = "cpu") -> None:
    """Ask this compiler first for what ``lgsim._compile.xla.batch_last`` and ``linear_last`` lower to on a platform.

    Args:
        compiler: Of the program of one state, what compiles it, or None.
        platform: "cpu" or "cuda".
    """
    COMPILERS[platform] = compiler


def register_loop_compiler(compiler: Callable[..., Any], platform: str) -> None:
    """Ask this compiler first for what ``lgsim._compile.xla.straight_line_loop`` lowers to on a platform.

    Args:
        compiler: Of the program of one step of one state, the number of arguments that it carries on, which come first
            and are its results, and the number of steps: what compiles the loop, of leaves of which those come last, or
            None.
        platform: "cuda".
    """
    LOOP_COMPILERS[platform] = compiler
