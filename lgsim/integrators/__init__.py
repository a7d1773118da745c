"""Integrators on manifolds: methods as checked data, one implementation for each family, and the integration loop.

``lgsim`` itself exports what most programs need: ``integrate``, the named methods and their registers, fields from
energies, ``DiscreteMechanics``. This package adds the method classes for user-defined tableaus, which are in
``tableau``, ``rosenbrock_tableau``, ``compositions`` and ``discrete.galerkin_scheme``.

``lgsim.integrators.adaptive`` (extra ``adaptive``) is imported on first use.
"""

from importlib import import_module
from types import ModuleType

from lgsim.integrators.commutator_free import CommutatorFree as CommutatorFree
from lgsim.integrators.compositions import suzuki as suzuki
from lgsim.integrators.compositions import triple_jump as triple_jump
from lgsim.integrators.coordinates import Cayley as Cayley
from lgsim.integrators.coordinates import Exponential as Exponential
from lgsim.integrators.coordinates import SecondKind as SecondKind
from lgsim.integrators.implicit_munthe_kaas import ImplicitMuntheKaas as ImplicitMuntheKaas
from lgsim.integrators.integrate import FirstSteps as FirstSteps
from lgsim.integrators.linearly_implicit import LinearlyImplicit as LinearlyImplicit
from lgsim.integrators.munthe_kaas import MuntheKaas as MuntheKaas
from lgsim.integrators.rosenbrock_tableau import RosenbrockTableau as RosenbrockTableau
from lgsim.integrators.symplectic import Symplectic as Symplectic
from lgsim.integrators.tableau import ButcherTableau as ButcherTableau
from lgsim.integrators.tableau import CommutatorFreeTableau as CommutatorFreeTableau
from lgsim.integrators.tableau import ImplicitTableau as ImplicitTableau
from lgsim.integrators.tableau import crouch_grossman as crouch_grossman


def __getattr__(name: str) -> ModuleType:
    """The subpackage ``adaptive``, which needs an optional dependency."""
    if name == "adaptive":
        return import_module("lgsim.integrators.adaptive")
    raise AttributeError(f"module 'lgsim.integrators' has no attribute {name!r}", name=name)
