"""Hamiltonian fields by automatic differentiation: write the energy, get the field that the methods take."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.lie.group import Element, LieGroup


class HamiltonianField(eqx.Module):
    """The field (xi, n) of a Hamiltonian on T*G for ``actions.LeftTranslation(lgsim.Cotangent(group))``.

        xi = dH/dmu,    n = -d/d eta H(exp(eta) g, mu)  at eta = 0,

    so that ``g' = hat(xi) g`` and ``mu' = n - ad*_xi mu``, with space momenta mu.

    Attributes:
        group: the group G.
        hamiltonian: ``H(g, mu, args)``, a scalar; mu is the space momentum (dim,). ``BodyMomentum`` makes one from an
            energy of the body momentum.

    Source: Celledoni et al. 2021, (12), (14).
    """

    group: LieGroup
    hamiltonian: Callable[[Element, Array, Any], Array]

    def __call__(self, t: Any, y: tuple[Element, Array], args: Any) -> Array:
        """The algebra vector (2 dim,) at (g, mu)."""
        g, mu = y
        directions = _directions(self.group, mu.dtype)

        def energy(eta: Array, mu: Array) -> Array:
            # to first order exp(eta), which is all that a gradient at zero asks
            near = jax.tree.map(lambda e, d: e + jnp.tensordot(d, eta, 1), self.group.identity(mu.dtype), directions)
            return self.hamiltonian(self.group.compose(near, g), mu, args)

        by_place, by_momentum = jax.grad(energy, (0, 1))(jnp.zeros_like(mu), mu)
        return jnp.concatenate([by_momentum, -by_place])


@cache
def _directions(group: LieGroup, dtype: jnp.dtype) -> Any:
    """The derivative of exp at zero in each entry of an element, with a last axis for the algebra's components."""
    with jax.ensure_compile_time_eval():
        slopes = jax.jit(jax.jacfwd(group.exp))(jnp.zeros(group.dim, dtype))
        return jax.tree.map(np.asarray, slopes)


class BodyMomentumHamiltonian(eqx.Module):
    """A Hamiltonian of the body momentum ``Pi = Ad*_g mu`` as one of the space momentum mu.

    Attributes:
        group: the group G.
        hamiltonian: ``H(g, Pi, args)``, a scalar; Pi is the body momentum (dim,), such as ``I Omega`` of a rigid body.
    """

    group: LieGroup
    hamiltonian: Callable[[Element, Array, Any], Array]

    def __call__(self, g: Element, mu: Array, args: Any) -> Array:
        """The energy at (g, mu)."""
        return self.hamiltonian(g, self.group.Ad_dual_action(g, mu), args)


class LiePoissonField(eqx.Module):
    """The field ``-dH/dPi`` of a Hamiltonian of the body momentum alone, for ``actions.Coadjoint(group)``.

    It gives ``Pi' = ad*_(dH/dPi) Pi``: Euler's equations ``Pi' = Pi x dH/dPi`` on so(3)*, those of Kirchhoff or of the
    heavy top on se(3)*.

    Attributes:
        hamiltonian: ``H(Pi, args)``, a scalar.

    Source: Celledoni et al. 2021, (18) with the sign of left invariance.
    """

    hamiltonian: Callable[[Array, Any], Array]

    def __call__(self, t: Any, y: Array, args: Any) -> Array:
        """The algebra vector (dim,) at Pi."""
        return -jax.grad(self.hamiltonian)(y, args)
