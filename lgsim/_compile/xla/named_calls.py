"""Names of functions with derivatives of their own, by which a reader of a jaxpr takes a call for what it computes.

A name changes nothing that JAX compiles: it stands in what a jaxpr says of the origin of a call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from lgsim._compile.xla.jax_internals import called_program, origin

Function = TypeVar("Function", bound=Callable[..., Any])

_PREFIX = "lgsim."


def named(name: str) -> Callable[[Function], Function]:
    """Decorates the function under ``jax.custom_jvp``: a call of it bears the name, with what it is made for in it."""

    def decorate(f: Function) -> Function:
        f.__name__ = inspect.unwrap(f).__name__ = _PREFIX + name
        return f

    return decorate


def call_name(equation: Any) -> str | None:
    """The name that ``named`` gave the function that an equation of a jaxpr calls, or None."""
    if equation.primitive.name != "custom_jvp_call":
        return None
    name = origin(called_program(equation))
    return name.removeprefix(_PREFIX) if name.startswith(_PREFIX) else None
