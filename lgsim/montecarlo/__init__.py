"""Monte Carlo on groups: dispersions of states, parameters and disturbances over many samples.

A ``Study`` is data: distributions, a rollout, outputs, a number of samples. ``run`` runs it in chunks, in memory or
into a store that survives any interruption, and gives ``Results``.

- What varies: numbers by ``Uniform``, ``Normal``, ``LogNormal``; points of a group by ``TangentNormal``, ``Haar``;
  bodies by ``MassDispersion``, ``InertiaDispersion``, ``PoseDispersion``; paths in time by ``OrnsteinUhlenbeck``, the
  gusts of ``Wind``; anything by ``FunctionDistribution``. A new one is a ``Distribution``.
- How it is sampled: at random, by ``Sobol`` or ``LatinHypercube``; rare events by an ``ImportanceTilt``. A ``Sampler``
  gives ``Sample`` i from the seed and i alone.
- What happens: a ``Rollout`` of a machine gives each ``SampledMotion``, or any function of the sample's values.
- What is kept: functions of the motion, such as those of ``outputs``, ``FinalPose``, ``FinalPosition``,
  ``FinalAttitude``, ``FinalDistance``, ``LargestDistance``, ``LeastClearance``, ``Subsampled``; failures such as
  ``OutOfBounds``; until all samples are there, or a mean is known well enough: ``StopAtConfidence``.
- Running: ``run`` in this process; ``ray_cluster`` on a Ray cluster; ``multihost`` on several hosts by
  ``jax.distributed``. Another scheduler takes ``Engine(study).chunk(start, stop)`` as its task, pure and repeatable
  (``run_chunk`` of a single ``Chunk``), and ``open_store`` and ``collect`` for the ``Store`` with its
  ``StoreMetadata``.
- Results: ``Results`` with ``Moments``, ``Histogram``, ``Failures`` and, on the ``Space`` of an output
  (``VectorSpace``, ``GroupSpace``, ``ConfigurationSpace``), ``IntrinsicMoments``; ``RunningStatistics`` while a study
  runs.
- How wrong the steps make it: ``Results.step_error``, a ``StudyStepError`` with an ``OutputStepError`` for each output
  (``StatisticStepError`` of its mean, deviation, quantiles) and a ``VerdictStepError`` for each failure, which
  ``check_steps`` finds for the samples of other schedulers.
- Where the spread of an output comes from: ``sobol_study`` and ``sobol_indices`` (``SobolIndices``), to first order
  ``linear_covariance`` (``LinearCovariance``).
"""

from lgsim.montecarlo import multihost, outputs, ray_cluster
from lgsim.montecarlo.body_distributions import InertiaDispersion, MassDispersion, PoseDispersion
from lgsim.montecarlo.distributions import (
    Distribution,
    FunctionDistribution,
    Haar,
    LogNormal,
    Normal,
    TangentNormal,
    Uniform,
)
from lgsim.montecarlo.engine import Engine, check_steps, collect, open_store, run, run_chunk
from lgsim.montecarlo.linear_covariance import LinearCovariance, linear_covariance
from lgsim.montecarlo.low_discrepancy import LatinHypercube, Sobol
from lgsim.montecarlo.outputs import (
    FinalAttitude,
    FinalDistance,
    FinalPose,
    FinalPosition,
    LargestDistance,
    LeastClearance,
    OutOfBounds,
    Subsampled,
)
from lgsim.montecarlo.processes import OrnsteinUhlenbeck, Wind
from lgsim.montecarlo.results import Failures, Histogram, Moments, Results, RunningStatistics
from lgsim.montecarlo.rollout import Rollout, SampledMotion
from lgsim.montecarlo.sobol_indices import SobolIndices, sobol_indices, sobol_study
from lgsim.montecarlo.spaces import ConfigurationSpace, GroupSpace, IntrinsicMoments, Space, VectorSpace
from lgsim.montecarlo.step_error import OutputStepError, StatisticStepError, StudyStepError, VerdictStepError
from lgsim.montecarlo.store import Chunk, Store, StoreMetadata
from lgsim.montecarlo.study import ImportanceTilt, Sample, Sampler, StopAtConfidence, Study

__all__ = [
    "Chunk",
    "ConfigurationSpace",
    "Distribution",
    "Engine",
    "Failures",
    "FinalAttitude",
    "FinalDistance",
    "FinalPose",
    "FinalPosition",
    "FunctionDistribution",
    "GroupSpace",
    "Haar",
    "Histogram",
    "ImportanceTilt",
    "InertiaDispersion",
    "IntrinsicMoments",
    "LargestDistance",
    "LatinHypercube",
    "LeastClearance",
    "LinearCovariance",
    "LogNormal",
    "MassDispersion",
    "Moments",
    "Normal",
    "OrnsteinUhlenbeck",
    "OutOfBounds",
    "OutputStepError",
    "PoseDispersion",
    "Results",
    "Rollout",
    "RunningStatistics",
    "Sample",
    "SampledMotion",
    "Sampler",
    "Sobol",
    "SobolIndices",
    "Space",
    "StatisticStepError",
    "StopAtConfidence",
    "Store",
    "StoreMetadata",
    "Study",
    "StudyStepError",
    "Subsampled",
    "TangentNormal",
    "Uniform",
    "VectorSpace",
    "VerdictStepError",
    "Wind",
    "check_steps",
    "collect",
    "linear_covariance",
    "multihost",
    "open_store",
    "outputs",
    "ray_cluster",
    "run",
    "run_chunk",
    "sobol_indices",
    "sobol_study",
]
