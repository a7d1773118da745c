"""Simulation: machines that move in time."""

from lgsim.simulation import controls, events, sensors
from lgsim.simulation.action import Motions
from lgsim.simulation.adaptive import simulate_adaptive
from lgsim.simulation.pieces import simulate
from lgsim.simulation.rollout import Motion, rollout
from lgsim.simulation.trajectory import Trajectory

__all__ = [
    "Motion",
    "Motions",
    "Trajectory",
    "controls",
    "events",
    "rollout",
    "sensors",
    "simulate",
    "simulate_adaptive",
]
