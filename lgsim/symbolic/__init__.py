"""lgsim's own algorithms as formulas, in many digits, for other tools: evaluated in another arithmetic."""

from lgsim.symbolic.arithmetic import Arithmetic
from lgsim.symbolic.arithmetics import Casadi, Count, Digits, Expressions, Trigonometric, TrigonometricFractions
from lgsim.symbolic.entries import SymbolicError
from lgsim.symbolic.evaluate import evaluate
from lgsim.symbolic.merge import merged
from lgsim.symbolic.model import model, symbols
from lgsim.symbolic.poincare import Lagrange, Poincare, end_effector, kinetic_energy, lagrange, poincare, potential
from lgsim.symbolic.proof import Proof, prove

__all__ = [
    "Arithmetic",
    "Casadi",
    "Count",
    "Digits",
    "Expressions",
    "Lagrange",
    "Poincare",
    "Proof",
    "SymbolicError",
    "Trigonometric",
    "TrigonometricFractions",
    "end_effector",
    "evaluate",
    "kinetic_energy",
    "lagrange",
    "merged",
    "model",
    "poincare",
    "potential",
    "prove",
    "symbols",
]
