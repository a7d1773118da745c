"""A registry of batch compilers that take precedence over XLA, without JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

COMPILERS: dict[str, Callable[..., Any]] = {}
"""The compiler that is asked first, by platform; see ``lgsim._compile.xla.compilers.BatchCompiler``."""

LOOP_COMPILERS: dict[str, Callable[..., Any]] = {}
"""The compiler of loops over one step, by platform; the loops have a fixed number of steps."""


def register_batch_compiler(compiler: Callable[..., Any], platform: str = "cpu") -> None:
    """Register a compiler that takes precedence for the lowering of ``batch_last`` and ``linear_last`` on a platform.

    Args:
        compiler: A function of the program of one state that returns its compiled form, or None to decline; see
            ``lgsim._compile.xla``.
        platform: "cpu" or "cuda".
    """
    COMPILERS[platform] = compiler


def register_loop_compiler(compiler: Callable[..., Any], platform: str) -> None:
    """Register a compiler that takes precedence for the lowering of ``straight_line_loop`` on a platform.

    Args:
        compiler: A function of the program of one step of one state, of the number of carried arguments, and of the
            number of steps. The carried arguments come first and are the program's results. It returns the compiled
            loop, whose leaves have the carried ones last, or None to decline.
        platform: "cuda".
    """
    LOOP_COMPILERS[platform] = compiler
