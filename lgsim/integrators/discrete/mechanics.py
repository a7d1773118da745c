"""A mechanical system given by its Lagrangian, with constraints and forces, for the methods of discrete mechanics.

Velocities, momenta and forces of the functions given by the user are those of the body, ``g' = g hat(v)``. The state is
that of ``lgsim.Cotangent(group)``: the element g and the *space* momentum ``mu = Ad*_(g^-1) p`` of the body momentum
``p = dL/dv``. On ``Euclidean(n)`` the two are the same.

Sources: Marsden and West 2001, Discrete mechanics and variational integrators; Wendlandt and Marsden 1997.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.integrators.hamiltonian import near_identity
from lgsim.integrators.method import Number
from lgsim.integrators.newton import Newton
from lgsim.lie.group import Element, LieGroup

Vector = Float[Array, " dim"]
State = tuple[Element, Vector]


class Slopes(NamedTuple):
    """Derivatives of the Lagrangian with the force at a point.

    Attributes:
        force: the derivative of L along body variations g exp(eta), plus the force, (dim,).
        momentum: the body momentum dL/dv, (dim,).
    """

    force: Vector
    momentum: Vector


class DiscreteMechanics(eqx.Module):
    """A Lagrangian system on a group, used as the field of ``lgsim.integrate``.

    Its equations of motion are, with body velocities v, ``g' = g hat(v)``, and p = dL/dv,

        p' = ad*_v p + D_g L + f - G(g)^T lambda,    c(g) = 0,    G = D_g c,

    D_g being derivatives along body variations g exp(eta). Methods of discrete mechanics use the functions. For all
    other methods it is the field (xi, n) of these equations on ``actions.LeftTranslation(lgsim.Cotangent(group))``;
    they satisfy the constraints only up to their own error.

    Attributes:
        group: the group of configurations; ``lgsim.Euclidean(n)`` for vectors.
        lagrangian: ``lagrangian(g, v, args)``, a scalar; v is the body velocity (dim,). Its Hessian with respect to v
            must be regular, with constraints on the velocities that they admit.
        constraints: ``constraints(g, args)``, (rows,), zero where the constraints hold; None without any. The force of
            a row is minus its multiplier times its gradient.
        force: ``force(g, v, args)``, the nonconservative force (dim,) in the body, dual to v; None without.
        depends_on_time: True if lagrangian and force are functions of (t, g, v, args).

    Source: Marsden and West 2001; Wendlandt and Marsden 1997; Bou-Rabee and Marsden 2009 (groups).
    """

    group: LieGroup
    lagrangian: Callable[..., Float[Array, ""]]
    constraints: Callable[..., Float[Array, " rows"]] | None = eqx.field(default=None, kw_only=True)
    force: Callable[..., Vector] | None = eqx.field(default=None, kw_only=True)
    depends_on_time: bool = eqx.field(static=True, default=False, kw_only=True)

    def __check_init__(self) -> None:
        if not isinstance(self.group, LieGroup):
            raise TypeError(
                "group: expected the group of configurations, such as lgsim.SO3 or lgsim.Euclidean(n), got "
                f"{type(self.group).__name__}"
            )
        for name in ("lagrangian", "constraints", "force"):
            value = getattr(self, name)
            if not callable(value) and (name == "lagrangian" or value is not None):
                raise TypeError(f"{name}: expected a function, got {type(value).__name__}")

    def value(self, t: Number, g: Element, v: Vector, args: Any) -> Float[Array, ""]:
        """The Lagrangian () at time t, J.

        Raises:
            ValueError: it is not a scalar.
        """
        found = self.lagrangian(*self._time(t), g, v, args)
        if jnp.shape(found) != ():
            raise ValueError(f"lagrangian: expected one number, got shape {jnp.shape(found)}")
        return jnp.asarray(found)

    def slopes(self, t: Number, g: Element, v: Vector, args: Any) -> Slopes:
        """The derivative along body variations plus the force, and the body momentum, each (dim,).

        Raises:
            ValueError: the Lagrangian is not a scalar, or the shape of the force is not (dim,).
        """

        def value(eta: Vector, v: Vector) -> Float[Array, ""]:
            return self.value(t, self._varied(g, eta), v, args)

        along, momentum = jax.grad(value, (0, 1))(jnp.zeros_like(v), v)
        if self.force is None:
            return Slopes(along, momentum)
        force = jnp.asarray(self.force(*self._time(t), g, v, args))
        if force.shape != v.shape:
            raise ValueError(f"force: expected shape {v.shape}, one number for each of v, got {force.shape}")
        return Slopes(along + force, momentum)

    def gaps(self, g: Element, args: Any) -> Float[Array, " rows"]:
        """The values of the constraints, (rows,); of length 0 if there are none.

        Raises:
            ValueError: they are not a vector.
        """
        if self.constraints is None:
            return jnp.zeros(0, jax.tree.leaves(g)[0].dtype)
        found = jnp.asarray(self.constraints(g, args))
        if found.ndim != 1:
            raise ValueError(f"constraints: expected a vector (rows,), got shape {found.shape}")
        return found

    def rows(self, g: Element, args: Any) -> Float[Array, "rows dim"]:
        """The Jacobian G of the constraints along body variations, (rows, dim)."""
        zero = jnp.zeros(self.group.dim, jax.tree.leaves(g)[0].dtype)
        if self.constraints is None:
            return jnp.zeros((0, self.group.dim), zero.dtype)
        return jax.jacfwd(lambda eta: self.gaps(self._varied(g, eta), args))(zero)

    def state(self, g: Element, v: Vector, args: Any = None, t: Number = 0.0) -> State:
        """The initial state (g, mu) for ``integrate`` from a configuration and a body velocity (dim,)."""
        return g, self.space_momentum(g, self.slopes(t, g, v, args).momentum)

    def body_momentum(self, y: State) -> Vector:
        """The body momentum ``p = Ad*_g mu`` of a state, (dim,)."""
        return self.group.Ad_dual_action(*y)

    def space_momentum(self, g: Element, p: Vector) -> Vector:
        """The space momentum ``Ad*_(g^-1) p`` of a body momentum p (dim,) at g."""
        return self.group.Ad_dual_action(self.group.inverse(g), p)

    def velocity(self, y: State, args: Any = None, t: Number = 0.0) -> Vector:
        """The body velocity of a state, (dim,); with constraints its admissible part."""
        return self.legendre(t, y[0], self.body_momentum(y), args, Newton())[0]

    def project(self, y: State, args: Any = None, t: Number = 0.0) -> State:
        """The state with the momentum projected onto the constraints: that of ``velocity``."""
        p = self.body_momentum(y)
        if self.constraints is None:
            return y
        _, reaction, _ = self.legendre(t, y[0], p, args, Newton())
        return y[0], y[1] - self.space_momentum(y[0], reaction @ self.rows(y[0], args))

    def energy(self, y: State, args: Any = None, t: Number = 0.0) -> Float[Array, ""]:
        """The energy ``p . v - L(g, v)`` of a state, (), J."""
        v = self.velocity(y, args, t)
        return self.slopes(t, y[0], v, args).momentum @ v - self.value(t, y[0], v, args)

    def legendre(
        self, t: Number, g: Element, p: Vector, args: Any, newton: Newton, guess: Vector | None = None,
        speed: Number = 0.0,
    ) -> tuple[Vector, Float[Array, " rows"], Float[Array, ""]]:  # fmt: skip
        """The admissible velocity whose momentum is p up to a combination of constraint gradients.

        Solves ``dL/dv(g, v) + G^T nu = p`` with ``G v = 0``.

        Args:
            p: the body momentum (dim,).
            guess: the initial velocity of the iteration, (dim,); None for zero.
            speed: a scale of velocities, relative to which changes count as small, also at rest.

        Returns:
            v (dim,), nu (rows,), and the largest relative change () in the last iteration.
        """
        G = self.rows(g, args)
        start = jnp.zeros_like(p) if guess is None else guess
        speed = jnp.asarray(speed, p.dtype)

        def residual(x: Float[Array, " n"]) -> Float[Array, " n"]:
            v, nu = x[: p.size], x[p.size :]
            gap = self.slopes(t, g, v, args).momentum - p
            return jnp.concatenate([gap + nu @ G, G @ v]) if len(G) else gap

        x, gap = newton.solve(residual, jnp.concatenate([start, jnp.zeros(len(G), p.dtype)]), speed, p.size)
        return x[: p.size], x[p.size :], gap

    def __call__(self, t: Number, y: State, args: Any) -> Float[Array, " algebra"]:
        """The algebra vector (xi, n) (2 dim,) of the equations of motion at the state (g, mu).

        Raises:
            ValueError: the momentum does not belong to this group.
        """
        (g, mu), group = y, self.group
        if mu.shape != (group.dim,):
            raise ValueError(f"field: its group {group!r} has momenta of shape ({group.dim},), the state {mu.shape}")
        v, _, _ = self.legendre(t, g, self.body_momentum(y), args, Newton())
        force, p = self.slopes(t, g, v, args)
        G = self.rows(g, args)
        if len(G):

            def along(s: Float[Array, ""]) -> tuple[Vector, Float[Array, " rows"]]:
                place, time = self._varied(g, s * v), t + s
                return self.slopes(time, place, v, args).momentum, self.rows(place, args) @ v

            # d/dt of p and of G v = 0 at constant v
            carried, turned = jax.jvp(along, (jnp.zeros((), p.dtype),), (jnp.ones((), p.dtype),))[1]
            # M v' + G^T lambda = ad*_v p + D_g L + f - carried,    G v' = -turned
            mass = jax.jacfwd(lambda w: self.slopes(t, g, w, args).momentum)(v)
            matrix = jnp.concatenate([jnp.concatenate([mass, G.T], 1), jnp.pad(G, ((0, 0), (0, len(G))))])
            right = jnp.concatenate([group.ad_dual_action(v, p) + force - carried, -turned])
            force = force - jnp.linalg.solve(matrix, right)[p.size :] @ G
        # in space: xi = Ad_g v, and n = Ad*_(g^-1) (D_g L + f - G^T lambda) + ad*_xi mu
        xi = group.Ad_action(g, v)
        return jnp.concatenate([xi, self.space_momentum(g, force) + group.ad_dual_action(xi, mu)])

    def _varied(self, g: Element, eta: Vector) -> Element:
        """``g exp(eta)`` to first order."""
        return self.group.compose(g, near_identity(self.group, eta))

    def _time(self, t: Number) -> tuple[Number, ...]:
        return (t,) if self.depends_on_time else ()
