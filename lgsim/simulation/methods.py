"""The methods that move machines, by name: explicit, linearly implicit and implicit ones."""

from __future__ import annotations

from lgsim.integrators.method import Method
from lgsim.integrators.methods import IMPLICIT_METHODS, LINEARLY_IMPLICIT_METHODS, METHODS

MOTION_METHODS: dict[str, Method] = {**METHODS, **LINEARLY_IMPLICIT_METHODS, **IMPLICIT_METHODS}
"""Methods in exponentials, which any machine takes, by name."""


def method_name(method: Method) -> str:
    """The name of a method in ``MOTION_METHODS``, or else the method's own."""
    return next((name for name, known in MOTION_METHODS.items() if known == method), method.name)
