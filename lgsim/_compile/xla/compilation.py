"""Functions compiled once for all numbers: a Python float is a number of the program's, as an array is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING
from functools import cache, wraps
from typing import Any, TypeVar, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

Function = TypeVar("Function", bound=Callable[..., Any])

FAST = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}
"""Options that shorten compilation; XLA after jaxlib 0.10 knows the second one no more."""


def with_arrays(tree: Any) -> Any:
    """The tree with arrays () in the place of Python floats, whatever they are in: another number is no new program.

    They follow the dtype of what they meet, as floats do. Python integers, booleans and texts stay what they are: they
    may be numbers of steps, or choices.
    """
    return jax.tree.map(lambda x: jnp.asarray(x) if type(x) is float else x, tree)


def _as_float(x: Any) -> Any:
    return float(x) if type(x) is int else x


def number_field(default: Any = MISSING) -> Any:
    """A field of an ``equinox.Module`` for numbers, of which no value is part of a program: 2 is 2.0.

    Args:
        default: Its value where none is given.
    """
    more = {} if default is MISSING else {"default": default}
    return eqx.field(converter=_as_float, **more)


def compiled(f: Function, **options: Any) -> Function:
    """``equinox.filter_jit`` for which Python floats among the arguments, and in them, are operands.

    Args:
        f: The function; arguments that hold neither arrays nor floats choose the program.
        **options: Those of ``equinox.filter_jit``.
    """
    program = eqx.filter_jit(f, **options)

    @wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = with_arrays((args, kwargs))
        return program(*args, **kwargs)

    return cast(Function, call)


def compiled_fast(f: Function) -> Function:
    """``compiled`` for a large program that runs a few times, outside of any trace.

    It is compiled in a third of the time, and slower where it loops over many numbers; results agree to rounding.
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
    """The options of ``compiled_fast`` that this XLA knows."""
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

    A state that begins with a Python number is weakly typed and what follows from it is not, so that the program that
    advances it would be traced and compiled twice.
    """
    return jax.tree.map(lambda x: jax.lax.convert_element_type(x, x.dtype) if isinstance(x, Array) else x, tree)
