"""Discrete mechanics: methods that follow from a discrete action, or that keep energy and momenta by construction."""

from lgsim.integrators.discrete.energy_momentum import EnergyMomentum as EnergyMomentum
from lgsim.integrators.discrete.galerkin_scheme import LOBATTO3 as LOBATTO3
from lgsim.integrators.discrete.galerkin_scheme import LOBATTO4 as LOBATTO4
from lgsim.integrators.discrete.galerkin_scheme import MIDPOINT as MIDPOINT
from lgsim.integrators.discrete.galerkin_scheme import TRAPEZOID as TRAPEZOID
from lgsim.integrators.discrete.galerkin_scheme import GalerkinScheme as GalerkinScheme
from lgsim.integrators.discrete.mechanics import DiscreteMechanics as DiscreteMechanics
from lgsim.integrators.discrete.momentum_map import DiscreteMomentumMap as DiscreteMomentumMap
from lgsim.integrators.discrete.momentum_map import discrete_momentum_map as discrete_momentum_map
from lgsim.integrators.discrete.moser_veselov import MoserVeselov as MoserVeselov
from lgsim.integrators.discrete.variational import Variational as Variational
