"""Example systems from published papers, as functions that return an `InitialValueProblem`.

The biped of Wendlandt's thesis is a model, `biped`, with its stance, feet and gains for `lgsim.controls.Workspace`.
The equations, positions and energies of the quadrotors are in `quadrotors`.
"""

from lgsim.systems import quadrotors as quadrotors
from lgsim.systems.biped import biped as biped
from lgsim.systems.biped import biped_feet as biped_feet
from lgsim.systems.biped import biped_gains as biped_gains
from lgsim.systems.biped import biped_stance as biped_stance
from lgsim.systems.constrained_vectors import (
    double_spherical_pendulum_constrained as double_spherical_pendulum_constrained,
)
from lgsim.systems.constrained_vectors import turns_about_vertical as turns_about_vertical
from lgsim.systems.heavy_top import CELLEDONI_TOP as CELLEDONI_TOP
from lgsim.systems.heavy_top import euler_poisson as euler_poisson
from lgsim.systems.heavy_top import heavy_top as heavy_top
from lgsim.systems.heavy_top import heavy_top_cotangent as heavy_top_cotangent
from lgsim.systems.initial_value_problem import InitialValueProblem as InitialValueProblem
from lgsim.systems.rigid_body import free_rigid_body as free_rigid_body
from lgsim.systems.rigid_body import free_rigid_body_cotangent as free_rigid_body_cotangent
from lgsim.systems.rigid_body import free_rigid_body_momentum as free_rigid_body_momentum
from lgsim.systems.spherical_pendulum import double_spherical_pendulum as double_spherical_pendulum
from lgsim.systems.spherical_pendulum import pendulum_accelerations as pendulum_accelerations
from lgsim.systems.spherical_pendulum import spherical_pendulum as spherical_pendulum
from lgsim.systems.spherical_pendulum import spherical_pendulum_hamiltonian as spherical_pendulum_hamiltonian
