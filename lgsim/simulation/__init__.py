"""Simulation: machines that move in time."""

from lgsim.simulation import controls, events, sensors
from lgsim.simulation.rollout import StateHistory, rollout
from lgsim.simulation.simulate import simulate
from lgsim.simulation.simulate_adaptive import simulate_adaptive
from lgsim.simulation.state_space import StateSpace
from lgsim.simulation.trajectory import Trajectory

__all__ = [
    "StateHistory",
    "StateSpace",
    "Trajectory",
    "controls",
    "events",
    "rollout",
    "sensors",
    "simulate",
    "simulate_adaptive",
]
