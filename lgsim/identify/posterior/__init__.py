"""Noise models and priors of a ``PosteriorProblem``.

The noise is ``KnownNoise``, ``HalfNormalNoise`` or ``InverseGammaNoise``, with ``SerialCorrelation`` if it is not
white. A ``PhysicalPrior`` is a density of physical parameters.
"""

from lgsim.identify.posterior.noise_models import HalfNormalNoise as HalfNormalNoise
from lgsim.identify.posterior.noise_models import InverseGammaNoise as InverseGammaNoise
from lgsim.identify.posterior.noise_models import KnownNoise as KnownNoise
from lgsim.identify.posterior.physical_prior import PhysicalPrior as PhysicalPrior
from lgsim.identify.posterior.serial_correlation import SerialCorrelation as SerialCorrelation
