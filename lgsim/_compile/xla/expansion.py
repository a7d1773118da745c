"""Expansions of lgsim's own primitives: programs in JAX primitives, for interpreters of jaxprs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import jax
import numpy as np

from lgsim._compile.xla.jax_internals import ClosedJaxpr, Jaxpr, JaxprEqn, Primitive, parameters

_EXPANSIONS: dict[Primitive, Callable[..., ClosedJaxpr]] = {}


def register_expansion(primitive: Primitive, expand: Callable[..., ClosedJaxpr]) -> None:
    """Register ``expand(*kinds, **params)``, the program of an equation with operands of these kinds."""
    _EXPANSIONS[primitive] = expand


def register_definition(primitive: Primitive, run: Callable[..., Any]) -> None:
    """Register ``run(*operands, **params)``, whose JAX trace is the expansion of an equation."""
    known: dict[Any, ClosedJaxpr] = {}

    def expand(*kinds: jax.ShapeDtypeStruct, **params: Any) -> ClosedJaxpr:
        # without parameters there are few kinds of operands, and a program has thousands of such equations
        key = jax.dtypes.canonicalize_dtype(int), *((x.shape, x.dtype) for x in kinds)
        if not params and key in known:
            return known[key]
        found = jax.make_jaxpr(lambda *operands: run(*operands, **params))(*kinds)
        if not params:
            known[key] = found
        return found

    register_expansion(primitive, expand)


def expansion(equation: JaxprEqn) -> ClosedJaxpr | None:
    """The expansion of an equation, or None if its primitive is not one of lgsim's."""
    expand = _EXPANSIONS.get(equation.primitive)
    if expand is None:
        return None
    avals: list[Any] = [x.aval for x in equation.invars]
    return expand(*(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in avals), **parameters(equation))


def scatters(program: ClosedJaxpr | Jaxpr) -> bool:
    """True if a program, or one inside of it, sets or adds entries at several indices at once."""
    for equation in getattr(program, "jaxpr", program).eqns:
        if equation.primitive.name.startswith("scatter"):
            indices: Any = equation.invars[1].aval
            if prod(indices.shape[:-1]) != 1:
                return True
        inner = expansion(equation)
        if any(map(scatters, [*_programs(equation), *([] if inner is None else [inner])])):
            return True
    return False


def _programs(equation: JaxprEqn) -> Iterator[ClosedJaxpr | Jaxpr]:
    """The programs among the parameters of an equation."""
    for value in parameters(equation).values():
        for inner in value if isinstance(value, tuple | list) else (value,):
            if isinstance(inner, ClosedJaxpr | Jaxpr):
                yield inner


def program_texts(program: ClosedJaxpr) -> Iterator[str]:
    """The text of a traced program, and of the programs that it calls but does not print."""
    yield str(program.jaxpr)
    seen: set[Any] = set()
    yield from _inner_texts(program.jaxpr, seen)


def _inner_texts(jaxpr: Jaxpr, seen: set[Any]) -> Iterator[str]:
    for equation in jaxpr.eqns:
        for inner in _programs(equation):
            yield from _inner_texts(inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner, seen)
        program: Any = parameters(equation).get("program")
        if hasattr(program, "traced"):  # a batch_last program, which its caller does not print
            avals: list[Any] = [x.aval for x in equation.invars]
            kinds = tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in avals)
            structure = parameters(equation)["structure"]
            if (program, structure, kinds) not in seen:
                seen.add((program, structure, kinds))
                inner, _ = program.traced(structure, *kinds)
                yield str(inner.jaxpr)
                yield from (str(np.asarray(const)) for const in inner.consts)
                yield from _inner_texts(inner.jaxpr, seen)
