"""Optimal experiment design: excitation trajectories within joint limits for parameter identification.

``design_excitation`` solves an ``ExcitationProblem`` for a ``Fourier`` motion within ``ExcitationLimits``. The
criterion is ``DOptimal``, ``AOptimal`` or ``EOptimal`` under ``SignalNoise``.
"""

from lgsim.identify.experiment.criteria import AOptimal as AOptimal
from lgsim.identify.experiment.criteria import DOptimal as DOptimal
from lgsim.identify.experiment.criteria import EOptimal as EOptimal
from lgsim.identify.experiment.criteria import SignalNoise as SignalNoise
from lgsim.identify.experiment.design import ExcitationLimits as ExcitationLimits
from lgsim.identify.experiment.design import ExcitationProblem as ExcitationProblem
from lgsim.identify.experiment.design import design_excitation as design_excitation
from lgsim.identify.experiment.fourier import Fourier as Fourier
