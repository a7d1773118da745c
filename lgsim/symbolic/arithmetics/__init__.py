"""Arithmetics in which a function can be evaluated, one file each."""

from lgsim.symbolic.arithmetics.casadi import Casadi
from lgsim.symbolic.arithmetics.count import Count
from lgsim.symbolic.arithmetics.digits import Digits
from lgsim.symbolic.arithmetics.expressions import Expressions
from lgsim.symbolic.arithmetics.fractions import TrigonometricFractions
from lgsim.symbolic.arithmetics.trigonometric import Trigonometric

__all__ = ["Casadi", "Count", "Digits", "Expressions", "Trigonometric", "TrigonometricFractions"]
