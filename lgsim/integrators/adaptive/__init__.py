"""Adaptive steps on manifolds: the embedded methods of lgsim as diffrax solvers.

``solve`` is the front door. For those who call ``diffrax.diffeqsolve`` themselves, the files ``solver`` and
``controller`` hold ``AlgebraTerm``, ``GroupSolver`` and ``AlgebraController``.

What the tolerances mean. The estimate e of an embedded pair lies in the algebra, and a step is kept if

    rms(e_i / (atol + rtol w_i)) < 1

with the sizes w of ``action.sizes``: 1 for a rotation (rad) or a pose (rad, m), whose error means the same at every
point, and the component's own size in R^n. Commutator-free pairs give one distance, measured by the norm of all
entries of the state. So the error at t1 is proportional to the tolerance, with a factor of the problem.
``ElementaryController`` takes e itself for the error and looks at the last step alone; ``Solution.step_sizes`` are the
steps that a controller chose.

States between steps (``save_at``, ``Solution.evaluate``) lie on quartics in the algebra, whose error falls with the
fifth power of the step, as that of a step of order 4. To land on the times instead, pass

    controller=diffrax.ClipStepSizeController(diffrax.PIDController(rtol, atol), step_ts=times)

Adaptive steps keep the manifold, but no method stays symplectic with them: for energies over long times take
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
