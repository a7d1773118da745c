"""Algorithms of multibody dynamics, one a file; none knows a joint by name."""

from lgsim.dynamics.contacts.contact_advice import ContactAdvice, suggest_contact
from lgsim.dynamics.contacts.contact_forces import (
    ContactForces,
    ContactPoints,
    contact_energy,
    contact_forces,
    contact_points,
)
from lgsim.dynamics.coriolis import coriolis_matrix
from lgsim.dynamics.discrete.discrete_momenta import discrete_momenta, generalized_momentum, velocity_of_momentum
from lgsim.dynamics.discrete.rotation_maps import ROTATION_MAPS, RotationMap
from lgsim.dynamics.distances.distance import ClosestPoints, closest_points, distance, distance_jacobian
from lgsim.dynamics.energy import kinetic_energy, potential_energy, spring_energy
from lgsim.dynamics.factorization import change_frames, global_matrices, square_factors
from lgsim.dynamics.forces import bias_forces, gravity_forces
from lgsim.dynamics.forward_dynamics import (
    ForwardDynamicsDerivatives,
    forward_dynamics,
    forward_dynamics_derivatives,
)
from lgsim.dynamics.global_operators import tip_operator, velocity_operators
from lgsim.dynamics.inverse_dynamics import (
    InverseDynamicsDerivatives,
    inverse_dynamics,
    inverse_dynamics_derivatives,
)
from lgsim.dynamics.inverse_mass import inverse_mass_matrix, solve_mass_matrix
from lgsim.dynamics.jacobians import Reference, frame_jacobian, frame_jacobian_rate
from lgsim.dynamics.kinematics import forward_kinematics, frame_accelerations, frame_twists
from lgsim.dynamics.loops.assembly import CLOSE_RESULTS, Closure, close_loops, loop_branches
from lgsim.dynamics.loops.loop_functions import (
    ActuatedForces,
    actuated_inverse_dynamics,
    loop_forces,
    loop_jacobian,
    loop_rank,
    loop_residual,
)
from lgsim.dynamics.mass_matrix import mass_matrix
from lgsim.dynamics.momentum import (
    center_of_mass,
    center_of_mass_jacobian,
    center_of_mass_velocity,
    centroidal_momentum,
    centroidal_momentum_matrix,
    centroidal_momentum_matrix_rate,
    centroidal_momentum_rate,
)
from lgsim.dynamics.operational_space import operational_space
from lgsim.dynamics.passive_forces import passive_forces
from lgsim.dynamics.poincare import poincare_equations
from lgsim.dynamics.regressor import energy_regressor, momentum_regressor, torque_regressor

__all__ = [
    "CLOSE_RESULTS",
    "ROTATION_MAPS",
    "ActuatedForces",
    "ClosestPoints",
    "Closure",
    "ContactAdvice",
    "ContactForces",
    "ContactPoints",
    "ForwardDynamicsDerivatives",
    "InverseDynamicsDerivatives",
    "Reference",
    "RotationMap",
    "actuated_inverse_dynamics",
    "bias_forces",
    "center_of_mass",
    "center_of_mass_jacobian",
    "center_of_mass_velocity",
    "centroidal_momentum",
    "centroidal_momentum_matrix",
    "centroidal_momentum_matrix_rate",
    "centroidal_momentum_rate",
    "change_frames",
    "close_loops",
    "closest_points",
    "contact_energy",
    "contact_forces",
    "contact_points",
    "coriolis_matrix",
    "discrete_momenta",
    "distance",
    "distance_jacobian",
    "energy_regressor",
    "forward_dynamics",
    "forward_dynamics_derivatives",
    "forward_kinematics",
    "frame_accelerations",
    "frame_jacobian",
    "frame_jacobian_rate",
    "frame_twists",
    "generalized_momentum",
    "global_matrices",
    "gravity_forces",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "inverse_mass_matrix",
    "kinetic_energy",
    "loop_branches",
    "loop_forces",
    "loop_jacobian",
    "loop_rank",
    "loop_residual",
    "mass_matrix",
    "momentum_regressor",
    "operational_space",
    "passive_forces",
    "poincare_equations",
    "potential_energy",
    "solve_mass_matrix",
    "spring_energy",
    "square_factors",
    "suggest_contact",
    "tip_operator",
    "torque_regressor",
    "velocity_of_momentum",
    "velocity_operators",
]  # fmt: skip
