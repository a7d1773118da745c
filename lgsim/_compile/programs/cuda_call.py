"""Functions of one state, in a batch, as one CUDA kernel compiled by NVRTC and launched by XLA."""

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
"""Maximum number of statements per state; longer programs exceed the registers and the instruction cache."""

PORTS = 500
"""Maximum number of arguments and results; a kernel has 4 kB of parameters."""

_SPILLED = 8192
"""Maximum number of spilled bytes per thread; beyond it XLA moves about as much data."""

ROWS = 64
"""Maximum number of entries per state of arrays that are read with the batch axis first, one row per state.

The rows of a block stay in the shared cache of its threads. Larger arrays are transposed before."""

STATES = 2**31 - 1
"""Maximum number of states of a batch, which the kernel counts by an int."""


def compile_cuda_batch(closed: Any) -> ReadProgram | None:
    """Compile the program of one state to one kernel, or return None to leave it to XLA.

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
    """Compile a loop over a step to one kernel, or return None to leave it to XLA.

    Args:
        closed: The program of one step of one state.
        carried: The number of leading arguments that are the loop carry, as are the results.
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
    """True if kernels can be compiled and launched; the reason is in a warning, once."""
    if nvrtc() is None:
        reason = "there is no NVRTC (libnvrtc, package nvidia-cuda-nvrtc)"
    elif not launches_kernels():
        reason = "jaxlib has no call that launches kernels; a newer JAX with its plugin for CUDA has one"
    else:
        return True
    warnings.warn(f"lgsim: only XLA compiles for CUDA: {reason}", RuntimeWarning, stacklevel=2)
    return False


class _Read:
    """A program to be compiled to a kernel, or a step to be compiled to a loop.

    Args:
        carried: The number of leading arguments that a step carries; 0 if it is not a step. The leaves are the other
            arguments, then these.
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
        """The kernel for the compute capability of ``cuda_kernels``, or None with a warning."""
        # after the first step each state has its own carry
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
            raise NotImplementedError(f"{len(second.statements)} operations per state are more than {MOST}")
        arrays = (True,) * len(first.outputs)
        before = _Kernel(first, (True,) * len(first.inputs)) if first.outputs else None
        return _Whole(before, _Kernel(second, (*once, *arrays), self._steps))


NAME = "lgsim_kernel"


def compiled_kernel(program: Program, shared: tuple[bool, ...], capability: int, carried: int = 0) -> Compiled:
    """A program's kernel, from the user's cache if possible.

    Args:
        program: The program; all inputs and outputs have entries.
        shared: Flags of the inputs that all states share.
        capability: Ten times the compute capability of the card.
        carried: The number of arguments that a step carries, 0 if it is not a step.

    Raises:
        RuntimeError: NVRTC is missing or rejects the text.
        NotImplementedError: an operation is not supported.
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
        with suppress(ValueError, TypeError):  # a damaged entry
            numbers, _, ptx = kept.decode().partition("\n")
            return Compiled(ptx, *map(int, numbers.split()))
    made = compiler.compiled(source, capability)
    write_entry(f"ptx1_{key[:40]}", f"{made.registers} {made.spilled}\n{made.ptx}".encode())
    return made


class _Kernel:
    """A kernel as a function of arrays that JAX traces, for the compute capability of ``cuda_kernels``.

    Args:
        program: The program; all inputs have entries.
        shared: Flags of the inputs that all states share.
        steps: If positive, the program is a step that is run this many times.

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
        # the spill limit does not apply to a single thread
        if made.spilled > _SPILLED and not all(shared):
            raise NotImplementedError(f"its kernel spills {made.spilled} bytes per thread, more than {_SPILLED}")
        self.ptx = made.ptx

    def __call__(self, leaves: Sequence[Array], states: int) -> list[Array]:
        """The results (*own, states) for leaves that are shared, (*own,), or (*own, states).

        Raises:
            ValueError: the batch is too large.
        """
        out = [jnp.zeros((*shape, states), dtype) for dtype, shape in self.kinds]
        if not self.made or not states:
            return out
        threads = 1 if all(self.shared) else states
        if threads > STATES:
            raise ValueError(f"batch: expected at most {STATES} states, got {threads}; split it into tiles")
        results = [jax.ShapeDtypeStruct((*self.kinds[i][1], threads), self.kinds[i][0]) for i in self.made]
        numbers = (self.steps,) if self.steps else ()
        call = cuda_kernel_call(NAME, self.ptx, BLOCK, self.capability, threads, results, self.rows, numbers)
        for i, x in zip(self.made, call(*leaves), strict=True):
            out[i] = jnp.broadcast_to(x, out[i].shape)
        return out


class _Whole:
    """A program as two kernels: one thread for the shared part, and one thread per state."""

    def __init__(self, before: _Kernel | None, each: _Kernel) -> None:
        self._before, self._each = before, each

    def __call__(self, leaves: Sequence[Array], states: int) -> list[Array]:
        """The results, as for ``_Kernel``."""
        if self._before is None:
            return self._each(leaves, states)
        shared = [x for x, once in zip(leaves, self._each.shared, strict=False) if once]
        arrays = [x[..., 0] for x in self._before(shared, 1)]
        return self._each([*leaves, *arrays], states)
