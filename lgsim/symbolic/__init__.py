"""lgsim's own algorithms as formulas, in many digits, for other tools: evaluated in another arithmetic."""

from lgsim.symbolic.arithmetic import Arithmetic
from lgsim.symbolic.arithmetics import Casadi, Count, Digits, Expressions, Trigonometric
from lgsim.symbolic.entries import SymbolicError
from lgsim.symbolic.evaluate import evaluate
from lgsim.symbolic.model import model, symbols

__all__ = [
    "Arithmetic",
    "Casadi",
    "Count",
    "Digits",
    "Expressions",
    "SymbolicError",
    "Trigonometric",
    "evaluate",
    "model",
    "symbols",
]
