"""Proofs of identities by normal forms, in which zero is represented only by zero."""

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
    """The result of a proof; true if the identity is proved."""

    entries: int
    """The number of entries that must be zero."""
    remainders: tuple[Any, ...]
    """The expressions that are not zero, in normal form."""

    def __bool__(self) -> bool:
        return not self.remainders

    def __repr__(self) -> str:
        if self:
            return f"proved: {self.entries} entries are zero"
        return (
            f"not so: {len(self.remainders)} of {self.entries} entries are not zero, the first is {self.remainders[0]}"
        )


def prove(identity: Callable[..., Any], machine: Model, division: bool = False) -> Proof:
    """Prove that a function is zero for all configurations and all values of symbols, exactly.

    ``lgsim.symbolic.model`` returns a model with symbols.

    Args:
        identity: ``identity(model, q, v, ...)`` returns a pytree of arrays that must be zero. Its arguments after q are
            velocities, accelerations or joint forces, (nv,) each. It may take derivatives by JAX.
        division: Allow divisions, as in ``forward_dynamics``, by exact fractions; only for a few joints.

    Raises:
        ValueError: the identity has other arguments.
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
        raise SymbolicError("identity: expected at least one entry in its result, got none")
    zero = at.ring.constant(0)
    return Proof(len(entries), tuple(at.ring.expression(x) for x in entries if x != zero))
