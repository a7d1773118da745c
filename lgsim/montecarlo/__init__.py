"""Monte Carlo on groups: dispersions of states, parameters and disturbances over many samples.

A ``Study`` is data: distributions, a rollout, outputs, a number of samples. ``run`` runs it in chunks, in memory or
into a store that survives any interruption, and gives ``Results``. ``sobol_study`` and ``linear_covariance`` say what
the spread of an output comes from. ``ray_cluster`` runs a study on a Ray cluster, ``multihost`` on several hosts by
``jax.distributed``; another engine takes ``Engine(study).chunk(start, stop)`` as its task, pure and repeatable, and
``open_store`` and ``collect`` for the store.
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
from lgsim.montecarlo.engine import Chunk, Engine, run_chunk
from lgsim.montecarlo.linear_covariance import LinearCovariance, linear_covariance
from lgsim.montecarlo.low_discrepancy import LatinHypercube, Sobol
from lgsim.montecarlo.outputs import (
    FinalAttitude,
    FinalDistance,
    FinalPose,
    FinalPosition,
    LargestDistance,
    MinimumClearance,
    OutOfBounds,
    Subsampled,
)
from lgsim.montecarlo.processes import OrnsteinUhlenbeck, Wind
from lgsim.montecarlo.results import Failures, Histogram, Results, RunningStatistics
from lgsim.montecarlo.rollout import Rollout, SampledMotion
from lgsim.montecarlo.run import collect, open_store, run
from lgsim.montecarlo.sampler import ImportanceTilt, Sample, Sampler
from lgsim.montecarlo.sobol_indices import SobolIndices, sobol_indices, sobol_study
from lgsim.montecarlo.spaces import ConfigurationSpace, GroupSpace, IntrinsicMoments, Space, VectorSpace
from lgsim.montecarlo.statistics import Moments, StopAtConfidence
from lgsim.montecarlo.store import Store, StoreMetadata
from lgsim.montecarlo.study import Study

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
    "LinearCovariance",
    "LogNormal",
    "MassDispersion",
    "MinimumClearance",
    "Moments",
    "Normal",
    "OrnsteinUhlenbeck",
    "OutOfBounds",
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
    "StopAtConfidence",
    "Store",
    "StoreMetadata",
    "Study",
    "Subsampled",
    "TangentNormal",
    "Uniform",
    "VectorSpace",
    "Wind",
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
