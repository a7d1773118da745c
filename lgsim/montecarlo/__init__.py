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

from lgsim.montecarlo import multihost as multihost
from lgsim.montecarlo import outputs as outputs
from lgsim.montecarlo import ray_cluster as ray_cluster
from lgsim.montecarlo.body_distributions import InertiaDispersion as InertiaDispersion
from lgsim.montecarlo.body_distributions import MassDispersion as MassDispersion
from lgsim.montecarlo.body_distributions import PoseDispersion as PoseDispersion
from lgsim.montecarlo.distributions import Distribution as Distribution
from lgsim.montecarlo.distributions import FunctionDistribution as FunctionDistribution
from lgsim.montecarlo.distributions import Haar as Haar
from lgsim.montecarlo.distributions import LogNormal as LogNormal
from lgsim.montecarlo.distributions import Normal as Normal
from lgsim.montecarlo.distributions import TangentNormal as TangentNormal
from lgsim.montecarlo.distributions import Uniform as Uniform
from lgsim.montecarlo.engine import Engine as Engine
from lgsim.montecarlo.engine import check_steps as check_steps
from lgsim.montecarlo.engine import collect as collect
from lgsim.montecarlo.engine import open_store as open_store
from lgsim.montecarlo.engine import run as run
from lgsim.montecarlo.engine import run_chunk as run_chunk
from lgsim.montecarlo.linear_covariance import LinearCovariance as LinearCovariance
from lgsim.montecarlo.linear_covariance import linear_covariance as linear_covariance
from lgsim.montecarlo.low_discrepancy import LatinHypercube as LatinHypercube
from lgsim.montecarlo.low_discrepancy import Sobol as Sobol
from lgsim.montecarlo.outputs import FinalAttitude as FinalAttitude
from lgsim.montecarlo.outputs import FinalDistance as FinalDistance
from lgsim.montecarlo.outputs import FinalPose as FinalPose
from lgsim.montecarlo.outputs import FinalPosition as FinalPosition
from lgsim.montecarlo.outputs import LargestDistance as LargestDistance
from lgsim.montecarlo.outputs import LeastClearance as LeastClearance
from lgsim.montecarlo.outputs import OutOfBounds as OutOfBounds
from lgsim.montecarlo.outputs import Subsampled as Subsampled
from lgsim.montecarlo.processes import OrnsteinUhlenbeck as OrnsteinUhlenbeck
from lgsim.montecarlo.processes import Wind as Wind
from lgsim.montecarlo.results import Failures as Failures
from lgsim.montecarlo.results import Histogram as Histogram
from lgsim.montecarlo.results import Moments as Moments
from lgsim.montecarlo.results import Results as Results
from lgsim.montecarlo.results import RunningStatistics as RunningStatistics
from lgsim.montecarlo.rollout import Rollout as Rollout
from lgsim.montecarlo.rollout import SampledMotion as SampledMotion
from lgsim.montecarlo.sobol_indices import SobolIndices as SobolIndices
from lgsim.montecarlo.sobol_indices import sobol_indices as sobol_indices
from lgsim.montecarlo.sobol_indices import sobol_study as sobol_study
from lgsim.montecarlo.spaces import ConfigurationSpace as ConfigurationSpace
from lgsim.montecarlo.spaces import GroupSpace as GroupSpace
from lgsim.montecarlo.spaces import IntrinsicMoments as IntrinsicMoments
from lgsim.montecarlo.spaces import Space as Space
from lgsim.montecarlo.spaces import VectorSpace as VectorSpace
from lgsim.montecarlo.step_error import OutputStepError as OutputStepError
from lgsim.montecarlo.step_error import StatisticStepError as StatisticStepError
from lgsim.montecarlo.step_error import StudyStepError as StudyStepError
from lgsim.montecarlo.step_error import VerdictStepError as VerdictStepError
from lgsim.montecarlo.store import Chunk as Chunk
from lgsim.montecarlo.store import Store as Store
from lgsim.montecarlo.store import StoreMetadata as StoreMetadata
from lgsim.montecarlo.study import ImportanceTilt as ImportanceTilt
from lgsim.montecarlo.study import Sample as Sample
from lgsim.montecarlo.study import Sampler as Sampler
from lgsim.montecarlo.study import StopAtConfidence as StopAtConfidence
from lgsim.montecarlo.study import Study as Study
