"""Batches on the last axis: what makes a recursion over bodies vector code.

A recursion takes one body after another, so the axis along which there is vector work is the batch, and it has to come
last. ``jax.vmap`` alone puts it first wherever an array is indexed or broadcast. What enters that way is a program of
its own, which the text of a traced program does not show: ``program_texts`` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial, wraps
from math import prod
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import ShapedArray
from jax.custom_derivatives import SymbolicZero

from lgsim._compile.xla.compilers import CUDA_SWITCH, SWITCHES, BatchCompiler, CompiledBatch, ReadProgram
from lgsim._compile.xla.expansion import register_definition, register_expansion
from lgsim._compile.xla.fallback import attempt
from lgsim._compile.xla.hints import native_call
from lgsim._compile.xla.jax_internals import (
    ClosedJaxpr,
    Jaxpr,
    Primitive,
    define_primitive,
    instantiated,
    is_symbolic_zero,
    is_undefined,
    jaxpr_as_fun,
    one_by_one,
    parameters,
    register_lowering,
)
from lgsim._compile.xla.partition import Axes, BatchAxes
from lgsim.support.batch_compiler import COMPILERS

Result = TypeVar("Result")
Rule = Callable[[tuple, tuple], tuple[Any, Any]]
"""``rule(args, changes)`` gives the value and its change; changes are ``SymbolicZero`` where nothing moves."""


def still(change: Any) -> bool:
    """Whether a change that a ``Rule`` is given is known to be zero."""
    return isinstance(change, SymbolicZero)


def change_along(f: Callable[..., Any], args: tuple, changes: tuple, besides: tuple[Any, ...] = ()) -> Any:
    """The change of ``f(*args)`` along changes of its arguments, what stands still taken as constant.

    Args:
        f: A differentiable function of pytrees.
        args: Where.
        changes: Pytrees of the same structures, ``SymbolicZero`` where nothing moves.
        besides: Leaves of ``args`` whose changes do not count.

    Returns:
        The change; None where nothing moves.
    """
    leaves, structure = jax.tree.flatten(args)
    rates = jax.tree.leaves(changes, is_leaf=still)
    moving = [i for i, rate in enumerate(rates) if not still(rate) and not any(leaves[i] is leaf for leaf in besides)]
    if not moving:
        return None

    def of_moving(*parts: Array) -> Any:
        full = list(leaves)
        for i, part in zip(moving, parts, strict=True):
            full[i] = part
        return f(*jax.tree.unflatten(structure, full))

    return jax.jvp(of_moving, tuple(leaves[i] for i in moving), tuple(rates[i] for i in moving))[1]


def batch_last(core: Callable[..., Any], rule: Rule | None = None) -> Callable[..., Any]:
    """``core`` as one function that a batch enters by its last axis, whatever axis ``jax.vmap`` maps over.

    ``core`` takes and returns pytrees of arrays whose own axes come first; any number of batch axes follows, the same
    number for all its arguments, of full length or of length 1, and full in what it returns. A derivative, in every
    order and mode, is that of ``core`` by JAX, or what ``rule`` gives for one entry of a batch.

    It is a primitive of JAX, since loops in reverse mode forget the rules of ``custom_jvp`` and ``custom_vmap``.
    """
    program = _Program(core, rule)
    return wraps(core)(lambda *args: program(*args))


def linear_last(
    core: Callable[[Any, Any], Any], transposed: Callable[[Any, Any], Any], full: bool = False
) -> Callable[[Any, Any], Any]:
    """``core(args, x)`` as with ``batch_last``, linear in x; reverse mode pulls y back by ``transposed(args, y)``.

    In a batch x always has its full length, and with ``full`` so have args.
    """
    program = _linear(core, transposed, full)
    return wraps(core)(lambda args, x: program(args, x))


class _Program:
    """``core`` on flat lists of leaves; one for each ``batch_last``, compared by identity."""

    def __init__(
        self,
        core: Callable[..., Any],
        rule: Rule | None = None,
        transposed: _Program | None = None,
        full: bool = False,
    ) -> None:
        self.core, self.rule, self.transposed, self.full = core, rule, transposed, full
        self._native, self._traces = native_call(core), {}
        self._read: dict[Any, tuple[ReadProgram | None, dict]] = {}
        self._derivatives: dict[Any, _Program] = {}

    def __call__(self, *args: Any, rank: int = 0) -> Any:
        leaves, structure = jax.tree.flatten(args)
        leaves = [jnp.asarray(leaf) for leaf in leaves]
        out = _called.bind(*leaves, program=self, structure=structure, rank=rank)
        return jax.tree.unflatten(self.traced(structure, *map(_kind, leaves))[1], out)

    def traced(self, structure: Any, *kinds: jax.ShapeDtypeStruct, native: bool = True) -> tuple[Any, Any]:
        """The program for leaves of these kinds, and the structure of what it returns.

        Args:
            structure: Of the arguments.
            *kinds: Those of their leaves.
            native: Whether it is marked as a native function, as programs for CPU are.
        """
        key = structure, kinds, jax.dtypes.canonicalize_dtype(int), native
        if key not in self._traces:
            f = self._native if native else self.core
            jaxpr, out = jax.make_jaxpr(f, return_shape=True)(*jax.tree.unflatten(structure, kinds))
            self._traces[key] = jaxpr, jax.tree.structure(out)
        return self._traces[key]

    def compiled(self, platform: str, structure: Any, kinds: tuple, shared: tuple[bool, ...]) -> CompiledBatch | None:
        """What another compiler than XLA makes of the program for leaves of these kinds in one state, or None."""
        compiler = batch_compiler(platform)
        if compiler is None:
            return None
        key = compiler, structure, kinds, jax.dtypes.canonicalize_dtype(int)
        if key not in self._read:
            self._read[key] = attempt(compiler, self.traced(structure, *kinds)[0]), {}
        program, made = self._read[key]
        return None if program is None else made_once(program, made, shared)

    def derivative(self, structure: Any, moving: tuple[int, ...]) -> _Program:
        """The program of (leaves, their changes at these places) that gives the change, linear in the changes."""
        if (structure, moving) not in self._derivatives:
            core = self.core

            def some(leaves: Sequence[Array]) -> Callable[..., Any]:
                def of(*moved: Array) -> Any:
                    given = dict(zip(moving, moved, strict=True))
                    args = [given.get(i, x) for i, x in enumerate(leaves)]
                    return core(*jax.tree.unflatten(structure, args))

                return of

            def along(leaves: list, changes: list) -> Any:
                return jax.jvp(some(leaves), tuple(leaves[i] for i in moving), tuple(changes))[1]

            def back(leaves: list, y: Any) -> list:
                return list(jax.vjp(some(leaves), *(leaves[i] for i in moving))[1](y))

            # full: else a cotangent would be summed over those that share an argument
            self._derivatives[structure, moving] = _linear(along, back, full=True)
        return self._derivatives[structure, moving]

    def linear(self, structure: Any) -> int:
        """How many leaves, the last ones, it is linear in."""
        return 0 if self.transposed is None else structure.children()[1].num_leaves


def _linear(core: Callable[..., Any], transposed: Callable[..., Any], full: bool) -> _Program:
    """What ``linear_last`` binds; each of the two functions is the transpose of the other one."""
    program, back = _Program(core, full=full), _Program(transposed, full=full)
    program.transposed, back.transposed = back, program
    return program


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


def _kind(x: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def _run(*leaves: Array, program: _Program, structure: Any, rank: int, native: bool = False) -> list[Array]:
    program_of_leaves = program.traced(structure, *map(_kind, leaves), native=native)[0]
    return _filled(jaxpr_as_fun(program_of_leaves)(*leaves), leaves, rank)


def _filled(found: list[Array], leaves: Sequence[Any], rank: int) -> list[Array]:
    if not rank:
        return found
    # a result that no mapped argument enters comes with a batch of length 1
    return [jnp.broadcast_to(x, (*x.shape[: x.ndim - rank], *_batch(leaves, rank))) for x in found]


def _batch(leaves: Sequence[Any], rank: int) -> tuple[Any, ...]:
    """The full length of each axis of a batch, an integer or what ``jax.export`` leaves open."""
    return tuple(_full(x.shape[x.ndim - rank + axis] for x in leaves) for axis in range(rank))


def _full(lengths: Iterable[Any]) -> Any:
    """The length of an axis that is of full length or 1; it may be 0, or one that ``jax.export`` leaves open."""
    return next((length for length in lengths if length != 1), 1)


def _of_one(x: Any, rank: int) -> jax.ShapeDtypeStruct:
    """The kind of a leaf in one entry of a batch."""
    return jax.ShapeDtypeStruct(x.shape[: x.ndim - rank], x.dtype)


def _run_on(platform: str, *leaves: Array, program: _Program, structure: Any, rank: int) -> list[Array]:
    """As ``_run``, by another compiler than XLA where there is one that takes the program."""
    own = [leaf.ndim - rank for leaf in leaves]
    shared = tuple(all(size == 1 for size in x.shape[axes:]) for x, axes in zip(leaves, own, strict=True))
    compiled = program.compiled(platform, structure, tuple(_of_one(x, rank) for x in leaves), shared)
    found = run_compiled(compiled, leaves, own, _batch(leaves, rank))
    if found is None:
        return _run(*leaves, program=program, structure=structure, rank=rank, native=platform == "cpu")
    return found


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


def _shapes(*leaves: Any, program: _Program, structure: Any, rank: int) -> list[Any]:
    # of one entry, so that what another compiler takes is not traced for its batch as well
    found = program.traced(structure, *(_of_one(x, rank) for x in leaves))[0].out_avals
    return [aval.update(shape=(*aval.shape, *_batch(leaves, rank))) for aval in found]


def _batched(leaves: Sequence[Any], axes: Sequence[int | None], program: _Program, structure: Any, rank: int) -> Any:
    size = next(x.shape[axis] for x, axis in zip(leaves, axes, strict=True) if axis is not None)

    def wide(x: Array) -> Array:
        return jnp.broadcast_to(x, (*x.shape[:-1], size))

    def last(i: int, x: Any, axis: int | None) -> Array:
        if axis is not None:
            return jnp.moveaxis(x, axis, -1)
        x = jnp.asarray(x)[..., None]  # a scalar constant may come as a number of Python's kind
        return x if i < shared else wide(x)

    shared = 0 if program.full else len(leaves) - program.linear(structure)
    given = map(last, range(len(leaves)), leaves, axes)
    out = _called.bind(*given, program=program, structure=structure, rank=rank + 1)
    return [jnp.moveaxis(x, -1, 0) for x in out], [0] * len(out)


def _moved(leaves: Sequence[Any], changes: Sequence[Any], program: _Program, structure: Any, rank: int) -> Any:
    moving = [i for i, change in enumerate(changes) if not is_symbolic_zero(change)]
    core, rule = program.core, program.rule

    def by_core(leaves: Sequence[Array], changes: Sequence[Array]) -> tuple[list, list]:
        def some(*moved: Array) -> list[Array]:
            given = dict(zip(moving, moved, strict=True))
            args = [given.get(i, x) for i, x in enumerate(leaves)]
            return jax.tree.leaves(core(*jax.tree.unflatten(structure, args)))

        return jax.jvp(some, tuple(leaves[i] for i in moving), tuple(changes))

    def by_rule(rule: Rule, leaves: Sequence[Array], changes: Sequence[Array]) -> tuple[list, list]:
        given = dict(zip(moving, changes, strict=True))
        all_changes = [given[i] if i in given else SymbolicZero.from_primal_value(x) for i, x in enumerate(leaves)]
        args = jax.tree.unflatten(structure, leaves), jax.tree.unflatten(structure, all_changes)
        value, change = rule(*args)
        return jax.tree.leaves(value), jax.tree.leaves(change)

    if program.transposed is not None:
        return _linear_moved(leaves, changes, program, structure, rank)
    derive = by_core if rule is None else _entrywise(partial(by_rule, rule), rank)
    return derive(list(leaves), [changes[i] for i in moving])


def _linear_moved(leaves: Sequence[Any], changes: Sequence[Any], program: _Program, structure: Any, rank: int) -> Any:
    """Of a derivative: what is linear goes through the same program, the rest is a program of its own."""
    first = len(leaves) - program.linear(structure)
    bind = partial(_called.bind, program=program, structure=structure, rank=rank)
    found = []
    if not all(map(is_symbolic_zero, changes[first:])):
        found.append(bind(*leaves[:first], *map(instantiated, changes[first:])))
    moving = tuple(i for i in range(first) if not is_symbolic_zero(changes[i]))
    if moving:
        given = [list(leaves), [changes[i] for i in moving]]
        if rank:
            lengths = _batch([*leaves, *given[1]], rank)
            given = [[jnp.broadcast_to(x, (*x.shape[: x.ndim - rank], *lengths)) for x in each] for each in given]
        found.append(jax.tree.leaves(program.derivative(structure, moving)(*given, rank=rank)))
    return bind(*leaves), [sum(parts) for parts in zip(*found, strict=True)]


def _entrywise(f: Callable[..., Any], rank: int) -> Callable[..., Any]:
    """``f`` of one entry on lists of arrays with ``rank`` batch axes at their ends, each of full length or 1."""
    if rank == 0:
        return f

    def mapped(*lists: list[Array]) -> Any:
        length = _full(x.shape[-1] for x in lists[0])
        axes = [[-1 if x.shape[-1] == length else None for x in each] for each in lists]
        given = [[x if x.shape[-1] == length else x[..., 0] for x in each] for each in lists]
        return jax.vmap(_entrywise(f, rank - 1), in_axes=axes, out_axes=-1)(*given)

    return mapped


def _pulled_back(cotangents: Sequence[Any], *leaves: Any, program: _Program, structure: Any, rank: int) -> list[Any]:
    count = len(leaves) - program.linear(structure)
    if program.transposed is None or any(map(is_undefined, leaves[:count])):
        raise NotImplementedError(f"{program.core}: not linear, so that JAX cannot transpose it")
    args, x = jax.tree.unflatten(structure, [leaf.aval if is_undefined(leaf) else leaf for leaf in leaves])
    kinds = [_kind(leaf) for leaf in jax.tree.leaves((args, x))]
    y = jax.tree.unflatten(program.traced(structure, *kinds)[1], [instantiated(each) for each in cotangents])
    back = jax.tree.leaves(program.transposed(args, y, rank=rank))
    found = [None] * count + back
    return [each if is_undefined(leaf) else None for each, leaf in zip(found, leaves, strict=True)]


def _batch_axes(operands: Sequence[Any], results: Sequence[Any], *, rank: int, **rest: Any) -> BatchAxes:
    lengths = _batch(operands, rank)

    def axes(x: Any) -> Axes:
        own = x.ndim - rank
        return (None,) * own + tuple(k if x.shape[own + k] == n else None for k, n in enumerate(lengths))

    return BatchAxes([*map(axes, operands)], [*map(axes, results)])


def _alone(*leaves: Array, **params: Any) -> list[Array]:
    return _one_by_one(*leaves, **params) if one_by_one() else _compiled(*leaves, **params)


def _one_by_one(*leaves: Array, program: _Program, structure: Any, rank: int) -> list[Array]:
    # the function itself, not its program: what is compiled is looked at for NaN, which operations of a program are not
    return _filled(jax.tree.leaves(program.core(*jax.tree.unflatten(structure, leaves))), leaves, rank)


_called = define_primitive(
    "batch_last",
    impl=_alone,
    abstract_eval=_shapes,
    lowering=_run,
    batching_rule=_batched,
    batch_axes=_batch_axes,
    computes=True,
    jvp_rule=_moved,
    transpose_rule=_pulled_back,
)
register_lowering(_called, _run, alone=True)
_compiled = jax.jit(_called.bind, static_argnames=("program", "structure", "rank"))
for _platform in ("cpu", "cuda"):
    register_lowering(_called, partial(_run_on, _platform), _platform, alone=True)
register_expansion(_called, lambda *kinds, program, structure, rank: program.traced(structure, *kinds)[0])


def native_with_derivatives(core: Callable[..., Any]) -> Callable[..., Any]:
    """``core`` of pytrees of arrays, with batch axes at their ends, as ``batch_last`` takes it.

    So is its derivative, in both modes; derivatives of higher order are those of ``core`` by JAX.
    """
    derivative = native_derivative(core)

    def rule(args: tuple, changes: tuple) -> tuple[Any, Any]:
        return whole(*args), derivative(args, changes)

    whole = batch_last(core, rule)
    return whole


def native_derivative(core: Callable[..., Any]) -> Callable[[tuple, tuple], Any]:
    """The function of (args, changes) that gives the change of ``core(*args)``, native, linear in the changes.

    Leaves of ``changes`` are arrays, or ``SymbolicZero`` where an argument does not move.
    """
    program = _Program(core)

    def change(args: tuple, changes: tuple) -> Any:
        leaves, structure = jax.tree.flatten(args)
        changed = structure.flatten_up_to(changes)
        moving = tuple(i for i, dx in enumerate(changed) if not isinstance(dx, SymbolicZero))
        return program.derivative(structure, moving)(leaves, [changed[i] for i in moving])

    return change


_KEPT = 64
"""Programs of a primitive called outside of ``jit`` that are kept."""

Levels = tuple[tuple[Any, tuple[bool, ...]], ...]
"""(size, which leaves have it) of each batch, the innermost first; each is on the last axis of what it holds. A size is
an integer or what ``jax.export`` leaves open."""


def split_leaves(leaves: Sequence[Any], counts: tuple[int, int, int]) -> tuple[tuple, tuple, tuple, tuple]:
    """(constants of the first function, those of the second, carry, entries) of a loop's leaves, or of what is said of
    each of them.
    """
    ends = counts[0], counts[0] + counts[1], sum(counts)
    first, second, carry, entries = (slice(*pair) for pair in zip((0, *ends), (*ends, None), strict=True))
    return tuple(leaves[first]), tuple(leaves[second]), tuple(leaves[carry]), tuple(leaves[entries])


def in_batches(
    levels: Levels, jaxpr: ClosedJaxpr, consts: Sequence[Array], kinds: Callable[[tuple], Sequence[bool]]
) -> Callable[..., list[Array]]:
    """The function of one entry ``jaxpr``, with these constants, mapped over all batches.

    Args:
        levels: The batches, the innermost first.
        jaxpr: The program of one entry.
        kinds: ``kinds(flags)`` picks, from the flags of a level, those of the constants and of the arguments.
    """

    def f(*args: Array) -> list[Array]:
        found = jaxpr_as_fun(ClosedJaxpr(jaxpr.jaxpr, list(args[: len(consts)])))(*args[len(consts) :])
        return [jnp.asarray(x) for x in found]  # a literal comes as JAX's own kind of number

    for size, mapped in levels:
        axes = tuple(-1 if each else None for each in kinds(mapped))
        f = jax.vmap(f, in_axes=axes, out_axes=-1, axis_size=size)
    return partial(f, *consts)


def levels_primitive(
    name: str,
    run: Callable[..., list[Array]],
    shapes: Callable[..., list[tuple]],
    lowerings: Mapping[str | None, Callable[..., list[Array]]],
    first: bool = False,
) -> Primitive:
    """A primitive that is ``run(*leaves, counts, levels, **rest)``, of leaves as ``split_leaves`` takes them.

    Its own parameter ``levels`` says which leaves each batch has, and not how many entries: a device may have a part.

    Args:
        run: What it computes.
        shapes: (shape, dtype) of what that returns for leaves of these shapes, found without tracing it.
        lowerings: What stands for ``run`` on platforms, None for all others.
        first: Whether a batch leaves it by the first axis, as it leaves ``batch_last``: a function and its rule of
            ``custom_jvp`` have to agree in that.
    """

    def of_leaves(f: Callable[..., Result]) -> Callable[..., Result]:
        def sized(*leaves: Any, levels: tuple[tuple[bool, ...], ...], **rest: Any) -> Result:
            return f(*leaves, levels=tuple(zip(_sizes(leaves, levels), levels, strict=True)), **rest)

        return sized

    def batched(leaves: Any, axes: Any, *, counts: tuple, levels: tuple, **rest: Any) -> tuple[list, list[int]]:
        size = next(x.shape[axis] for x, axis in zip(leaves, axes, strict=True) if axis is not None)
        # a carry is different for each entry after the first step
        mapped = [axis is not None or sum(counts[:2]) <= i < sum(counts) for i, axis in enumerate(axes)]

        def last(x: Any, axis: int | None, each: bool) -> Array:
            if axis is not None:
                return jnp.moveaxis(x, axis, -1)
            x = jnp.asarray(x)
            return jnp.broadcast_to(x[..., None], (*x.shape, size)) if each else x

        given = map(last, leaves, axes, mapped)
        out = primitive.bind(*given, counts=counts, levels=(*levels, tuple(mapped)), **rest)
        if first:
            return [jnp.moveaxis(x, -1, 0) for x in out], [0] * len(out)
        return out, [x.ndim - 1 for x in out]

    def batch_axes(operands: Any, results: Any, *, levels: tuple, **rest: Any) -> BatchAxes:
        def axes(x: Any, batches: list[int]) -> Axes:
            return (None,) * (x.ndim - len(batches)) + tuple(batches)

        each = [[k for k, mapped in enumerate(levels) if mapped[i]] for i in range(len(operands))]
        return BatchAxes([*map(axes, operands, each)], [axes(x, [*range(len(levels))]) for x in results])

    def moved(leaves: Any, changes: Any, **rest: Any) -> tuple[list[Array], list[Array]]:
        moving = [i for i, change in enumerate(changes) if not is_symbolic_zero(change)]

        def some(*moved: Array) -> list[Array]:
            given = dict(zip(moving, moved, strict=True))
            return whole(*(given.get(i, x) for i, x in enumerate(leaves)), **rest)

        return jax.jvp(some, tuple(leaves[i] for i in moving), tuple(changes[i] for i in moving))

    @lru_cache(_KEPT)
    def compiled(rest: tuple) -> Callable[..., list[Array]]:
        return jax.jit(partial(primitive.bind, **dict(rest)))

    def alone(*leaves: Any, **rest: Any) -> list[Array]:
        # else the primitive would end here again
        f = partial(whole, **rest) if one_by_one() else compiled(tuple(rest.items()))
        return f(*leaves)

    whole, kinds = of_leaves(run), of_leaves(shapes)
    primitive = define_primitive(
        name,
        impl=alone,
        abstract_eval=lambda *leaves, **rest: [ShapedArray(*each) for each in kinds(*leaves, **rest)],
        lowering=whole,
        batching_rule=batched,
        batch_axes=batch_axes,
        computes=True,
        jvp_rule=moved,
    )
    for platform, lowering in lowerings.items():
        register_lowering(primitive, of_leaves(lowering), platform)
    register_definition(primitive, whole)
    return primitive


def _sizes(leaves: Sequence[Any], levels: tuple[tuple[bool, ...], ...]) -> list[int]:
    """The number of entries of each batch, from a leaf that has it."""
    found = []
    for k, mapped in enumerate(levels):
        i = mapped.index(True)
        further = sum(later[i] for later in levels[k + 1 :])
        found.append(leaves[i].shape[leaves[i].ndim - 1 - further])
    return found


def program_texts(program: ClosedJaxpr) -> Iterator[str]:
    """The text of a traced program, and of the programs that it calls whose text stands in no other."""
    yield str(program.jaxpr)
    seen: set[Any] = set()
    yield from _inner_texts(program.jaxpr, seen)


def _inner_texts(jaxpr: Jaxpr, seen: set[Any]) -> Iterator[str]:
    for equation in jaxpr.eqns:
        for value in parameters(equation).values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                if isinstance(inner, ClosedJaxpr | Jaxpr):
                    yield from _inner_texts(inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner, seen)
        program: Any = parameters(equation).get("program")
        if hasattr(program, "traced"):  # of batch_last, whose text stands in no other
            avals: list[Any] = [x.aval for x in equation.invars]
            kinds = tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in avals)
            structure = parameters(equation)["structure"]
            if (program, structure, kinds) not in seen:
                seen.add((program, structure, kinds))
                inner, _ = program.traced(structure, *kinds)
                yield str(inner.jaxpr)
                yield from (str(np.asarray(const)) for const in inner.consts)
                yield from _inner_texts(inner.jaxpr, seen)
