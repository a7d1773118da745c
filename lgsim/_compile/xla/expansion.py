"""What lgsim's own primitives stand for: programs in JAX's primitives, for whoever reads a jaxpr."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from lgsim._compile.xla.jax_internals import ClosedJaxpr, JaxprEqn, Primitive, parameters

_EXPANSIONS: dict[Primitive, Callable[..., ClosedJaxpr]] = {}


def register_expansion(primitive: Primitive, expand: Callable[..., ClosedJaxpr]) -> None:
    """``expand(*kinds, **params)`` is the program of an equation of the primitive with operands of these kinds."""
    _EXPANSIONS[primitive] = expand


def register_definition(primitive: Primitive, run: Callable[..., Any]) -> None:
    """An equation of the primitive is what JAX traces of ``run(*operands, **params)``."""

    def expand(*kinds: jax.ShapeDtypeStruct, **params: Any) -> ClosedJaxpr:
        return jax.make_jaxpr(lambda *operands: run(*operands, **params))(*kinds)

    register_expansion(primitive, expand)


def expansion(equation: JaxprEqn) -> ClosedJaxpr | None:
    """The program that an equation stands for, or None if its primitive is not one of lgsim's."""
    expand = _EXPANSIONS.get(equation.primitive)
    if expand is None:
        return None
    avals: list[Any] = [x.aval for x in equation.invars]
    return expand(*(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in avals), **parameters(equation))
