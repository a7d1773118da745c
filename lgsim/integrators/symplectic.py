"""The symplectic theta family on T*G, and its reduction to g*: Lie-Poisson methods that preserve coadjoint orbits.

On T*G, taken as ``G x g*`` with space momenta mu (``actions.LeftTranslation(lgsim.Cotangent(G))``), a field
``f(t, (g, mu)) = (xi, n)`` moves a point with ``g' = hat(xi) g``, ``mu' = n - ad*_xi mu``. A step is

    (xi, n) = h f(t_n + theta h, (exp(theta xi) g_n, M_theta)),
    M_theta = dexp*_(-xi) mu_n + (1 - theta) dexp*_(-(1 - theta) xi) n,
    g_(n+1) = exp(xi) g_n,    mu_(n+1) = Ad*_exp(-xi) mu_n + Ad*_exp((theta - 1) xi) n.

M_theta is the mean over the step of the momentum that moves with g and gets the impulse n at the time theta. In the
paper its two terms in n are one integral. If the Hamiltonian does not depend on g, n = 0 and theta drops out: the
method on g* (``actions.Coadjoint(G)``) is symmetric, of order 2, and stays on its orbit.

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
from jaxtyping import Float

from lgsim._compile.xla import control_flow
from lgsim.integrators.compositions import ThetaScheme, theta_scheme
from lgsim.integrators.method import Field, ImplicitMethod
from lgsim.integrators.newton import Newton
from lgsim.lie.action import Action, Coadjoint, LeftTranslation, Point, Product
from lgsim.lie.group import split
from lgsim.lie.power import Power
from lgsim.lie.product import Cotangent

Vector = Float[Array, " algebra"]
Scalar = Float[Array, ""]


class PhaseSpace(eqx.Module):
    """The two maps of a symplectic step on the points of an action."""

    @abstractmethod
    def stage(self, theta: Scalar, u: Vector, y: Point) -> Point:
        """The point at which the field is evaluated.

        Args:
            theta: the parameter of the family, in [0, 1].
            u: the field times the step, an algebra vector of the action (action.dim,).
        """

    @abstractmethod
    def end(self, theta: Scalar, u: Vector, y: Point) -> Point:
        """The point at the end of the step; arguments as for ``stage``."""


class CotangentSpace(PhaseSpace):
    """T*G as ``G x g*``; the state is (g, mu), the algebra vector (xi, n).

    Attributes:
        group: the cotangent group ``lgsim.Cotangent(G)``.
    """

    group: Cotangent

    def stage(self, theta: Scalar, u: Vector, y: Point) -> Point:
        """The point ``(exp(theta xi) g, M_theta)``."""
        (xi, n), (g, mu), space = split(u, [self.group.base.dim] * 2), y, self.group
        rest = 1 - theta
        element = space.base.compose(space.base.exp(theta * xi), g)
        return element, space.average(xi, mu) + rest * space.average(rest * xi, n)

    def end(self, theta: Scalar, u: Vector, y: Point) -> Point:
        """The point ``(exp(xi), Ad*_exp((theta - 1) xi) n) . (g, mu)``, a product in T*G."""
        xi, n = split(u, [self.group.base.dim] * 2)
        factor = self.group.base.exp(xi), self.group.represent(self.group.base.exp((1 - theta) * xi), n)
        return self.group.compose(factor, y)


class DualAlgebra(PhaseSpace):
    """g* under the coadjoint action; the state is mu (dim,), the algebra vector xi (dim,)."""

    action: Coadjoint

    def stage(self, theta: Scalar, u: Vector, y: Point) -> Point:
        """The mean momentum of the step, ``dexp*_(-xi) mu``, (dim,)."""
        return Cotangent(self.action.group).average(u, y)

    def end(self, theta: Scalar, u: Vector, y: Point) -> Point:
        """The momentum ``Ad*_exp(-xi) mu`` (dim,), exactly on the orbit of mu."""
        return self.action.move(u, y)


class ProductPhaseSpace(PhaseSpace):
    """A product of phase spaces: the state is a tuple, algebra vectors are concatenated.

    Attributes:
        dims: the lengths of their algebra vectors.
    """

    factors: tuple[PhaseSpace, ...]
    dims: tuple[int, ...] = eqx.field(static=True)

    def stage(self, theta: Scalar, u: Vector, y: Point) -> Point:
        """The stage points of the factors."""
        return tuple(p.stage(theta, x, z) for p, x, z in zip(self.factors, split(u, self.dims), y, strict=True))

    def end(self, theta: Scalar, u: Vector, y: Point) -> Point:
        """The end points of the factors."""
        return tuple(p.end(theta, x, z) for p, x, z in zip(self.factors, split(u, self.dims), y, strict=True))


class PowerPhaseSpace(PhaseSpace):
    """Equal phase spaces in the layout of ``actions.Power``: arrays have a leading axis ``power.count``."""

    factor: PhaseSpace
    power: Power

    def stage(self, theta: Scalar, u: Vector, y: Point) -> Point:
        """The stage points of the factors."""
        return jax.vmap(self.factor.stage, (None, 0, 0))(theta, self.power.rows(u), y)

    def end(self, theta: Scalar, u: Vector, y: Point) -> Point:
        """The end points of the factors."""
        return jax.vmap(self.factor.end, (None, 0, 0))(theta, self.power.rows(u), y)


@singledispatch
def phase_space(action: Action) -> PhaseSpace:
    """The phase space of an action; new kinds of actions register their own.

    Raises:
        TypeError: the action is neither on a cotangent bundle nor on a dual algebra.
    """
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
    return ProductPhaseSpace(tuple(phase_space(each) for each in action.actions), tuple(action.dims))


@phase_space.register
def _(action: Power) -> PhaseSpace:
    return PowerPhaseSpace(phase_space(action.action), action)


class Symplectic(ImplicitMethod):
    """A step of the symplectic theta family, or a composition of such steps.

    Accepts ``actions.LeftTranslation(lgsim.Cotangent(group))`` with states (g, mu) and fields (xi, n), for instance
    ``HamiltonianField(group, H)``; ``actions.Coadjoint(group)`` with states mu and fields xi, for instance
    ``LiePoissonField(H)``, for which every single step is symmetric and of order 2 for any theta; or a Product or Power
    of them. Symplectic for autonomous and time-dependent Hamiltonians. Symmetry momenta of the Hamiltonian are constant
    to rounding, and energies oscillate without drift.

    Attributes:
        tableau: the substeps.
        newton: solver of the equations of a substep, starting from u = 0.
    """

    tableau: ThetaScheme = eqx.field(static=True)
    newton: Newton = Newton()

    @property
    def fixed_step_reason(self) -> str:
        """The reason for its fixed steps."""
        return "it keeps energies without drift only with steps of one length; adaptive steps destroy that"

    def check(self, action: Action) -> None:
        """Raise TypeError if the action is neither on a cotangent bundle nor on a dual algebra."""
        phase_space(action)

    def monitored_step(
        self, action: Action, field: Field, t: Scalar, y: Point, dt: Scalar, args: Any
    ) -> tuple[Point, None, Scalar]:
        """(state after a step, no error estimate, largest relative residual () of the substeps)."""
        space = phase_space(action)

        def substep(point: Point, entry: tuple[Scalar, Scalar, Scalar]) -> tuple[Point, Scalar]:
            theta, fraction, offset = entry
            h, start = fraction * dt, t + offset * dt

            def residual(u: Vector) -> Vector:
                # (xi, n) = h f(t_n + theta h, stage point)
                return u - h * field(start + theta * h, space.stage(theta, u, point), args)

            u, gap = self.newton.solve(residual, jnp.zeros(action.dim, dt.dtype), point)
            return space.end(theta, u, point), gap

        thetas, fractions = (jnp.asarray(part, dt.dtype) for part in zip(*self.tableau.substeps, strict=True))
        offsets = jnp.cumsum(fractions) - fractions
        if len(self.tableau.substeps) == 1:
            y1, gap = substep(y, (thetas[0], fractions[0], offsets[0]))
            return y1, None, gap
        y1, gaps = control_flow.scan(substep, y, (thetas, fractions, offsets))
        return y1, None, jnp.max(gaps)


def SymplecticTheta(theta: float | int, newton: Newton | None = None) -> Symplectic:
    """The method of one step of the symplectic theta family, for any theta in [0, 1].

    Args:
        theta: the fraction of the step at which the force acts; 1/2 gives order 2 and symmetry, all others order 1.
        newton: solver of the equations; None for ``Newton()``.

    Raises:
        ValueError: theta is not a number in [0, 1].

    Source: Celledoni et al. 2021, (15)-(17).
    """
    return Symplectic(theta_scheme(theta), Newton() if newton is None else newton)
