"""Hamiltonian fields by automatic differentiation of an energy."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, PyTree

from lgsim.integrators.method import Number
from lgsim.lie.group import Element, LieGroup

Hamiltonian = Callable[..., Float[Array, ""]]
"""``hamiltonian(g, mu, args)``: an energy of a group element and a momentum; for a field with ``depends_on_time``
``hamiltonian(t, g, mu, args)``."""


class HamiltonianField(eqx.Module):
    """The field (xi, n) of a Hamiltonian on T*G for ``actions.LeftTranslation(lgsim.Cotangent(group))``.

        xi = dH/dmu,    n = -d/d eta H(exp(eta) g, mu)  at eta = 0,

    so that ``g' = hat(xi) g`` and ``mu' = n - ad*_xi mu``, with space momenta mu.

    Attributes:
        group: the group G.
        hamiltonian: ``H(g, mu, args)``, a scalar; mu is the space momentum (dim,). ``BodyMomentumHamiltonian``
            converts an energy of the body momentum.
        depends_on_time: True if it is ``H(t, g, mu, args)``.

    Source: Celledoni et al. 2021, (12), (14).
    """

    group: LieGroup
    hamiltonian: Hamiltonian
    depends_on_time: bool = eqx.field(static=True, default=False)

    def __call__(self, t: Number, y: tuple[Element, Float[Array, " dim"]], args: Any) -> Float[Array, " algebra"]:
        """The algebra vector (xi, n) of length 2 dim at the state (g, mu)."""
        g, mu = y

        def energy(eta: Float[Array, " dim"], mu: Float[Array, " dim"]) -> Float[Array, ""]:
            time = (t,) if self.depends_on_time else ()
            return self.hamiltonian(*time, self.group.compose(near_identity(self.group, eta), g), mu, args)

        by_element, by_momentum = jax.grad(energy, (0, 1))(jnp.zeros_like(mu), mu)
        return jnp.concatenate([by_momentum, -by_element])


def near_identity(group: LieGroup, eta: Float[Array, " dim"]) -> Element:
    """``exp(eta)`` to first order, which suffices for a derivative at eta = 0 and is cheaper."""
    directions = _directions(group, eta.dtype)
    return jax.tree.map(lambda e, d: e + jnp.tensordot(d, eta, 1), group.identity(eta.dtype), directions)


@cache
def _directions(group: LieGroup, dtype: jnp.dtype) -> PyTree[Float[np.ndarray, "... dim"]]:
    """The derivative of exp at zero for each entry of an element, with a last axis for the algebra's components."""
    with jax.ensure_compile_time_eval():
        slopes = jax.jit(jax.jacfwd(group.exp))(jnp.zeros(group.dim, dtype))
        return jax.tree.map(np.asarray, slopes)


class BodyMomentumHamiltonian(eqx.Module):
    """A Hamiltonian of the body momentum ``Pi = Ad*_g mu``, converted to one of the space momentum mu.

    Attributes:
        group: the group G.
        hamiltonian: ``H(g, Pi, args)``, a scalar; Pi is the body momentum (dim,), such as ``I Omega`` of a rigid body.
            ``H(t, g, Pi, args)`` for a field with ``depends_on_time``.
    """

    group: LieGroup
    hamiltonian: Hamiltonian

    def __call__(self, *arguments: Any) -> Float[Array, ""]:
        """The energy () at (g, mu, args) or (t, g, mu, args), mu (dim,) being the space momentum."""
        *time, g, mu, args = arguments
        return self.hamiltonian(*time, g, self.group.Ad_dual_action(g, mu), args)


class LiePoissonField(eqx.Module):
    """The field ``-dH/dPi`` of a Hamiltonian of the body momentum only, for ``actions.Coadjoint(group)``.

    It gives ``Pi' = ad*_(dH/dPi) Pi``: Euler's equations ``Pi' = Pi x dH/dPi`` on so(3)*, those of Kirchhoff or of the
    heavy top on se(3)*.

    Attributes:
        hamiltonian: ``H(Pi, args)``, a scalar.
        depends_on_time: True if it is ``H(t, Pi, args)``.

    Source: Celledoni et al. 2021, (18) with the sign of left invariance.
    """

    hamiltonian: Callable[..., Float[Array, ""]]
    depends_on_time: bool = eqx.field(static=True, default=False)

    def __call__(self, t: Number, y: Float[Array, " dim"], args: Any) -> Float[Array, " dim"]:
        """The algebra vector -dH/dPi (dim,) at the body momentum y = Pi (dim,)."""
        energy = partial(self.hamiltonian, t) if self.depends_on_time else self.hamiltonian
        return -jax.grad(energy)(y, args)
