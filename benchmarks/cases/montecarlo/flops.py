"""Arithmetic of a step, counted in the traced program, and the peak of some devices."""

import jax
import numpy as np

from lgsim.dynamics import articulated_body

COUNTED = {"add", "sub", "mul", "div", "neg", "sqrt", "max", "min", "abs", "floor", "round", "sign"}
PEAKS = {"H100": 34e12, "H200": 34e12, "A100": 9.7e12, "V100": 7.8e12}
"""float64 operations per second without matrix units, by a part of the device's name: their makers' data sheets."""


def of_step(model):
    """Operations of four evaluations of forward dynamics, without the few operations that Runge-Kutta 4 adds.

    Operations that depend only on the model count as well, although one evaluation would suffice for all steps.
    """
    q, v = model.neutral(), np.zeros(model.nv)
    return 4 * _count(jax.make_jaxpr(articulated_body.forward)(model, q, v, v).jaxpr)


def part_of_peak(rate):
    """Peak of the default device, or "-" if it is unknown here."""
    kind = jax.devices()[0].device_kind
    return next((rate / peak for name, peak in PEAKS.items() if name in kind), "-")


def _count(jaxpr):
    total = 0
    for eqn in jaxpr.eqns:
        inner = [x for x in eqn.params.values() if hasattr(x, "jaxpr") or hasattr(x, "eqns")]
        times = eqn.params.get("length", 1) if eqn.primitive.name == "scan" else 1
        total += times * sum(_count(getattr(x, "jaxpr", x)) for x in inner)
        if eqn.primitive.name in COUNTED:
            total += int(np.prod(eqn.outvars[0].aval.shape))
    return total
