"""Integrators on manifolds: methods as checked data, one engine for each family, and the loop that runs them.

``lgsim.integrators.adaptive`` (extra ``adaptive``) is imported when it is used first.
"""

from importlib import import_module
from types import ModuleType

from lgsim.integrators.commutator_free import CommutatorFree as CommutatorFree
from lgsim.integrators.compositions import ThetaScheme as ThetaScheme
from lgsim.integrators.compositions import suzuki as suzuki
from lgsim.integrators.compositions import theta_scheme as theta_scheme
from lgsim.integrators.compositions import triple_jump as triple_jump
from lgsim.integrators.compositions import with_adjoint as with_adjoint
from lgsim.integrators.coordinates import Cayley as Cayley
from lgsim.integrators.coordinates import Exponential as Exponential
from lgsim.integrators.coordinates import SecondKind as SecondKind
from lgsim.integrators.discrete import DiscreteMechanics as DiscreteMechanics
from lgsim.integrators.discrete import DiscreteMomentumMap as DiscreteMomentumMap
from lgsim.integrators.discrete import EnergyMomentum as EnergyMomentum
from lgsim.integrators.discrete import GalerkinScheme as GalerkinScheme
from lgsim.integrators.discrete import MoserVeselov as MoserVeselov
from lgsim.integrators.discrete import Variational as Variational
from lgsim.integrators.discrete import discrete_momentum_map as discrete_momentum_map
from lgsim.integrators.hamiltonian import BodyMomentumHamiltonian as BodyMomentumHamiltonian
from lgsim.integrators.hamiltonian import HamiltonianField as HamiltonianField
from lgsim.integrators.hamiltonian import LiePoissonField as LiePoissonField
from lgsim.integrators.implicit_munthe_kaas import ImplicitMuntheKaas as ImplicitMuntheKaas
from lgsim.integrators.integrate import RESULTS as RESULTS
from lgsim.integrators.integrate import FirstSteps as FirstSteps
from lgsim.integrators.integrate import Solution as Solution
from lgsim.integrators.integrate import integrate as integrate
from lgsim.integrators.linearly_implicit import LinearizableField as LinearizableField
from lgsim.integrators.linearly_implicit import Linearization as Linearization
from lgsim.integrators.linearly_implicit import LinearlyImplicit as LinearlyImplicit
from lgsim.integrators.method import ImplicitMethod as ImplicitMethod
from lgsim.integrators.method import Method as Method
from lgsim.integrators.methods import COORDINATE_METHODS as COORDINATE_METHODS
from lgsim.integrators.methods import IMPLICIT_METHODS as IMPLICIT_METHODS
from lgsim.integrators.methods import LINEARLY_IMPLICIT_METHODS as LINEARLY_IMPLICIT_METHODS
from lgsim.integrators.methods import METHODS as METHODS
from lgsim.integrators.methods import SYMPLECTIC_METHODS as SYMPLECTIC_METHODS
from lgsim.integrators.methods import VARIATIONAL_METHODS as VARIATIONAL_METHODS
from lgsim.integrators.munthe_kaas import MuntheKaas as MuntheKaas
from lgsim.integrators.munthe_kaas import ReducedMuntheKaas as ReducedMuntheKaas
from lgsim.integrators.munthe_kaas import TruncatedDexpinv as TruncatedDexpinv
from lgsim.integrators.newton import Newton as Newton
from lgsim.integrators.rosenbrock_tableau import RosenbrockTableau as RosenbrockTableau
from lgsim.integrators.rosenbrock_tableau import rosenbrock as rosenbrock
from lgsim.integrators.solution_error import solution_error as solution_error
from lgsim.integrators.step_error import StepError as StepError
from lgsim.integrators.symplectic import Symplectic as Symplectic
from lgsim.integrators.symplectic import SymplecticTheta as SymplecticTheta
from lgsim.integrators.tableau import ButcherTableau as ButcherTableau
from lgsim.integrators.tableau import CommutatorFreeTableau as CommutatorFreeTableau
from lgsim.integrators.tableau import ImplicitTableau as ImplicitTableau
from lgsim.integrators.tableau import crouch_grossman as crouch_grossman


def __getattr__(name: str) -> ModuleType:
    """The part that needs a package of an extra."""
    if name == "adaptive":
        return import_module("lgsim.integrators.adaptive")
    raise AttributeError(f"module 'lgsim.integrators' has no attribute {name!r}", name=name)
