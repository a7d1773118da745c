"""System identification: from recorded motion to a machine's numbers, and how well they are known.

- ``read_recording`` gives a ``Recording`` with a report of its findings, each mended or named; its errors are
  ``RecordingMapError``. ``smooth`` gives velocities and accelerations, ``torque_delay`` tells how late the torques are,
  ``join_recordings`` makes one recording of several;
- ``Parameters`` of a ``Plant`` are the unknowns, in ``Block``s of coordinates with bounds and prior deviations. Of
  bodies: ``Inertias``, ``StandardParameters``, ``Masses``, ``CentersOfMass``, with ``TotalMass`` as a prior; of joints
  and their signals: ``JointParameter``, ``SignalScale``, ``TorqueOffset``; of frames: ``Placements``,
  ``GravityDirection``; of drives and contacts: ``ActuatorParameter``, ``ContactParameter``. ``base_parameters`` are the
  combinations that torques show;
- ``fit`` finds the unknowns and returns a ``Fit``, whose verdict has one of five ``Outcome``s and whose ``RESULTS`` say
  how the iterations ended; ``load_plant`` reads what ``Fit.save`` wrote;
- from joint forces, ``TorqueSamples``: ``TorqueFit``, and ``LinearFit`` of base parameters. From anything that sensors
  give, ``SensorRecords`` of a ``Channel`` for each ``PositionSensor``, ``VelocitySensor``, ``FramePoseSensor`` or
  ``ImuSensor``: ``SimulationFit``. ``Huber`` and ``Cauchy`` are losses for outliers;
- ``log_density`` of a ``PosteriorProblem`` is a function in coordinates without bounds that samplers of other packages
  take (extra ``posterior``: blackjax, numpyro); ``laplace_approximation`` gives starts and mass matrix,
  ``PosteriorDraws`` turns draws into numbers, machines and predictions.

Less often needed: ``recording`` (checks, smoothers), ``unknowns`` (instruments, blocks that are alike), ``posterior``
(noise, priors) and ``experiment`` (motions that show the unknowns).
"""

from lgsim.identify import experiment as experiment
from lgsim.identify import posterior as posterior
from lgsim.identify import recording as recording
from lgsim.identify import unknowns as unknowns
from lgsim.identify.estimators.estimator import RESULTS as RESULTS
from lgsim.identify.estimators.linear_fit import LinearFit as LinearFit
from lgsim.identify.estimators.loss import Cauchy as Cauchy
from lgsim.identify.estimators.loss import Huber as Huber
from lgsim.identify.estimators.records import Channel as Channel
from lgsim.identify.estimators.records import SensorRecords as SensorRecords
from lgsim.identify.estimators.samples import TorqueSamples as TorqueSamples
from lgsim.identify.estimators.sensors import FramePoseSensor as FramePoseSensor
from lgsim.identify.estimators.sensors import ImuSensor as ImuSensor
from lgsim.identify.estimators.sensors import PositionSensor as PositionSensor
from lgsim.identify.estimators.sensors import VelocitySensor as VelocitySensor
from lgsim.identify.estimators.simulation_fit import SimulationFit as SimulationFit
from lgsim.identify.estimators.torque_delay import torque_delay as torque_delay
from lgsim.identify.estimators.torque_fit import TorqueFit as TorqueFit
from lgsim.identify.fit import Fit as Fit
from lgsim.identify.fit import fit as fit
from lgsim.identify.fit import load_plant as load_plant
from lgsim.identify.posterior.density import log_density as log_density
from lgsim.identify.posterior.draws import PosteriorDraws as PosteriorDraws
from lgsim.identify.posterior.laplace import laplace_approximation as laplace_approximation
from lgsim.identify.posterior.problem import PosteriorProblem as PosteriorProblem
from lgsim.identify.recording.joined_recordings import join_recordings as join_recordings
from lgsim.identify.recording.reading import RecordingMapError as RecordingMapError
from lgsim.identify.recording.reading import read_recording as read_recording
from lgsim.identify.recording.recording import Recording as Recording
from lgsim.identify.recording.smoothing import smooth as smooth
from lgsim.identify.unknowns.actuator_blocks import ActuatorParameter as ActuatorParameter
from lgsim.identify.unknowns.base_parameters import base_parameters as base_parameters
from lgsim.identify.unknowns.block import Block as Block
from lgsim.identify.unknowns.body_blocks import CentersOfMass as CentersOfMass
from lgsim.identify.unknowns.body_blocks import Inertias as Inertias
from lgsim.identify.unknowns.body_blocks import Masses as Masses
from lgsim.identify.unknowns.body_blocks import StandardParameters as StandardParameters
from lgsim.identify.unknowns.contact_blocks import ContactParameter as ContactParameter
from lgsim.identify.unknowns.frame_blocks import GravityDirection as GravityDirection
from lgsim.identify.unknowns.frame_blocks import Placements as Placements
from lgsim.identify.unknowns.joint_blocks import JointParameter as JointParameter
from lgsim.identify.unknowns.joint_blocks import SignalScale as SignalScale
from lgsim.identify.unknowns.joint_blocks import TorqueOffset as TorqueOffset
from lgsim.identify.unknowns.parameters import Parameters as Parameters
from lgsim.identify.unknowns.parameters import TotalMass as TotalMass
from lgsim.identify.unknowns.plant import Plant as Plant
from lgsim.support.checkpoint import CheckpointError as CheckpointError
from lgsim.support.verdict import Outcome as Outcome
