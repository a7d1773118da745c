"""Trajectory optimisation and inverse kinematics on groups.

A ``Problem`` is data: dynamics, horizon, costs, a start, bounds and constraints. ``solve`` takes it to a locally
optimal trajectory by a solver: ``ILQR`` (iterative LQR and differential dynamic programming, from controls or from
states with gaps), ``DirectShooting`` (any optimiser of optax), ``ShootingMinimiser`` and ``ShootingLeastSquares``
(optimistix), or ``AugmentedLagrangian`` around any of them for general constraints. All work in tangent coordinates,
under ``jax.jit`` and ``jax.vmap``. ``mpc`` solves again and again from where a machine is; ``inverse_kinematics``
finds configurations.
"""

from lgsim.optimize.augmented import AugmentedLagrangian
from lgsim.optimize.checkpoint import CheckpointError
from lgsim.optimize.constraints import Constraint, EndConstraint, PathConstraint, StateBounds, joint_limits
from lgsim.optimize.cost import Cost, Function, LeastSquares, Residual
from lgsim.optimize.costs import (
    CenterOfMass,
    Effort,
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
from lgsim.optimize.direct import DirectShooting
from lgsim.optimize.dynamics import DiscreteDynamics, Dynamics, FieldDynamics, MachineDynamics, RateControlled
from lgsim.optimize.ilqr import ILQR
from lgsim.optimize.inverse_kinematics import REACH, Reach, inverse_kinematics
from lgsim.optimize.linearize import LinearQuadratic, linearize
from lgsim.optimize.mpc import Controller, Plan, mpc
from lgsim.optimize.parallel import parallel_follow, parallel_riccati
from lgsim.optimize.pieces import Iteration
from lgsim.optimize.problem import Problem
from lgsim.optimize.results import RESULTS, History, Result
from lgsim.optimize.riccati import Policy, follow, riccati
from lgsim.optimize.shooting import ShootingLeastSquares, ShootingMinimiser
from lgsim.optimize.solve import solve
from lgsim.optimize.solver import Iterative, Solver
from lgsim.optimize.symplectic import EulerDynamics
from lgsim.optimize.trajectory import trajectory_of

__all__ = [
    "ILQR",
    "REACH",
    "RESULTS",
    "AugmentedLagrangian",
    "CenterOfMass",
    "CheckpointError",
    "Constraint",
    "Controller",
    "Cost",
    "DirectShooting",
    "DiscreteDynamics",
    "Dynamics",
    "Effort",
    "EndConstraint",
    "EulerDynamics",
    "FieldDynamics",
    "FrameAttitude",
    "FramePath",
    "FramePose",
    "FramePosePath",
    "FramePosition",
    "Function",
    "GeodesicDistance",
    "History",
    "Iteration",
    "Iterative",
    "JointVelocity",
    "LeastSquares",
    "LinearQuadratic",
    "MachineDynamics",
    "PathConstraint",
    "Plan",
    "Policy",
    "Posture",
    "Problem",
    "RateControlled",
    "Reach",
    "Residual",
    "Result",
    "ShootingLeastSquares",
    "ShootingMinimiser",
    "Solver",
    "StateBounds",
    "StateDistance",
    "follow",
    "inverse_kinematics",
    "joint_limits",
    "linearize",
    "mpc",
    "parallel_follow",
    "parallel_riccati",
    "riccati",
    "solve",
    "trajectory_of",
]
