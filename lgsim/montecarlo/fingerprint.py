"""Whether two studies compute the same: a digest of their programs and numbers, the same in every process."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr

from lgsim.montecarlo.study import Study

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def fingerprint(study: Study, programs: list[ClosedJaxpr]) -> str:
    """Sixteen hexadecimal digits that differ between studies of other programs, numbers, seeds or tiles.

    How many samples there are, and when a study stops, does not count but for a Latin hypercube.

    Args:
        study: The study.
        programs: What it runs on a tile, traced.
    """
    digest = hashlib.sha256(f"tile {study.tile} bound {study.bound!r}".encode())
    for program in programs:
        digest.update(_ADDRESS.sub("", "\n".join(_texts(program))).encode())
        for const in program.consts:
            digest.update(_bytes(const))
    parts = study.sampler, study.rollout, study.outputs, study.failures
    names = study.sampler.names, [(name, kind.shape, str(kind.dtype)) for name, kind in study.columns().items()]
    digest.update(repr(names).encode())
    for leaf in jax.tree.leaves(eqx.filter(parts, eqx.is_array)):
        digest.update(_bytes(leaf))
    return digest.hexdigest()[:16]


def program_key(program: ClosedJaxpr) -> str:
    """Of a traced program in this process: equal for programs that may share one compilation."""
    digest = hashlib.sha256(str(program.jaxpr).encode())
    for const in program.consts:
        digest.update(_bytes(const))
    return digest.hexdigest()


def _texts(program: ClosedJaxpr) -> Iterator[str]:
    """The text of a program and of those that it calls by name alone."""
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
        if hasattr(program, "traced"):  # of lgsim.spatial.batch_last, whose text stands in no other
            avals: list[Any] = [x.aval for x in equation.invars]
            kinds = tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in avals)
            structure = equation.params["structure"]
            if (program, structure, kinds) not in seen:
                seen.add((program, structure, kinds))
                inner, _ = program.traced(structure, *kinds)
                yield str(inner.jaxpr)
                yield from (str(np.asarray(const)) for const in inner.consts)
                yield from _called(inner.jaxpr, seen)


def _bytes(x: Array | Any) -> bytes:
    array = np.ascontiguousarray(x)
    return f"{array.dtype.str} {array.shape}".encode() + array.tobytes()
