"""System identification: from recorded motion to a machine's numbers, and how well they are known.

Recorded motion: ``read_recording`` gives a ``Recording`` with a ``Report`` of all that was found and mended, ``smooth``
its velocities and accelerations; ``check`` does for other recordings what reading does.

Unknowns: ``Parameters`` of a ``Plant`` in blocks such as ``Masses`` or ``Inertias``, with priors, bounds and beliefs.
``fit`` finds them by an estimator: ``TorqueFit`` and ``LinearFit`` from joint forces (``Samples``), ``SimulationFit``
from anything that sensors give (``Records``), ``StochasticFit`` for large data; a ``Search`` does the same iteration by
iteration. ``design`` makes motions that show them.
"""

from lgsim.identify.estimators.estimator import RESULTS, Estimate, Estimator
from lgsim.identify.estimators.linear_fit import LinearFit
from lgsim.identify.estimators.loss import Cauchy, Huber, Loss, SquaredLoss
from lgsim.identify.estimators.minimizers import OptimistixLeastSquares, StructuredGaussNewton
from lgsim.identify.estimators.records import Channel, SensorRecords
from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.estimators.sensors import FramePoseSensor, ImuSensor, PositionSensor, Sensor, VelocitySensor
from lgsim.identify.estimators.simulation_fit import SimulationFit
from lgsim.identify.estimators.stochastic_fit import StochasticFit
from lgsim.identify.estimators.torque_delay import torque_delay
from lgsim.identify.estimators.torque_fit import TorqueFit
from lgsim.identify.estimators.uncertainty import Identifiability, identifiability, whiteness
from lgsim.identify.experiment.criteria import AbsoluteNoise, AOptimal, DOptimal, EOptimal, RelativeNoise
from lgsim.identify.experiment.design import ExcitationLimits, ExcitationProblem, OptimalExcitation, design_excitation
from lgsim.identify.experiment.fourier import Fourier
from lgsim.identify.fit import Fit, fit, load_plant
from lgsim.identify.recording.delays import estimate_delay, shift_signal
from lgsim.identify.recording.filters import Butterworth, Smoother, Spline
from lgsim.identify.recording.plausibility import check_recording
from lgsim.identify.recording.reading import RecordingMapError, read_recording
from lgsim.identify.recording.recording import Recording
from lgsim.identify.recording.report import Finding, Report
from lgsim.identify.recording.smoothing import smooth
from lgsim.identify.session import Iteration, Search
from lgsim.identify.unknowns.base_parameters import BaseParameters, base_parameters
from lgsim.identify.unknowns.body_blocks import Block, CentersOfMass, Inertias, Masses, StandardParameters
from lgsim.identify.unknowns.frame_blocks import GravityDirection, Placements, SharedBlock
from lgsim.identify.unknowns.joint_blocks import JointParameter, SignalScale, Stribeck, StribeckSpeed, TorqueOffset
from lgsim.identify.unknowns.parameters import Parameters, Prior, TotalMass
from lgsim.identify.unknowns.plant import Plant
from lgsim.identify.unknowns.sensor_plant import InputDelay, InstrumentedPlant, SensorBias, SensorDelay

__all__ = [
    "RESULTS",
    "AOptimal",
    "AbsoluteNoise",
    "BaseParameters",
    "Block",
    "Butterworth",
    "Cauchy",
    "CentersOfMass",
    "Channel",
    "DOptimal",
    "EOptimal",
    "Estimate",
    "Estimator",
    "ExcitationLimits",
    "ExcitationProblem",
    "Finding",
    "Fit",
    "Fourier",
    "FramePoseSensor",
    "GravityDirection",
    "Huber",
    "Identifiability",
    "ImuSensor",
    "Inertias",
    "InputDelay",
    "InstrumentedPlant",
    "Iteration",
    "JointParameter",
    "LinearFit",
    "Loss",
    "Masses",
    "OptimalExcitation",
    "OptimistixLeastSquares",
    "Parameters",
    "Placements",
    "Plant",
    "PositionSensor",
    "Prior",
    "Recording",
    "RecordingMapError",
    "RelativeNoise",
    "Report",
    "Search",
    "Sensor",
    "SensorBias",
    "SensorDelay",
    "SensorRecords",
    "SharedBlock",
    "SignalScale",
    "SimulationFit",
    "Smoother",
    "Spline",
    "SquaredLoss",
    "StandardParameters",
    "StochasticFit",
    "Stribeck",
    "StribeckSpeed",
    "StructuredGaussNewton",
    "TorqueFit",
    "TorqueOffset",
    "TorqueSamples",
    "TotalMass",
    "VelocitySensor",
    "base_parameters",
    "check_recording",
    "design_excitation",
    "estimate_delay",
    "fit",
    "identifiability",
    "load_plant",
    "read_recording",
    "shift_signal",
    "smooth",
    "torque_delay",
    "whiteness",
]
