"""Hints to XLA's CPU backend and to reverse mode, which change speed and memory but not results.

The CPU backend recomputes an operation with several consumers in each of them. ``lax.optimization_barrier`` does not
prevent that, but a call that is not inlined does. The hint is an undocumented attribute: a JAX that ignores it only
loses speed. Programs for other platforms have none. The platform is known when a program is lowered;
``traced_platform`` returns it for choices that must be made before.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from importlib.metadata import version
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import Array
from jax.ad_checkpoint import checkpoint_name

from lgsim._compile.xla.expansion import register_definition, scatters
from lgsim._compile.xla.jax_internals import (
    Setting,
    define_primitive,
    is_symbolic_zero,
    register_dce_rule,
    register_lowering,
    set_xla_metadata,
)

Tree = TypeVar("Tree")
Function = TypeVar("Function", bound=Callable[..., Any])

# Before jaxlib 0.7.2 XLA crashes if a marked call has a large batch and the computer has several cores.
_SAFE = tuple(int(part) for part in version("jaxlib").split(".")[:3]) >= (0, 7, 2)

# LGSIM_LOWERING_HINTS=0 disables the hints: to measure their effect, or for a backend that does not support them.
_HINTS = _SAFE and set_xla_metadata is not None and os.environ.get("LGSIM_LOWERING_HINTS", "1") != "0"

_CHOSEN = Setting(None)


def traced_platform() -> str:
    """The platform of ``compiling_for``, else the one that JAX uses."""
    return _CHOSEN.value or jax.default_backend()


@contextmanager
def compiling_for(platform: str) -> Iterator[None]:
    """Trace for another platform in this thread: ``with lgsim.compiling_for("cuda"):``, for export without a device.

    Use it for ``jax.export`` and for ahead-of-time compilation. Recursions over bodies, loops and hints adapt to the
    platform when they are lowered. Some choices are part of the traced program: branching in a stage of a Munthe-Kaas
    method, precomputation in the derivative of a loop, and the tiles of ``tiled_vmap`` and of studies. They do not
    change results beyond rounding, but a program traced for another platform is slower.

    Args:
        platform: Such as ``"cpu"``, ``"cuda"``, ``"rocm"`` or ``"tpu"``.
    """
    with _CHOSEN.changed(platform):
        yield


def xla_options(platform: str | None = None) -> dict[str, str | bool]:
    """XLA options for large batches: ``jax.jit(f, compiler_options=lgsim.xla_options())``.

    On a CPU with AVX-512, XLA by default uses vectors of half the width; full vectors make programs that are dominated
    by products of small matrices a quarter faster. Other CPUs are unaffected. Only an outermost ``jit`` accepts
    options.

    Args:
        platform: Such as ``"cpu"``, by default the one that JAX uses; there are no options for others than the CPU.
    """
    return {"xla_cpu_prefer_vector_width": "512"} if (platform or traced_platform()) == "cpu" else {}


@jax.jit
def _identity(*leaves: Array) -> tuple[Array, ...]:
    return leaves


def fusion_barrier(tree: Tree) -> Tree:
    """The tree unchanged, as a barrier to fusion on CPU: its inputs are computed once for all consumers.

    Args:
        tree: A pytree of arrays and Python numbers; numbers are unaffected.
    """
    if not _HINTS:
        return tree
    leaves, structure = jax.tree.flatten(tree)
    behind = iter(_barrier.bind(*(jnp.asarray(leaf) for leaf in leaves if not isinstance(leaf, int | float))))
    return jax.tree.unflatten(structure, [leaf if isinstance(leaf, int | float) else next(behind) for leaf in leaves])


def _behind_call(*leaves: Array) -> list[Array]:
    if not leaves:
        return []
    with set_xla_metadata(inlineable="false"):
        return list(_identity(*leaves))


def _jvp_rule(leaves: Sequence[Any], changes: Sequence[Any]) -> tuple[list[Array], list[Any]]:
    # separate calls for values and changes: reverse mode computes the values beforehand
    moving = [i for i, change in enumerate(changes) if not is_symbolic_zero(change)]
    found = list(changes)
    for i, change in zip(moving, _barrier.bind(*(changes[i] for i in moving)), strict=True):
        found[i] = change
    return _barrier.bind(*leaves), found


def _transpose_rule(cotangents: Sequence[Any], *leaves: Any) -> list[Any]:
    given = [i for i, each in enumerate(cotangents) if not is_symbolic_zero(each)]
    found = list(cotangents)
    for i, each in zip(given, _barrier.bind(*(cotangents[i] for i in given)), strict=True):
        found[i] = each
    return found


def _dce_rule(used: list[bool], equation: Any) -> tuple[list[bool], Any]:
    if not any(used):
        return [False] * len(used), None
    invars = [v for v, each in zip(equation.invars, used, strict=True) if each]
    outvars = [v for v, each in zip(equation.outvars, used, strict=True) if each]
    return used, equation.replace(invars=invars, outvars=outvars)


def _leaves(*leaves: Any) -> list[Any]:
    return list(leaves)


_barrier = define_primitive(
    "fusion_barrier",
    impl=_leaves,
    abstract_eval=_leaves,
    lowering=_leaves,
    batching_rule=lambda leaves, axes: (_barrier.bind(*leaves), axes),
    batch_axes=None,
    computes=False,
    jvp_rule=_jvp_rule,
    transpose_rule=_transpose_rule,
)
"""Lowered by platform; its derivatives are barriers, so that their inputs are computed once as well."""
register_dce_rule(_barrier, _dce_rule)
register_lowering(_barrier, _behind_call, "cpu")
register_definition(_barrier, _leaves)


def native_call(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` as one native function of a program for CPU, its loops included, without a call for each operation.

    Its derivatives of any order and mode are those of ``f``. Inside, a sum over an axis and a product of matrices must
    be written as loops or explicit sums: in a batch the backend rejects operations for its matrix library.
    """

    @partial(jax.jit, static_argnums=(0, 1, 2))
    def compiled(structure: Any, empty: tuple, single: tuple, *leaves: Array) -> Any:
        operands = iter([x if s is None else x[:1].reshape(s) for x, s in zip(leaves, single, strict=True)])
        # the attributes of the call would apply to all calls inside; a loop body that is a call of its own gets copies
        # of its slices of arrays
        with set_xla_metadata(inlineable="true"):
            out = f(*jax.tree.unflatten(structure, [next(operands) if e is None else jnp.zeros(*e) for e in empty]))
        # XLA crashes if such a call has an unused operand: add a result that depends on all
        return out, sum(leaf.ravel()[0].astype(jnp.float32) for leaf in leaves)

    @jax.jit  # the attributes belong to a call inside of a program, not to a program
    @wraps(f)
    def call(*args: Any) -> Any:
        if not _HINTS:
            return f(*args)
        leaves, structure = jax.tree.flatten(args)
        # nor may an operand be empty
        empty = tuple(None if leaf.size else (leaf.shape, leaf.dtype) for leaf in leaves)
        # XLA crashes if such a call has a constant operand, and if an operand is unused: it inlines constants with a
        # single entry
        given = [x for x in leaves if x.size]
        single = tuple(x.shape if x.size == 1 else None for x in given)
        operands = [
            jax.lax.optimization_barrier(x if s is None else jnp.broadcast_to(x.reshape(1), (2,)))
            for x, s in zip(given, single, strict=True)
        ]
        with set_xla_metadata(inlineable="false", xla_cpu_small_call="true"):
            # XLA's fusion emitters reject such a call if it scatters to several indices
            allowed = not scatters(compiled.trace(structure, empty, single, *operands).jaxpr)
            results = compiled(structure, empty, single, *operands) if allowed else None
        if results is None:
            return f(*args)
        # otherwise the second result would be removed, and with it the use of an operand
        return jax.lax.optimization_barrier(results)[0]

    # a derivative would contain calls with the same attributes to functions that may not use all their operands
    @jax.custom_jvp
    def differentiable(*args: Any) -> Any:
        return call(*args)

    @differentiable.defjvp
    def _(primals: tuple, tangents: tuple) -> tuple[Any, Any]:
        return jax.jvp(f, primals, tangents)

    return differentiable


_MARK = "lgsim: kept at each step"

save_marked_values = jax.checkpoint_policies.save_only_these_names(_MARK)
"""The policy of ``jax.checkpoint`` under which reverse mode stores only values marked by ``save_in_checkpoint``."""


def save_in_checkpoint(x: Array) -> Array:
    """Mark x as small and expensive to recompute: reverse mode through a loop stores it under ``save_marked_values``.

    A derivative rule must use the result in place of x.
    """
    return checkpoint_name(x, _MARK)
