"""Vector fields as Taylor polynomials at a rational point, for exact Lie brackets without expression growth."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import sympy
from sympy import Symbol
from sympy.polys.rings import ring


class Jets:
    """Taylor polynomials of fixed order about a random rational point at which sines and cosines are rational.

    Args:
        order: The degree up to which polynomials are kept.
        seed: Seed of the point. Symbols that are not coordinates become random rationals.
    """

    def __init__(self, x: Sequence[Symbol], order: int, seed: int) -> None:
        self._ring, *generators = ring([f"d{i}" for i in range(len(x))], sympy.QQ)
        self._steps: dict[Any, Any] = dict(zip(x, generators, strict=True))
        self.order = order
        self._random = random.Random(seed)
        self._known: dict[Any, Any] = {}

    def jet(self, y: Any) -> Any:
        """The polynomial of a rational function of symbols and of sines and cosines of symbols.

        Raises:
            ValueError: it is another function.
        """
        found = self._known.get(y)
        if found is None:
            found = self._known[y] = self._made(y)
        return found

    def field(self, f: Any) -> list[Any]:
        """The polynomials of a field."""
        return [self.jet(sympy.expand_trig(y)) for y in f]

    def bracket(self, f: Sequence[Any], g: Sequence[Any]) -> list[Any]:
        """``[f, g]``, exact to one degree less than the fields."""
        return [self._along(f, b) - self._along(g, a) for a, b in zip(f, g, strict=True)]

    def value(self, f: Sequence[Any]) -> list[Any]:
        """The field at the point."""
        return [y.coeff(1) for y in f]

    def _along(self, f: Sequence[Any], y: Any) -> Any:
        total = self._ring.zero
        for step, rate in zip(self._steps.values(), f, strict=True):
            total += self._cut(y.diff(step) * rate)
        return total

    def _cut(self, y: Any) -> Any:
        return self._ring.from_dict({m: c for m, c in y.items() if sum(m) <= self.order})

    def _made(self, y: Any) -> Any:
        if y.is_Rational:
            return self._ring(sympy.QQ(y.p, y.q))
        if y.is_Symbol:
            return self._ring(self._number()) + self._steps.get(y, 0)
        if y.is_Add:
            return sum((self.jet(part) for part in y.args), self._ring.zero)
        if y.is_Mul:
            total = self._ring.one
            for part in y.args:
                total = self._cut(total * self.jet(part))
            return total
        if y.is_Pow and y.exp.is_Integer:
            return self._power(self.jet(y.base), int(y.exp))
        if isinstance(y, sympy.sin | sympy.cos) and y.args[0].is_Symbol:
            return self._turned(y)
        raise ValueError(f"expected rational functions of symbols and of sines and cosines of symbols, got {y}")

    def _power(self, base: Any, n: int) -> Any:
        if n < 0:
            base, n = self._inverse(base), -n
        total = self._ring.one
        for _ in range(n):
            total = self._cut(total * base)
        return total

    def _inverse(self, y: Any) -> Any:
        first = y.coeff(1)
        rest = 1 - y / first
        total = term = self._ring.one
        for _ in range(self.order):
            term = self._cut(term * rest)
            total += term
        return total / first

    def _turned(self, y: Any) -> Any:
        """``sin(a + d)`` or ``cos(a + d)``, both computed at once."""
        angle, t = y.args[0], self._number()
        sine, cosine = 2 * t / (1 + t * t), (1 - t * t) / (1 + t * t)
        step = self._steps.get(angle, self._ring.zero)
        s = c = self._ring.zero
        power, factorial = self._ring.one, 1
        for n in range(self.order + 1):
            s, c = s + power * (sine / factorial), c + power * (cosine / factorial)
            sine, cosine = cosine, -sine
            power, factorial = self._cut(power * step), factorial * (n + 1)
        self._known[sympy.sin(angle)], self._known[sympy.cos(angle)] = s, c
        return self._known[y]

    def _number(self) -> Any:
        return sympy.QQ(self._random.randint(2, 97), self._random.randint(3, 89))
