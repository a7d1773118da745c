"""Adaptive step-size control on manifolds: the embedded methods of lgsim as diffrax solvers.

``solve`` is the main entry point. Programs that call ``diffrax.diffeqsolve`` themselves find ``AlgebraTerm``,
``GroupSolver`` and ``AlgebraController`` in ``solver`` and ``controller``.

Tolerances: the estimate e of an embedded pair lies in the algebra, and a step is accepted if

    rms(e_i / (atol + rtol w_i)) < 1

with the sizes w of ``action.sizes``: 1 for a rotation (rad) or a pose (rad, m), whose error means the same at every
point, and the component's own size in R^n. Commutator-free pairs give one distance, relative to the norm of all
entries of the state. The error at t1 is then proportional to the tolerance, with a factor that depends on the problem.
``ElementaryController`` uses e itself as the error and only the last step; ``Solution.step_sizes`` are the steps that a
controller chose.

States between steps (``save_at``, ``Solution.evaluate``) are interpolated by quartics in the algebra. Their error is of
fifth order in the step, like that of a step of order 4. To step to these times exactly, pass

    controller=diffrax.ClipStepSizeController(diffrax.PIDController(rtol, atol), step_ts=times)

Adaptive steps preserve the manifold, but no method is symplectic with them: for energies over long times use
``lgsim.integrate``.
"""

try:
    import diffrax as _diffrax  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "lgsim.integrators.adaptive needs diffrax, which is not installed: pip install 'lgsim[adaptive]'",
        name=error.name,
    ) from error

from lgsim.integrators.adaptive.controller import ElementaryController as ElementaryController
from lgsim.integrators.adaptive.events import Event as Event
from lgsim.integrators.adaptive.solution import RESULTS as RESULTS
from lgsim.integrators.adaptive.solution import Solution as Solution
from lgsim.integrators.adaptive.solve import solve as solve
