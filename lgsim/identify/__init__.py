"""System identification: from recorded motion to a machine's numbers, and how well they are known.

Recorded motion: ``read_recording`` gives a ``Recording`` with a ``Report`` of all that was found and mended, ``smooth``
its velocities and accelerations; ``check`` does for other recordings what reading does.

Unknowns: ``Parameters`` of a ``Plant`` in blocks such as ``Masses`` or ``Inertias``, with priors, bounds and beliefs.
``fit`` finds them by an estimator: ``TorqueFit`` and ``LinearFit`` from joint forces (``Samples``), ``SimulationFit``
from anything that sensors give (``Records``), ``StochasticFit`` for large data; a ``Search`` does the same iteration by
iteration. ``design`` makes motions that show them.
"""

from lgsim.identify.base_parameters import BaseParameters, base_parameters
from lgsim.identify.blocks import Block, Centers, Inertias, Masses, StandardParameters
from lgsim.identify.checking import check
from lgsim.identify.criteria import Absolute, AOptimal, DOptimal, EOptimal, Relative
from lgsim.identify.delays import estimate_delay, shift
from lgsim.identify.estimator import Estimate, Estimator
from lgsim.identify.excitation import Design, Excitation, Limits, design
from lgsim.identify.fit import Fit, fit
from lgsim.identify.fit_store import load_plant
from lgsim.identify.fourier import Fourier
from lgsim.identify.frame_blocks import GravityDirection, Placements, Tied
from lgsim.identify.gauss_newton import STATUS
from lgsim.identify.instruments import InputDelay, InstrumentedPlant, SensorBias, SensorDelay
from lgsim.identify.joint_blocks import Drive, SignalScale, Stribeck, StribeckSpeed, TorqueOffset
from lgsim.identify.linear import LinearFit
from lgsim.identify.loss import Cauchy, Huber, Loss, Squares
from lgsim.identify.minimisers import ChainSteps, Optimistix
from lgsim.identify.parameters import Belief, Parameters, TotalMass
from lgsim.identify.plant import Plant
from lgsim.identify.reading import MapError, read_recording
from lgsim.identify.recording import Recording
from lgsim.identify.records import Channel, Records
from lgsim.identify.report import Finding, Report
from lgsim.identify.samples import Samples
from lgsim.identify.sensors import FramePose, Inertial, Positions, Sensor, Velocities
from lgsim.identify.simulation_error import SimulationFit
from lgsim.identify.smoothers import Butterworth, Smoother, Spline
from lgsim.identify.smoothing import smooth
from lgsim.identify.stepwise import Search, Step
from lgsim.identify.stochastic import StochasticFit
from lgsim.identify.torque import TorqueFit
from lgsim.identify.torque_delay import torque_delay
from lgsim.identify.uncertainty import Identifiability, identifiability, whiteness

__all__ = [
    "STATUS",
    "AOptimal",
    "Absolute",
    "BaseParameters",
    "Belief",
    "Block",
    "Butterworth",
    "Cauchy",
    "Centers",
    "ChainSteps",
    "Channel",
    "DOptimal",
    "Design",
    "Drive",
    "EOptimal",
    "Estimate",
    "Estimator",
    "Excitation",
    "Finding",
    "Fit",
    "Fourier",
    "FramePose",
    "GravityDirection",
    "Huber",
    "Identifiability",
    "Inertial",
    "Inertias",
    "InputDelay",
    "InstrumentedPlant",
    "Limits",
    "LinearFit",
    "Loss",
    "MapError",
    "Masses",
    "Optimistix",
    "Parameters",
    "Placements",
    "Plant",
    "Positions",
    "Recording",
    "Records",
    "Relative",
    "Report",
    "Samples",
    "Search",
    "Sensor",
    "SensorBias",
    "SensorDelay",
    "SignalScale",
    "SimulationFit",
    "Smoother",
    "Spline",
    "Squares",
    "StandardParameters",
    "Step",
    "StochasticFit",
    "Stribeck",
    "StribeckSpeed",
    "Tied",
    "TorqueFit",
    "TorqueOffset",
    "TotalMass",
    "Velocities",
    "base_parameters",
    "check",
    "design",
    "estimate_delay",
    "fit",
    "identifiability",
    "load_plant",
    "read_recording",
    "shift",
    "smooth",
    "torque_delay",
    "whiteness",
]
