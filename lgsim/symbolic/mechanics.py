"""The equations of motion of a model as expressions, in the ring with normal forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import sympy
from sympy import Matrix, Symbol

from lgsim.dynamics.inverse_dynamics import inverse_dynamics
from lgsim.dynamics.mass_matrix import mass_matrix
from lgsim.multibody.model import Model
from lgsim.multibody.topology import ModelError
from lgsim.support.messages import unknown_name
from lgsim.symbolic.arithmetics import Expressions
from lgsim.symbolic.arithmetics.trigonometric import Trigonometric
from lgsim.symbolic.coordinates import Coordinates, coordinates
from lgsim.symbolic.entries import SymbolicError
from lgsim.symbolic.evaluate import evaluate


@dataclass(frozen=True)
class Mechanics:
    """``M(q) a + h(q, v) = tau`` and ``dq/dt = V(q) v`` of a model, which may have symbols.

    Attributes:
        at: The model and its coordinates, velocities and accelerations.
    """

    at: Coordinates

    @property
    def model(self) -> Model:
        """The model."""
        return self.at.machine

    @property
    def q(self) -> tuple[Symbol, ...]:
        """The coordinates."""
        return tuple(self.at.q)

    @property
    def v(self) -> tuple[Symbol, ...]:
        """The velocities."""
        return tuple(self.at.vectors[0])

    @property
    def a(self) -> tuple[Symbol, ...]:
        """The accelerations, a1, a2, ..."""
        return tuple(self.at.vectors[1])

    @property
    def ring(self) -> Trigonometric:
        """The ring in which the equations have a normal form."""
        return self.at.ring

    def expressions(self, f: Any, *args: Sequence[Symbol]) -> np.ndarray:
        """``f(model, *args)`` as expressions in normal form."""
        given = [self.ring.symbols([x.name for x in arg]) for arg in args]
        return self.ring.expressions(evaluate(f, self.ring)(self.model, *given))

    @cached_property
    def M(self) -> Matrix:
        """The mass matrix."""
        return Matrix(self.expressions(mass_matrix, self.q))

    @cached_property
    def bias(self) -> Matrix:
        """``h(q, v)`` (nv, 1): the joint forces at zero acceleration, gravity included."""
        zero = np.zeros(self.model.nv)
        found = evaluate(inverse_dynamics, self.ring)(
            self.model, self.ring.symbols([x.name for x in self.q]), self.ring.symbols([x.name for x in self.v]), zero
        )
        return Matrix(self.ring.expressions(found))

    @cached_property
    def V(self) -> Matrix:
        """``V(q)`` (nq, nv)."""

        def rates(model: Model, q: jax.Array) -> jax.Array:
            return jax.vmap(lambda e: model.rate(q, e), out_axes=1)(jnp.eye(model.nv))

        try:
            return Matrix(self.expressions(rates, self.q))
        except SymbolicError:  # the poses for angles are not in the ring
            return Matrix(evaluate(rates, Expressions())(self.model, np.array(self.q, object)))

    def drive(self, name: str) -> Matrix:
        """A parameter of the drives, such as ``damping``, (nv, 1)."""
        return Matrix(self.expressions(lambda model: getattr(model, name)))

    @cached_property
    def sprung(self) -> list[tuple[int, int]]:
        """Indices in q and v of coordinates that may have springs: joints with one coordinate per degree of freedom."""
        tree, out = self.model.topology, []
        for i, joint in enumerate(tree.joints):
            if tree.mimics[i] is None and joint.nq == joint.nv:
                places = (
                    range(*part.indices(n)) for part, n in ((tree.q_slice(i), tree.nq), (tree.v_slice(i), tree.nv))
                )
                out += zip(*places, strict=True)
        return out

    @cached_property
    def passive(self) -> Matrix:
        """``D v + V^T K (q - rest)`` (nv, 1): the joint forces against dampers and springs."""
        D, K, rest = map(self.drive, ("damping", "stiffness", "rest"))
        held = D.multiply_elementwise(Matrix(self.v))
        if not self.sprung:
            return held
        pull = Matrix([K[i] * (self.q[j] - rest[i]) for j, i in self.sprung])
        return held + self.V.extract([j for j, _ in self.sprung], list(range(self.model.nv))).T * pull

    @property
    def neutral(self) -> list[float]:
        """The neutral configuration."""
        return [x for joint, mimic in zip(*self._joints, strict=True) if mimic is None for x in joint.neutral]

    @property
    def _joints(self) -> tuple[Any, Any]:
        return self.model.topology.joints, self.model.topology.mimics

    def tidied(self, x: Any) -> Any:
        """A polynomial of the ring in normal form; other expressions are unchanged."""
        try:
            return self.ring.expression(self.ring.entry(sympy.sympify(x)))
        except SymbolicError:
            return x

    def terms(self, x: Any, moving: set[str]) -> list[tuple[Any, Any]]:
        """The independent functions of some symbols in a polynomial of the ring, with their coefficients.

        Args:
            moving: Names of the symbols of the functions; coefficients are polynomials in all others.
        """
        entry = self.ring.entry(sympy.sympify(x))
        polynomial = (self.ring.constant(0) + entry).p
        expressions = self.ring.generators
        functions = [bool({s.name for s in e.free_symbols} & moving) for e in expressions]
        out = []
        for monomial, coefficient in polynomial.terms():
            place = tuple(n if moves else 0 for n, moves in zip(monomial, functions, strict=True))
            rest = sympy.Rational(int(coefficient.numerator), int(coefficient.denominator))
            for n, e, moves in zip(monomial, expressions, functions, strict=True):
                if n and not moves:
                    rest *= e**n
            out.append((place, rest))
        return out

    def dofs(self, joints: Sequence[str]) -> list[int]:
        """The degrees of freedom of joints.

        Raises:
            ModelError: a joint does not exist.
        """
        found: list[int] = []
        for name in joints:
            if name not in self.model.v_slices:
                raise ModelError(
                    unknown_name("actuated: expected the name of a joint", name, list(self.model.v_slices))
                )
            found += range(*self.model.v_slices[name].indices(self.model.nv))
        return found


def mechanics(model: Model, names: Sequence[str] | None, rates: Sequence[str] | None = None) -> Mechanics:
    """The equations of motion of a model.

    Args:
        names: Names of the coordinates, by default q1, q2, ...
        rates: Names of the velocities, by default v1, v2, ...; accelerations are a1, a2, ...

    Raises:
        ValueError: the number of names is wrong, or a name occurs twice or is a symbol of the model.
    """
    return Mechanics(coordinates(model, names, "v" if rates is None else rates, "a"))
