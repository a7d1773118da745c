"""Posteriors: the density of the unknowns in coordinates without bounds, its Gaussian at the mode, draws of it."""

from lgsim.identify.posterior.density import LogDensity as LogDensity
from lgsim.identify.posterior.density import log_density as log_density
from lgsim.identify.posterior.draws import PosteriorDraws as PosteriorDraws
from lgsim.identify.posterior.laplace import LaplaceApproximation as LaplaceApproximation
from lgsim.identify.posterior.laplace import laplace_approximation as laplace_approximation
from lgsim.identify.posterior.noise_models import HalfNormalNoise as HalfNormalNoise
from lgsim.identify.posterior.noise_models import InverseGammaNoise as InverseGammaNoise
from lgsim.identify.posterior.noise_models import KnownNoise as KnownNoise
from lgsim.identify.posterior.noise_models import NoiseModel as NoiseModel
from lgsim.identify.posterior.physical_prior import PhysicalPrior as PhysicalPrior
from lgsim.identify.posterior.problem import PosteriorProblem as PosteriorProblem
from lgsim.identify.posterior.serial_correlation import SerialCorrelation as SerialCorrelation
