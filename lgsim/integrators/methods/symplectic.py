"""Symplectic methods and their compositions. A new method is a single statement here.

The number in a name is the order. Source: Celledoni et al. (2021), (15)-(17); for the compositions see
``lgsim.integrators.compositions``.
"""

from __future__ import annotations

from lgsim.integrators.compositions import suzuki, theta_scheme, triple_jump, with_adjoint
from lgsim.integrators.method import names_of_methods
from lgsim.integrators.symplectic import Symplectic

SymplecticEuler = Symplectic(theta_scheme(0))
SymplecticMidpoint = Symplectic(theta_scheme(1 / 2))
SymplecticEulerAdjoint = Symplectic(theta_scheme(1))
SymplecticTripleJump4 = Symplectic(triple_jump(theta_scheme(1 / 2)))
SymplecticTripleJump6 = Symplectic(triple_jump(triple_jump(theta_scheme(1 / 2))))
SymplecticSuzuki4 = Symplectic(suzuki(theta_scheme(1 / 2)))
SymplecticVerlet = Symplectic(with_adjoint(theta_scheme(0)))
SymplecticVerletAdjoint = Symplectic(with_adjoint(theta_scheme(1)))
SymplecticVerletTripleJump4 = Symplectic(triple_jump(with_adjoint(theta_scheme(0))))
SymplecticVerletTripleJump6 = Symplectic(triple_jump(triple_jump(with_adjoint(theta_scheme(0)))))
SymplecticVerletSuzuki4 = Symplectic(suzuki(with_adjoint(theta_scheme(0))))

__all__ = names_of_methods(globals())  # pyright: ignore[reportUnsupportedDunderAll]
