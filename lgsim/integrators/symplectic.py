"""The symplectic theta family on T*G, and what it becomes on g*: Lie-Poisson methods that keep coadjoint orbits.

On T*G, taken as ``G x g*`` with space momenta mu (``actions.LeftTranslation(lgsim.Cotangent(G))``), a field
``f(t, (g, mu)) = (xi, n)`` moves a point with ``g' = hat(xi) g``, ``mu' = n - ad*_xi mu``. A step is

    (xi, n) = h f(t_n + theta h, (exp(theta xi) g_n, M_theta)),
    M_theta = dexp*_(-xi) mu_n + (1 - theta) dexp*_(-(1 - theta) xi) n,
    g_(n+1) = exp(xi) g_n,    mu_(n+1) = Ad*_exp(-xi) mu_n + Ad*_exp((theta - 1) xi) n.

M_theta is the mean over the step of the momentum that is carried along and gets the impulse n at the time theta. It is
the paper's expression, whose two terms in n are one integral. Where the Hamiltonian does not depend on g, n = 0, theta
drops out, and what is left on g* (``actions.Coadjoint(G)``) is a symmetric method of order 2 that stays on its orbit.

Source: Celledoni et al. 2021, (15)-(17); Bogfjellmo and Marthinsen 2016 (higher order).
"""

from __future__ import annotations

from abc import abstractmethod
from functools import singledispatch
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from lgsim.integrators.compositions import ThetaScheme, theta_scheme
from lgsim.integrators.method import Field, ImplicitMethod
from lgsim.integrators.newton import Newton
from lgsim.lie.action import Action, Coadjoint, LeftTranslation, Point, Product
from lgsim.lie.group import split
from lgsim.lie.power import Power
from lgsim.lie.product import Cotangent


class PhaseSpace(eqx.Module):
    """What a symplectic step asks of an action; ``u`` is the field times the step, an algebra vector of the action."""

    @abstractmethod
    def stage(self, theta: Array, u: Array, y: Point) -> Point:
        """The point at which the field is evaluated."""

    @abstractmethod
    def end(self, theta: Array, u: Array, y: Point) -> Point:
        """The point at the end of the step."""


class CotangentSpace(PhaseSpace):
    """T*G as ``G x g*``; the state is (g, mu), the algebra vector (xi, n)."""

    group: Cotangent

    def stage(self, theta: Array, u: Array, y: Point) -> Point:
        """``(exp(theta xi) g, M_theta)``."""
        (xi, n), (g, mu), space = split(u, [self.group.base.dim] * 2), y, self.group
        rest = 1 - theta
        there = space.base.compose(space.base.exp(theta * xi), g)
        return there, space.average(xi, mu) + rest * space.average(rest * xi, n)

    def end(self, theta: Array, u: Array, y: Point) -> Point:
        """``(exp(xi), Ad*_exp((theta - 1) xi) n) . (g, mu)``, a product in T*G."""
        xi, n = split(u, [self.group.base.dim] * 2)
        factor = self.group.base.exp(xi), self.group.represent(self.group.base.exp((1 - theta) * xi), n)
        return self.group.compose(factor, y)


class DualAlgebra(PhaseSpace):
    """g* under the coadjoint action; the state is mu, the algebra vector xi."""

    action: Coadjoint

    def stage(self, theta: Array, u: Array, y: Point) -> Point:
        """``dexp*_(-xi) mu``, the mean momentum of the step."""
        return Cotangent(self.action.group).average(u, y)

    def end(self, theta: Array, u: Array, y: Point) -> Point:
        """``Ad*_exp(-xi) mu``: exactly on the orbit."""
        return self.action.move(u, y)


class SideBySide(PhaseSpace):
    """Several of them: the state is a tuple, algebra vectors are concatenated."""

    parts: tuple[PhaseSpace, ...]
    dims: tuple[int, ...] = eqx.field(static=True)

    def stage(self, theta: Array, u: Array, y: Point) -> Point:
        """The stages of the parts."""
        return tuple(p.stage(theta, x, z) for p, x, z in zip(self.parts, split(u, self.dims), y, strict=True))

    def end(self, theta: Array, u: Array, y: Point) -> Point:
        """The ends of the parts."""
        return tuple(p.end(theta, x, z) for p, x, z in zip(self.parts, split(u, self.dims), y, strict=True))


class Repeated(PhaseSpace):
    """Equal ones side by side, as ``actions.Power`` lays them out."""

    part: PhaseSpace
    power: Power

    def stage(self, theta: Array, u: Array, y: Point) -> Point:
        """The stages of the parts."""
        return jax.vmap(self.part.stage, (None, 0, 0))(theta, self.power.rows(u), y)

    def end(self, theta: Array, u: Array, y: Point) -> Point:
        """The ends of the parts."""
        return jax.vmap(self.part.end, (None, 0, 0))(theta, self.power.rows(u), y)


@singledispatch
def phase_space(action: Action) -> PhaseSpace:
    """What a symplectic step needs of an action; a new kind of action registers its own. TypeError if it has none."""
    raise TypeError(
        "action: a symplectic method needs a cotangent bundle, actions.LeftTranslation(lgsim.Cotangent(group)), or a "
        f"dual algebra, actions.Coadjoint(group), or a Product or Power of them; got {type(action).__name__}"
    )


@phase_space.register
def _(action: LeftTranslation) -> PhaseSpace:
    if isinstance(action.group, Cotangent):
        return CotangentSpace(action.group)
    raise TypeError(
        f"action: a symplectic method needs a left translation of lgsim.Cotangent(group), got {action.group!r}, which "
        "has no momenta"
    )


@phase_space.register
def _(action: Coadjoint) -> PhaseSpace:
    return DualAlgebra(action)


@phase_space.register
def _(action: Product) -> PhaseSpace:
    return SideBySide(tuple(phase_space(each) for each in action.actions), tuple(action.dims))


@phase_space.register
def _(action: Power) -> PhaseSpace:
    return Repeated(phase_space(action.action), action)


class Symplectic(ImplicitMethod):
    """Steps of the symplectic theta family, one or a composition of them.

    Takes ``actions.LeftTranslation(lgsim.Cotangent(group))`` with states (g, mu) and fields (xi, n), for instance
    ``HamiltonianField(group, H)``; or ``actions.Coadjoint(group)`` with states mu and fields xi, for instance
    ``LiePoissonField(H)``, where every single step is symmetric and of order 2 whatever theta; or a Product or Power
    of them. Symplectic for autonomous and time-dependent Hamiltonians; momenta that belong to symmetries of the
    Hamiltonian stay constant to rounding, energies oscillate without drift.

    Attributes:
        tableau: the substeps.
        newton: how the equations of a substep are solved, from u = 0.
    """

    tableau: ThetaScheme = eqx.field(static=True)
    newton: Newton = eqx.field(static=True, default=Newton())

    @property
    def requires(self) -> tuple[str, ...]:
        """None of the optional verbs, but one of the actions that ``check`` names."""
        return ()

    def check(self, action: Action) -> None:
        """Raise TypeError if the action moves neither a cotangent bundle nor a dual algebra."""
        phase_space(action)

    def monitored_step(
        self, action: Action, field: Field, t: Array, y: Point, dt: Array, args: Any
    ) -> tuple[Point, None, Array]:
        """One step and the largest residual of its substeps."""
        space = phase_space(action)

        def substep(point: Point, now: tuple[Array, Array, Array]) -> tuple[Point, Array]:
            theta, fraction, since = now
            h, start = fraction * dt, t + since * dt

            def residual(u: Array) -> Array:
                return u - h * field(start + theta * h, space.stage(theta, u, point), args)

            u, gap = self.newton.solve(residual, jnp.zeros(action.dim, dt.dtype), point)
            return space.end(theta, u, point), gap

        thetas, fractions = (jnp.asarray(part, dt.dtype) for part in zip(*self.tableau.substeps, strict=True))
        since = jnp.cumsum(fractions) - fractions
        if len(self.tableau.substeps) == 1:
            y1, gap = substep(y, (thetas[0], fractions[0], since[0]))
            return y1, None, gap
        y1, gaps = jax.lax.scan(substep, y, (thetas, fractions, since))
        return y1, None, jnp.max(gaps)


def SymplecticTheta(theta: float | int, newton: Newton | None = None) -> Symplectic:
    """One step of the symplectic family (15)-(17) for any theta in [0, 1].

    Args:
        theta: where in the step the force acts; 1/2 gives order 2 and symmetry, all others order 1.
        newton: how its equations are solved; None for ``Newton()``.

    Raises:
        ValueError: theta is not a number in [0, 1].

    Source: Celledoni et al. 2021, (15)-(17).
    """
    return Symplectic(theta_scheme(theta), Newton() if newton is None else newton)
