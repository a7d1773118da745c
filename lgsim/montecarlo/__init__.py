"""Monte Carlo on groups: dispersions of states, parameters and disturbances over many samples.

A ``Study`` is data: distributions, a rollout, outputs, a number of samples. ``run`` runs it in chunks, in memory or
into a store that survives any interruption, and gives ``Results``.

- What varies: numbers by ``Uniform``, ``Normal``, ``LogNormal``; points of a group by ``TangentNormal``, ``Haar``;
  bodies by ``MassDispersion``, ``InertiaDispersion``, ``PoseDispersion``; paths in time by ``OrnsteinUhlenbeck``, the
  gusts of ``Wind``; anything by ``FunctionDistribution``. A new one is a ``Distribution``.
- How it is sampled: at random, by ``Sobol`` or ``LatinHypercube``; rare events by an ``ImportanceTilt``. Sample i
  depends on the seed and i only.
- What happens: a ``Rollout`` of a machine gives each ``SampledMotion``, or any function of the sample's values.
- What is kept: functions of the motion and failures, such as those of ``outputs``; until all samples are there, or a
  mean is known well enough: ``StopAtConfidence``.
- Running: ``run`` in this process; ``ray_cluster`` on a Ray cluster; ``multihost`` on several hosts by
  ``jax.distributed``. Another scheduler takes ``Engine(study).chunk(start, stop)`` as its task, pure and repeatable,
  and ``open_store`` and ``engine.collect`` for its store.
- Results: ``Results`` with ``Moments`` of an output, also on its group, histograms and probabilities of failure.
- Estimated integration error: ``Results.step_error``, for each output and failure, which ``check_steps`` finds for the
  samples of other schedulers.
- Where the spread of an output comes from: ``sobol_study`` and ``sobol_indices``, to first order
  ``linear_covariance``.
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
from lgsim.montecarlo.engine import open_store as open_store
from lgsim.montecarlo.engine import run as run
from lgsim.montecarlo.linear_covariance import linear_covariance as linear_covariance
from lgsim.montecarlo.low_discrepancy import LatinHypercube as LatinHypercube
from lgsim.montecarlo.low_discrepancy import Sobol as Sobol
from lgsim.montecarlo.processes import OrnsteinUhlenbeck as OrnsteinUhlenbeck
from lgsim.montecarlo.processes import Wind as Wind
from lgsim.montecarlo.results import Moments as Moments
from lgsim.montecarlo.results import Results as Results
from lgsim.montecarlo.rollout import Rollout as Rollout
from lgsim.montecarlo.rollout import SampledMotion as SampledMotion
from lgsim.montecarlo.sobol_indices import sobol_indices as sobol_indices
from lgsim.montecarlo.sobol_indices import sobol_study as sobol_study
from lgsim.montecarlo.study import ImportanceTilt as ImportanceTilt
from lgsim.montecarlo.study import StopAtConfidence as StopAtConfidence
from lgsim.montecarlo.study import Study as Study
