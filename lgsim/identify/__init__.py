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

from lgsim.identify.estimators import (
    Cauchy,
    Channel,
    Estimate,
    Estimator,
    FramePoseSensor,
    Huber,
    Identifiability,
    ImuSensor,
    LinearFit,
    Loss,
    PositionSensor,
    Sensor,
    SensorRecords,
    SimulationFit,
    SquaredLoss,
    TorqueFit,
    TorqueSamples,
    VelocitySensor,
    identifiability,
    torque_delay,
    whiteness,
)
from lgsim.identify.estimators.estimator import RESULTS, Iteration
from lgsim.identify.experiment import (
    AbsoluteNoise,
    AOptimal,
    DOptimal,
    EOptimal,
    ExcitationLimits,
    ExcitationProblem,
    Fourier,
    OptimalExcitation,
    RelativeNoise,
    design_excitation,
)
from lgsim.identify.fit import Fit, fit, load_plant
from lgsim.identify.posterior import (
    HalfNormalNoise,
    InverseGammaNoise,
    KnownNoise,
    LaplaceApproximation,
    LogDensity,
    NoiseModel,
    PhysicalPrior,
    PosteriorDraws,
    PosteriorProblem,
    SerialCorrelation,
    laplace_approximation,
    log_density,
)
from lgsim.identify.recording import (
    Butterworth,
    Finding,
    Recording,
    RecordingMapError,
    Report,
    Smoother,
    Spline,
    check_recording,
    estimate_delay,
    join_recordings,
    read_recording,
    shift_signal,
    smooth,
)
from lgsim.identify.step_error import FitStepError
from lgsim.identify.unknowns import (
    ActuatorParameter,
    BaseParameters,
    Block,
    CentersOfMass,
    ContactParameter,
    GravityDirection,
    Inertias,
    InputDelay,
    InstrumentedPlant,
    JointParameter,
    Masses,
    Parameters,
    Placements,
    Plant,
    Prior,
    SensorBias,
    SensorDelay,
    SharedBlock,
    SignalScale,
    StandardParameters,
    Stribeck,
    StribeckSpeed,
    TorqueOffset,
    TotalMass,
    actuator_parameters,
    base_parameters,
)
from lgsim.support.checkpoint import CheckpointError
from lgsim.support.verdict import Outcome, Verdict

__all__ = [
    "RESULTS",
    "AOptimal",
    "AbsoluteNoise",
    "ActuatorParameter",
    "BaseParameters",
    "Block",
    "Butterworth",
    "Cauchy",
    "CentersOfMass",
    "Channel",
    "CheckpointError",
    "ContactParameter",
    "DOptimal",
    "EOptimal",
    "Estimate",
    "Estimator",
    "ExcitationLimits",
    "ExcitationProblem",
    "Finding",
    "Fit",
    "FitStepError",
    "Fourier",
    "FramePoseSensor",
    "GravityDirection",
    "HalfNormalNoise",
    "Huber",
    "Identifiability",
    "ImuSensor",
    "Inertias",
    "InputDelay",
    "InstrumentedPlant",
    "InverseGammaNoise",
    "Iteration",
    "JointParameter",
    "KnownNoise",
    "LaplaceApproximation",
    "LinearFit",
    "LogDensity",
    "Loss",
    "Masses",
    "NoiseModel",
    "OptimalExcitation",
    "Outcome",
    "Parameters",
    "PhysicalPrior",
    "Placements",
    "Plant",
    "PositionSensor",
    "PosteriorDraws",
    "PosteriorProblem",
    "Prior",
    "Recording",
    "RecordingMapError",
    "RelativeNoise",
    "Report",
    "Sensor",
    "SensorBias",
    "SensorDelay",
    "SensorRecords",
    "SerialCorrelation",
    "SharedBlock",
    "SignalScale",
    "SimulationFit",
    "Smoother",
    "Spline",
    "SquaredLoss",
    "StandardParameters",
    "Stribeck",
    "StribeckSpeed",
    "TorqueFit",
    "TorqueOffset",
    "TorqueSamples",
    "TotalMass",
    "VelocitySensor",
    "Verdict",
    "actuator_parameters",
    "base_parameters",
    "check_recording",
    "design_excitation",
    "estimate_delay",
    "fit",
    "identifiability",
    "join_recordings",
    "laplace_approximation",
    "load_plant",
    "log_density",
    "read_recording",
    "shift_signal",
    "smooth",
    "torque_delay",
    "whiteness",
]
