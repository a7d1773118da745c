"""Integrators on manifolds: methods as checked data, one engine for each family, and the loop that runs them.

``lgsim.integrators.adaptive`` (extra ``adaptive``) is imported when it is used first.
"""

from importlib import import_module
from types import ModuleType

from lgsim.integrators.commutator_free import CommutatorFree
from lgsim.integrators.compositions import ThetaScheme, suzuki, theta_scheme, triple_jump, with_adjoint
from lgsim.integrators.coordinates import Cayley, Exponential, SecondKind
from lgsim.integrators.discrete import (
    DiscreteMechanics,
    DiscreteMomentumMap,
    EnergyMomentum,
    GalerkinScheme,
    MoserVeselov,
    Variational,
    discrete_momentum_map,
)
from lgsim.integrators.hamiltonian import BodyMomentumHamiltonian, HamiltonianField, LiePoissonField
from lgsim.integrators.implicit_munthe_kaas import ImplicitMuntheKaas
from lgsim.integrators.integrate import RESULTS, FirstSteps, Solution, integrate
from lgsim.integrators.linearly_implicit import LinearizableField, Linearization, LinearlyImplicit
from lgsim.integrators.method import ImplicitMethod, Method
from lgsim.integrators.methods import (
    COORDINATE_METHODS,
    IMPLICIT_METHODS,
    LINEARLY_IMPLICIT_METHODS,
    METHODS,
    SYMPLECTIC_METHODS,
    VARIATIONAL_METHODS,
)
from lgsim.integrators.munthe_kaas import MuntheKaas, ReducedMuntheKaas, TruncatedDexpinv
from lgsim.integrators.newton import Newton
from lgsim.integrators.rosenbrock_tableau import RosenbrockTableau, rosenbrock
from lgsim.integrators.solution_error import solution_error
from lgsim.integrators.step_error import StepError
from lgsim.integrators.symplectic import Symplectic, SymplecticTheta
from lgsim.integrators.tableau import ButcherTableau, CommutatorFreeTableau, ImplicitTableau, crouch_grossman

__all__ = [
    "COORDINATE_METHODS",
    "IMPLICIT_METHODS",
    "LINEARLY_IMPLICIT_METHODS",
    "METHODS",
    "RESULTS",
    "SYMPLECTIC_METHODS",
    "VARIATIONAL_METHODS",
    "BodyMomentumHamiltonian",
    "ButcherTableau",
    "Cayley",
    "CommutatorFree",
    "CommutatorFreeTableau",
    "DiscreteMechanics",
    "DiscreteMomentumMap",
    "EnergyMomentum",
    "Exponential",
    "FirstSteps",
    "GalerkinScheme",
    "HamiltonianField",
    "ImplicitMethod",
    "ImplicitMuntheKaas",
    "ImplicitTableau",
    "LiePoissonField",
    "LinearizableField",
    "Linearization",
    "LinearlyImplicit",
    "Method",
    "MoserVeselov",
    "MuntheKaas",
    "Newton",
    "ReducedMuntheKaas",
    "RosenbrockTableau",
    "SecondKind",
    "Solution",
    "StepError",
    "Symplectic",
    "SymplecticTheta",
    "ThetaScheme",
    "TruncatedDexpinv",
    "Variational",
    "crouch_grossman",
    "discrete_momentum_map",
    "integrate",
    "rosenbrock",
    "solution_error",
    "suzuki",
    "theta_scheme",
    "triple_jump",
    "with_adjoint",
]


def __getattr__(name: str) -> ModuleType:
    """The part that needs a package of an extra."""
    if name == "adaptive":
        return import_module("lgsim.integrators.adaptive")
    raise AttributeError(f"module 'lgsim.integrators' has no attribute {name!r}", name=name)
