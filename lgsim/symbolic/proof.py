"""Identities proved: what has a normal form is zero where it is written as zero."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from lgsim.multibody.model import Model
from lgsim.symbolic.arithmetics.fractions import TrigonometricFractions
from lgsim.symbolic.arithmetics.trigonometric import Trigonometric
from lgsim.symbolic.coordinates import coordinates
from lgsim.symbolic.entries import SymbolicError
from lgsim.symbolic.evaluate import evaluate


class Proof(NamedTuple):
    """What came of a proof; true where the identity holds."""

    entries: int
    """How many entries had to be zero."""
    remainders: tuple[Any, ...]
    """The expressions of those that are not, in normal form."""

    def __bool__(self) -> bool:
        return not self.remainders

    def __repr__(self) -> str:
        if self:
            return f"proved: {self.entries} entries are zero"
        return (
            f"not so: {len(self.remainders)} of {self.entries} entries are not zero, the first is {self.remainders[0]}"
        )


def prove(identity: Callable[..., Any], machine: Model, division: bool = False) -> Proof:
    """Whether what a function gives is zero for every configuration, exactly, and for every value of symbols.

    Args:
        identity: ``identity(model, q, v, ...)`` gives a pytree of arrays that ought to be zero; its arguments after q
            are velocities, accelerations or joint forces, (nv,) each. It may take derivatives by JAX.
        machine: The machine; ``lgsim.symbolic.model`` gives one with symbols.
        division: Whether the algorithms divide, as ``forward_dynamics``: by fractions, for a few joints.

    Raises:
        ValueError: an identity with other than such arguments.
        SymbolicError: a branch depends on a symbol, or a division without ``division``.
    """
    names = list(inspect.signature(identity).parameters)
    if len(names) < 2:
        raise ValueError(f"identity: expected a function of a model, q and velocities, got arguments {names}")
    ring = TrigonometricFractions if division else Trigonometric
    at = coordinates(machine, names[1], *names[2:], ring=ring)
    found = evaluate(identity, at.ring)(at.machine, at.q, *at.vectors)
    entries = [x for leaf in jax.tree.leaves(found) for x in np.asarray(leaf, object).flat]
    if not entries:
        raise SymbolicError("identity: it gives no entries, which proves nothing")
    zero = at.ring.constant(0)
    return Proof(len(entries), tuple(at.ring.expression(x) for x in entries if x != zero))
