"""Fractions of trigonometric polynomials, for algorithms that divide, such as ``forward_dynamics`` of a few joints."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, no_type_check

from lgsim.symbolic.arithmetics.trigonometric import Polynomial, Trigonometric
from lgsim.symbolic.entries import SymbolicError


class TrigonometricFractions(Trigonometric):
    """Quotients of two trigonometric polynomials, both in normal form; ``==`` compares cross products."""

    def _made(self, p: Any) -> Any:
        """The entry of a polynomial in normal form."""
        return Quotient(self, p, self.ring.one)

    def entry(self, x: Any) -> Any:
        """The entry, as for ``Trigonometric``."""
        if isinstance(x, Quotient):
            if x.ring.ring != self.ring:
                raise SymbolicError("an entry of another ring")
            return self.settled(x)
        return super().entry(x)

    @no_type_check
    def settled(self, x: Any) -> Any:
        """A constant as a fraction."""
        return (
            super().settled(Polynomial(self, x.p)) if isinstance(x, Quotient) and x.below == 1 and x.p.is_ground else x
        )

    def expression(self, x: Any) -> Any:
        """An entry as a sympy expression, numerator and denominator expanded."""
        x = x if isinstance(x, Quotient) else self.constant(x)
        return x.p.as_expr(*self.generators) / x.below.as_expr(*self.generators)


@no_type_check  # at run time: checking a call takes longer than the call
class Quotient:
    """A fraction of two polynomials, without common factors that sympy finds.

    Args:
        below: The nonzero denominator.
    """

    __slots__ = ("below", "p", "ring")

    def __init__(self, ring: TrigonometricFractions, p: Any, below: Any) -> None:
        if not below:
            raise SymbolicError("division by zero")
        if below != 1:
            p, below = p.cancel(below)
            if below.is_ground:
                p, below = p.quo_ground(below.LC), ring.ring.one
        self.ring, self.p, self.below = ring, p, below

    def _other(self, other: Any) -> Quotient:
        return other if isinstance(other, Quotient) else self.ring.constant(other)

    def _product(self, x: Any, y: Any) -> Any:
        return self.ring.reduced(x * y)

    def _sum(self, other: Quotient, sign: int) -> Quotient:
        if self.below == other.below:
            return Quotient(self.ring, self.p + sign * other.p, self.below)
        above = self._product(self.p, other.below) + sign * self._product(other.p, self.below)
        return Quotient(self.ring, above, self._product(self.below, other.below))

    def __add__(self, other: Any) -> Quotient:
        return self._sum(self._other(other), 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Quotient:
        return self._sum(self._other(other), -1)

    def __rsub__(self, other: Any) -> Quotient:
        return self._other(other) - self

    def __mul__(self, other: Any) -> Quotient:
        y = self._other(other)
        return Quotient(self.ring, self._product(self.p, y.p), self._product(self.below, y.below))

    __rmul__ = __mul__

    def __neg__(self) -> Quotient:
        return Quotient(self.ring, -self.p, self.below)

    def __truediv__(self, other: Any) -> Quotient:
        y = self._other(other)
        return Quotient(self.ring, self._product(self.p, y.below), self._product(self.below, y.p))

    def __rtruediv__(self, other: Any) -> Quotient:
        return self._other(other) / self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (Quotient, int, Fraction)):
            return False
        y = self._other(other)
        return self._product(self.p, y.below) == self._product(y.p, self.below)

    def __hash__(self) -> int:
        return hash(type(self))  # equal fractions may have two representations

    def __bool__(self) -> bool:
        return bool(self.p)

    def __repr__(self) -> str:
        return str(self.ring.expression(self))
