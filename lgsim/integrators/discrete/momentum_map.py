"""Discrete momentum maps: the conserved quantities of discrete mechanics for symmetries of the Lagrangian.

Source: Marsden and West 2001, 1.3.3 (the discrete theorem of Noether).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim.integrators.discrete.mechanics import DiscreteMechanics, State


class DiscreteMomentumMap(eqx.Module):
    """The momentum of a symmetry as a function of the state, see ``discrete_momentum_map``.

    Attributes:
        generator: body velocities of the symmetry at g, ``generator(g, args)``, or one space velocity.
    """

    mechanics: DiscreteMechanics
    generator: Callable[..., Float[Array, "*k dim"]] | Float[Array, "*k dim"]

    def __call__(self, y: State, args: Any = None) -> Float[Array, "*k"]:
        """The momentum () of a state (g, mu), or momenta (k,) of several generators."""
        if callable(self.generator):
            return jnp.asarray(self.generator(y[0], args)) @ self.mechanics.body_momentum(y)
        return self.generator @ y[1]


def discrete_momentum_map(
    mechanics: DiscreteMechanics, generator: Callable[..., Float[Array, "*k dim"]] | ArrayLike
) -> DiscreteMomentumMap:
    """The momentum ``<p, generator(g)>`` of a symmetry, which discrete mechanics conserves to rounding (Noether).

    With ``p_k = D2 L_d(g_(k-1), g_k)`` it is the discrete momentum map of L_d. Each step of a variational method
    conserves it if Lagrangian and constraints are invariant under the symmetry; forces along the symmetry add their
    work. The energy-momentum method conserves it if its invariants have the symmetry.

    Args:
        generator: ``generator(g, args)``, the body velocity (dim,) of the symmetry at g, or several of them (k, dim);
            or, for a symmetry that acts from the left, its constant space velocities. On ``Euclidean(n)`` they are
            ordinary velocities: for rotations about z at one position x, ``(-x_2, x_1, 0)``.

    Returns:
        ``momentum(y, args)``, () or (k,), of a state y = (g, mu); ``jax.vmap`` for many.

    Raises:
        TypeError: ``mechanics`` is not a ``DiscreteMechanics``.
        ValueError: constant velocities are not of length dim.
    """
    if not isinstance(mechanics, DiscreteMechanics):
        raise TypeError(f"mechanics: expected lgsim.DiscreteMechanics, got {type(mechanics).__name__}")
    if callable(generator):
        return DiscreteMomentumMap(mechanics, generator)
    velocities = jnp.asarray(generator)
    if velocities.ndim not in (1, 2) or velocities.shape[-1] != mechanics.group.dim:
        raise ValueError(
            f"generator: expected velocities ({mechanics.group.dim},) or several rows of them, got {velocities.shape}"
        )
    return DiscreteMomentumMap(mechanics, velocities)
