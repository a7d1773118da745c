"""Gauss collocation in the Lie algebra, symmetric in time. A new method is a single statement here.

The number in a name is the order. Source: Hairer, Norsett, Wanner, Solving ODEs I, tables II.7.3 and II.7.4.
"""

from __future__ import annotations

from math import sqrt

from lgsim.integrators.implicit_munthe_kaas import ImplicitMuntheKaas
from lgsim.integrators.method import names_of_methods
from lgsim.integrators.tableau import ImplicitTableau

MKGauss2 = ImplicitMuntheKaas(ImplicitTableau("Gauss 2", a=((1 / 2,),), b=(1.0,), c=(1 / 2,), order=2))
"""The implicit midpoint rule. Source: Hairer, Norsett and Wanner, Solving ODEs I, tables II.7.3 and II.7.4."""

MKGauss4 = ImplicitMuntheKaas(
    ImplicitTableau(
        "Gauss 4",
        a=((1 / 4, 1 / 4 - sqrt(3) / 6), (1 / 4 + sqrt(3) / 6, 1 / 4)),
        b=(1 / 2, 1 / 2),
        c=(1 / 2 - sqrt(3) / 6, 1 / 2 + sqrt(3) / 6),
        order=4,
    )
)
"""Two Gauss nodes. Source: Hairer, Norsett and Wanner, Solving ODEs I, tables II.7.3 and II.7.4."""

MKGauss6 = ImplicitMuntheKaas(
    ImplicitTableau(
        "Gauss 6",
        a=(
            (5 / 36, 2 / 9 - sqrt(15) / 15, 5 / 36 - sqrt(15) / 30),
            (5 / 36 + sqrt(15) / 24, 2 / 9, 5 / 36 - sqrt(15) / 24),
            (5 / 36 + sqrt(15) / 30, 2 / 9 + sqrt(15) / 15, 5 / 36),
        ),
        b=(5 / 18, 4 / 9, 5 / 18),
        c=(1 / 2 - sqrt(15) / 10, 1 / 2, 1 / 2 + sqrt(15) / 10),
        order=6,
    )
)
"""Three Gauss nodes. Source: Hairer, Norsett and Wanner, Solving ODEs I, tables II.7.3 and II.7.4."""

__all__ = names_of_methods(globals())  # pyright: ignore[reportUnsupportedDunderAll]
