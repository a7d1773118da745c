"""The named methods: a tableau and an engine each. A new method is a tableau in ``coefficients.py`` and a line here.

Coefficients carry their citations in ``coefficients.py``. The number in a name is the order, a second one the order of
the embedded estimate.
"""

from __future__ import annotations

from lgsim.integrators import coefficients as c
from lgsim.integrators.commutator_free import CommutatorFree
from lgsim.integrators.method import Method
from lgsim.integrators.rkmk import FewCommutators, MuntheKaas

LieEuler = FewCommutators(c.LIE_EULER_TABLEAU)

MK2 = MuntheKaas(c.HEUN_TABLEAU)
MK2Midpoint = MuntheKaas(c.MIDPOINT_TABLEAU)
MK3 = MuntheKaas(c.RK3_TABLEAU)
MK4 = MuntheKaas(c.RK4_TABLEAU)
MK4TwoCommutators = FewCommutators(c.RK4_TWO_COMMUTATORS_TABLEAU)
MK5 = MuntheKaas(c.BUTCHER5_TABLEAU)
MK54 = MuntheKaas(c.DORMAND_PRINCE_TABLEAU)
MK6 = MuntheKaas(c.BUTCHER6_TABLEAU)
MK8 = MuntheKaas(c.COOPER_VERNER_TABLEAU)

CF2 = CommutatorFree(c.CF2_TABLEAU)
CF3 = CommutatorFree(c.CF3_TABLEAU)
CF4 = CommutatorFree(c.CF4_TABLEAU)
CF32a = CommutatorFree(c.CF32A_TABLEAU)
CF32b = CommutatorFree(c.CF32B_TABLEAU)
CF43 = CommutatorFree(c.CF43_TABLEAU)

CG2 = CommutatorFree(c.CG2_TABLEAU)
CG3 = CommutatorFree(c.CG3_TABLEAU)
CG4 = CommutatorFree(c.CG4_TABLEAU)
CG5 = CommutatorFree(c.CG5_TABLEAU)

METHODS: dict[str, Method] = {name: value for name, value in list(globals().items()) if isinstance(value, Method)}
"""All named methods, by name; tests are generated from it."""
