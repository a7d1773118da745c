"""Batches on the last axis, which make a recursion over bodies vector code.

A recursion processes one body after another, so the axis for vector instructions is the batch, and it must be last.
``jax.vmap`` alone puts it first wherever an array is indexed or broadcast. So a recursion is one primitive with the
program of one state, which ``jax.vmap`` leaves unchanged::

    f = batch_last(jnp.cumsum)
    jax.make_jaxpr(f)(jnp.ones(3))
        { lambda ; a:f64[3]. let b:f64[3] = batch_last[rank=0 ...] a in (b,) }
    jax.make_jaxpr(jax.vmap(f))(jnp.ones((5, 3)))
        { lambda ; a:f64[5,3]. let
            b:f64[3,5] = transpose[permutation=(1, 0)] a
            c:f64[3,5] = batch_last[rank=1 ...] b
            d:f64[5,3] = transpose[permutation=(1, 0)] c
          in (d,) }

``rank`` is the number of batch axes at the end of all operands. The program is run for the whole batch when the
primitive is lowered: by another compiler, which takes the program of one state, or by XLA.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial, wraps
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.custom_derivatives import SymbolicZero

from lgsim._compile.xla.compilers import CompiledBatch, ReadProgram, batch_compiler, made_once, run_compiled
from lgsim._compile.xla.expansion import register_expansion
from lgsim._compile.xla.fallback import attempt
from lgsim._compile.xla.hints import native_call
from lgsim._compile.xla.jax_internals import (
    define_primitive,
    instantiated,
    is_symbolic_zero,
    is_undefined,
    jaxpr_as_fun,
    one_by_one,
    register_lowering,
)
from lgsim._compile.xla.partition import Axes, BatchAxes

Rule = Callable[[tuple, tuple], tuple[Any, Any]]
"""``rule(args, changes)`` returns the value and its change; changes that are zero are ``SymbolicZero``."""


def is_zero_tangent(change: Any) -> bool:
    """True if a change passed to a ``Rule`` is known to be zero."""
    return isinstance(change, SymbolicZero)


def change_along(f: Callable[..., Any], args: tuple, changes: tuple, besides: tuple[Any, ...] = ()) -> Any:
    """The change of ``f(*args)`` along changes of its arguments; arguments without a change are constants.

    Args:
        f: A differentiable function of pytrees.
        args: The arguments at which the change is taken.
        changes: Pytrees of the same structure, ``SymbolicZero`` for zero.
        besides: Leaves of ``args`` whose changes are ignored.

    Returns:
        The change; None if it is zero.
    """
    leaves, structure = jax.tree.flatten(args)
    rates = jax.tree.leaves(changes, is_leaf=is_zero_tangent)
    moving = [
        i
        for i, rate in enumerate(rates)
        if not is_zero_tangent(rate) and not any(leaves[i] is leaf for leaf in besides)
    ]
    if not moving:
        return None

    of_moving = as_function_of(moving, leaves, lambda leaves: f(*jax.tree.unflatten(structure, leaves)))
    return jax.jvp(of_moving, tuple(leaves[i] for i in moving), tuple(rates[i] for i in moving))[1]


def as_function_of(places: Sequence[int], leaves: Sequence[Any], f: Callable[[list], Any]) -> Callable[..., Any]:
    """``f`` of a list of leaves, as a function of the leaves at ``places``; the others are constant."""

    def of_some(*given: Any) -> Any:
        at = dict(zip(places, given, strict=True))
        return f([at.get(i, x) for i, x in enumerate(leaves)])

    return of_some


def batch_last(core: Callable[..., Any], rule: Rule | None = None) -> Callable[..., Any]:
    """``core`` as one primitive that keeps batches on the last axis, whatever axis ``jax.vmap`` maps over.

    ``core`` takes and returns pytrees of arrays whose own axes come first, followed by any number of batch axes. All
    arguments have the same number of them, each of full length or 1; results have full length. Derivatives of any order
    and mode are those of ``core`` by JAX, or the result of ``rule`` for one entry of a batch.

    It is a JAX primitive, since loops in reverse mode drop the rules of ``custom_jvp`` and ``custom_vmap``.
    """
    program = BatchProgram(core, rule)
    return wraps(core)(lambda *args: program(*args))


def linear_last(
    core: Callable[[Any, Any], Any], transposed: Callable[[Any, Any], Any], full: bool = False
) -> Callable[[Any, Any], Any]:
    """``core(args, x)``, linear in x, as for ``batch_last``; reverse mode computes ``transposed(args, y)``.

    In a batch x has its full length, and with ``full`` so do the args.
    """
    program = _linear(core, transposed, full)
    return wraps(core)(lambda args, x: program(args, x))


class BatchProgram:
    """``core`` on flat lists of leaves; one object per ``batch_last``, compared by identity."""

    def __init__(
        self,
        core: Callable[..., Any],
        rule: Rule | None = None,
        transposed: BatchProgram | None = None,
        full: bool = False,
    ) -> None:
        self.core, self.rule, self.transposed, self.full = core, rule, transposed, full
        self._native, self._traces = native_call(core), {}
        self._read: dict[Any, tuple[ReadProgram | None, dict]] = {}
        self._derivatives: dict[Any, BatchProgram] = {}

    def __call__(self, *args: Any, rank: int = 0) -> Any:
        leaves, structure = jax.tree.flatten(args)
        leaves = [jnp.asarray(leaf) for leaf in leaves]
        out = _batch_last.bind(*leaves, program=self, structure=structure, rank=rank)
        return jax.tree.unflatten(self.traced(structure, *map(_kind, leaves))[1], out)

    def traced(self, structure: Any, *kinds: jax.ShapeDtypeStruct, native: bool = True) -> tuple[Any, Any]:
        """The program for leaves of these shapes and dtypes, and the structure of its result.

        Args:
            structure: Structure of the arguments.
            *kinds: Shapes and dtypes of their leaves.
            native: Mark it as a native function, as programs for CPU are.
        """
        key = structure, kinds, jax.dtypes.canonicalize_dtype(int), native
        if key not in self._traces:
            f = self._native if native else self.core
            jaxpr, out = jax.make_jaxpr(f, return_shape=True)(*jax.tree.unflatten(structure, kinds))
            self._traces[key] = jaxpr, jax.tree.structure(out)
        return self._traces[key]

    def compiled(self, platform: str, structure: Any, kinds: tuple, shared: tuple[bool, ...]) -> CompiledBatch | None:
        """The program compiled by another compiler than XLA for leaves of these kinds in one state, or None."""
        compiler = batch_compiler(platform)
        if compiler is None:
            return None
        key = compiler, structure, kinds, jax.dtypes.canonicalize_dtype(int)
        if key not in self._read:
            self._read[key] = attempt(compiler, self.traced(structure, *kinds)[0]), {}
        program, made = self._read[key]
        return None if program is None else made_once(program, made, shared)

    def derivative(self, structure: Any, moving: tuple[int, ...]) -> BatchProgram:
        """The program of (leaves, their changes at these indices) that returns the change, linear in the changes."""
        if (structure, moving) not in self._derivatives:

            def of_leaves(leaves: list) -> Any:
                return self.core(*jax.tree.unflatten(structure, leaves))

            def along(leaves: list, changes: list) -> Any:
                f = as_function_of(moving, leaves, of_leaves)
                return jax.jvp(f, tuple(leaves[i] for i in moving), tuple(changes))[1]

            def back(leaves: list, y: Any) -> list:
                f = as_function_of(moving, leaves, of_leaves)
                return list(jax.vjp(f, *(leaves[i] for i in moving))[1](y))

            # full: otherwise a cotangent would be summed over the entries that share an argument
            self._derivatives[structure, moving] = _linear(along, back, full=True)
        return self._derivatives[structure, moving]

    def linear(self, structure: Any) -> int:
        """The number of trailing leaves in which it is linear."""
        return 0 if self.transposed is None else structure.children()[1].num_leaves


def _linear(core: Callable[..., Any], transposed: Callable[..., Any], full: bool) -> BatchProgram:
    """The implementation of ``linear_last``; each of the two functions is the transpose of the other."""
    program, back = BatchProgram(core, full=full), BatchProgram(transposed, full=full)
    program.transposed, back.transposed = back, program
    return program


def _kind(x: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def _lowering(*leaves: Array, program: BatchProgram, structure: Any, rank: int, native: bool = False) -> list[Array]:
    program_of_leaves = program.traced(structure, *map(_kind, leaves), native=native)[0]
    return _filled(jaxpr_as_fun(program_of_leaves)(*leaves), leaves, rank)


def _filled(found: list[Array], leaves: Sequence[Any], rank: int) -> list[Array]:
    """Results broadcast to the full length of each batch axis."""
    if not rank:
        return found
    # a result that depends on no mapped argument has a batch of length 1
    return [jnp.broadcast_to(x, (*x.shape[: x.ndim - rank], *_batch(leaves, rank))) for x in found]


def _batch(leaves: Sequence[Any], rank: int) -> tuple[Any, ...]:
    """The full length of each batch axis, an integer or a symbolic dimension of ``jax.export``."""
    return tuple(_full(x.shape[x.ndim - rank + axis] for x in leaves) for axis in range(rank))


def _full(lengths: Iterable[Any]) -> Any:
    """The length of an axis that has full length or 1; it may be 0, or a symbolic dimension of ``jax.export``."""
    return next((length for length in lengths if length != 1), 1)


def _of_one(x: Any, rank: int) -> jax.ShapeDtypeStruct:
    """The shape and dtype of a leaf in one entry of a batch."""
    return jax.ShapeDtypeStruct(x.shape[: x.ndim - rank], x.dtype)


def _lowering_on(platform: str, *leaves: Array, program: BatchProgram, structure: Any, rank: int) -> list[Array]:
    """As ``_lowering``, by another compiler than XLA if one takes the program."""
    own = [leaf.ndim - rank for leaf in leaves]
    shared = tuple(all(size == 1 for size in x.shape[axes:]) for x, axes in zip(leaves, own, strict=True))
    compiled = program.compiled(platform, structure, tuple(_of_one(x, rank) for x in leaves), shared)
    found = run_compiled(compiled, leaves, own, _batch(leaves, rank))
    if found is None:
        return _lowering(*leaves, program=program, structure=structure, rank=rank, native=platform == "cpu")
    return found


def _abstract_eval(*leaves: Any, program: BatchProgram, structure: Any, rank: int) -> list[Any]:
    # for one entry, so that a program for another compiler is not also traced for its batch
    found = program.traced(structure, *(_of_one(x, rank) for x in leaves))[0].out_avals
    return [aval.update(shape=(*aval.shape, *_batch(leaves, rank))) for aval in found]


def _batching_rule(
    leaves: Sequence[Any], axes: Sequence[int | None], program: BatchProgram, structure: Any, rank: int
) -> Any:
    """Add one batch axis, as the last axis of all operands."""
    size = next(x.shape[axis] for x, axis in zip(leaves, axes, strict=True) if axis is not None)

    def wide(x: Array) -> Array:
        return jnp.broadcast_to(x, (*x.shape[:-1], size))

    def last(i: int, x: Any, axis: int | None) -> Array:
        if axis is not None:
            return jnp.moveaxis(x, axis, -1)
        x = jnp.asarray(x)[..., None]  # a scalar constant may be a Python number
        return x if i < shared else wide(x)

    # an operand shared by all entries keeps length 1, unless a cotangent would be summed over its entries
    shared = 0 if program.full else len(leaves) - program.linear(structure)
    given = map(last, range(len(leaves)), leaves, axes)
    out = _batch_last.bind(*given, program=program, structure=structure, rank=rank + 1)
    return [jnp.moveaxis(x, -1, 0) for x in out], [0] * len(out)


def _jvp_rule(leaves: Sequence[Any], changes: Sequence[Any], program: BatchProgram, structure: Any, rank: int) -> Any:
    """Value and change: by the program itself if it is linear, else by its rule if it has one, else by JAX."""
    moving = [i for i, change in enumerate(changes) if not is_symbolic_zero(change)]
    core, rule = program.core, program.rule

    def by_core(leaves: Sequence[Array], changes: Sequence[Array]) -> tuple[list, list]:
        of_moving = as_function_of(
            moving, leaves, lambda leaves: jax.tree.leaves(core(*jax.tree.unflatten(structure, leaves)))
        )
        return jax.jvp(of_moving, tuple(leaves[i] for i in moving), tuple(changes))

    def by_rule(rule: Rule, leaves: Sequence[Array], changes: Sequence[Array]) -> tuple[list, list]:
        given = dict(zip(moving, changes, strict=True))
        all_changes = [given[i] if i in given else SymbolicZero.from_primal_value(x) for i, x in enumerate(leaves)]
        args = jax.tree.unflatten(structure, leaves), jax.tree.unflatten(structure, all_changes)
        value, change = rule(*args)
        return jax.tree.leaves(value), jax.tree.leaves(change)

    if program.transposed is not None:
        return _linear_jvp_rule(leaves, changes, program, structure, rank)
    derive = by_core if rule is None else _entrywise(partial(by_rule, rule), rank)
    return derive(list(leaves), [changes[i] for i in moving])


def _linear_jvp_rule(
    leaves: Sequence[Any], changes: Sequence[Any], program: BatchProgram, structure: Any, rank: int
) -> Any:
    """Value and change of a derivative: the linear part uses the same program, the rest one of its own."""
    first = len(leaves) - program.linear(structure)
    bind = partial(_batch_last.bind, program=program, structure=structure, rank=rank)
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
    """``f`` of one entry on lists of arrays with ``rank`` trailing batch axes, each of full length or 1."""
    if rank == 0:
        return f

    def mapped(*lists: list[Array]) -> Any:
        length = _full(x.shape[-1] for x in lists[0])
        axes = [[-1 if x.shape[-1] == length else None for x in each] for each in lists]
        given = [[x if x.shape[-1] == length else x[..., 0] for x in each] for each in lists]
        return jax.vmap(_entrywise(f, rank - 1), in_axes=axes, out_axes=-1)(*given)

    return mapped


def _transpose_rule(
    cotangents: Sequence[Any], *leaves: Any, program: BatchProgram, structure: Any, rank: int
) -> list[Any]:
    """Cotangents of the linear operands, by the transposed program."""
    count = len(leaves) - program.linear(structure)
    if program.transposed is None or any(map(is_undefined, leaves[:count])):
        raise NotImplementedError(f"{program.core}: expected a linear function for transposition, got one that is not")
    args, x = jax.tree.unflatten(structure, [leaf.aval if is_undefined(leaf) else leaf for leaf in leaves])
    kinds = [_kind(leaf) for leaf in jax.tree.leaves((args, x))]
    y = jax.tree.unflatten(program.traced(structure, *kinds)[1], [instantiated(each) for each in cotangents])
    back = jax.tree.leaves(program.transposed(args, y, rank=rank))
    found = [None] * count + back
    return [each if is_undefined(leaf) else None for each, leaf in zip(found, leaves, strict=True)]


def _batch_axes(operands: Sequence[Any], results: Sequence[Any], *, rank: int, **rest: Any) -> BatchAxes:
    """The axes that several devices may divide: batch axes of operands with full length."""
    lengths = _batch(operands, rank)

    def axes(x: Any) -> Axes:
        own = x.ndim - rank
        return (None,) * own + tuple(k if x.shape[own + k] == n else None for k, n in enumerate(lengths))

    return BatchAxes([*map(axes, operands)], [*map(axes, results)])


def _impl(*leaves: Array, **params: Any) -> list[Array]:
    return _one_by_one(*leaves, **params) if one_by_one() else _compiled(*leaves, **params)


def _one_by_one(*leaves: Array, program: BatchProgram, structure: Any, rank: int) -> list[Array]:
    # the function itself, not its program: checks for NaN do not see the operations inside of a program
    return _filled(jax.tree.leaves(program.core(*jax.tree.unflatten(structure, leaves))), leaves, rank)


_batch_last = define_primitive(
    "batch_last",
    impl=_impl,
    abstract_eval=_abstract_eval,
    lowering=_lowering,
    batching_rule=_batching_rule,
    batch_axes=_batch_axes,
    computes=True,
    jvp_rule=_jvp_rule,
    transpose_rule=_transpose_rule,
)
register_lowering(_batch_last, _lowering, alone=True)
_compiled = jax.jit(_batch_last.bind, static_argnames=("program", "structure", "rank"))
for _platform in ("cpu", "cuda"):
    register_lowering(_batch_last, partial(_lowering_on, _platform), _platform, alone=True)
register_expansion(_batch_last, lambda *kinds, program, structure, rank: program.traced(structure, *kinds)[0])


def native_with_derivatives(core: Callable[..., Any]) -> Callable[..., Any]:
    """``core`` of pytrees of arrays with trailing batch axes, compiled as by ``batch_last``.

    Its derivative is compiled too, in both modes; derivatives of higher order are those of ``core`` by JAX.
    """
    derivative = native_derivative(core)

    def rule(args: tuple, changes: tuple) -> tuple[Any, Any]:
        return whole(*args), derivative(args, changes)

    whole = batch_last(core, rule)
    return whole


def native_derivative(core: Callable[..., Any]) -> Callable[[tuple, tuple], Any]:
    """The native function of (args, changes) that returns the change of ``core(*args)``, linear in the changes.

    Leaves of ``changes`` are arrays, or ``SymbolicZero`` for zero.
    """
    program = BatchProgram(core)

    def change(args: tuple, changes: tuple) -> Any:
        leaves, structure = jax.tree.flatten(args)
        changed = structure.flatten_up_to(changes)
        moving = tuple(i for i, dx in enumerate(changed) if not isinstance(dx, SymbolicZero))
        return program.derivative(structure, moving)(leaves, [changed[i] for i in moving])

    return change
