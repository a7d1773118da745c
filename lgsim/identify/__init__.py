"""System identification: from recorded motion to a machine's numbers, and how well they are known.

Recorded motion (``lgsim.identify.recording``):

- ``read_recording`` gives a ``Recording`` with a ``Report`` of all ``Finding``s, each mended or named; its errors are
  ``RecordingMapError``. ``check_recording`` does the same for recordings from elsewhere;
- ``smooth`` gives velocities and accelerations, by a ``Smoother``: ``Spline`` or ``Butterworth``;
- ``estimate_delay`` and ``torque_delay`` tell how late a channel is, ``shift_signal`` moves it back;
  ``join_recordings`` makes one recording of several.

Unknowns (``lgsim.identify.unknowns``):

- ``Parameters`` of a ``Plant``, or of an ``InstrumentedPlant``, in ``Block``s of coordinates with bounds and prior
  deviations, beside a ``Prior`` such as ``TotalMass``;
- of bodies: ``Inertias``, ``StandardParameters``, ``Masses``, ``CentersOfMass``;
- of joints and their signals: ``JointParameter``, ``SignalScale``, ``TorqueOffset``, ``Stribeck``, ``StribeckSpeed``;
- of actuators between recorded commands and joints: ``ActuatorParameter``, of the paths ``actuator_parameters``; of
  contacts: ``ContactParameter``;
- of frames: ``Placements``, ``GravityDirection``; of instruments: ``SensorBias``, ``SensorDelay``, ``InputDelay``;
- ``SharedBlock`` for bodies or joints that are alike; ``base_parameters`` for the combinations that torques show.

Fits (``lgsim.identify.estimators``): ``fit`` finds the unknowns by an ``Estimator`` and returns a ``Fit``, whose
``Estimate`` holds arrays alone, and whose ``step_error`` says how far the steps of simulated motion move it
(``FitStepError``); ``load_plant`` reads what ``Fit.save`` wrote. ``Fit.verdict`` is the ``Verdict`` about it, one of
five ``Outcome``s, ``Fit.intervals`` are honest at bounds.

- From joint forces, ``TorqueSamples``: ``TorqueFit``, and ``LinearFit`` of base parameters;
- from anything that sensors give, ``SensorRecords`` of a ``Channel`` for each ``Sensor`` (``PositionSensor``,
  ``VelocitySensor``, ``FramePoseSensor``, ``ImuSensor``): ``SimulationFit``;
- with a ``Loss``: ``SquaredLoss``, or ``Huber`` and ``Cauchy`` for outliers; ``RESULTS`` says how the iterations ended;
- ``identifiability`` and ``whiteness`` judge what was found.

Posteriors (``lgsim.identify.posterior``): ``log_density`` of a ``PosteriorProblem`` is a ``LogDensity``, a function in
coordinates without bounds that samplers of other packages take (extra ``posterior``: blackjax, numpyro).

- the noise is a ``NoiseModel``: ``KnownNoise``, ``HalfNormalNoise``, ``InverseGammaNoise``; with ``SerialCorrelation``
  it remembers; a ``PhysicalPrior`` is stated of physical numbers;
- ``laplace_approximation`` gives starts and mass matrix, a ``LaplaceApproximation``; ``PosteriorDraws`` turns draws
  into numbers, machines and predictions.

Experiments (``lgsim.identify.experiment``): ``design_excitation`` solves an ``ExcitationProblem`` for an
``OptimalExcitation``, a ``Fourier`` motion within ``ExcitationLimits`` that shows the unknowns by ``DOptimal``,
``AOptimal`` or ``EOptimal`` under ``AbsoluteNoise`` or ``RelativeNoise``.
"""

from lgsim.identify.estimators import Cauchy as Cauchy
from lgsim.identify.estimators import Channel as Channel
from lgsim.identify.estimators import Estimate as Estimate
from lgsim.identify.estimators import Estimator as Estimator
from lgsim.identify.estimators import FramePoseSensor as FramePoseSensor
from lgsim.identify.estimators import Huber as Huber
from lgsim.identify.estimators import Identifiability as Identifiability
from lgsim.identify.estimators import ImuSensor as ImuSensor
from lgsim.identify.estimators import LinearFit as LinearFit
from lgsim.identify.estimators import Loss as Loss
from lgsim.identify.estimators import PositionSensor as PositionSensor
from lgsim.identify.estimators import Sensor as Sensor
from lgsim.identify.estimators import SensorRecords as SensorRecords
from lgsim.identify.estimators import SimulationFit as SimulationFit
from lgsim.identify.estimators import SquaredLoss as SquaredLoss
from lgsim.identify.estimators import TorqueFit as TorqueFit
from lgsim.identify.estimators import TorqueSamples as TorqueSamples
from lgsim.identify.estimators import VelocitySensor as VelocitySensor
from lgsim.identify.estimators import identifiability as identifiability
from lgsim.identify.estimators import torque_delay as torque_delay
from lgsim.identify.estimators import whiteness as whiteness
from lgsim.identify.estimators.estimator import RESULTS as RESULTS
from lgsim.identify.estimators.estimator import Iteration as Iteration
from lgsim.identify.experiment import AbsoluteNoise as AbsoluteNoise
from lgsim.identify.experiment import AOptimal as AOptimal
from lgsim.identify.experiment import DOptimal as DOptimal
from lgsim.identify.experiment import EOptimal as EOptimal
from lgsim.identify.experiment import ExcitationLimits as ExcitationLimits
from lgsim.identify.experiment import ExcitationProblem as ExcitationProblem
from lgsim.identify.experiment import Fourier as Fourier
from lgsim.identify.experiment import OptimalExcitation as OptimalExcitation
from lgsim.identify.experiment import RelativeNoise as RelativeNoise
from lgsim.identify.experiment import design_excitation as design_excitation
from lgsim.identify.fit import Fit as Fit
from lgsim.identify.fit import fit as fit
from lgsim.identify.fit import load_plant as load_plant
from lgsim.identify.posterior import HalfNormalNoise as HalfNormalNoise
from lgsim.identify.posterior import InverseGammaNoise as InverseGammaNoise
from lgsim.identify.posterior import KnownNoise as KnownNoise
from lgsim.identify.posterior import LaplaceApproximation as LaplaceApproximation
from lgsim.identify.posterior import LogDensity as LogDensity
from lgsim.identify.posterior import NoiseModel as NoiseModel
from lgsim.identify.posterior import PhysicalPrior as PhysicalPrior
from lgsim.identify.posterior import PosteriorDraws as PosteriorDraws
from lgsim.identify.posterior import PosteriorProblem as PosteriorProblem
from lgsim.identify.posterior import SerialCorrelation as SerialCorrelation
from lgsim.identify.posterior import laplace_approximation as laplace_approximation
from lgsim.identify.posterior import log_density as log_density
from lgsim.identify.recording import Butterworth as Butterworth
from lgsim.identify.recording import Finding as Finding
from lgsim.identify.recording import Recording as Recording
from lgsim.identify.recording import RecordingMapError as RecordingMapError
from lgsim.identify.recording import Report as Report
from lgsim.identify.recording import Smoother as Smoother
from lgsim.identify.recording import Spline as Spline
from lgsim.identify.recording import check_recording as check_recording
from lgsim.identify.recording import estimate_delay as estimate_delay
from lgsim.identify.recording import join_recordings as join_recordings
from lgsim.identify.recording import read_recording as read_recording
from lgsim.identify.recording import shift_signal as shift_signal
from lgsim.identify.recording import smooth as smooth
from lgsim.identify.step_error import FitStepError as FitStepError
from lgsim.identify.unknowns import ActuatorParameter as ActuatorParameter
from lgsim.identify.unknowns import BaseParameters as BaseParameters
from lgsim.identify.unknowns import Block as Block
from lgsim.identify.unknowns import CentersOfMass as CentersOfMass
from lgsim.identify.unknowns import ContactParameter as ContactParameter
from lgsim.identify.unknowns import GravityDirection as GravityDirection
from lgsim.identify.unknowns import Inertias as Inertias
from lgsim.identify.unknowns import InputDelay as InputDelay
from lgsim.identify.unknowns import InstrumentedPlant as InstrumentedPlant
from lgsim.identify.unknowns import JointParameter as JointParameter
from lgsim.identify.unknowns import Masses as Masses
from lgsim.identify.unknowns import Parameters as Parameters
from lgsim.identify.unknowns import Placements as Placements
from lgsim.identify.unknowns import Plant as Plant
from lgsim.identify.unknowns import Prior as Prior
from lgsim.identify.unknowns import SensorBias as SensorBias
from lgsim.identify.unknowns import SensorDelay as SensorDelay
from lgsim.identify.unknowns import SharedBlock as SharedBlock
from lgsim.identify.unknowns import SignalScale as SignalScale
from lgsim.identify.unknowns import StandardParameters as StandardParameters
from lgsim.identify.unknowns import Stribeck as Stribeck
from lgsim.identify.unknowns import StribeckSpeed as StribeckSpeed
from lgsim.identify.unknowns import TorqueOffset as TorqueOffset
from lgsim.identify.unknowns import TotalMass as TotalMass
from lgsim.identify.unknowns import actuator_parameters as actuator_parameters
from lgsim.identify.unknowns import base_parameters as base_parameters
from lgsim.support.checkpoint import CheckpointError as CheckpointError
from lgsim.support.verdict import Outcome as Outcome
from lgsim.support.verdict import Verdict as Verdict
