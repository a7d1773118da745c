"""Symplectic methods and their compositions. A new method is a single statement here.

The number in a name is the order. Source: Celledoni et al. (2021), (15)-(17); for the compositions see
``lgsim.integrators.compositions``.
"""

from __future__ import annotations

from lgsim.integrators.compositions import suzuki, theta_scheme, triple_jump, with_adjoint
from lgsim.integrators.method import names_of_methods
from lgsim.integrators.symplectic import Symplectic

SymplecticEuler = Symplectic(theta_scheme(0))
"""The theta scheme with theta = 0. Source: Celledoni et al. 2021, (15)-(17)."""
SymplecticMidpoint = Symplectic(theta_scheme(1 / 2))
"""The theta scheme with theta = 1/2, symmetric in time. Source: Celledoni et al. 2021, (15)-(17)."""
SymplecticEulerAdjoint = Symplectic(theta_scheme(1))
"""The theta scheme with theta = 1, the adjoint of ``SymplecticEuler``. Source: Celledoni et al. 2021, (15)-(17)."""
SymplecticTripleJump4 = Symplectic(triple_jump(theta_scheme(1 / 2)))
"""Triple jump of ``SymplecticMidpoint``. Source: Yoshida 1990."""
SymplecticTripleJump6 = Symplectic(triple_jump(triple_jump(theta_scheme(1 / 2))))
"""Triple jump of ``SymplecticTripleJump4``. Source: Yoshida 1990."""
SymplecticSuzuki4 = Symplectic(suzuki(theta_scheme(1 / 2)))
"""Suzuki composition of ``SymplecticMidpoint``. Source: Suzuki 1990."""
SymplecticVerlet = Symplectic(with_adjoint(theta_scheme(0)))
"""Half a step of ``SymplecticEuler``, then half a step of its adjoint.

Source: Hairer, Lubich and Wanner, Geometric Numerical Integration, II.3.
"""
SymplecticVerletAdjoint = Symplectic(with_adjoint(theta_scheme(1)))
"""Half a step of ``SymplecticEulerAdjoint``, then half a step of ``SymplecticEuler``.

Source: Hairer, Lubich and Wanner, Geometric Numerical Integration, II.3.
"""
SymplecticVerletTripleJump4 = Symplectic(triple_jump(with_adjoint(theta_scheme(0))))
"""Triple jump of ``SymplecticVerlet``. Source: Yoshida 1990."""
SymplecticVerletTripleJump6 = Symplectic(triple_jump(triple_jump(with_adjoint(theta_scheme(0)))))
"""Triple jump of ``SymplecticVerletTripleJump4``. Source: Yoshida 1990."""
SymplecticVerletSuzuki4 = Symplectic(suzuki(with_adjoint(theta_scheme(0))))
"""Suzuki composition of ``SymplecticVerlet``. Source: Suzuki 1990."""

__all__ = names_of_methods(globals())  # pyright: ignore[reportUnsupportedDunderAll]
