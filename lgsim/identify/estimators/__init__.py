"""Estimators: records, losses, and ways to find the unknowns of a plant with their uncertainty."""

from lgsim.identify.estimators.estimator import Estimate, Estimator
from lgsim.identify.estimators.linear_fit import LinearFit
from lgsim.identify.estimators.loss import Cauchy, Huber, Loss, SquaredLoss
from lgsim.identify.estimators.records import Channel, SensorRecords
from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.estimators.sensors import FramePoseSensor, ImuSensor, PositionSensor, Sensor, VelocitySensor
from lgsim.identify.estimators.simulation_fit import SimulationFit
from lgsim.identify.estimators.torque_delay import torque_delay
from lgsim.identify.estimators.torque_fit import TorqueFit
from lgsim.identify.estimators.uncertainty import Identifiability, identifiability, whiteness

__all__ = [
    "Cauchy",
    "Channel",
    "Estimate",
    "Estimator",
    "FramePoseSensor",
    "Huber",
    "Identifiability",
    "ImuSensor",
    "LinearFit",
    "Loss",
    "PositionSensor",
    "Sensor",
    "SensorRecords",
    "SimulationFit",
    "SquaredLoss",
    "TorqueFit",
    "TorqueSamples",
    "VelocitySensor",
    "identifiability",
    "torque_delay",
    "whiteness",
]
