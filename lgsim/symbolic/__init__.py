"""lgsim's own algorithms as formulas, in many digits, for other tools: evaluated in another arithmetic.

- ``evaluate`` a function in an ``Arithmetic``; ``model`` puts symbols in the place of a machine's numbers;
- equations: ``poincare``, ``lagrange``, ``end_effector``, ``potential``, ``kinetic_energy``; ``prove`` an identity;
- for control: ``linearize``, ``controllability_rank``, ``control_affine``, ``relative_degree``, ``feedback_linearize``,
  ``accessibility_rank``, ``lie_derivative``, ``lie_bracket``; ``to_jax`` for small closed forms;
- ``linear_parameters`` and ``conserved`` momenta;
- code for controllers and other languages: ``compile`` for one of ``targets``, ``shared_library``;
- joint matrices in the order of Kwatny and Blankenship: ``configuration_matrix``, ``kinematic_matrix``,
  ``joint_map_matrix``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lgsim.programs import targets
from lgsim.symbolic.arithmetic import Arithmetic
from lgsim.symbolic.arithmetics import Casadi, Count, Digits, Expressions, Trigonometric, TrigonometricFractions
from lgsim.symbolic.arithmetics.expressions import sympy_package
from lgsim.symbolic.compile import compile
from lgsim.symbolic.entries import SymbolicError
from lgsim.symbolic.evaluate import evaluate
from lgsim.symbolic.merge import merged
from lgsim.symbolic.model import model, symbols
from lgsim.symbolic.poincare import Lagrange, Poincare, end_effector, kinetic_energy, lagrange, poincare, potential
from lgsim.symbolic.proof import Proof, prove
from lgsim.symbolic.shared_library import SharedLibrary, shared_library

if TYPE_CHECKING:
    from lgsim.symbolic.closed_forms import to_jax
    from lgsim.symbolic.control.state_space import ControlAffine, LinearModel, control_affine, linearize
    from lgsim.symbolic.control.vector_fields import (
        LinearizingFeedback,
        RelativeDegree,
        accessibility_rank,
        controllability_rank,
        feedback_linearize,
        lie_bracket,
        lie_derivative,
        relative_degree,
    )
    from lgsim.symbolic.joints import configuration_matrix, joint_map_matrix, kinematic_matrix
    from lgsim.symbolic.parameters import LinearParameters, linear_parameters
    from lgsim.symbolic.symmetries import Conserved, conserved

_FILES = {
    "closed_forms": ("to_jax",),
    "control.state_space": ("ControlAffine", "LinearModel", "control_affine", "linearize"),
    "joints": ("configuration_matrix", "joint_map_matrix", "kinematic_matrix"),
    "parameters": ("LinearParameters", "linear_parameters"),
    "symmetries": ("Conserved", "conserved"),
    "control.vector_fields": (
        "LinearizingFeedback",
        "RelativeDegree",
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
    "Arithmetic",
    "Casadi",
    "Conserved",
    "ControlAffine",
    "Count",
    "Digits",
    "Expressions",
    "Lagrange",
    "LinearModel",
    "LinearParameters",
    "LinearizingFeedback",
    "Poincare",
    "Proof",
    "RelativeDegree",
    "SharedLibrary",
    "SymbolicError",
    "Trigonometric",
    "TrigonometricFractions",
    "accessibility_rank",
    "compile",
    "configuration_matrix",
    "conserved",
    "control_affine",
    "controllability_rank",
    "end_effector",
    "evaluate",
    "feedback_linearize",
    "joint_map_matrix",
    "kinematic_matrix",
    "kinetic_energy",
    "lagrange",
    "lie_bracket",
    "lie_derivative",
    "linear_parameters",
    "linearize",
    "merged",
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
    """What is written in sympy is imported when it is used first, so that other arithmetics need no sympy."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    sympy_package()
    found = globals()[name] = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    return found
