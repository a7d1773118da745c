"""Multiple-precision arithmetic, to evaluate an algorithm without significant rounding errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from lgsim.support.packages import package
from lgsim.symbolic.arithmetic import Arithmetic


class Digits(Arithmetic):
    """Multiple-precision numbers of mpmath. Branches can be evaluated, since every entry is a number.

    Args:
        digits: Number of decimal digits.

    Raises:
        ValueError: digits is less than one.
    """

    def __init__(self, digits: int = 50) -> None:
        if digits < 1:
            raise ValueError(f"digits: expected at least 1, got {digits}")
        self._context = package("mpmath", "symbolic", "lgsim.symbolic.Digits").mp.clone()
        self._context.dps = digits

    def number(self, x: Any) -> Any:
        """Keep a float; ``"0.1"`` or ``Fraction(1, 10)`` is exactly a tenth."""
        if isinstance(x, Fraction):
            return self._context.mpf(x.numerator) / x.denominator
        return self._context.mpf(x)

    def is_number(self, x: Any) -> bool:
        """Every entry is a number."""
        return hasattr(x, "_mpf_") or super().is_number(x)

    def constant(self, x: Any) -> Any:
        """The number."""
        return self.number(x)

    def entry(self, x: Any) -> Any:
        """A number of mpmath or Python, or a string."""
        return self.number(x)

    def sin(self, x: Any) -> Any:
        """The sine."""
        return self._context.sin(x)

    def cos(self, x: Any) -> Any:
        """The cosine."""
        return self._context.cos(x)

    def sqrt(self, x: Any) -> Any:
        """The square root."""
        return self._context.sqrt(x)

    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """The elementary functions of mpmath."""
        names = (
            "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "exp", "expm1",
            "log", "log1p", "cbrt",
        )  # fmt: skip
        return {name: getattr(self._context, name) for name in names} | {"pow": self._context.power}
