"""Whether batches on the last axis are compiled by XLA alone, or by another compiler where that takes the program.

The other compiler lives on a higher floor: ``lgsim`` registers it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

import jax
from jax import Array
from jax.extend.core import ClosedJaxpr

CompiledBatch = Callable[[Sequence[Array], int], list[Array]]
"""``compiled(leaves, states)``: of leaves, (*own, states) or (*own) where all states share it, (*own, states)."""


@runtime_checkable
class ReadProgram(Protocol):
    """A program of one state that a compiler takes."""

    @property
    def digest(self) -> str:
        """A hash of the program, equal for equal programs in every process."""
        ...

    def __call__(self, shared: tuple[bool, ...]) -> CompiledBatch | None:
        """What is compiled, or None where the compiler fails.

        Args:
            shared: Of each argument, whether all states share it.
        """
        ...


BatchCompiler = Callable[[ClosedJaxpr], ReadProgram | None]
"""Of the program of one state, what compiles it, or None."""

# LGSIM_LLVM_LOWERING=0 switches it off for a process.
_DEFAULT = os.environ.get("LGSIM_LLVM_LOWERING", "1") != "0"


class _Switch(threading.local):
    value = _DEFAULT


# before JAX 0.8 what is compiled does not depend on a setting that is not JAX's own
_HAS_CONTEXT = hasattr(jax, "make_user_context")
SWITCH: Any = jax.make_user_context(_DEFAULT) if _HAS_CONTEXT else _Switch()
"""Its ``value`` says whether the compiler is asked."""


@contextmanager
def llvm_lowering(enabled: bool) -> Iterator[None]:
    """``with lgsim.llvm_lowering(False):`` compile by XLA alone what is compiled inside, in this thread.

    By default, on a CPU, lgsim's algorithms are compiled as straight-line programs of several states to a vector by
    LLVM, where the package llvmlite is installed (extra ``fast``) and a program is not too long. The results of both
    are the same to rounding. The environment variable ``LGSIM_LLVM_LOWERING=0`` switches it off for a process.

    What LLVM made is kept in the user's folder for caches (``LGSIM_CACHE_DIR``) and known to the process that lowers a
    program: one that is exported or serialized for another process has to be lowered with it switched off.

    Args:
        enabled: Whether LLVM is used where it can be.
    """
    if _HAS_CONTEXT:
        with SWITCH(enabled):
            yield
        return
    before, SWITCH.value = SWITCH.value, enabled
    jax.clear_caches()
    try:
        yield
    finally:
        SWITCH.value = before
        jax.clear_caches()
