"""Monte Carlo on groups: dispersions of states, parameters and disturbances over many samples.

A ``Study`` is data: distributions, a rollout, outputs, a number of samples. ``run`` runs it in chunks, in memory or
into a store that survives any interruption, and gives ``Results``. ``sobol_study`` and ``linear`` say what the spread
of an output comes from. ``cluster`` runs a study on a Ray cluster, ``hosts`` on several hosts by ``jax.distributed``;
another engine takes ``Engine(study).chunk(start, stop)`` as its task, pure and repeatable, and ``writing`` and
``collect`` for the store.
"""

from lgsim.montecarlo import cluster, hosts, outputs
from lgsim.montecarlo.distributions import (
    Distribution,
    Function,
    Haar,
    Inertias,
    LogNormal,
    Normal,
    TangentNormal,
    Uniform,
)
from lgsim.montecarlo.engine import Chunk, Engine, run_chunk
from lgsim.montecarlo.hover import Hover
from lgsim.montecarlo.intrinsic import Intrinsic
from lgsim.montecarlo.linear import Linear, linear
from lgsim.montecarlo.masses import Masses, Poses
from lgsim.montecarlo.moments import Interval, Moments
from lgsim.montecarlo.outputs import (
    FinalAttitude,
    FinalDistance,
    FinalPose,
    FinalPosition,
    LargestDistance,
    MinimumClearance,
    Outside,
    Thinned,
)
from lgsim.montecarlo.processes import OrnsteinUhlenbeck, Wind
from lgsim.montecarlo.results import Failures, Histogram, Results
from lgsim.montecarlo.rollouts import Flight, Rollout
from lgsim.montecarlo.run import collect, run, writing
from lgsim.montecarlo.running import Running
from lgsim.montecarlo.sampler import Sample, Sampler, Tilt
from lgsim.montecarlo.sensitivity import SobolIndices, sobol_indices, sobol_study
from lgsim.montecarlo.sequences import LatinHypercube, Sobol
from lgsim.montecarlo.spaces import Configurations, Elements, Numbers, Space
from lgsim.montecarlo.store import About, Store
from lgsim.montecarlo.study import Study

__all__ = [
    "About",
    "Chunk",
    "Configurations",
    "Distribution",
    "Elements",
    "Engine",
    "Failures",
    "FinalAttitude",
    "FinalDistance",
    "FinalPose",
    "FinalPosition",
    "Flight",
    "Function",
    "Haar",
    "Histogram",
    "Hover",
    "Inertias",
    "Interval",
    "Intrinsic",
    "LargestDistance",
    "LatinHypercube",
    "Linear",
    "LogNormal",
    "Masses",
    "MinimumClearance",
    "Moments",
    "Normal",
    "Numbers",
    "OrnsteinUhlenbeck",
    "Outside",
    "Poses",
    "Results",
    "Rollout",
    "Running",
    "Sample",
    "Sampler",
    "Sobol",
    "SobolIndices",
    "Space",
    "Store",
    "Study",
    "TangentNormal",
    "Thinned",
    "Tilt",
    "Uniform",
    "Wind",
    "cluster",
    "collect",
    "hosts",
    "linear",
    "outputs",
    "run",
    "run_chunk",
    "sobol_indices",
    "sobol_study",
    "writing",
]
