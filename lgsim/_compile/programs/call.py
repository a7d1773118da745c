"""Functions of one state, in a batch, as straight-line programs compiled by LLVM and called by XLA."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim._compile.programs.compiler import compiler
from lgsim._compile.programs.fingerprint import fingerprint
from lgsim._compile.programs.handlers import Handler, registered_name
from lgsim._compile.programs.program import Port, Program, UnsupportedProgramError
from lgsim._compile.programs.program_bytes import ProgramFormatError
from lgsim._compile.programs.read import read_jaxpr
from lgsim._compile.programs.state_loops import refuse_state_loops
from lgsim._compile.programs.store import read_entry, write_entry
from lgsim._compile.xla import CompiledBatch, ReadProgram, handler_call

MOST = 100_000
"""Maximum number of statements; XLA compiles longer programs, with a compile time that grows less with length."""

_ENTRIES = 5_000
"""Maximum number of arguments and results; LLVM's compile time grows faster than linearly with it."""

LEAST = 100
"""Minimum number of statements; XLA fuses shorter programs with their surroundings, and a call costs about 0.2 us.

XLA also compiles programs with fewer statements than entries of arguments and results: they mostly move data."""

_NONE = b"none"
"""Cache entry of a function that has no program."""


def compile_batch(closed: Any) -> ReadProgram | None:
    """Compile the program of one state by LLVM for batches of any size, or return None to leave it to XLA.

    Args:
        closed: The program of one state.
    """
    if compiler() is None:
        return None
    program = read_once(closed)
    if program is None:
        return None
    entries = program.entries + sum(len(port.values) for port in program.outputs)
    if entries > _ENTRIES or len(program.statements) < max(LEAST, entries):
        return None
    return _Read(program)


def read_once(closed: Any) -> Program | None:
    """The program of one state, from the user's cache if possible, or None if it has none."""
    try:
        refuse_state_loops(closed)
    except UnsupportedProgramError:
        return None
    name = fingerprint(closed)
    entry = None if name is None else f"program_{name}"
    kept = None if entry is None else read_entry(entry)
    if kept is not None:
        if kept == _NONE:
            return None
        with suppress(ProgramFormatError):
            program = Program.from_bytes(kept)
            ports = _ports(program.inputs), _ports(program.outputs)
            if ports == (_kinds(closed.in_avals), _kinds(closed.out_avals)):
                return program
    try:
        program = read_jaxpr(closed, MOST)
    except UnsupportedProgramError:
        program = None
    if entry is not None:
        write_entry(entry, _NONE if program is None else program.to_bytes())
    return program


def _ports(ports: Sequence[Port]) -> list[tuple[str, tuple[int, ...]]]:
    return [(port.kind, tuple(port.shape)) for port in ports]


def _kinds(avals: Sequence[Any]) -> list[tuple[str, tuple[int, ...]]]:
    return [(aval.dtype.name, tuple(aval.shape)) for aval in avals]


class _Read:
    """A program that LLVM compiles."""

    def __init__(self, program: Program) -> None:
        self._program = program

    @property
    def digest(self) -> str:
        """A hash of the program."""
        return self._program.digest()

    def __call__(self, shared: tuple[bool, ...]) -> CompiledBatch | None:
        """Compile it, see ``compile_program``."""
        return compile_program(self._program, shared)


def compile_program(program: Program, shared: tuple[bool, ...]) -> CompiledBatch | None:
    """A program compiled by LLVM, or None without operations or LLVM, or if it fails (a warning).

    Args:
        shared: Flags of the inputs that all states of a batch share.
    """
    llvm = compiler()
    if llvm is None:
        return None
    given = [i for i, port in enumerate(program.inputs) if port.values]
    made = [i for i, port in enumerate(program.outputs) if port.values]
    if not made:
        return None
    short = program._replace(
        inputs=tuple(program.inputs[i] for i in given), outputs=tuple(program.outputs[i] for i in made)
    )
    once = tuple(shared[i] for i in given)
    try:
        name = registered_name(Handler(short, once), llvm)
    except (RuntimeError, NotImplementedError) as error:
        warnings.warn(f"lgsim: LLVM rejects a program, XLA compiles it: {error}", RuntimeWarning, stacklevel=2)
        return None
    return _Call(name, short, program.outputs, given, made, all(once))


class _Call:
    """A compiled program as a function of arrays that JAX traces."""

    def __init__(
        self, name: str, short: Program, outputs: Sequence[Port], given: list[int], made: list[int], alone: bool
    ) -> None:
        self.name, self.given, self.made, self.alone = name, given, made, alone
        self.kinds = [(np.dtype(port.kind), port.shape) for port in outputs]

    def __call__(self, leaves: Sequence[Array], states: Any) -> list[Array]:
        """The results (*own, states) for leaves that are shared, (*own,), or (*own, states).

        Args:
            states: The number of states, an integer or a symbolic dimension of ``jax.export``.
        """
        out = [jnp.zeros((*shape, states), dtype) for dtype, shape in self.kinds]
        if not self.made or not states:
            return out
        alone = () if self.alone else (states,)
        kinds = [self.kinds[i] for i in self.made]
        results = [jax.ShapeDtypeStruct((*shape, *alone), dtype) for dtype, shape in kinds]
        found = handler_call(self.name, results)(*(leaves[i] for i in self.given))
        for i, x in zip(self.made, found, strict=True):
            out[i] = jnp.broadcast_to(x[..., None], out[i].shape) if self.alone else x
        return out
