"""Variational methods: the discrete Euler-Lagrange equations in the form of positions and momenta.

Sources: Marsden and West 2001; Wendlandt and Marsden 1997 (constraints); Bou-Rabee and Marsden 2009 (groups); Hall and
Leok 2017 (Galerkin methods on groups); Jay 1996 (constraints in Lobatto nodes).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from lgsim._compile.xla import control_flow
from lgsim.integrators.coordinates import EXPONENTIAL, Coordinates
from lgsim.integrators.discrete.charts import Chart, chart
from lgsim.integrators.discrete.galerkin_scheme import GalerkinScheme
from lgsim.integrators.discrete.mechanics import DiscreteMechanics, State
from lgsim.integrators.discrete.problem_checks import check_mechanics, check_start, cotangent_group
from lgsim.integrators.method import Field, ImplicitMethod
from lgsim.integrators.newton import Newton
from lgsim.lie.action import Action, Point
from lgsim.lie.group import Element
from lgsim.lie.matrix_forms import columns, transpose_apply

Vector = Float[Array, " dim"]
Vectors = Float[Array, "count dim"]
Scalar = Float[Array, ""]


class Variational(ImplicitMethod):
    """The discrete Euler-Lagrange equations of a discretized action, for ``DiscreteMechanics``.

    The curve of a step is ``g(tau) = g_mid phi(xi(tau))``, ``g_mid = g_k phi(u)``, xi a polynomial through -u, the
    values at the inner nodes, and u; its action S is the sum of ``h b_i L(g_i, v_i)`` over the points of the scheme,
    with the body velocities of the curve. With two nodes the velocity is the constant one of the chord,
    ``v = phi^-1(g_k^-1 g_(k+1))/h``, at all points. L_d is S where it is stationary in the inner nodes, D1 and D2 are
    its derivatives along body variations of g_k and g_(k+1), and a step solves

        p_k + D1 L_d + f_minus - h w_0 G(g_k)^T lambda_0 = 0,    c(g_(k+1)) = 0,
        p_(k+1) = D2 L_d + f_plus - h w_s G(g_(k+1))^T lambda_s,    G(g_(k+1)) v_(k+1) = 0,

    likewise at inner nodes; w are the weights of the nodes, f the forces of the points by Lagrange and d'Alembert. The
    momentum is updated in space by the forces only: without forces it does not change in a single bit. With
    ``TRAPEZOID`` it is RATTLE with constraints and Verlet without.

    In exponential coordinates a rotation beyond pi in a step has other solutions, and the step counts as not solved.

    A step is symmetric and symplectic, symmetry momenta are conserved to rounding, energies oscillate without drift.

    Attributes:
        tableau: nodes and quadrature.
        coordinates: exponential ones or ``Cayley()``.
        newton: solver of the equations of a step, starting from rest.

    Raises:
        ValueError: phi(-u) is not the inverse of phi(u) in the coordinates.
    """

    tableau: GalerkinScheme = eqx.field(static=True)
    coordinates: Coordinates = eqx.field(static=True)
    newton: Newton

    def __init__(self, tableau: GalerkinScheme, coordinates: Coordinates = EXPONENTIAL, newton: Newton | None = None):
        self.tableau, self.coordinates = tableau, coordinates
        self.newton = Newton() if newton is None else newton
        if not coordinates.odd:
            raise ValueError(
                f"coordinates: expected a map with phi(-u) phi(u) = 1, got {type(coordinates).__name__}; take "
                "Exponential() or Cayley()"
            )

    @property
    def name(self) -> str:
        """The name of the method: the family, the scheme, and coordinates that are not exponential."""
        ending = "" if self.coordinates == EXPONENTIAL else f", {type(self.coordinates).__name__} coordinates"
        return f"variational, {self.tableau.name}{ending}"

    @property
    def fixed_step_reason(self) -> str:
        """The reason for its fixed steps."""
        return (
            "a variational step is symplectic and keeps energies without drift only with steps of one length; adaptive "
            "steps destroy the structure"
        )

    def check(self, action: Action) -> None:
        """Raise TypeError if the action is not on a cotangent bundle, or its group lacks these coordinates."""
        chart(self.coordinates, cotangent_group(action, "a variational method"))

    def check_problem(self, action: Action, field: Field, t0: Scalar, y0: Point, args: Any) -> None:
        """Raise if the field is not a ``DiscreteMechanics`` on the action's group, or y0 violates its constraints."""
        super().check_problem(action, field, t0, y0, args)
        check_start(check_mechanics(field, action, self.name), t0, y0, args, tangent=True)

    def monitored_step(
        self, action: Action, field: Field, t: Scalar, y: Point, dt: Scalar, args: Any
    ) -> tuple[Point, None, Scalar]:
        """(state after a step, no error estimate, largest relative residual () of the equations)."""
        y1, gap, _ = self._steps(cast(DiscreteMechanics, field), t, y, dt, args)
        return y1, None, gap

    def multipliers(
        self, mechanics: DiscreteMechanics, t: Scalar | float, y: State, dt: Scalar | float, args: Any = None
    ) -> Float[Array, "count rows"]:
        """The multipliers lambda of the step from (t, y), for each node in order, (nodes times substeps, rows).

        Without substeps, the first one is RATTLE's, and the last one that of the velocities at the end of the step.
        """
        dtype = jax.tree.leaves(y)[0].dtype
        return self._steps(mechanics, jnp.asarray(t, dtype), y, jnp.asarray(dt, dtype), args)[2]

    def _steps(
        self, mechanics: DiscreteMechanics, t: Scalar, y: State, dt: Scalar, args: Any
    ) -> tuple[State, Scalar, Float[Array, "count rows"]]:
        """The state after all substeps, the largest residual, and all multipliers."""
        engine = VariationalStep(mechanics, self.tableau, chart(self.coordinates, mechanics.group), self.newton)
        fractions = jnp.asarray(self.tableau.fractions, dt.dtype)
        if len(fractions) == 1:
            return engine.advance(t, y, dt, args)

        def substep(point: State, entry: tuple[Scalar, Scalar]) -> tuple[State, tuple[Scalar, Array]]:
            fraction, offset = entry
            end, gap, found = engine.advance(t + offset * dt, point, fraction * dt, args)
            return end, (gap, found)

        y1, (gaps, found) = control_flow.scan(substep, y, (fractions, jnp.cumsum(fractions) - fractions))
        return y1, jnp.max(gaps), found.reshape(found.shape[0] * found.shape[1], found.shape[2])


class Curve(NamedTuple):
    """The unknowns of a step, in the algebra: the curve goes from ``-middle`` to ``middle`` about its midpoint.

    Attributes:
        middle: u, the coordinates of the end about the midpoint, (dim,).
        inner: the coordinates at the inner nodes, (nodes - 2, dim).
    """

    middle: Vector
    inner: Vectors

    @property
    def nodes(self) -> Vectors:
        """The coordinates of all nodes about the midpoint, (nodes, dim)."""
        return jnp.concatenate([-self.middle[None], self.inner, self.middle[None]])


class Impulses(NamedTuple):
    """Elements, forces and momenta at the places of a step: its nodes and points, each once.

    Attributes:
        at: their coordinates xi about the midpoint, (places, dim).
        local: their elements phi(xi) about the midpoint.
        forces: forces and reactions in the body, times h and their weight, (places, dim).
        momenta: body momenta at the points, times h and their weight, (points, dim).
        in_space: the sum of the forces in space, (dim,), the change of the momentum.
    """

    at: Vectors
    local: Element
    elements: Element
    forces: Vectors
    momenta: Float[Array, "points dim"]
    in_space: Vector


class VariationalStep:
    """One step of a scheme without fractions."""

    def __init__(self, mechanics: DiscreteMechanics, scheme: GalerkinScheme, chart: Chart, newton: Newton):
        self.mechanics, self.scheme, self.chart, self.newton = mechanics, scheme, chart, newton

    @cached_property
    def weights(self) -> Float[np.ndarray, " nodes"]:
        """The weights of the nodes, for the constraints."""
        return self.scheme.node_weights()

    def velocities(self, curve: Curve, h: Scalar) -> Vectors:
        """The body velocities at the points of the quadrature, (points, dim)."""
        points = self.scheme.points
        if not len(curve.inner):
            chord = self.chart.doubled(curve.middle) / h
            return jnp.broadcast_to(chord, (len(points), chord.size))
        values, slopes = (jnp.asarray(part, h.dtype) for part in self.scheme.interpolation(points))
        return jax.vmap(self.chart.body_differential)(values @ curve.nodes, slopes @ curve.nodes / h)

    def advance(self, t: Scalar, y: State, h: Scalar, args: Any) -> tuple[State, Scalar, Float[Array, "nodes rows"]]:
        """The state at t + h, the largest relative residual () of the equations, and the multipliers of the nodes."""
        mechanics, (g, mu) = self.mechanics, y
        dim, inner, rows = mu.size, len(self.scheme.nodes) - 2, mechanics.gaps(g, args).size
        split = dim * (inner + 1)

        def unknowns(x: Float[Array, " n"]) -> tuple[Curve, Float[Array, "nodes rows"]]:
            return Curve(x[:dim], x[dim:split].reshape(inner, dim)), x[split:].reshape(inner + 1, rows)

        def residual(x: Float[Array, " n"]) -> Float[Array, " n"]:
            curve, multipliers = unknowns(x)
            impulses = self.impulses(t, y, h, args, curve, multipliers)
            balance = self.balance(mu, h, curve, impulses)
            ends = _part(impulses.elements, self.node_places[1:])
            gaps = jax.vmap(lambda e: mechanics.gaps(e, args))(ends)
            return jnp.concatenate([balance.middle, balance.inner.ravel(), gaps.ravel()])

        # unknowns: u, the inner nodes, the multipliers of all nodes but the last one
        start = jnp.zeros(split + rows * (inner + 1), mu.dtype)
        x, gap = self.newton.solve(residual, start, g, split)
        curve, multipliers = unknowns(x)
        # a rotation beyond pi is another solution of the equations
        gap = jnp.where(self.chart.ambiguous(jax.lax.stop_gradient(curve.middle)), jnp.inf, gap)
        impulses = self.impulses(t, y, h, args, curve, multipliers)
        g1, mu1 = _part(impulses.elements, -1), mu + impulses.in_space
        if rows:
            # lambda_s from G v = 0 at the end, as the second multiplier of RATTLE
            p1 = mechanics.group.Ad_dual_action(g1, mu1)
            guess = self.velocities(curve, h)[-1]
            speed = jnp.max(jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(g1)])) / jnp.abs(h)
            _, reaction, last = mechanics.legendre(t + h, g1, p1, args, self.newton, guess, speed)
            mu1 = mu1 - mechanics.space_momentum(g1, reaction @ mechanics.rows(g1, args))
            multipliers = jnp.concatenate([multipliers, (reaction / (h * float(self.weights[-1])))[None]])
            gap = jnp.maximum(gap, last)
        else:
            multipliers = jnp.zeros((inner + 2, 0), mu.dtype)
        return (g1, mu1), gap, multipliers

    @cached_property
    def node_places(self) -> Int[np.ndarray, " nodes"]:
        """The positions of the nodes among all places."""
        return np.searchsorted(self.scheme.places, self.scheme.nodes)

    def impulses(
        self, t: Scalar, y: State, h: Scalar, args: Any, curve: Curve, multipliers: Float[Array, "nodes rows"]
    ) -> Impulses:
        """The impulses of the step: at all places the elements and the weighted forces and reactions times h, in the
        body; at the points the weighted momenta of the velocities times h.
        """
        mechanics, scheme = self.mechanics, self.scheme
        compose, element = mechanics.group.compose, self.chart.element
        at = jnp.asarray(scheme.interpolation(scheme.places)[0], h.dtype) @ curve.nodes
        local = jax.vmap(element)(at)
        midpoint = compose(y[0], element(curve.middle))
        elements = jax.vmap(lambda e: compose(midpoint, e))(local)
        points, weights = (jnp.asarray(part, h.dtype) for part in (scheme.points, scheme.weights))
        where = np.searchsorted(scheme.places, scheme.points)
        found = jax.vmap(lambda s, e, v: mechanics.slopes(t + s * h, e, v, args))(
            points, _part(elements, where), self.velocities(curve, h)
        )
        # h b_i (D_g L + f) and h b_i dL/dv at the points
        force, momentum = (h * weights[:, None] * part for part in found)
        total = jnp.zeros_like(at).at[where].add(force)
        if multipliers.size:
            where = self.node_places[:-1]
            rows = jax.vmap(lambda e: mechanics.rows(e, args))(_part(elements, where))
            # reactions -h w_i G^T lambda_i at the nodes
            factors = -h * jnp.asarray(self.weights[:-1], h.dtype)[:, None] * multipliers
            total = total.at[where].add(jnp.sum(factors[:, :, None] * rows, axis=1))
        in_space = jnp.sum(jax.vmap(mechanics.space_momentum)(elements, total), axis=0)
        return Impulses(at, local, elements, total, momentum, in_space)

    def balance(self, mu: Vector, h: Scalar, curve: Curve, impulses: Impulses) -> Curve:
        """The residuals of the unknowns from derivatives of the action, forces and the end momentum, with g_k fixed.

        A place phi(u) phi(xi) relative to g_k has the body variation ``Ad_(phi(xi)^-1) dphi_(-u) du + dphi_(-xi) dxi``;
        for the first place it is zero. At the last one the end momentum balances all others.
        """
        group, differential = self.mechanics.group, self.chart.body_differential
        p1 = group.Ad_dual_action(_part(impulses.elements, -1), mu + impulses.in_space)
        forces = impulses.forces[1:].at[-1].add(-p1)
        # forces along the inner nodes by dphi_(-xi)^T, and along u by Ad*_(phi(xi)^-1) and dphi_(-u)^T
        along = jax.vmap(lambda xi, f: transpose_apply(columns(differential, xi, xi.size), f))(impulses.at[1:], forces)
        back = jax.vmap(lambda e, f: group.Ad_dual_action(group.inverse(e), f))
        whole = jnp.sum(back(_part(impulses.local, slice(1, None)), forces), axis=0)
        by_middle = transpose_apply(columns(differential, curve.middle, mu.size), whole)
        by_node = jnp.asarray(self.scheme.interpolation(self.scheme.places)[0][1:].T, h.dtype) @ along
        # h b_i dL/dv through the velocities of the curve
        (by_velocity,) = jax.vjp(lambda c: self.velocities(c, h), curve)[1](impulses.momenta)
        return Curve(by_velocity.middle + by_middle + by_node[-1] - by_node[0], by_velocity.inner + by_node[1:-1])


def _part(elements: Element, index: Any) -> Element:
    """A selection of several elements."""
    return jax.tree.map(lambda leaf: leaf[index], elements)
