"""Arithmetics in which a function can be evaluated, one file each."""

from lgsim.symbolic.arithmetics.casadi import Casadi as Casadi
from lgsim.symbolic.arithmetics.count import Count as Count
from lgsim.symbolic.arithmetics.digits import Digits as Digits
from lgsim.symbolic.arithmetics.expressions import Expressions as Expressions
from lgsim.symbolic.arithmetics.fractions import TrigonometricFractions as TrigonometricFractions
from lgsim.symbolic.arithmetics.trigonometric import Trigonometric as Trigonometric
