"""Optimal experiments: criteria, limits, and motions that show the unknowns."""

from lgsim.identify.experiment.criteria import (
    AbsoluteNoise,
    AOptimal,
    Criterion,
    DOptimal,
    EOptimal,
    Noise,
    RelativeNoise,
)
from lgsim.identify.experiment.design import ExcitationLimits, ExcitationProblem, OptimalExcitation, design_excitation
from lgsim.identify.experiment.fourier import Fourier

__all__ = [
    "AOptimal",
    "AbsoluteNoise",
    "Criterion",
    "DOptimal",
    "EOptimal",
    "ExcitationLimits",
    "ExcitationProblem",
    "Fourier",
    "Noise",
    "OptimalExcitation",
    "RelativeNoise",
    "design_excitation",
]
