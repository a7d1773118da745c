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
"""Midpoint quadrature of the action. Source: Marsden and West 2001."""
VariationalMidpointCayley = Variational(MIDPOINT, coordinates=Cayley())
"""Midpoint quadrature of the action in Cayley coordinates. Source: Marsden and West 2001."""
VariationalTrapezoid = Variational(TRAPEZOID)
"""Trapezoidal quadrature of the action; with constraints, RATTLE. Source: Marsden and West 2001."""
VariationalLobatto3 = Variational(LOBATTO3)
"""Galerkin method with three Lobatto nodes. Source: Jay 1996."""
VariationalLobatto3Cayley = Variational(LOBATTO3, coordinates=Cayley())
"""Galerkin method with three Lobatto nodes in Cayley coordinates. Source: Jay 1996."""
VariationalLobatto4 = Variational(LOBATTO4)
"""Galerkin method with four Lobatto nodes. Source: Jay 1996."""
VariationalTripleJump4 = Variational(triple_jump(MIDPOINT))
"""Triple jump of ``VariationalMidpoint``. Source: Yoshida 1990."""
VariationalSuzuki4 = Variational(suzuki(MIDPOINT))
"""Suzuki composition of ``VariationalMidpoint``. Source: Suzuki 1990."""
VariationalTrapezoidSuzuki4 = Variational(suzuki(TRAPEZOID))
"""Suzuki composition of ``VariationalTrapezoid``. Source: Suzuki 1990."""

__all__ = names_of_methods(globals())  # pyright: ignore[reportUnsupportedDunderAll]
