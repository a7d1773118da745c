"""System identification: estimate a model's parameters from recorded motion, with their uncertainty.

- ``read_recording`` returns a ``Recording`` and a report of the problems that it found, each repaired or named; it
  raises ``RecordingMapError``. ``smooth`` estimates velocities and accelerations, ``torque_delay`` the delay of the
  torques, and ``join_recordings`` merges recordings;
- ``Parameters`` of a ``Plant`` are the unknowns. They consist of ``Block``s of coordinates with bounds and prior
  standard deviations. For bodies: ``Inertias``, ``StandardParameters``, ``Masses``, ``CentersOfMass``, with
  ``TotalMass`` as a prior; for joints and their signals: ``JointParameter``, ``SignalScale``, ``TorqueOffset``; for
  frames: ``Placements``, ``GravityDirection``; for actuators and contacts: ``ActuatorParameter``, ``ContactParameter``.
  ``arm_unknowns`` is a ready set for an arm, ``nearest_consistent`` replaces inconsistent bodies of a file.
  ``base_parameters`` are the combinations that are identifiable from torques;
- ``fit`` estimates the unknowns and returns a ``Fit``. Its verdict has one of five ``Outcome``s, its ``RESULTS`` code
  gives the reason for termination. ``load_plant`` reads a file of ``Fit.save``;
- estimators from joint torques, ``TorqueSamples``: ``TorqueFit``, and ``LinearFit`` for base parameters. From sensor
  signals, ``SensorRecords`` with a ``Channel`` for each ``PositionSensor``, ``VelocitySensor``, ``FramePoseSensor`` or
  ``ImuSensor``: ``SimulationFit``. ``Huber`` and ``Cauchy`` are robust losses;
- Bayesian identification: ``log_density`` of a ``PosteriorProblem`` is the posterior in unconstrained coordinates for
  samplers of other packages (extra ``posterior``: blackjax, numpyro). ``laplace_approximation`` gives starting points
  and a mass matrix, ``PosteriorDraws`` turns draws into parameters, models and predictions.

Submodules: ``recording`` (checks, smoothers), ``unknowns`` (sensors, symmetric blocks), ``posterior`` (noise models,
priors) and ``experiment`` (design of excitation trajectories).
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
from lgsim.identify.recording.map_entries import RecordingMapError as RecordingMapError
from lgsim.identify.recording.reading import read_recording as read_recording
from lgsim.identify.recording.recording import Recording as Recording
from lgsim.identify.recording.smoothing import smooth as smooth
from lgsim.identify.unknowns.actuator_blocks import ActuatorParameter as ActuatorParameter
from lgsim.identify.unknowns.arm_unknowns import arm_unknowns as arm_unknowns
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
from lgsim.identify.unknowns.nearest_bodies import nearest_consistent as nearest_consistent
from lgsim.identify.unknowns.parameters import Parameters as Parameters
from lgsim.identify.unknowns.parameters import TotalMass as TotalMass
from lgsim.identify.unknowns.plant import Plant as Plant
from lgsim.support.checkpoint import CheckpointError as CheckpointError
from lgsim.support.verdict import Outcome as Outcome
