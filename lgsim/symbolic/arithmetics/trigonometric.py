"""The exact ring of trigonometric polynomials, in which every entry has a normal form: equal means identical.

It consists of ``Q[parameters, q, cos q, sin q]`` modulo ``sin^2 + cos^2 = 1`` and the norms of unit quaternions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, no_type_check

import numpy as np

from lgsim.symbolic.arithmetic import Arithmetic
from lgsim.symbolic.arithmetics.expressions import sympy_package
from lgsim.symbolic.entries import SymbolicError


class Trigonometric(Arithmetic):
    """Trigonometric polynomials over the rationals in normal form, for exact formulas.

    The squares of a sine, and of w of a unit quaternion ``(w, x, y, z)``, are replaced. Divisors must be numbers, see
    ``TrigonometricFractions``; arguments of sines must be sums of integer multiples of the angles.

    Args:
        angles: Names, or sympy symbols, of the coordinates that may be arguments of sines.
        others: Names of other symbols: velocities, parameters, lengths.
        quaternions: Names of the four components of each unit quaternion, w first.

    Raises:
        ValueError: a name occurs twice.
    """

    def __init__(
        self, angles: Iterable[Any] = (), others: Iterable[Any] = (), quaternions: Iterable[Sequence[Any]] = ()
    ) -> None:
        s = sympy_package()
        self.sympy = s
        """The package sympy."""
        quaternions = [tuple(x) for x in quaternions]
        angles = tuple(angles)
        given = [x for part in quaternions for x in part] + list(others) + list(angles)
        made = {str(x): s.Symbol(x, real=True) if isinstance(x, str) else x for x in given}
        names = [str(x) for x in given]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"the symbol {name!r} occurs twice: a parameter needs a name that no coordinate has")
        self.angles = tuple(map(str, angles))
        """Names of the angles."""
        turns = [f"{f}_{a}" for f in ("sin", "cos") for a in self.angles]
        for name in turns:
            if name in made:
                raise ValueError(f"the symbol {name!r} clashes with the sine or cosine of an angle: rename it")
        # generators of the polynomial ring: sin and cos of each angle, then the symbols
        self.generators = [f(made[a]) for f in (s.sin, s.cos) for a in self.angles] + list(made.values())
        """The sympy expressions of the ring's generators: sines, cosines, then the symbols."""
        self.ring, *generators = s.polys.rings.ring(turns + names, s.QQ)
        self._generators = dict(zip(turns + names, generators, strict=True))
        self._symbols = made
        count = len(self.angles)
        # rules of the normal form: sin^2 = 1 - cos^2, w^2 = 1 - x^2 - y^2 - z^2
        self._rules = [(i, 1 - generators[count + i] ** 2) for i in range(count)]
        for w, *rest in quaternions:
            square = sum(self._generators[str(x)] ** 2 for x in rest)
            self._rules.append((2 * count + names.index(str(w)), 1 - square))

    def symbol(self, name: str) -> Any:
        """The sympy symbol with a name."""
        return self._symbols[name]

    @property
    def symbols_of_sympy(self) -> tuple[Any, ...]:
        """All symbols, without sines and cosines."""
        return tuple(self._symbols.values())

    def symbols(self, names: Sequence[str]) -> np.ndarray:
        """The entries of symbols by name, (len(names),)."""
        out = np.empty(len(names), object)
        for i, name in enumerate(names):
            out[i] = self._generator(str(name))
        return out

    def _generator(self, name: str) -> Any:
        if name not in self._symbols:
            raise SymbolicError(
                f"the symbol {name} is not in this ring, which has {', '.join(sorted(self._symbols)) or 'no symbols'}"
            )
        return self._made(self._generators[name])

    def _made(self, p: Any) -> Any:
        """The entry of a polynomial in normal form."""
        return Polynomial(self, p)

    def constant(self, x: Any) -> Any:
        """A rational."""
        if isinstance(x, float):
            raise SymbolicError(f"the number {x} is not in this ring: it is not finite")
        x = Fraction(x)
        return self._made(self.ring(self.sympy.QQ(x.numerator, x.denominator)))

    def entry(self, x: Any) -> Any:
        """An entry of this ring, a number, or a sympy polynomial in its symbols, sines and cosines."""
        if isinstance(x, Polynomial):
            if x.ring.ring != self.ring:
                raise SymbolicError("an entry of another ring")
            return self.settled(x)
        if self.is_number(x):
            return self.number(x)
        return self.settled(self._converted(self.sympy.sympify(x)))

    def _converted(self, x: Any) -> Any:
        if x.is_Rational:
            return self.constant(Fraction(int(x.p), int(x.q)))
        if x.is_Symbol:
            return self._generator(x.name)
        if x.is_Pow and x.exp.is_Integer and x.exp > 0:
            return _power(self._converted(x.base), int(x.exp))
        parts = [self._converted(part) for part in x.args]
        if x.is_Add or x.is_Mul:
            total = parts[0]
            for part in parts[1:]:
                total = total + part if x.is_Add else total * part
            return total
        if isinstance(x, (self.sympy.sin, self.sympy.cos)):
            return self.sin(parts[0]) if isinstance(x, self.sympy.sin) else self.cos(parts[0])
        raise SymbolicError(f"{x} is not a trigonometric polynomial; use Expressions()")

    @no_type_check
    def settled(self, x: Any) -> Any:
        """A constant as a fraction."""
        if isinstance(x, Polynomial) and x.p.is_ground:
            c = x.p.coeff(1)
            return Fraction(int(c.numerator), int(c.denominator))
        return x

    @no_type_check
    def reduced(self, p: Any) -> Any:
        """A polynomial in normal form."""
        for place, rest in self._rules:
            if all(monomial[place] < 2 for monomial in p):
                continue
            parts: dict[int, dict] = {}
            for monomial, coefficient in p.terms():
                low = list(monomial)
                low[place] %= 2
                parts.setdefault(monomial[place] // 2, {})[tuple(low)] = coefficient
            p = self.ring.zero
            for half, terms in parts.items():
                part = self.ring.from_dict(terms)
                p = p + (part * rest**half if half else part)
        return p

    def sin(self, x: Any) -> Any:
        """The sine of a sum of integer multiples of angles."""
        return self._turned(x)[1]

    def cos(self, x: Any) -> Any:
        """The cosine of a sum of integer multiples of angles."""
        return self._turned(x)[0]

    def _turned(self, x: Any) -> tuple[Any, Any]:
        found = self._multiples(x)
        if found is None:
            raise SymbolicError(f"sine or cosine of {x}, which is not a sum of integer multiples of angles of the ring")
        cosine, sine = self.constant(1), self.constant(0)
        for angle, count in found.items():
            c, s = (self._made(self._generators[f"{f}_{angle}"]) for f in ("cos", "sin"))
            for _ in range(abs(count)):
                turned = s if count > 0 else -s
                cosine, sine = cosine * c - sine * turned, sine * c + cosine * turned
        return cosine, sine

    def _multiples(self, x: Any) -> dict[str, int] | None:
        if getattr(x, "below", 1) != 1:
            return None
        found: dict[str, int] = {}
        for monomial, coefficient in x.p.terms():
            places = [i for i, power in enumerate(monomial) if power]
            if coefficient.denominator != 1 or len(places) != 1 or monomial[places[0]] != 1:
                return None
            name = str(self.ring.symbols[places[0]])
            if name not in self.angles:
                return None
            found[name] = int(coefficient)
        return found

    def sqrt(self, x: Any) -> Any:
        """Raise: the ring has no roots of symbols.

        Raises:
            SymbolicError: always.
        """
        raise SymbolicError(f"the square root of {str(x)[:100]} is not in the ring; use Expressions()")

    def expression(self, x: Any) -> Any:
        """An entry as an expanded sympy expression."""
        x = x if isinstance(x, Polynomial) else self.constant(x)
        return x.p.as_expr(*self.generators)

    def expressions(self, array: Any) -> np.ndarray:
        """The entries of an array as sympy expressions."""
        entries = np.asarray(array, object)
        out = np.empty(entries.size, object)
        for i, x in enumerate(entries.flat):
            out[i] = self.expression(x)
        return out.reshape(entries.shape)


def _power(x: Any, n: int) -> Any:
    out = x
    for _ in range(n - 1):
        out = out * x
    return out


@no_type_check  # at run time: checking a call takes longer than the call
class Polynomial:
    """An entry of the ring in normal form: ``==`` is exact equality.

    Args:
        p: The sympy polynomial.
    """

    __slots__ = ("p", "ring")

    def __init__(self, ring: Trigonometric, p: Any) -> None:
        self.ring, self.p = ring, p

    def _other(self, other: Any) -> Any:
        return other.p if isinstance(other, Polynomial) else self.ring.constant(other).p

    def __add__(self, other: Any) -> Polynomial:
        return Polynomial(self.ring, self.p + self._other(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Polynomial:
        return Polynomial(self.ring, self.p - self._other(other))

    def __rsub__(self, other: Any) -> Polynomial:
        return Polynomial(self.ring, self._other(other) - self.p)

    def __mul__(self, other: Any) -> Polynomial:
        return Polynomial(self.ring, self.ring.reduced(self.p * self._other(other)))

    __rmul__ = __mul__

    def __neg__(self) -> Polynomial:
        return Polynomial(self.ring, -self.p)

    def __truediv__(self, other: Any) -> Polynomial:
        divisor = self._other(other)
        if not divisor.is_ground or not divisor:
            raise SymbolicError(
                f"division by {str(divisor)[:100]}: the ring divides only by numbers; use TrigonometricFractions for a "
                "few joints, else Expressions()"
            )
        return Polynomial(self.ring, self.p.quo_ground(divisor.LC))

    def __rtruediv__(self, other: Any) -> Polynomial:
        return self.ring.constant(other) / self

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Polynomial):
            return self.p == other.p
        return isinstance(other, (int, float, Fraction)) and self.p == self._other(other)

    def __hash__(self) -> int:
        return hash(self.p)

    def __bool__(self) -> bool:
        return bool(self.p)

    def __repr__(self) -> str:
        return str(self.ring.expression(self))
