"""Simulation: machines that move in time."""

from lgsim.simulation import controls, sensors
from lgsim.simulation.action import Motions
from lgsim.simulation.pieces import simulate
from lgsim.simulation.rollout import Motion, rollout
from lgsim.simulation.trajectory import Trajectory

__all__ = ["Motion", "Motions", "Trajectory", "controls", "rollout", "sensors", "simulate"]
