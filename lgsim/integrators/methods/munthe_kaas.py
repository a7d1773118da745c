"""Munthe-Kaas methods: Runge-Kutta tableaus in the Lie algebra. A new method is a single statement here.

The number in a name is the order, a second one that of the embedded estimate. Every coefficient is correctly rounded.
"""

from __future__ import annotations

from decimal import Decimal, localcontext

from lgsim.integrators.coordinates import Cayley, SecondKind
from lgsim.integrators.group_words import Commutator
from lgsim.integrators.method import names_of_methods
from lgsim.integrators.munthe_kaas import MuntheKaas, ReducedMuntheKaas
from lgsim.integrators.tableau import ButcherTableau

LieEuler = ReducedMuntheKaas(ButcherTableau("Lie-Euler", a=((),), b=(1.0,), c=(0.0,), order=1))
"""One exponential a step: Euler's method on a Lie group."""

MK2 = MuntheKaas(ButcherTableau("Heun", a=((), (1.0,)), b=(1 / 2, 1 / 2), c=(0.0, 1.0), order=2))
"""Heun's tableau, the second-order tableau of Park and Chung 2005."""

MK2Midpoint = MuntheKaas(ButcherTableau("midpoint", a=((), (1 / 2,)), b=(0.0, 1.0), c=(0.0, 1 / 2), order=2))
"""Source: Runge 1895, the explicit midpoint rule."""

MK3 = MuntheKaas(
    ButcherTableau("RK3", a=((), (1 / 3,), (0.0, 2 / 3)), b=(1 / 4, 0.0, 3 / 4), c=(0.0, 1 / 3, 2 / 3), order=3)
)
"""Heun's third-order tableau. Source: Park and Chung 2005, Table III(a)."""

MK4 = MuntheKaas(
    ButcherTableau(
        "RK4",
        a=((), (1 / 2,), (0.0, 1 / 2), (0.0, 0.0, 1.0)),
        b=(1 / 6, 1 / 3, 1 / 3, 1 / 6),
        c=(0.0, 1 / 2, 1 / 2, 1.0),
        order=4,
    )
)
"""The classical Runge-Kutta tableau. Source: Kutta 1901; Park and Chung 2005, Table III(b)."""

MK4TwoCommutators = ReducedMuntheKaas(
    ButcherTableau(
        "RK4 with two commutators",
        a=MK4.tableau.a,
        b=MK4.tableau.b,
        c=MK4.tableau.c,
        order=4,
        commutators=(Commutator(2, -1 / 8, 0, 1), Commutator(4, -1 / 12, 0, 3)),
    )
)
"""The tableau of ``MK4`` with two commutators in all.

The signs are for a left action exp(.) y; the bracket of a right translation is minus the group's, so an action brings
its own sign. Source: Celledoni et al. 2021, section 2.2.
"""

MK5 = MuntheKaas(
    ButcherTableau(
        "Butcher 5",
        a=(
            (),
            (1 / 4,),
            (1 / 8, 1 / 8),
            (0.0, -1 / 2, 1.0),
            (3 / 16, 0.0, 0.0, 9 / 16),
            (-3 / 7, 2 / 7, 12 / 7, -12 / 7, 8 / 7),
        ),
        b=(7 / 90, 0.0, 32 / 90, 12 / 90, 32 / 90, 7 / 90),
        c=(0.0, 1 / 4, 1 / 4, 1 / 2, 3 / 4, 1.0),
        order=5,
    )
)
"""Source: Butcher 1964, On Runge-Kutta processes of high order, J. Austral. Math. Soc. 4."""

MK54 = MuntheKaas(
    ButcherTableau(
        "Dormand-Prince 5(4)",
        a=(
            (),
            (1 / 5,),
            (3 / 40, 9 / 40),
            (44 / 45, -56 / 15, 32 / 9),
            (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
            (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
            (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
        ),
        b=(35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0.0),
        c=(0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0),
        order=5,
        b_embedded=(5179 / 57600, 0.0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40),
        embedded_order=4,
    )
)
"""The last stage is the update. Source: Dormand and Prince 1980, A family of embedded Runge-Kutta formulae."""

MK6 = MuntheKaas(
    ButcherTableau(
        "Butcher 6",
        a=(
            (),
            (1 / 3,),
            (0.0, 2 / 3),
            (1 / 12, 1 / 3, -1 / 12),
            (-1 / 16, 9 / 8, -3 / 16, -3 / 8),
            (0.0, 9 / 8, -3 / 8, -3 / 4, 1 / 2),
            (9 / 44, -9 / 11, 63 / 44, 18 / 11, 0.0, -16 / 11),
        ),
        b=(11 / 120, 0.0, 27 / 40, 27 / 40, -4 / 15, -4 / 15, 11 / 120),
        c=(0.0, 1 / 3, 2 / 3, 1 / 3, 1 / 2, 1 / 2, 1.0),
        order=6,
    )
)
"""Source: Butcher 1964, On Runge-Kutta processes of high order, J. Austral. Math. Soc. 4."""


def _surd(p: int, q: int, r: int) -> float:
    """(p + q sqrt(21)) / r, correctly rounded: in floats the cancellation in the numerator would cost two digits."""
    with localcontext() as context:
        context.prec = 40
        return float((p + q * Decimal(21).sqrt()) / r)


MK8 = MuntheKaas(
    ButcherTableau(
        "Cooper-Verner 8",
        a=(
            (),
            (1 / 2,),
            (1 / 4, 1 / 4),
            (1 / 7, _surd(-7, -3, 98), _surd(21, 5, 49)),
            (_surd(11, 1, 84), 0.0, _surd(18, 4, 63), _surd(21, -1, 252)),
            (_surd(5, 1, 48), 0.0, _surd(9, 1, 36), _surd(-231, 14, 360), _surd(63, -7, 80)),
            (
                _surd(10, -1, 42),
                0.0,
                _surd(-432, 92, 315),
                _surd(633, -145, 90),
                _surd(-504, 115, 70),
                _surd(63, -13, 35),
            ),
            (1 / 14, 0.0, 0.0, 0.0, _surd(14, -3, 126), _surd(13, -3, 63), 1 / 9),
            (
                1 / 32,
                0.0,
                0.0,
                0.0,
                _surd(91, -21, 576),
                11 / 72,
                _surd(-385, -75, 1152),
                _surd(63, 13, 128),
            ),
            (
                1 / 14,
                0.0,
                0.0,
                0.0,
                1 / 9,
                _surd(-733, -147, 2205),
                _surd(515, 111, 504),
                _surd(-51, -11, 56),
                _surd(132, 28, 245),
            ),
            (
                0.0,
                0.0,
                0.0,
                0.0,
                _surd(-42, 7, 18),
                _surd(-18, 28, 45),
                _surd(-273, -53, 72),
                _surd(301, 53, 72),
                _surd(28, -28, 45),
                _surd(49, -7, 18),
            ),
        ),
        b=(1 / 20, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 49 / 180, 16 / 45, 49 / 180, 1 / 20),
        c=(
            0.0,
            1 / 2,
            1 / 2,
            _surd(7, 1, 14),
            _surd(7, 1, 14),
            1 / 2,
            _surd(7, -1, 14),
            _surd(7, -1, 14),
            1 / 2,
            _surd(7, 1, 14),
            1.0,
        ),
        order=8,
    )
)
"""Source: Cooper and Verner 1972, Some explicit Runge-Kutta methods of high order, SIAM J. Numer. Anal. 9."""

MK4Cayley = MuntheKaas(MK4.tableau, coordinates=Cayley())
"""The tableau of ``MK4`` in Cayley coordinates, which are rational."""
MK4SecondKind = MuntheKaas(MK4.tableau, coordinates=SecondKind())
"""The tableau of ``MK4`` in canonical coordinates of the second kind: one exponential for each basis vector."""

__all__ = names_of_methods(globals())  # pyright: ignore[reportUnsupportedDunderAll]
