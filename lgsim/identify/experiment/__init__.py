"""Optimal experiments: criteria, limits, and motions that show the unknowns."""

from lgsim.identify.experiment.criteria import AbsoluteNoise as AbsoluteNoise
from lgsim.identify.experiment.criteria import AOptimal as AOptimal
from lgsim.identify.experiment.criteria import Criterion as Criterion
from lgsim.identify.experiment.criteria import DOptimal as DOptimal
from lgsim.identify.experiment.criteria import EOptimal as EOptimal
from lgsim.identify.experiment.criteria import Noise as Noise
from lgsim.identify.experiment.criteria import RelativeNoise as RelativeNoise
from lgsim.identify.experiment.design import ExcitationLimits as ExcitationLimits
from lgsim.identify.experiment.design import ExcitationProblem as ExcitationProblem
from lgsim.identify.experiment.design import OptimalExcitation as OptimalExcitation
from lgsim.identify.experiment.design import design_excitation as design_excitation
from lgsim.identify.experiment.fourier import Fourier as Fourier
