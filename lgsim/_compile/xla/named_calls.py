"""Names of functions with their own derivatives, by which an interpreter of jaxprs recognizes their calls.

A name does not affect compilation: it is part of the debug information of a call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from lgsim._compile.xla.jax_internals import called_program, origin

Function = TypeVar("Function", bound=Callable[..., Any])

_PREFIX = "lgsim."


def named(name: str) -> Callable[[Function], Function]:
    """Decorate the function under ``jax.custom_jvp``: its calls carry the name, with its parameters."""

    def decorate(f: Function) -> Function:
        f.__name__ = inspect.unwrap(f).__name__ = _PREFIX + name
        return f

    return decorate


def call_name(equation: Any) -> str | None:
    """The name by ``named`` of the function that an equation of a jaxpr calls, or None."""
    if equation.primitive.name != "custom_jvp_call":
        return None
    name = origin(called_program(equation))
    return name.removeprefix(_PREFIX) if name.startswith(_PREFIX) else None
