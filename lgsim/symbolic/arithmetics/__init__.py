"""Arithmetics for the evaluation of functions, one per file."""

from lgsim.symbolic.arithmetics.casadi import Casadi as Casadi
from lgsim.symbolic.arithmetics.digits import Digits as Digits
from lgsim.symbolic.arithmetics.expressions import Expressions as Expressions
