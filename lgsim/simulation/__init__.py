"""Time integration of motions, with controllers and events."""

from lgsim.simulation import controls as controls
from lgsim.simulation import events as events
from lgsim.simulation import limits as limits
from lgsim.simulation import sensors as sensors
from lgsim.simulation import trajectory_tree  # noqa: F401  (makes a Trajectory a pytree)
from lgsim.simulation.accuracy.stiffness import Automatic as Automatic
from lgsim.simulation.methods import MOTION_METHODS as MOTION_METHODS
from lgsim.simulation.rollout import StateHistory as StateHistory
from lgsim.simulation.rollout import rollout as rollout
from lgsim.simulation.simulate import simulate as simulate
from lgsim.simulation.simulate_adaptive import simulate_adaptive as simulate_adaptive
from lgsim.simulation.state_space import StateSpace as StateSpace
from lgsim.simulation.stops import with_stops as with_stops
from lgsim.simulation.trajectory import Trajectory as Trajectory
from lgsim.simulation.trajectory import TrajectorySummary as TrajectorySummary
from lgsim.simulation.variational.variational_tree import VariationalTree as VariationalTree
