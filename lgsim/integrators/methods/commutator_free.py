"""Commutator-free methods, whose exponentials are reused. A new method is a single statement here.

The number in a name is the order, a second one that of the embedded estimate; every coefficient is correctly rounded.
Source: Celledoni, Marthinsen, Owren (2003), Commutator-free Lie group methods, and those given with each method.
"""

from __future__ import annotations

from lgsim.integrators.commutator_free import CommutatorFree
from lgsim.integrators.group_words import Exponentials
from lgsim.integrators.method import names_of_methods
from lgsim.integrators.tableau import CommutatorFreeTableau, crouch_grossman

START = Exponentials(0, ())

CF2 = CommutatorFree(crouch_grossman("CF2", a=((), (1.0,)), b=(1 / 2, 1 / 2), c=(0.0, 1.0), order=2))
"""Heun's coefficients; the same method as ``CG2``. Source: Celledoni, Marthinsen and Owren 2003."""

CF3 = CommutatorFree(
    CommutatorFreeTableau(
        "CF3",
        stages=(START, Exponentials(0, ((1 / 3,),)), Exponentials(0, ((0.0, 2 / 3),))),
        update=Exponentials(1, ((-1 / 12, 0.0, 3 / 4),)),
        c=(0.0, 1 / 3, 2 / 3),
        order=3,
    )
)
"""The update continues from Y_1. Source: Park and Chung 2005, Table II(a)."""

CF4 = CommutatorFree(
    CommutatorFreeTableau(
        "CF4",
        stages=(
            START,
            Exponentials(0, ((1 / 2,),)),
            Exponentials(0, ((0.0, 1 / 2),)),
            Exponentials(1, ((-1 / 2, 0.0, 1.0),)),
        ),
        update=Exponentials(0, ((1 / 4, 1 / 6, 1 / 6, -1 / 12), (-1 / 12, 1 / 6, 1 / 6, 1 / 4))),
        c=(0.0, 1 / 2, 1 / 2, 1.0),
        order=4,
    )
)
"""Y_3 continues from Y_1. Source: Park and Chung 2005, Table II(b); Celledoni et al. 2021, (9)."""

CF32a = CommutatorFree(
    CommutatorFreeTableau(
        "CF32a",
        stages=CF3.tableau.stages,
        update=CF3.tableau.update,
        c=CF3.tableau.c,
        order=3,
        embedded=Exponentials(0, ((0.0, 1 / 2, 1 / 2),)),
        embedded_order=2,
    )
)
"""``CF3`` and an estimate with one exponential. Source: Celledoni et al. 2021, section 4.2.1, first pair."""

CF32b = CommutatorFree(
    CommutatorFreeTableau(
        "CF32b",
        stages=(START, Exponentials(0, ((2 / 3,),)), Exponentials(0, ((5 / 12, 1 / 4),))),
        update=Exponentials(2, ((-1 / 6, -1 / 2, 1.0),)),
        c=(0.0, 2 / 3, 2 / 3),
        order=3,
        embedded=Exponentials(0, ((1 / 4, 0.0, 3 / 4),)),
        embedded_order=2,
    )
)
"""The update continues from Y_2. Source: Celledoni et al. 2021, section 4.2.1, second pair."""

CF43 = CommutatorFree(
    CommutatorFreeTableau(
        "CF43",
        stages=CF4.tableau.stages,
        update=CF4.tableau.update,
        c=CF4.tableau.c,
        order=4,
        embedded=Exponentials(0, ((1 / 3,), (-1 / 9, 1 / 3, 0.0, 0.0, 4 / 9))),
        embedded_order=3,
        embedded_stages=(Exponentials(0, ((0.0, 3 / 4),)),),
        embedded_c=(3 / 4,),
    )
)
"""``CF4`` and a third-order estimate with one further stage. Source: Celledoni et al. 2021, (34)."""

__all__ = names_of_methods(globals())  # pyright: ignore[reportUnsupportedDunderAll]
