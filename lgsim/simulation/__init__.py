"""Simulation: machines that move in time."""

from lgsim.simulation import controls, events, limits, sensors
from lgsim.simulation.rollout import StateHistory, rollout
from lgsim.simulation.simulate import simulate
from lgsim.simulation.simulate_adaptive import simulate_adaptive
from lgsim.simulation.state_space import StateSpace
from lgsim.simulation.stops import with_stops
from lgsim.simulation.trajectory import Trajectory, TrajectorySummary

__all__ = [
    "StateHistory",
    "StateSpace",
    "Trajectory",
    "TrajectorySummary",
    "controls",
    "events",
    "limits",
    "rollout",
    "sensors",
    "simulate",
    "simulate_adaptive",
    "with_stops",
]
