"""Variational methods and their compositions, for ``DiscreteMechanics``. A new method is a single statement here.

The order is 2 (midpoint, trapezoid), 4 and 6 (Lobatto), or the number at the end of the name. Source: Marsden and West
2001; Wendlandt and Marsden 1997; Jay 1996.
"""

from __future__ import annotations

from lgsim.integrators.compositions import suzuki, triple_jump
from lgsim.integrators.coordinates import Cayley
from lgsim.integrators.discrete.galerkin_scheme import LOBATTO3, LOBATTO4, MIDPOINT, TRAPEZOID
from lgsim.integrators.discrete.variational import Variational
from lgsim.integrators.method import names_of_methods

VariationalMidpoint = Variational(MIDPOINT)
VariationalMidpointCayley = Variational(MIDPOINT, coordinates=Cayley())
VariationalTrapezoid = Variational(TRAPEZOID)
VariationalLobatto3 = Variational(LOBATTO3)
VariationalLobatto3Cayley = Variational(LOBATTO3, coordinates=Cayley())
VariationalLobatto4 = Variational(LOBATTO4)
VariationalTripleJump4 = Variational(triple_jump(MIDPOINT))
VariationalSuzuki4 = Variational(suzuki(MIDPOINT))
VariationalTrapezoidSuzuki4 = Variational(suzuki(TRAPEZOID))

__all__ = names_of_methods(globals())  # pyright: ignore[reportUnsupportedDunderAll]
