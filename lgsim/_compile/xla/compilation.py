"""Functions compiled once for all numbers: Python floats are operands of the program, as arrays are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING
from functools import cache, wraps
from typing import Any, TypeVar, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.core import Tracer

Function = TypeVar("Function", bound=Callable[..., Any])

FAST = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}
"""Options for shorter compile times; XLA after jaxlib 0.10 lacks the second one."""


def with_arrays(tree: Any) -> Any:
    """The tree with Python floats replaced by arrays (), so that another number needs no new program.

    They take the dtype of the arrays that they are combined with, as floats do. Python integers, booleans and strings
    are kept: they may be numbers of steps, or choices.
    """
    return jax.tree.map(lambda x: jnp.asarray(x) if type(x) is float else x, tree)


def _as_float(x: Any) -> Any:
    return float(x) if type(x) is int else x


def number_field(default: Any = MISSING) -> Any:
    """A field of an ``equinox.Module`` for numbers that are operands of the program: 2 is stored as 2.0.

    Args:
        default: The default value.
    """
    more = {} if default is MISSING else {"default": default}
    return eqx.field(converter=_as_float, **more)


def compiled(f: Function, **options: Any) -> Function:
    """``equinox.filter_jit`` that makes Python floats among the arguments, and in them, operands.

    Args:
        f: The function; arguments without arrays and floats select the program.
        **options: Options of ``equinox.filter_jit``.
    """
    program = eqx.filter_jit(f, **options)

    @wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = with_arrays((args, kwargs))
        return program(*args, **kwargs)

    return cast(Function, call)


def traced_once(f: Function) -> Function:
    """A function of arrays whose operations are recorded once for their shapes, and copied into each program.

    JAX from 0.12 on calls the record instead of copying it. Outside of a trace it is ``f``, operation by operation.
    """
    recorded = jax.jit(f, inline=True)

    @wraps(f)
    def call(*args: Any) -> Any:
        return recorded(*args) if any(isinstance(x, Tracer) for x in args) else f(*args)

    return cast(Function, call)


def compiled_fast(f: Function) -> Function:
    """``compiled`` for a large program that runs only a few times, outside of any trace.

    It compiles in a third of the time but loops over many numbers are slower; results agree to rounding.
    """

    @cache
    def program() -> Callable[..., Any]:
        return compiled(f, compiler_options=fast_options())

    @wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        return program()(*args, **kwargs)

    return cast(Function, call)


@cache
def fast_options() -> dict[str, Any]:
    """The options of ``compiled_fast`` that this XLA supports."""
    given: dict[str, Any] = {}
    for name, value in FAST.items():
        try:
            jax.jit(lambda x: x, compiler_options={name: value}).lower(0.0).compile()
        except jax.errors.JaxRuntimeError:
            continue
        given[name] = value
    return given


def strongly_typed(tree: Any) -> Any:
    """The tree with its arrays strongly typed.

    A state that starts as a Python number is weakly typed, but the next state is not. Then the program of a step
    would be traced and compiled twice.
    """
    return jax.tree.map(lambda x: jax.lax.convert_element_type(x, x.dtype) if isinstance(x, Array) else x, tree)
