"""Whether batches on the last axis are compiled by XLA alone, or by another compiler where that takes the program.

The other compiler lives on a higher floor: ``lgsim`` registers it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any, Protocol, runtime_checkable

import jax.numpy as jnp
from jax import Array

from lgsim._compile.xla.fallback import attempt
from lgsim._compile.xla.jax_internals import ClosedJaxpr, Setting
from lgsim.support.batch_compiler import COMPILERS

CompiledBatch = Callable[[Sequence[Array], Any], list[Array]]
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


# LGSIM_CUDA_KERNELS=90 switches kernels of CUDA on for a process, for cards of compute capability 9.0.
_CAPABILITY = int(os.environ.get("LGSIM_CUDA_KERNELS", "0"))


_SWITCH = Setting(_DEFAULT)
"""Its ``value`` says whether the compiler for CPUs is asked."""

CUDA_SWITCH = Setting(_CAPABILITY)
"""Its ``value`` is the compute capability that kernels of CUDA are made for, ten times, or 0 for none."""


SWITCHES = {"cpu": ("cpu", _SWITCH), "cuda": ("cuda", CUDA_SWITCH), "gpu": ("cuda", CUDA_SWITCH)}
"""By platform the name of the compiler that is asked first, and its switch."""


@contextmanager
def llvm_lowering(enabled: bool) -> Iterator[None]:
    """``with lgsim.llvm_lowering(False):`` compile by XLA alone what is compiled inside, in this thread.

    By default, on a CPU, lgsim's algorithms are compiled as straight-line programs of several states to a vector by
    LLVM, where the package llvmlite is installed (extra ``fast``) and a program is not too long. The results of both
    are the same to rounding. The environment variable ``LGSIM_LLVM_LOWERING=0`` switches it off for a process.

    What LLVM made is kept in the user's folder for caches (``LGSIM_CACHE_DIR``) and known to the process that lowers a
    program. Another process that runs an exported or serialized one needs them too, see ``lgsim.load_programs``.

    Args:
        enabled: Whether LLVM is used where it can be.
    """
    with _SWITCH.changed(enabled):
        yield


@contextmanager
def cuda_kernels(capability: int) -> Iterator[None]:
    """``with lgsim.cuda_kernels(90):`` one kernel of CUDA for each of lgsim's recursions and steps, in this thread.

    What is lowered for CUDA inside is the text of ``programs.targets.Cuda``, a state a thread, compiled by NVRTC and
    launched by XLA through the custom call that jaxlib has for kernels of Triton. It compiles, and its text is tested
    on a CPU; **it has not run on a GPU yet**, and so it is off unless it is asked for. The environment variable
    ``LGSIM_CUDA_KERNELS=90`` switches it on for a process.

    Left to XLA, with the same results to rounding, are short programs, loops whose end depends on the state and, with a
    warning, programs of more than 30 000 operations, kernels that spill more than 8192 bytes a thread or do not
    compile, and all of it where NVRTC or the custom call is missing.

    Args:
        capability: Ten times the compute capability of the card, such as 80 for an A100 and 90 for an H100 or H200;
            0 switches kernels off.

    Raises:
        ValueError: no card has such a number.
    """
    if capability not in (0, *range(50, 200)):
        raise ValueError(
            "capability: expected ten times the compute capability of the card, such as 90 for an H100 or H200, or 0,"
            f" got {capability!r}"
        )
    with CUDA_SWITCH.changed(int(capability)):
        yield


def batch_compiler(platform: str) -> BatchCompiler | None:
    """The compiler that is asked first on a platform, or None."""
    return COMPILERS.get(compiler_name(platform) or "")


def compiler_name(platform: str) -> str | None:
    """The name of the compiler that is asked first on a platform, or None where none is."""
    name, switch = SWITCHES.get(platform, ("", None))
    return name if switch is not None and switch.value else None


def made_once(program: ReadProgram, made: dict[Any, Any], shared: tuple[bool, ...]) -> CompiledBatch | None:
    """What is compiled of a program, once for each kind of batch and card."""
    key = shared, CUDA_SWITCH.value
    if key not in made:
        made[key] = attempt(program, shared)
    return made[key]


def run_compiled(
    compiled: CompiledBatch | None, leaves: Sequence[Array], own: Sequence[int], batch: tuple[Any, ...]
) -> list[Array] | None:
    """The results (*own, *batch) of what another compiler than XLA made of a program, or None where XLA has to do it.

    Args:
        compiled: The program, made for leaves that all states share where they have no batch axis above 1, or None.
        leaves: The arguments, (*own, *batch) or with 1 in the place of axes of the batch.
        own: Of each argument its number of own axes.
        batch: The shape of the batch.
    """
    states = prod(batch)

    def flat(x: Array, axes: int) -> Array:
        """(*own,) where all states share the leaf, else (*own, states)."""
        mine = x.shape[:axes]
        if all(size == 1 for size in x.shape[axes:]):
            return x.reshape(mine)
        return jnp.broadcast_to(x, (*mine, *batch)).reshape(*mine, states)

    if compiled is None:
        return None
    found = attempt(compiled, [flat(*each) for each in zip(leaves, own, strict=True)], states)
    return None if found is None else [x.reshape(*x.shape[:-1], *batch) for x in found]
