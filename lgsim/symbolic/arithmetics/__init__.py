"""Arithmetics in which a function can be evaluated, one file each."""

from lgsim.symbolic.arithmetics.casadi import Casadi as Casadi
from lgsim.symbolic.arithmetics.digits import Digits as Digits
from lgsim.symbolic.arithmetics.expressions import Expressions as Expressions
