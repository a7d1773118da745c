"""Monte Carlo simulation with random states, parameters and disturbances, on Lie groups.

A ``Study`` defines the distributions, a rollout, outputs and a number of samples. ``run`` computes it in chunks, in
memory or into a store that survives interruptions, and returns ``Results``.

- Distributions: numbers by ``Uniform``, ``Normal``, ``LogNormal``; points of a group by ``TangentNormal``, ``Haar``;
  bodies by ``MassDispersion``, ``InertiaDispersion``, ``PoseDispersion``; stochastic processes by
  ``OrnsteinUhlenbeck``, the gusts of ``Wind``; user-defined ones by ``FunctionDistribution`` or a subclass of
  ``Distribution``.
- Sampling: random, ``Sobol``, ``LatinHypercube`` or ``Antithetic``; importance sampling of rare events by an
  ``ImportanceTilt`` or ``subset_simulation``. Sample i depends only on the seed and i.
- Motions: a ``Rollout`` of a model gives each ``SampledMotion``; a function of the sample's values can replace it.
- Outputs and failures: functions of the motion, such as those of ``outputs``. A study ends after all samples or, with
  ``StopAtConfidence``, when the confidence interval of a mean is small enough.
- Execution: ``run`` in this process; ``ray_cluster`` on a Ray cluster; ``multihost`` on several hosts by
  ``jax.distributed``. Other schedulers call ``Engine(study).chunk(start, stop)``, which is deterministic, and use
  ``open_store`` and ``engine.collect`` for the store.
- Results: ``Results`` with ``Moments`` of an output, also on its group, histograms and failure probabilities.
- Estimated integration error: ``Results.step_error``, for each output and failure; ``check_steps`` computes it for
  results of other schedulers.
- Smaller variance: ``control_variates`` with ``linear_covariance`` or known expectations; ``multilevel`` over the
  time step.
- Sensitivity: ``Results.correlations`` with the random inputs; Sobol indices by ``sobol_study`` and ``sobol_indices``;
  first-order covariance by ``linear_covariance``; derivatives of expectations by ``gradient``.
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
from lgsim.montecarlo.estimators.control_variates import ControlledMean as ControlledMean
from lgsim.montecarlo.estimators.control_variates import control_variates as control_variates
from lgsim.montecarlo.estimators.gradient import gradient as gradient
from lgsim.montecarlo.estimators.multilevel import MultilevelMean as MultilevelMean
from lgsim.montecarlo.estimators.multilevel import multilevel as multilevel
from lgsim.montecarlo.estimators.subset_simulation import RareEvent as RareEvent
from lgsim.montecarlo.estimators.subset_simulation import subset_simulation as subset_simulation
from lgsim.montecarlo.linear_covariance import linear_covariance as linear_covariance
from lgsim.montecarlo.low_discrepancy import Antithetic as Antithetic
from lgsim.montecarlo.low_discrepancy import LatinHypercube as LatinHypercube
from lgsim.montecarlo.low_discrepancy import Sobol as Sobol
from lgsim.montecarlo.moments import Moments as Moments
from lgsim.montecarlo.processes import OrnsteinUhlenbeck as OrnsteinUhlenbeck
from lgsim.montecarlo.processes import Wind as Wind
from lgsim.montecarlo.results import Results as Results
from lgsim.montecarlo.rollout import Rollout as Rollout
from lgsim.montecarlo.rollout import SampledMotion as SampledMotion
from lgsim.montecarlo.sobol_indices import sobol_indices as sobol_indices
from lgsim.montecarlo.sobol_indices import sobol_study as sobol_study
from lgsim.montecarlo.study import ImportanceTilt as ImportanceTilt
from lgsim.montecarlo.study import StopAtConfidence as StopAtConfidence
from lgsim.montecarlo.study import Study as Study
