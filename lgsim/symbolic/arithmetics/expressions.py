"""Plain sympy expressions, for formulas without a normal form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from lgsim.support.packages import package
from lgsim.symbolic.arithmetic import Arithmetic

_EXTRA = "symbolic"


def sympy_package() -> Any:
    """The package sympy.

    Raises:
        ModuleNotFoundError: it is missing; the message names the extra.
    """
    return package("sympy", _EXTRA, "lgsim.symbolic")


class Expressions(Arithmetic):
    """Sympy expressions as the operations create them, without expansion."""

    def __init__(self) -> None:
        self._sympy = sympy_package()

    def constant(self, x: Any) -> Any:
        """A sympy rational, or a float that is infinite or NaN."""
        if isinstance(x, Fraction):
            return self._sympy.Rational(x.numerator, x.denominator)
        return self._sympy.sympify(x)

    def entry(self, x: Any) -> Any:
        """An expression, a number, or a string of an expression."""
        return self.number(x) if self.is_number(x) else self.settled(self._sympy.sympify(x))

    def settled(self, x: Any) -> Any:
        """A rational as a fraction."""
        return Fraction(int(x.p), int(x.q)) if getattr(x, "is_Rational", False) else x

    def sin(self, x: Any) -> Any:
        """The sine."""
        return self._sympy.sin(x)

    def cos(self, x: Any) -> Any:
        """The cosine."""
        return self._sympy.cos(x)

    def sqrt(self, x: Any) -> Any:
        """The square root."""
        return self._sympy.sqrt(x)

    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """Sympy's elementary functions; sizes and signs of symbols are left undecided."""
        s = self._sympy
        names = (
            "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "exp", "log",
        )  # fmt: skip
        return {name: getattr(s, name) for name in names} | {
            "abs": s.Abs, "pow": s.Pow, "cbrt": s.cbrt, "log1p": lambda x: s.log(1 + x),
            "expm1": lambda x: s.exp(x) - 1,
        }  # fmt: skip
