"""Functions of one state, in a batch, as one kernel of CUDA, compiled by NVRTC and launched by XLA."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim._compile.programs.call import LEAST, read_once
from lgsim._compile.programs.nvrtc import Compiled, nvrtc
from lgsim._compile.programs.program import Program
from lgsim._compile.programs.shared_part import hoisted
from lgsim._compile.programs.store import read_entry, write_entry
from lgsim._compile.programs.targets.cuda import BLOCK, Cuda, is_row
from lgsim._compile.programs.targets.source import Described, Interface
from lgsim._compile.xla import CUDA_SWITCH, CompiledBatch, ReadProgram, cuda_kernel_call, launches_kernels

MOST = 30_000
"""Longer programs of a state are left to XLA: their numbers leave the registers, their code the instruction cache."""

PORTS = 500
"""Programs of more arguments and results are left to XLA: a kernel has 4 kB of parameters."""

_SPILLED = 8192
"""Kernels that spill more bytes of a thread to memory are left to XLA, which moves about as much."""

ROWS = 64
"""Arrays of at most this many numbers a state are taken as they lie where a batch comes first, a row a state: a block's
rows stay in the cache that its threads share. Larger ones are turned before."""

STATES = 2**31 - 1
"""The most states of a batch: the text counts them by an int."""


def compile_cuda_batch(closed: Any) -> ReadProgram | None:
    """What makes one kernel of the program of one state, or None where XLA has to do it.

    Args:
        closed: The program of one state.
    """
    if not _serves():
        return None
    program = read_once(closed)
    if program is None or len(program.statements) < LEAST:
        return None
    return _Read(program)


def compile_cuda_loop(closed: Any, carried: int, steps: int) -> ReadProgram | None:
    """What makes one kernel of a loop of a step, or None where XLA has to do it.

    Args:
        closed: The program of one step of one state.
        carried: How many of its arguments, the first ones, are its results: what it carries on.
        steps: The number of steps.
    """
    if not _serves():
        return None
    program = read_once(closed)
    if program is None:
        return None
    ports = zip(program.inputs[:carried], program.outputs, strict=True)
    if any((x.kind, x.shape) != (y.kind, y.shape) for x, y in ports):
        return None
    return _Read(program, carried, steps)


@cache
def _serves() -> bool:
    """Whether kernels can be compiled and launched; the reason why not is told once."""
    if nvrtc() is None:
        reason = "there is no NVRTC (libnvrtc, package nvidia-cuda-nvrtc)"
    elif not launches_kernels():
        reason = "jaxlib has no call that launches kernels; a newer JAX with its plugin for CUDA has one"
    else:
        return True
    warnings.warn(f"lgsim: XLA alone compiles for CUDA: {reason}", RuntimeWarning, stacklevel=2)
    return False


class _Read:
    """A program that becomes a kernel, or a step whose loop does.

    Args:
        carried: How many of its arguments, the first ones, a step carries on; 0 of what is no step. Its leaves are
            those of the other arguments, and then these.
        steps: The number of steps.
    """

    def __init__(self, program: Program, carried: int = 0, steps: int = 0) -> None:
        self._program, self._carried, self._steps = program, carried, steps

    @property
    def digest(self) -> str:
        """A hash of the program."""
        own = self._program.digest()
        return hashlib.sha256(f"{own} {self._steps}".encode()).hexdigest() if self._carried else own

    def __call__(self, shared: tuple[bool, ...]) -> CompiledBatch | None:
        """The kernel for the card that ``cuda_kernels`` names, or None where there can be none (a warning)."""
        # each state has a carry of its own after the first step
        first = len(shared) - self._carried
        ordered = (False,) * self._carried + shared[:first]
        given = [i for i, port in enumerate(self._program.inputs) if port.values]
        short = self._program._replace(inputs=tuple(self._program.inputs[i] for i in given))
        once = tuple(ordered[i] for i in given)
        try:
            if len(given) + len(short.outputs) > PORTS:
                raise NotImplementedError(f"{len(given) + len(short.outputs)} arrays are more than {PORTS}")
            kernel = self._kernel(short, once)
        except (RuntimeError, NotImplementedError) as error:
            warnings.warn(f"lgsim: no kernel of a program, XLA compiles it: {error}", RuntimeWarning, stacklevel=2)
            return None

        def run(leaves: Sequence[Array], states: int) -> list[Array]:
            carry = [
                x if x.ndim > len(port.shape) else jnp.broadcast_to(x[..., None], (*port.shape, states))
                for x, port in zip(leaves[first:], self._program.inputs, strict=False)
            ]
            return kernel([[*carry, *leaves[:first]][i] for i in given], states)

        return run

    def _kernel(self, short: Program, once: tuple[bool, ...]) -> CompiledBatch:
        if all(once):
            return _Kernel(short, once)
        first, second = hoisted(short, once)
        if len(second.statements) > MOST:
            raise NotImplementedError(f"{len(second.statements)} operations a state are more than {MOST}")
        arrays = (True,) * len(first.outputs)
        before = _Kernel(first, (True,) * len(first.inputs)) if first.outputs else None
        return _Whole(before, _Kernel(second, (*once, *arrays), self._steps))


NAME = "lgsim_kernel"


def compiled_kernel(program: Program, shared: tuple[bool, ...], capability: int, carried: int = 0) -> Compiled:
    """A program's kernel, from the user's cache where it is there.

    Args:
        program: The program; no input or output is without entries.
        shared: Of each input, whether all states share it.
        capability: Ten times the compute capability of the card.
        carried: How many arguments a step carries on, 0 of what is no step.

    Raises:
        RuntimeError: there is no NVRTC, or it does not accept the text.
        NotImplementedError: an operation has no text.
    """
    compiler = nvrtc()
    if compiler is None:
        raise RuntimeError("there is no NVRTC")
    names = tuple(Described(f"a{i}") for i in range(len(program.inputs)))
    results = tuple(Described(f"r{i}") for i in range(len(program.outputs)))
    source = Cuda(shared, carried, rows=ROWS)(Interface(NAME, program, names, results)).source
    key = hashlib.sha256(f"{source} {compiler.version} {capability}".encode()).hexdigest()
    kept = read_entry(f"ptx1_{key[:40]}")
    if kept is not None:
        with suppress(ValueError, TypeError):  # of what is no entry
            numbers, _, ptx = kept.decode().partition("\n")
            return Compiled(ptx, *map(int, numbers.split()))
    made = compiler.compiled(source, capability)
    write_entry(f"ptx1_{key[:40]}", f"{made.registers} {made.spilled}\n{made.ptx}".encode())
    return made


class _Kernel:
    """A kernel as a function of arrays that JAX traces, for the card that ``cuda_kernels`` names.

    Args:
        program: The program; no input is without entries.
        shared: Of each of its inputs, whether all states share it.
        steps: Above 0 the program is a step, and this many are taken.

    Raises:
        RuntimeError, NotImplementedError: as ``compiled_kernel``, or it spills more than ``_SPILLED``.
    """

    def __init__(self, program: Program, shared: tuple[bool, ...], steps: int = 0) -> None:
        self.kinds = [(np.dtype(port.kind), port.shape) for port in program.outputs]
        self.made = [i for i, port in enumerate(program.outputs) if port.values]
        self.shared, self.steps, self.capability = shared, steps, CUDA_SWITCH.value
        short = program._replace(outputs=tuple(program.outputs[i] for i in self.made))
        once = (*shared, *(False for _ in self.made))
        self.rows = [
            is_row(port, ROWS) and not alone for port, alone in zip((*short.inputs, *short.outputs), once, strict=True)
        ]
        carried = len(self.made) if steps else 0
        made = compiled_kernel(short, shared, self.capability, carried) if self.made else Compiled("", 0, 0)
        # one thread may spill what it likes
        if made.spilled > _SPILLED and not all(shared):
            raise NotImplementedError(f"its kernel spills {made.spilled} bytes a thread, more than {_SPILLED}")
        self.ptx = made.ptx

    def __call__(self, leaves: Sequence[Array], states: int) -> list[Array]:
        """The results (*own, states) of leaves (*own,), those that are shared, or (*own, states).

        Raises:
            ValueError: the batch is too large.
        """
        out = [jnp.zeros((*shape, states), dtype) for dtype, shape in self.kinds]
        if not self.made or not states:
            return out
        threads = 1 if all(self.shared) else states
        if threads > STATES:
            raise ValueError(f"batch: expected at most {STATES} states, got {threads}; take tiles of it")
        results = [jax.ShapeDtypeStruct((*self.kinds[i][1], threads), self.kinds[i][0]) for i in self.made]
        numbers = (self.steps,) if self.steps else ()
        call = cuda_kernel_call(NAME, self.ptx, BLOCK, self.capability, threads, results, self.rows, numbers)
        for i, x in zip(self.made, call(*leaves), strict=True):
            out[i] = jnp.broadcast_to(x, out[i].shape)
        return out


class _Whole:
    """A program as a kernel of one thread for what all states share, and one of a thread for each state."""

    def __init__(self, before: _Kernel | None, each: _Kernel) -> None:
        self._before, self._each = before, each

    def __call__(self, leaves: Sequence[Array], states: int) -> list[Array]:
        """As ``_Kernel`` does."""
        if self._before is None:
            return self._each(leaves, states)
        shared = [x for x, once in zip(leaves, self._each.shared, strict=False) if once]
        arrays = [x[..., 0] for x in self._before(shared, 1)]
        return self._each([*leaves, *arrays], states)
