"""Trajectory optimization and inverse kinematics on groups.

A ``Problem`` is data: dynamics, horizon, costs, a start, bounds and constraints. ``solve`` takes it to a locally
optimal trajectory by a solver: ``ILQR`` (iterative LQR and differential dynamic programming, from controls or from
states with gaps), ``DirectShooting`` (any optimizer of optax), ``ShootingMinimizer`` and ``ShootingLeastSquares``
(optimistix), or ``AugmentedLagrangian`` around any of them for general constraints. All work in tangent coordinates,
under ``jax.jit`` and ``jax.vmap``. ``mpc`` solves again and again from where a machine is; ``inverse_kinematics``
finds configurations.

What a solver returns is a ``Solution`` (of inverse kinematics an ``InverseKinematicsSolution``), as from an integrator
or a least-squares search: the unknowns that it found with all that is known of them. Its field ``result`` is a member
of an enumeration ``RESULTS``, whose text says how the search ended and what to do.
"""

from lgsim.optimize.augmented_lagrangian import AugmentedLagrangian
from lgsim.optimize.clearance import Clearance, ObstacleCost, SelfCollision
from lgsim.optimize.constraints import Constraint, EndConstraint, PathConstraint, StateBounds, joint_limits
from lgsim.optimize.cost import Cost, FunctionCost, LeastSquares, Residual
from lgsim.optimize.direct_shooting import DirectShooting, ShootingLeastSquares, ShootingMinimizer
from lgsim.optimize.dynamics import DiscreteDynamics, Dynamics, FieldDynamics, MultibodyDynamics, RateControlledDynamics
from lgsim.optimize.euler_dynamics import SymplecticEulerDynamics
from lgsim.optimize.ilqr import ILQR
from lgsim.optimize.inverse_kinematics import (
    INVERSE_KINEMATICS_RESULTS,
    InverseKinematicsSolution,
    inverse_kinematics,
)
from lgsim.optimize.linear_quadratic import LinearQuadratic, Policy, linearize, riccati, rollout_policy
from lgsim.optimize.mpc import MPCController, MPCState, mpc
from lgsim.optimize.parallel_riccati import parallel_riccati, parallel_rollout_policy
from lgsim.optimize.plan_error import plan_error
from lgsim.optimize.problem import Problem
from lgsim.optimize.solve import Iteration, solve
from lgsim.optimize.solver import RESULTS, History, IterativeSolver, Solution, Solver
from lgsim.optimize.standard_costs import (
    CenterOfMass,
    ControlEffort,
    FrameAttitude,
    FramePath,
    FramePose,
    FramePosePath,
    FramePosition,
    GeodesicDistance,
    JointVelocity,
    Posture,
    StateDistance,
)
from lgsim.optimize.trajectory import to_trajectory
from lgsim.support.checkpoint import CheckpointError

__all__ = [
    "ILQR",
    "INVERSE_KINEMATICS_RESULTS",
    "RESULTS",
    "AugmentedLagrangian",
    "CenterOfMass",
    "CheckpointError",
    "Clearance",
    "Constraint",
    "ControlEffort",
    "Cost",
    "DirectShooting",
    "DiscreteDynamics",
    "Dynamics",
    "EndConstraint",
    "FieldDynamics",
    "FrameAttitude",
    "FramePath",
    "FramePose",
    "FramePosePath",
    "FramePosition",
    "FunctionCost",
    "GeodesicDistance",
    "History",
    "InverseKinematicsSolution",
    "Iteration",
    "IterativeSolver",
    "JointVelocity",
    "LeastSquares",
    "LinearQuadratic",
    "MPCController",
    "MPCState",
    "MultibodyDynamics",
    "ObstacleCost",
    "PathConstraint",
    "Policy",
    "Posture",
    "Problem",
    "RateControlledDynamics",
    "Residual",
    "SelfCollision",
    "ShootingLeastSquares",
    "ShootingMinimizer",
    "Solution",
    "Solver",
    "StateBounds",
    "StateDistance",
    "SymplecticEulerDynamics",
    "inverse_kinematics",
    "joint_limits",
    "linearize",
    "mpc",
    "parallel_riccati",
    "parallel_rollout_policy",
    "plan_error",
    "riccati",
    "rollout_policy",
    "solve",
    "to_trajectory",
]
