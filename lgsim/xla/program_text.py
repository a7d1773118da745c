"""Traced programs as text, for fingerprints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr


def program_texts(program: ClosedJaxpr) -> Iterator[str]:
    """The text of a traced program, and of the programs that it calls whose text stands in no other."""
    yield str(program.jaxpr)
    seen: set[Any] = set()
    yield from _called(program.jaxpr, seen)


def _called(jaxpr: Jaxpr, seen: set[Any]) -> Iterator[str]:
    for equation in jaxpr.eqns:
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                if isinstance(inner, ClosedJaxpr | Jaxpr):
                    yield from _called(inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner, seen)
        program: Any = equation.params.get("program")
        if hasattr(program, "traced"):  # of batch_last, whose text stands in no other
            avals: list[Any] = [x.aval for x in equation.invars]
            kinds = tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in avals)
            structure = equation.params["structure"]
            if (program, structure, kinds) not in seen:
                seen.add((program, structure, kinds))
                inner, _ = program.traced(structure, *kinds)
                yield str(inner.jaxpr)
                yield from (str(np.asarray(const)) for const in inner.consts)
                yield from _called(inner.jaxpr, seen)
