"""Simulation: machines that move in time."""

from lgsim.simulation import controls, events, limits, sensors
from lgsim.simulation import trajectory_tree as trajectory_tree  # makes a Trajectory a pytree
from lgsim.simulation.methods import MOTION_METHODS
from lgsim.simulation.rollout import StateHistory, rollout
from lgsim.simulation.simulate import simulate
from lgsim.simulation.simulate_adaptive import simulate_adaptive
from lgsim.simulation.state_space import StateSpace
from lgsim.simulation.stiffness import Automatic
from lgsim.simulation.stops import with_stops
from lgsim.simulation.trajectory import Trajectory, TrajectorySummary
from lgsim.simulation.variational.variational_tree import VariationalTree

__all__ = [
    "MOTION_METHODS",
    "Automatic",
    "StateHistory",
    "StateSpace",
    "Trajectory",
    "TrajectorySummary",
    "VariationalTree",
    "controls",
    "events",
    "limits",
    "rollout",
    "sensors",
    "simulate",
    "simulate_adaptive",
    "with_stops",
]
