"""Estimators: records, losses, and ways to find the unknowns of a plant with their uncertainty."""

from lgsim.identify.estimators.estimator import Estimate as Estimate
from lgsim.identify.estimators.estimator import Estimator as Estimator
from lgsim.identify.estimators.linear_fit import LinearFit as LinearFit
from lgsim.identify.estimators.loss import Cauchy as Cauchy
from lgsim.identify.estimators.loss import Huber as Huber
from lgsim.identify.estimators.loss import Loss as Loss
from lgsim.identify.estimators.loss import SquaredLoss as SquaredLoss
from lgsim.identify.estimators.records import Channel as Channel
from lgsim.identify.estimators.records import SensorRecords as SensorRecords
from lgsim.identify.estimators.samples import TorqueSamples as TorqueSamples
from lgsim.identify.estimators.sensors import FramePoseSensor as FramePoseSensor
from lgsim.identify.estimators.sensors import ImuSensor as ImuSensor
from lgsim.identify.estimators.sensors import PositionSensor as PositionSensor
from lgsim.identify.estimators.sensors import Sensor as Sensor
from lgsim.identify.estimators.sensors import VelocitySensor as VelocitySensor
from lgsim.identify.estimators.simulation_fit import SimulationFit as SimulationFit
from lgsim.identify.estimators.torque_delay import torque_delay as torque_delay
from lgsim.identify.estimators.torque_fit import TorqueFit as TorqueFit
from lgsim.identify.estimators.uncertainty import Identifiability as Identifiability
from lgsim.identify.estimators.uncertainty import identifiability as identifiability
from lgsim.identify.estimators.uncertainty import whiteness as whiteness
