"""Trajectory optimization, model predictive control and inverse kinematics on Lie groups.

A ``Problem`` contains dynamics, horizon, costs, an initial state, bounds and constraints. ``solve`` computes a locally
optimal trajectory by a solver: ``ILQR`` (iterative LQR and differential dynamic programming, single or multiple
shooting), ``DirectShooting`` (any optimizer of optax), ``ShootingMinimizer`` (any of optimistix), or
``AugmentedLagrangian`` around any of them for general constraints. ``InteriorPoint`` handles difficult constraints and
bounds itself, with exact second derivatives. All work in tangent coordinates, under ``jax.jit`` and ``jax.vmap``.
``mpc`` is model predictive control: it solves the problem repeatedly from the measured state. ``inverse_kinematics``
computes configurations for end effector poses.

A solver returns a ``Solution``: the trajectory and the progress of the search. Its field ``result`` is a member of the
enumeration ``RESULTS``, whose text states the reason for termination and a remedy.

Submodules: ``linear_quadratic`` is the Riccati recursion, ``parallel_riccati`` its parallel form, ``constraint_rows``
the evaluation of constraints, ``constraints`` and ``standard_costs`` further constraints and costs (``StateBounds``,
``Soft``, ``FramePath``), ``unknowns`` free variables other than the controls, ``interior_point`` the Newton step of
that method.
"""

from lgsim.optimize.augmented_lagrangian import AugmentedLagrangian as AugmentedLagrangian
from lgsim.optimize.constraints.clearance import Clearance as Clearance
from lgsim.optimize.constraints.clearance import ObstacleCost as ObstacleCost
from lgsim.optimize.constraints.clearance import SelfCollision as SelfCollision
from lgsim.optimize.constraints.constraint import Constraint as Constraint
from lgsim.optimize.constraints.constraint import EndConstraint as EndConstraint
from lgsim.optimize.constraints.constraint import NodeConstraint as NodeConstraint
from lgsim.optimize.constraints.constraint import PathConstraint as PathConstraint
from lgsim.optimize.constraints.soft import Soft as Soft
from lgsim.optimize.constraints.state_bounds import StateBounds as StateBounds
from lgsim.optimize.constraints.state_bounds import joint_limits as joint_limits
from lgsim.optimize.cost import Cost as Cost
from lgsim.optimize.cost import FunctionCost as FunctionCost
from lgsim.optimize.cost import LeastSquares as LeastSquares
from lgsim.optimize.cost import Residual as Residual
from lgsim.optimize.direct_shooting import DirectShooting as DirectShooting
from lgsim.optimize.direct_shooting import ShootingMinimizer as ShootingMinimizer
from lgsim.optimize.dynamics import DiscreteDynamics as DiscreteDynamics
from lgsim.optimize.dynamics import FieldDynamics as FieldDynamics
from lgsim.optimize.dynamics import MultibodyDynamics as MultibodyDynamics
from lgsim.optimize.dynamics import RateControlledDynamics as RateControlledDynamics
from lgsim.optimize.euler_dynamics import SymplecticEulerDynamics as SymplecticEulerDynamics
from lgsim.optimize.ilqr import ILQR as ILQR
from lgsim.optimize.interior_point.method import InteriorPoint as InteriorPoint
from lgsim.optimize.inverse_kinematics import INVERSE_KINEMATICS_RESULTS as INVERSE_KINEMATICS_RESULTS
from lgsim.optimize.inverse_kinematics import InverseKinematicsSolution as InverseKinematicsSolution
from lgsim.optimize.inverse_kinematics import inverse_kinematics as inverse_kinematics
from lgsim.optimize.plan_error import plan_error as plan_error
from lgsim.optimize.problem import Problem as Problem
from lgsim.optimize.receding_horizon.controller import mpc as mpc
from lgsim.optimize.solve import solve as solve
from lgsim.optimize.solver import RESULTS as RESULTS
from lgsim.optimize.solver import Solution as Solution
from lgsim.optimize.standard_costs import CenterOfMass as CenterOfMass
from lgsim.optimize.standard_costs import ControlEffort as ControlEffort
from lgsim.optimize.standard_costs import FrameAttitude as FrameAttitude
from lgsim.optimize.standard_costs import FramePath as FramePath
from lgsim.optimize.standard_costs import FramePose as FramePose
from lgsim.optimize.standard_costs import FramePosePath as FramePosePath
from lgsim.optimize.standard_costs import FramePosition as FramePosition
from lgsim.optimize.standard_costs import JointVelocity as JointVelocity
from lgsim.optimize.standard_costs import Posture as Posture
from lgsim.optimize.standard_costs import StateDistance as StateDistance
from lgsim.optimize.trajectory import to_trajectory as to_trajectory
from lgsim.optimize.unknowns.extended_problem import settled_problem as settled_problem
from lgsim.optimize.unknowns.phases import Phase as Phase
from lgsim.optimize.unknowns.phases import Phases as Phases
from lgsim.optimize.unknowns.unknown import FreeParameters as FreeParameters
from lgsim.optimize.unknowns.unknown import FreeStart as FreeStart
from lgsim.optimize.unknowns.unknown import FreeTime as FreeTime
