"""What lgsim's own primitives stand for: programs in JAX's primitives, for whoever reads a jaxpr."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from lgsim._compile.xla.jax_internals import ClosedJaxpr, Jaxpr, JaxprEqn, Primitive, parameters

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
