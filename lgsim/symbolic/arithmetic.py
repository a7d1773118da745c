"""The interface of an arithmetic: its numbers, operators, roots and functions."""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

DIGITS = 12
"""Decimal digits up to which a float is read as the decimal number that it prints as."""

_DENOMINATOR = 10**6
"""Largest denominator of a fraction that a float is read as."""


ROUNDING = Fraction(4, 2**52)
"""Relative tolerance between a float and the number that it represents; parameters are sums of rounded products."""


def rational(x: Any, scale: int = 0) -> Any:
    """The number that a float represents: a short decimal, a fraction of small integers, or its exact value.

    Infinities and NaN are kept.

    Args:
        x: The float; integers and fractions are returned unchanged.
        scale: The size of the terms of which x is a sum, such as 1 for an entry of a rotation.
    """
    if isinstance(x, (bool, np.bool_)):
        return bool(x)
    if isinstance(x, Fraction):
        return x
    if isinstance(x, (int, np.integer)):
        return Fraction(int(x))
    x = float(x)
    if not math.isfinite(x):
        return x
    decimal = Decimal(repr(x))
    own = Fraction(x)
    near = own.limit_denominator(_DENOMINATOR)
    within = abs(near - own) <= ROUNDING * max(abs(own), scale)
    if len(decimal.as_tuple().digits) <= DIGITS and not (scale and within):
        return Fraction(decimal)
    return near if within else own


class Arithmetic(ABC):
    """The numbers of an arithmetic: entries of any type with Python's operators, and ordinary numbers.

    Operations on ordinary numbers only are done exactly before any entry is created; ``number`` defines their type.
    Operations with an entry use the operators of the entry. Subclasses override what differs.
    """

    def number(self, x: Any) -> Any:
        """The ordinary number that a float of the program or of the model represents."""
        return rational(x)

    def is_number(self, x: Any) -> bool:
        """True if an operand is an ordinary number."""
        return isinstance(x, (bool, int, float, Fraction, np.number, np.bool_))

    @abstractmethod
    def constant(self, x: Any) -> Any:
        """The entry for an ordinary number."""

    @abstractmethod
    def entry(self, x: Any) -> Any:
        """The entry or ordinary number for an entry of a user's array.

        Raises:
            TypeError: the arithmetic does not support it.
        """

    def settled(self, x: Any) -> Any:
        """The result of an operation, converted to an ordinary number if possible."""
        return x

    @abstractmethod
    def sin(self, x: Any) -> Any:
        """The sine of an entry."""

    @abstractmethod
    def cos(self, x: Any) -> Any:
        """The cosine of an entry."""

    @abstractmethod
    def sqrt(self, x: Any) -> Any:
        """The square root of an entry."""

    def add(self, x: Any, y: Any) -> Any:
        """The sum of two entries."""
        return x + y

    def sub(self, x: Any, y: Any) -> Any:
        """The difference of two entries."""
        return x - y

    def mul(self, x: Any, y: Any) -> Any:
        """The product of two entries."""
        return x * y

    def div(self, x: Any, y: Any) -> Any:
        """The quotient of two entries."""
        return x / y

    def neg(self, x: Any) -> Any:
        """The negative of an entry."""
        return -x

    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """Further functions of the arithmetic, by the names of ``lgsim._compile.programs.operations.OPS``."""
        return {}

    def operations(self) -> dict[str, Callable[..., Any]]:
        """All operations on entries by the names of ``lgsim._compile.programs.operations.OPS``."""
        own = {name: getattr(self, name) for name in ("add", "sub", "mul", "div", "neg", "sin", "cos", "sqrt")}
        return {**self.functions(), **own}


def _divided(x: Any, y: Any) -> Any:
    if y == 0:
        return math.nan if x == 0 or x != x else math.copysign(math.inf, x)
    return x / y


def _whole(x: Any, towards: Callable[[Any], int]) -> Any:
    return x if isinstance(x, float) and not math.isfinite(x) else Fraction(towards(x))


EXACT: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": _divided, "neg": operator.neg, "abs": abs,
    "max": max, "min": min, "sign": lambda x: x if x == 0 else (1 if x > 0 else -1),
    "floor": lambda x: _whole(x, math.floor), "ceil": lambda x: _whole(x, math.ceil),
    "round": lambda x: _whole(x, round),
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "select": lambda choice, x, y: x if choice else y, "signbit": lambda x: x < 0,
}  # fmt: skip
"""Operations on ordinary numbers with an exact result."""

AT_ZERO: dict[str, int] = {
    "sin": 0,
    "cos": 1,
    "tan": 0,
    "asin": 0,
    "atan": 0,
    "sinh": 0,
    "cosh": 1,
    "tanh": 0,
    "exp": 1,
}
"""Values of functions at zero that are ordinary numbers."""


def root(x: Any) -> Any:
    """The square root of an ordinary number if it is a fraction, else None."""
    if not isinstance(x, (int, Fraction)) or x < 0:
        return None
    x = Fraction(x)
    top, bottom = math.isqrt(x.numerator), math.isqrt(x.denominator)
    return Fraction(top, bottom) if (top * top, bottom * bottom) == (x.numerator, x.denominator) else None
