"""Functions of one state as straight-line programs: a whole integration step, and loops over steps.

If another compiler than XLA takes the program, it includes everything between lgsim's recursions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import Array
from jax.core import Tracer

from lgsim._compile.xla.batch_levels import Levels, in_batches, levels_primitive
from lgsim._compile.xla.compilers import (
    BatchCompiler,
    CompiledBatch,
    ReadProgram,
    batch_compiler,
    compiler_name,
    made_once,
    run_compiled,
)
from lgsim._compile.xla.fallback import attempt
from lgsim._compile.xla.hints import traced_platform
from lgsim._compile.xla.jax_internals import ClosedJaxpr, jaxpr_as_fun, varies, without_jit
from lgsim.support.batch_compiler import LOOP_COMPILERS

Result = TypeVar("Result")


def straight_line(f: Callable[..., Result]) -> Callable[..., Result]:
    """``f`` of one state as one program if another compiler than XLA takes it, else unchanged.

    Its derivatives of any order and mode are those of ``f``: not a program, though functions in it may be. A program is
    exact for finite values; a product with a constant 0 is 0, NaN and infinity included. If operands differ between the
    devices of a ``shard_map``, it is ``f``.

    Args:
        f: A function of pytrees of arrays. Arrays that it closes over are operands if they are traced, else constants
            of the program.
    """
    known: dict[Any, _Traced] = {}

    def trace(args: tuple, platform: str, compiler: BatchCompiler) -> _Traced:
        """The traced function; without operands from outside, it is reused for every call with the same types."""
        leaves, structure = jax.tree.flatten(args)
        kinds = ((x.shape, x.dtype, x.weak_type) for x in leaves)
        key = compiler, structure, jax.dtypes.canonicalize_dtype(int), *kinds
        if key in known:
            return known[key]
        closed, out = jax.make_jaxpr(f, return_shape=True)(*args)
        outside = _outside(closed)
        jaxpr = _with_operands(closed, outside, leaves) if outside else closed
        read = attempt(compiler, jaxpr)
        traced = _Traced(jaxpr, outside, jax.tree.structure(out), None if read is None else _Line(read, platform))
        if not outside:
            known[key] = traced
        return traced

    @wraps(f)
    def call(*args: Any) -> Any:
        # without a compiler, with jit disabled, or with operands that differ between devices: f itself
        platform = traced_platform()
        compiler = batch_compiler(platform)
        if compiler is None or without_jit():
            return f(*args)
        args = jax.tree.map(jnp.asarray, args)
        if varies(args):
            return f(*args)
        jaxpr, outside, structure, line = trace(args, platform, compiler)
        if varies(outside):
            return f(*args)
        # operands: traced values from outside, then the leaves of the arguments
        leaves = [*outside, *jax.tree.leaves(args)]
        if line is None:
            found = jaxpr_as_fun(jaxpr)(*leaves)
        else:
            found = _line.bind(*leaves, jaxpr=jaxpr, line=line, counts=(len(leaves), 0, 0), levels=())
        return jax.tree.unflatten(structure, found)

    return call


def straight_line_loop(
    step: Callable[[Any, Array], tuple[Any, Any]],
    loop: Callable[[Any, Array], tuple[Any, Any]],
    carry: Any,
    start: Array,
    steps: int,
) -> tuple[Any, Any]:
    """``loop(carry, start)`` as one program that keeps the state in registers, if a compiler of loops takes it.

    Its derivatives of any order and mode are those of ``loop``.

    Args:
        step: ``step(carry, k)`` returns the carry after step k, and an output. There is no such program if the output
            has arrays.
        loop: A function that runs the steps k = start .. start + steps - 1; it returns the last carry and the outputs.
        carry: The initial carry, a pytree of arrays.
        start: Index of the first step, ().
        steps: Number of steps.
    """
    platform = traced_platform()
    compiler = LOOP_COMPILERS.get(compiler_name(platform) or "")
    if compiler is None or without_jit():
        return loop(carry, start)
    carry, start = jax.tree.map(jnp.asarray, (carry, start))
    given = [*jax.tree.leaves(carry), start]
    whole, (_, outputs) = jax.make_jaxpr(loop, return_shape=True)(carry, start)
    if jax.tree.leaves(outputs) or varies(given, whole.consts):
        return loop(carry, start)
    one = jax.make_jaxpr(lambda carry, k: (step(carry, k)[0], k + 1))(carry, start)
    outside = _outside(one, whole)
    count = len(given)
    opened = _opened(one, outside)
    stepped = jax.make_jaxpr(lambda given, outside: opened(outside, given))(given, outside)
    read = attempt(compiler, stepped, count, steps)
    if read is None:
        return loop(carry, start)
    leaves = [*outside, *given]
    found = _line.bind(
        *leaves, jaxpr=_with_operands(whole, outside, given), line=_Line(read, platform),
        counts=(len(outside), 0, count), levels=(),
    )  # fmt: skip
    return jax.tree.unflatten(jax.tree.structure((carry, outputs)), found)


def _outside(*programs: ClosedJaxpr) -> list[Any]:
    """Traced values that traced functions close over, each once."""
    return list({id(x): x for closed in programs for x in closed.consts if isinstance(x, Tracer)}.values())


def _with_operands(closed: ClosedJaxpr, outside: list[Any], leaves: list[Any]) -> ClosedJaxpr:
    """The program of (*outside, *leaves) for a traced function of the leaves."""
    return jax.make_jaxpr(_opened(closed, outside))(outside, leaves)


def _opened(closed: ClosedJaxpr, outside: list[Any]) -> Callable[[list[Any], list[Any]], list[Array]]:
    """A traced function of its leaves as a function of its closure and of them."""

    def opened(values: list[Any], leaves: list[Any]) -> list[Array]:
        given = dict(zip(map(id, outside), values, strict=True))
        return jaxpr_as_fun(ClosedJaxpr(closed.jaxpr, [given.get(id(x), x) for x in closed.consts]))(*leaves)

    return opened


class _Traced(NamedTuple):
    """A traced function of one state.

    Attributes:
        jaxpr: Its program, with the operands from outside and its own arguments.
        outside: Traced values that it closes over.
        structure: Structure of its result.
        line: The program if a compiler takes it.
    """

    jaxpr: ClosedJaxpr
    outside: list[Any]
    structure: Any
    line: _Line | None


class _Line:
    """A program that the compiler takes, with its compiled versions; one for each traced call."""

    def __init__(self, read: ReadProgram, platform: str) -> None:
        self._read, self._platform = read, "cpu" if platform == "cpu" else "cuda"
        self._made: dict[Any, CompiledBatch | None] = {}

    def __repr__(self) -> str:
        # part of the text of a traced program, which does not include the constants of the inner program
        return f"straight line {self._read.digest[:16]}"

    def compiled(self, platform: str, shared: tuple[bool, ...]) -> CompiledBatch | None:
        """The program compiled for a platform; None if it was read for another one."""
        if platform != self._platform or batch_compiler(platform) is None:
            return None
        return made_once(self._read, self._made, shared)


def _run_line(
    *leaves: Array, jaxpr: ClosedJaxpr, line: _Line, counts: tuple[int, int, int], levels: Levels
) -> list[Array]:
    alone = (False,) * len(jaxpr.consts)
    return in_batches(levels, jaxpr, list(map(jnp.asarray, jaxpr.consts)), lambda mapped: alone + mapped)(*leaves)


def _line_on(
    platform: str, *leaves: Array, jaxpr: ClosedJaxpr, line: _Line, counts: tuple, levels: Levels
) -> list[Array]:
    """As ``_run_line``, by another compiler than XLA unless it fails."""
    own = [aval.ndim for aval in jaxpr.in_avals]
    given = []
    for i, (x, axes) in enumerate(zip(leaves, own, strict=True)):
        # an axis of length 1 for a leaf shared by a batch
        given.append(x.reshape(*x.shape[:axes], *(size if mapped[i] else 1 for size, mapped in levels)))
    shared = tuple(all(size == 1 for size in x.shape[axes:]) for x, axes in zip(given, own, strict=True))
    found = run_compiled(line.compiled(platform, shared), given, own, tuple(size for size, _ in levels))
    if found is None:
        return _run_line(*leaves, jaxpr=jaxpr, line=line, counts=counts, levels=levels)
    return found[: len(jaxpr.out_avals)]  # a loop also returns the index of the next step


def _line_shapes(*leaves: Any, jaxpr: ClosedJaxpr, line: _Line, counts: tuple, levels: Levels) -> list[tuple]:
    sizes = tuple(size for size, _ in levels)
    return [((*aval.shape, *sizes), aval.dtype) for aval in jaxpr.out_avals]


_line = levels_primitive(
    "straight_line",
    _run_line,
    _line_shapes,
    {platform: partial(_line_on, platform) for platform in ("cpu", "cuda")},
    first=True,
)
