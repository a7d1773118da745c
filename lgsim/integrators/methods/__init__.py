"""The named methods, one file per family, and their registers, which are collected from these files.

A new method is a single statement in the file of its family: its tableau, its source, its name. It then appears in its
register, in ``lgsim.__all__`` and in the tests that are generated from the registers.
"""

from lgsim.integrators.discrete.variational import Variational
from lgsim.integrators.implicit_munthe_kaas import ImplicitMuntheKaas
from lgsim.integrators.linearly_implicit import LinearlyImplicit
from lgsim.integrators.method import Method
from lgsim.integrators.methods import (
    commutator_free,
    crouch_grossman,
    gauss,
    linearly_implicit,
    munthe_kaas,
    symplectic,
    variational,
)
from lgsim.integrators.methods.commutator_free import *  # noqa: F403
from lgsim.integrators.methods.crouch_grossman import *  # noqa: F403
from lgsim.integrators.methods.gauss import *  # noqa: F403
from lgsim.integrators.methods.linearly_implicit import *  # noqa: F403
from lgsim.integrators.methods.munthe_kaas import *  # noqa: F403
from lgsim.integrators.methods.symplectic import *  # noqa: F403
from lgsim.integrators.methods.variational import *  # noqa: F403
from lgsim.integrators.symplectic import Symplectic

_FAMILIES = (munthe_kaas, commutator_free, crouch_grossman, gauss, linearly_implicit, symplectic, variational)
_NAMED: dict[str, Method] = {name: vars(family)[name] for family in _FAMILIES for name in family.__all__}

SYMPLECTIC_METHODS = {name: method for name, method in _NAMED.items() if isinstance(method, Symplectic)}
"""Symplectic methods for cotangent bundles and dual algebras, by name."""

IMPLICIT_METHODS = {name: method for name, method in _NAMED.items() if isinstance(method, ImplicitMuntheKaas)}
"""Implicit methods for any action, symmetric in time, by name."""

LINEARLY_IMPLICIT_METHODS = {name: method for name, method in _NAMED.items() if isinstance(method, LinearlyImplicit)}
"""Linearly implicit methods for stiff fields on any action with ``dexpinv``, by name."""

VARIATIONAL_METHODS = {name: method for name, method in _NAMED.items() if isinstance(method, Variational)}
"""Variational methods, which take ``DiscreteMechanics``, by name."""

_EXPLICIT = {
    name: method
    for name, method in _NAMED.items()
    if name not in SYMPLECTIC_METHODS | IMPLICIT_METHODS | LINEARLY_IMPLICIT_METHODS | VARIATIONAL_METHODS
}

COORDINATE_METHODS = {name: method for name, method in _EXPLICIT.items() if not method.by_exponentials}
"""Explicit methods in other coordinates than exponential ones, by name."""

METHODS = {name: method for name, method in _EXPLICIT.items() if method.by_exponentials}
"""The explicit methods in exponentials, by name; tests are generated from it."""

__all__ = [*_NAMED]  # pyright: ignore[reportUnsupportedDunderAll]
