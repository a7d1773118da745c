"""Adaptive steps on manifolds: the embedded methods of lgsim as diffrax solvers.

``solve`` is the front door. ``AlgebraTerm``, ``GroupSolver`` and ``AlgebraController`` are its parts for those who call
``diffrax.diffeqsolve`` themselves. Adaptive steps keep the manifold, but no method stays symplectic with them: for
energies over long times take fixed steps.
"""

try:
    import diffrax as _diffrax  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "lgsim.integrators.adaptive needs diffrax, which is not installed: pip install 'lgsim[adaptive]'",
        name=error.name,
    ) from error

from lgsim.integrators.adaptive.controller import AlgebraController
from lgsim.integrators.adaptive.events import Event
from lgsim.integrators.adaptive.solve import RESULTS, Solution, solve
from lgsim.integrators.adaptive.solver import AlgebraInterpolation, AlgebraTerm, GroupSolver

__all__ = [
    "RESULTS",
    "AlgebraController",
    "AlgebraInterpolation",
    "AlgebraTerm",
    "Event",
    "GroupSolver",
    "Solution",
    "solve",
]
