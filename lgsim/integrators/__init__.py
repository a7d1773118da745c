"""Integrators on manifolds: methods as checked data, one engine for each family, and the loop that runs them."""

from lgsim.integrators.commutator_free import CommutatorFree
from lgsim.integrators.integrate import RESULTS, Solution, integrate
from lgsim.integrators.method import Method
from lgsim.integrators.methods import METHODS
from lgsim.integrators.rkmk import FewCommutators, MuntheKaas, Truncated
from lgsim.integrators.tableau import ButcherTableau, CommutatorFreeTableau, crouch_grossman

__all__ = [
    "METHODS",
    "RESULTS",
    "ButcherTableau",
    "CommutatorFree",
    "CommutatorFreeTableau",
    "FewCommutators",
    "Method",
    "MuntheKaas",
    "Solution",
    "Truncated",
    "crouch_grossman",
    "integrate",
]
