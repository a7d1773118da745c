"""Formulas, multiple-precision arithmetic, code generation.

- ``evaluate`` a function in an arithmetic: ``Digits``, ``Expressions`` or ``Casadi``; ``model`` replaces parameters of
  a model by symbols;
- equations: ``poincare``, ``lagrange``, ``end_effector``, ``potential``, ``kinetic_energy``; ``prove`` an identity;
- for control: ``linearize``, ``controllability_rank``, ``control_affine``, ``relative_degree``, ``feedback_linearize``,
  ``accessibility_rank``, ``lie_derivative``, ``lie_bracket``; ``to_jax`` for small closed forms;
- ``linear_parameters`` (base parameters) and ``conserved`` momenta;
- code for controllers and other languages: ``compile`` for one of ``targets``, ``shared_library``;
- joint matrices in the order of Kwatny and Blankenship: ``joints``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lgsim.symbolic import targets
from lgsim.symbolic.arithmetics import Casadi, Digits, Expressions
from lgsim.symbolic.arithmetics.expressions import sympy_package
from lgsim.symbolic.compile import compile
from lgsim.symbolic.entries import SymbolicError
from lgsim.symbolic.evaluate import evaluate
from lgsim.symbolic.model import model, symbols
from lgsim.symbolic.poincare import end_effector, kinetic_energy, lagrange, poincare, potential
from lgsim.symbolic.proof import prove
from lgsim.symbolic.shared_library import shared_library

if TYPE_CHECKING:
    from lgsim.symbolic import joints
    from lgsim.symbolic.closed_forms import to_jax
    from lgsim.symbolic.control.state_space import control_affine, linearize
    from lgsim.symbolic.control.vector_fields import (
        accessibility_rank,
        controllability_rank,
        feedback_linearize,
        lie_bracket,
        lie_derivative,
        relative_degree,
    )
    from lgsim.symbolic.parameters import linear_parameters
    from lgsim.symbolic.symmetries import conserved

_FILES = {
    "closed_forms": ("to_jax",),
    "control.state_space": ("control_affine", "linearize"),
    "joints": ("joints",),
    "parameters": ("linear_parameters",),
    "symmetries": ("conserved",),
    "control.vector_fields": (
        "accessibility_rank",
        "controllability_rank",
        "feedback_linearize",
        "lie_bracket",
        "lie_derivative",
        "relative_degree",
    ),
}
_PLACES = {name: file for file, names in _FILES.items() for name in names}

__all__ = [
    "Casadi",
    "Digits",
    "Expressions",
    "SymbolicError",
    "accessibility_rank",
    "compile",
    "conserved",
    "control_affine",
    "controllability_rank",
    "end_effector",
    "evaluate",
    "feedback_linearize",
    "joints",
    "kinetic_energy",
    "lagrange",
    "lie_bracket",
    "lie_derivative",
    "linear_parameters",
    "linearize",
    "model",
    "poincare",
    "potential",
    "prove",
    "relative_degree",
    "shared_library",
    "symbols",
    "targets",
    "to_jax",
]


def __getattr__(name: str) -> Any:
    """Import modules that use sympy on first use, so that other arithmetics do not need sympy."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    sympy_package()
    module = import_module(f"{__name__}.{_PLACES[name]}")
    found = globals()[name] = module if name == _PLACES[name] else getattr(module, name)
    return found
