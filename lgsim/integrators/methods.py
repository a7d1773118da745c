"""The named methods: a tableau and an engine each. A new method is a tableau in ``coefficients.py`` and a line here.

Coefficients carry their citations in ``coefficients.py``, ``gauss.py`` and ``compositions.py``. The number in a name is
the order, a second one the order of the embedded estimate.
"""

from __future__ import annotations

from lgsim.integrators import coefficients as c
from lgsim.integrators.commutator_free import CommutatorFree
from lgsim.integrators.compositions import suzuki, theta_scheme, triple_jump, with_adjoint
from lgsim.integrators.coordinates import Cayley, SecondKind
from lgsim.integrators.gauss import GAUSS2_TABLEAU, GAUSS4_TABLEAU, GAUSS6_TABLEAU, ImplicitMuntheKaas
from lgsim.integrators.method import Method
from lgsim.integrators.rkmk import MuntheKaas, ReducedMuntheKaas
from lgsim.integrators.symplectic import Symplectic

LieEuler = ReducedMuntheKaas(c.LIE_EULER_TABLEAU)

MK2 = MuntheKaas(c.HEUN_TABLEAU)
MK2Midpoint = MuntheKaas(c.MIDPOINT_TABLEAU)
MK3 = MuntheKaas(c.RK3_TABLEAU)
MK4 = MuntheKaas(c.RK4_TABLEAU)
MK4TwoCommutators = ReducedMuntheKaas(c.RK4_TWO_COMMUTATORS_TABLEAU)
MK5 = MuntheKaas(c.BUTCHER5_TABLEAU)
MK54 = MuntheKaas(c.DORMAND_PRINCE_TABLEAU)
MK6 = MuntheKaas(c.BUTCHER6_TABLEAU)
MK8 = MuntheKaas(c.COOPER_VERNER_TABLEAU)

CF2 = CommutatorFree(c.CF2_TABLEAU)
CF3 = CommutatorFree(c.CF3_TABLEAU)
CF4 = CommutatorFree(c.CF4_TABLEAU)
CF32a = CommutatorFree(c.CF32A_TABLEAU)
CF32b = CommutatorFree(c.CF32B_TABLEAU)
CF43 = CommutatorFree(c.CF43_TABLEAU)

CG2 = CommutatorFree(c.CG2_TABLEAU)
CG3 = CommutatorFree(c.CG3_TABLEAU)
CG4 = CommutatorFree(c.CG4_TABLEAU)
CG5 = CommutatorFree(c.CG5_TABLEAU)

METHODS: dict[str, Method] = {name: value for name, value in list(globals().items()) if isinstance(value, Method)}
"""The explicit methods in exponentials, by name; tests are generated from it."""

MK4Cayley = MuntheKaas(c.RK4_TABLEAU, coordinates=Cayley())
MK4SecondKind = MuntheKaas(c.RK4_TABLEAU, coordinates=SecondKind())

COORDINATE_METHODS: dict[str, Method] = {"MK4Cayley": MK4Cayley, "MK4SecondKind": MK4SecondKind}
"""Methods in other coordinates than exponential ones, by name."""

MKGauss2 = ImplicitMuntheKaas(GAUSS2_TABLEAU)
MKGauss4 = ImplicitMuntheKaas(GAUSS4_TABLEAU)
MKGauss6 = ImplicitMuntheKaas(GAUSS6_TABLEAU)

IMPLICIT_METHODS: dict[str, Method] = {"MKGauss2": MKGauss2, "MKGauss4": MKGauss4, "MKGauss6": MKGauss6}
"""Implicit methods for any action, symmetric in time, by name."""

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

SYMPLECTIC_METHODS: dict[str, Method] = {
    name: value for name, value in list(globals().items()) if isinstance(value, Symplectic)
}
"""Symplectic methods for cotangent bundles and dual algebras, by name."""
