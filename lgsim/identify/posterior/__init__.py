"""Posteriors: the density of the unknowns in coordinates without bounds, its Gaussian at the mode, draws of it."""

from lgsim.identify.posterior.density import LogDensity, log_density
from lgsim.identify.posterior.draws import PosteriorDraws
from lgsim.identify.posterior.laplace import LaplaceApproximation, laplace_approximation
from lgsim.identify.posterior.noise_models import HalfNormalNoise, InverseGammaNoise, KnownNoise, NoiseModel
from lgsim.identify.posterior.physical_prior import PhysicalPrior
from lgsim.identify.posterior.problem import PosteriorProblem
from lgsim.identify.posterior.serial_correlation import SerialCorrelation

__all__ = [
    "HalfNormalNoise",
    "InverseGammaNoise",
    "KnownNoise",
    "LaplaceApproximation",
    "LogDensity",
    "NoiseModel",
    "PhysicalPrior",
    "PosteriorDraws",
    "PosteriorProblem",
    "SerialCorrelation",
    "laplace_approximation",
    "log_density",
]
