"""CasADi symbols SX, for its solvers and derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lgsim.support.packages import package
from lgsim.symbolic.arithmetic import Arithmetic


class Casadi(Arithmetic):
    """CasADi scalars SX; numbers are floats. A sympy symbol, as in a model, becomes an SX with its name."""

    def __init__(self) -> None:
        self._casadi = package("casadi", "casadi", "lgsim.symbolic.Casadi")
        self.symbols: dict[str, Any] = {}
        """The SX of sympy symbols, by name."""

    def number(self, x: Any) -> Any:
        """Keep a float."""
        return float(x)

    def constant(self, x: Any) -> Any:
        """A constant SX."""
        return self._casadi.SX(float(x))

    def entry(self, x: Any) -> Any:
        """A scalar SX, a number or a sympy symbol."""
        if self.is_number(x):
            return float(x)
        if isinstance(x, self._casadi.SX):
            return self.settled(x)
        if getattr(x, "is_number", False):
            return float(x)
        name = str(getattr(x, "name", ""))
        if not name:
            raise TypeError(f"expected scalars SX of CasADi, numbers or symbols of sympy as entries, got {x!r}")
        return self.symbols.setdefault(name, self._casadi.SX.sym(name))

    def settled(self, x: Any) -> Any:
        """A constant as a float."""
        return float(x) if isinstance(x, self._casadi.SX) and x.is_constant() else x

    def sin(self, x: Any) -> Any:
        """The sine."""
        return self._casadi.sin(x)

    def cos(self, x: Any) -> Any:
        """The cosine."""
        return self._casadi.cos(x)

    def sqrt(self, x: Any) -> Any:
        """The square root."""
        return self._casadi.sqrt(x)

    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """CasADi's elementary functions."""
        names = (
            "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "exp", "log",
            "log1p", "expm1",
        )  # fmt: skip
        c = self._casadi
        return {name: getattr(c, name) for name in names} | {"abs": c.fabs, "pow": c.power}
