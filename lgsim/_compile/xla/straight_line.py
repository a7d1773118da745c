"""Functions of one state as straight-line programs of their own: a whole step of an integration, and loops of it.

Where another compiler than XLA takes the program, what lies between two of lgsim's recursions is part of it.
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
    """``f`` of one state, as one program where another compiler than XLA takes it, else unchanged.

    Its derivative, of any order and mode, is that of ``f``: no program, but what ``f`` calls may be some. A program is
    exact for finite values; a product with a constant 0 is 0 in it, NaN and infinity included. Where operands differ
    between the devices of a ``shard_map`` it is ``f``.

    Args:
        f: A function of pytrees of arrays; arrays that it closes over are operands where they are traced, and numbers
            of the program where they are not.
    """
    known: dict[Any, _Traced] = {}

    def trace(args: tuple, platform: str, compiler: BatchCompiler) -> _Traced:
        """What is traced of the function; that without operands from outside serves every call of the same kinds."""
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
    """``loop(carry, start)``, as one program that keeps the state in registers where a compiler of loops takes it.

    Its derivative, of any order and mode, is that of ``loop``.

    Args:
        step: ``step(carry, k)`` gives the carry after step k, and an output. Where that holds arrays there is no such
            program.
        loop: What takes the steps k = start .. start + steps - 1 and gives the last carry, and what they gave.
        carry: The carry of the first step, a pytree of arrays.
        start: The number of the first step, ().
        steps: How many there are.
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
    """What traced functions close over that is traced itself, each once."""
    return list({id(x): x for closed in programs for x in closed.consts if isinstance(x, Tracer)}.values())


def _with_operands(closed: ClosedJaxpr, outside: list[Any], leaves: list[Any]) -> ClosedJaxpr:
    """The program of (*outside, *leaves) of a traced function of the leaves."""
    return jax.make_jaxpr(_opened(closed, outside))(outside, leaves)


def _opened(closed: ClosedJaxpr, outside: list[Any]) -> Callable[[list[Any], list[Any]], list[Array]]:
    """A traced function of its leaves as one of what it closes over and them."""

    def opened(values: list[Any], leaves: list[Any]) -> list[Array]:
        given = dict(zip(map(id, outside), values, strict=True))
        return jaxpr_as_fun(ClosedJaxpr(closed.jaxpr, [given.get(id(x), x) for x in closed.consts]))(*leaves)

    return opened


class _Traced(NamedTuple):
    """A function of one state, traced.

    Attributes:
        jaxpr: Its program, of the operands from outside and its own arguments.
        outside: What it closes over that is traced.
        structure: That of its result.
        line: The program where a compiler takes it.
    """

    jaxpr: ClosedJaxpr
    outside: list[Any]
    structure: Any
    line: _Line | None


class _Line:
    """A program that the compiler takes, and what was compiled of it; one for each call that is traced."""

    def __init__(self, read: ReadProgram, platform: str) -> None:
        self._read, self._platform = read, "cpu" if platform == "cpu" else "cuda"
        self._made: dict[Any, CompiledBatch | None] = {}

    def __repr__(self) -> str:
        # part of the text of a traced program, where the numbers of the program inside do not stand
        return f"straight line {self._read.digest[:16]}"

    def compiled(self, platform: str, shared: tuple[bool, ...]) -> CompiledBatch | None:
        """What is compiled for a platform, None where the program was read for another one."""
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
    """As ``_run_line``, by another compiler than XLA where it does not fail."""
    own = [aval.ndim for aval in jaxpr.in_avals]
    given = []
    for i, (x, axes) in enumerate(zip(leaves, own, strict=True)):
        # an axis of length 1 where a batch shares the leaf
        given.append(x.reshape(*x.shape[:axes], *(size if mapped[i] else 1 for size, mapped in levels)))
    shared = tuple(all(size == 1 for size in x.shape[axes:]) for x, axes in zip(given, own, strict=True))
    found = run_compiled(line.compiled(platform, shared), given, own, tuple(size for size, _ in levels))
    if found is None:
        return _run_line(*leaves, jaxpr=jaxpr, line=line, counts=counts, levels=levels)
    return found[: len(jaxpr.out_avals)]  # a loop also gives the number of the step after it


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
