"""Missing values: the samples that count in the statistics of each output and of each failure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Int8, Shaped

COMPLETE, NOT_FINITE, BLOWN_UP, PARTIAL = 0, 1, 2, 3
"""Codes of a sample: all outputs have values; it diverged, not finite or blown up; only some outputs have values."""

Mask = Bool[np.ndarray, " n"]


def divergence_code(outputs: Mapping[str, Array], states: list[Array], bound: Array | float) -> Int8[Array, ""]:
    """The code of a sample.

    It diverged if its final state or all its outputs are not finite, or if a number exceeds the bound.

    Args:
        outputs: The outputs by name.
        states: The final state, if it is known.
    """
    numbers = [x for x in outputs.values() if jnp.issubdtype(x.dtype, jnp.inexact)]
    finite = [jnp.all(jnp.isfinite(x)) for x in numbers]
    ended = [jnp.all(jnp.isfinite(x)) for x in states]
    blown = [jnp.any(jnp.isfinite(x) & (jnp.abs(x) > bound)) for x in [*numbers, *states]]
    none = jnp.zeros((), bool)
    # of several outputs without a final state at least one must be finite
    lost = ~jnp.all(jnp.asarray(ended)) if ended else ~jnp.any(jnp.asarray(finite)) if finite else none
    partial = ~jnp.all(jnp.asarray(finite)) if finite else none
    exceeds = jnp.any(jnp.asarray(blown)) if blown else none
    code = jnp.where(exceeds, BLOWN_UP, jnp.where(partial, PARTIAL, COMPLETE))
    return jnp.where(lost, NOT_FINITE, code).astype(jnp.int8)


def outputs_used(failure: Callable[[Any], Any], outputs: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the outputs on which a failure depends.

    Args:
        failure: A function of the outputs by name.
        outputs: The outputs, or their shapes and dtypes.
    """
    kinds = {name: jax.ShapeDtypeStruct(x.shape, x.dtype) for name, x in outputs.items()}
    program = jax.make_jaxpr(failure)(kinds).jaxpr
    used = {id(x) for each in program.eqns for x in each.invars} | {id(x) for x in program.outvars}
    return tuple(name for name, x in zip(sorted(kinds), program.invars, strict=True) if id(x) in used)


def comparable(x: Shaped[Array, " ..."], ended: bool) -> Bool[Array, ""]:
    """True if an output can be compared with a threshold: NaN cannot.

    An infinite output of a motion with a finite final state can: an event at infinity did not happen.

    Args:
        ended: True if the final state is known.
    """
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return jnp.ones((), bool)
    return jnp.all(~jnp.isnan(x) if ended else jnp.isfinite(x))


class KnownValues:
    """The samples that have a value, by output and failure.

    Args:
        outputs: Names of the outputs.
        uses: The outputs on which each failure depends, by its column.
        ended: True if the final states of the motions are known.
    """

    def __init__(self, outputs: list[str], uses: Mapping[str, tuple[str, ...]], ended: bool) -> None:
        self.outputs, self.uses, self.ended = outputs, dict(uses), ended

    def mask(
        self, codes: Int8[np.ndarray, " n"], columns: Mapping[str, np.ndarray], name: str, events: bool = False
    ) -> Mask:
        """True for samples with a finite value of an output, or with a known failure.

        Args:
            events: True if an infinite output counts, as it does in a failure: an event that did not happen.
        """
        known, partial = codes == COMPLETE, np.flatnonzero(codes == PARTIAL)
        infinite = self.ended and (events or name in self.uses)
        known[partial] = True
        for used in self.uses.get(name, (name,)) if len(partial) else ():
            x = columns[used][partial].astype(float).reshape(len(partial), -1)
            known[partial] &= (~np.isnan(x) if infinite else np.isfinite(x)).all(axis=1)
        return known
