"""The integration methods for models, by name: explicit, linearly implicit, implicit and variational ones."""

from __future__ import annotations

from lgsim.integrators.method import Method
from lgsim.integrators.methods import IMPLICIT_METHODS, LINEARLY_IMPLICIT_METHODS, METHODS
from lgsim.simulation.variational.variational_tree import VariationalTree

_VARIATIONAL_TREES: dict[str, Method] = {"variational": VariationalTree(), "variational4": VariationalTree(order=4)}
"""Variational methods for models, by name."""

MOTION_METHODS: dict[str, Method] = {
    **METHODS, **LINEARLY_IMPLICIT_METHODS, **IMPLICIT_METHODS, **_VARIATIONAL_TREES
}  # fmt: skip
"""All integration methods for models, by name."""


def method_name(method: Method) -> str:
    """The name of a method in ``MOTION_METHODS``, or else the method's own name."""
    return next((name for name, known in MOTION_METHODS.items() if known == method), method.name)
