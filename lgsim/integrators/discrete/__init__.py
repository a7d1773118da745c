"""Discrete mechanics: methods that follow from a discrete action, or that keep energy and momenta by construction."""

from lgsim.integrators.discrete.energy_momentum import EnergyMomentum
from lgsim.integrators.discrete.galerkin_scheme import LOBATTO3, LOBATTO4, MIDPOINT, TRAPEZOID, GalerkinScheme
from lgsim.integrators.discrete.mechanics import DiscreteMechanics
from lgsim.integrators.discrete.momentum_map import DiscreteMomentumMap, discrete_momentum_map
from lgsim.integrators.discrete.moser_veselov import MoserVeselov
from lgsim.integrators.discrete.variational import Variational

__all__ = [
    "LOBATTO3",
    "LOBATTO4",
    "MIDPOINT",
    "TRAPEZOID",
    "DiscreteMechanics",
    "DiscreteMomentumMap",
    "EnergyMomentum",
    "GalerkinScheme",
    "MoserVeselov",
    "Variational",
    "discrete_momentum_map",
]
