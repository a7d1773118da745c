"""The coordinates of a model as symbols, and the exact ring of them and the model's own symbols."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from lgsim.multibody.model import Model
from lgsim.symbolic.arithmetics.expressions import sympy_package
from lgsim.symbolic.arithmetics.trigonometric import Trigonometric
from lgsim.symbolic.evaluate import evaluate
from lgsim.symbolic.model import symbols


class Coordinates(NamedTuple):
    """A model, whose arrays may have symbols, with the names of its coordinates.

    Attributes:
        ring: The ring of all symbols.
        q: The configuration, symbols (nq,).
        vectors: Velocities and further arguments of functions, symbols (nv,) each.
    """

    machine: Model
    ring: Trigonometric
    q: np.ndarray
    vectors: tuple[np.ndarray, ...]

    def formula(self, f: Callable[..., Any], *more: Any) -> Any:
        """``f(model, q, *vectors, *more)`` as a pytree of arrays of sympy expressions."""
        found = evaluate(f, self.ring)(self.machine, self.q, *self.vectors, *more)
        return jax.tree.map(self.ring.expressions, found)


def coordinates(
    machine: Model,
    q: Sequence[Any] | None,
    *vectors: Sequence[Any] | str,
    ring: type[Trigonometric] = Trigonometric,
) -> Coordinates:
    """Symbols for the coordinates of a model.

    Args:
        q: Names or symbols of the coordinates; by default q1, q2, ...
        *vectors: Names or symbols of the entries of a velocity or an acceleration each, or one letter for all.
        ring: The type of ring.

    Raises:
        ValueError: the number of names is wrong, or one occurs twice.
    """
    named = _symbols("q", "q" if q is None else q, machine.nq)
    others = tuple(_symbols("names of a vector", x, machine.nv) for x in vectors)
    angles, quaternions, rest = _kinds(machine, named)
    own = sorted(free_symbols(machine), key=str)
    return Coordinates(
        machine, ring(angles, [*rest, *(x for v in others for x in v), *own], quaternions), named, others
    )


def _symbols(what: str, names: Sequence[Any] | str, count: int) -> np.ndarray:
    if isinstance(names, str):
        return symbols(f"{names}1:{count + 1}") if count else np.empty(0, object)
    out = np.empty(len(names), object)
    for i, name in enumerate(names):
        out[i] = sympy_package().Symbol(name, real=True) if isinstance(name, str) else name
    if len(out) != count:
        raise ValueError(f"{what}: expected {count} names, got {len(out)}: {[str(x) for x in out]}")
    return out


def _kinds(machine: Model, q: np.ndarray) -> tuple[list[Any], list[list[Any]], list[Any]]:
    """Angles, unit quaternions and the other coordinates."""
    angles, quaternions, rest = [], [], []
    tree = machine.topology
    for i in range(len(machine.joint_names)):
        joint, part = tree.joints[i], list(q[tree.q_slice(i)])
        if tree.mimics[i] is not None:
            continue
        if joint.nq == joint.nv:
            for row, x in zip(joint.rows, part, strict=True):
                (angles if row.turns else rest).append(x)
        else:  # w of its unit quaternion is 1 in the neutral configuration
            first = joint.neutral.index(1.0)
            quaternions.append(part[first : first + 4])
            rest += part[:first] + part[first + 4 :]
    return angles, quaternions, rest


def free_symbols(machine: Model) -> set[Any]:
    """The symbols of a model."""
    entries = (x for leaf in jax.tree.leaves(machine) for x in np.asarray(leaf, object).flat)
    return {symbol for x in entries for symbol in getattr(x, "free_symbols", ())}
