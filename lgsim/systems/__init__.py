"""Ready problems: the systems of the papers that lgsim follows, as functions that return an `InitialValueProblem`.

The biped of Wendlandt's thesis is a machine, `biped`, with its stance, feet and gains for `lgsim.controls.Workspace`.
The controls of the quadrotors and their commands are in `quadrotor_control`, their equations, positions and energies in
`quadrotors`; the disk and the arm of a paper on symbolic models are in `kwatny_blankenship`.
"""

from lgsim.systems import kwatny_blankenship, quadrotor_control, quadrotors
from lgsim.systems.biped import BipedGains, biped, biped_feet, biped_gains, biped_stance
from lgsim.systems.constrained_vectors import (
    double_spherical_pendulum_constrained,
    free_rigid_body_quaternion,
    turns_about_vertical,
)
from lgsim.systems.heavy_top import (
    BRULS_CARDONA_TOP,
    CELLEDONI_TOP,
    HeavyTop,
    euler_poisson,
    heavy_top,
    heavy_top_cotangent,
    heavy_top_quadratic,
)
from lgsim.systems.initial_value_problem import InitialValueProblem
from lgsim.systems.quadrotor_control import TrackingGains, tracking_gains, two_quadrotors_tracking
from lgsim.systems.quadrotors import QuadrotorParameters, two_quadrotors
from lgsim.systems.rigid_body import free_rigid_body, free_rigid_body_cotangent, free_rigid_body_momentum
from lgsim.systems.spherical_pendulum import (
    PendulumParameters,
    double_spherical_pendulum,
    generic_start,
    pendulum_accelerations,
    planar_start,
    spherical_pendulum,
    spherical_pendulum_hamiltonian,
)
from lgsim.systems.three_body import three_body

__all__ = [
    "BRULS_CARDONA_TOP",
    "CELLEDONI_TOP",
    "BipedGains",
    "HeavyTop",
    "InitialValueProblem",
    "PendulumParameters",
    "QuadrotorParameters",
    "TrackingGains",
    "biped",
    "biped_feet",
    "biped_gains",
    "biped_stance",
    "double_spherical_pendulum",
    "double_spherical_pendulum_constrained",
    "euler_poisson",
    "free_rigid_body",
    "free_rigid_body_cotangent",
    "free_rigid_body_momentum",
    "free_rigid_body_quaternion",
    "generic_start",
    "heavy_top",
    "heavy_top_cotangent",
    "heavy_top_quadratic",
    "kwatny_blankenship",
    "pendulum_accelerations",
    "planar_start",
    "quadrotor_control",
    "quadrotors",
    "spherical_pendulum",
    "spherical_pendulum_hamiltonian",
    "three_body",
    "tracking_gains",
    "turns_about_vertical",
    "two_quadrotors",
    "two_quadrotors_tracking",
]
