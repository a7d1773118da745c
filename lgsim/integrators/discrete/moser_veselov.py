"""The discrete free rigid body of Moser and Veselov, for rotation matrices and unit quaternions.

Sources: Moser and Veselov 1991, Discrete versions of some classical integrable systems; Wendlandt and Marsden 1997.
"""

from __future__ import annotations

from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.integrators.discrete.mechanics import DiscreteMechanics
from lgsim.integrators.discrete.problem_checks import Rule, check_mechanics, check_start, cotangent_group, known
from lgsim.integrators.method import Field, ImplicitMethod
from lgsim.integrators.newton import Newton
from lgsim.lie import so3
from lgsim.lie.action import Action, Point
from lgsim.lie.conversions import matrix_from_quaternion
from lgsim.lie.group import SO3, UnitQuaternion

Vector = Float[Array, " 3"]
Scalar = Float[Array, ""]


RULE = Rule("Moser-Veselov", order=2)


class MoserVeselov(ImplicitMethod):
    """The discrete Euler equations of Moser and Veselov for a free body, ``DiscreteMechanics`` with L = v . I v/2.

    A step of the attitude R and the body momentum Pi solves for a rotation F

        h hat(Pi_k) = F J - J F^T,    J = tr(I)/2 - I,    R_(k+1) = R_k F,    Pi_(k+1) = F^T Pi_k.

    F is computed as the quaternion (s, x) of the smallest rotation. The variational principle gives the same method in
    unit quaternions, with the velocities 2 x/h, and so does RATTLE on the mass points of the body. The energy and the
    momentum of a free body are exact, and the method is integrable as the body is. The momentum is bounded by I/h.

    Attributes:
        newton: solver of the equation of F, starting from x = 0.
    """

    newton: Newton
    tableau: Rule = eqx.field(static=True)

    def __init__(self, newton: Newton | None = None):
        self.newton, self.tableau = Newton() if newton is None else newton, RULE

    @property
    def fixed_step_reason(self) -> str:
        """The reason for its fixed steps."""
        return (
            "a Moser-Veselov step is symplectic and integrable only with steps of one length; adaptive "
            "steps destroy the structure"
        )

    def check(self, action: Action) -> None:
        """Raise TypeError unless the action moves the cotangent bundle of ``SO3`` or ``UnitQuaternion``."""
        group = cotangent_group(action, "the method of Moser and Veselov")
        if group not in (SO3, UnitQuaternion):
            raise TypeError(
                "action: the method of Moser and Veselov requires a rotating body, lgsim.Cotangent(lgsim.SO3) or of "
                f"lgsim.UnitQuaternion, got {group!r}; take a variational method"
            )

    def check_problem(self, action: Action, field: Field, t0: Scalar, y0: Point, args: Any) -> None:
        """Raise if the field is not a free body.

        Raises:
            TypeError: it is not a ``DiscreteMechanics``.
            ValueError: it has constraints or forces, depends on the attitude, or its inertia depends on the velocity.
        """
        super().check_problem(action, field, t0, y0, args)
        mechanics = check_mechanics(field, action, self.name)
        if mechanics.constraints is not None or mechanics.force is not None:
            raise ValueError("field: the method of Moser and Veselov requires a free body, got constraints or forces")
        check_start(mechanics, t0, y0, args, tangent=False)
        if not known(t0, y0, args, mechanics):
            return
        g = y0[0]
        v = jnp.asarray([0.3, -0.7, 0.5], y0[1].dtype)
        inertia = _inertia(mechanics, t0, g, args)
        slopes = [mechanics.slopes(t0, mechanics.group.compose(g, mechanics.group.exp(u)), v, args) for u in (0 * v, v)]
        gaps = [jnp.max(jnp.abs(s.momentum - inertia @ v)) for s in slopes] + [
            jnp.max(jnp.abs(s.force)) for s in slopes
        ]
        limit = 10.0 ** (-0.5 * np.finfo(y0[1].dtype).precision)
        if not float(max(gaps)) <= limit * float(jnp.max(jnp.abs(inertia))):
            raise ValueError(
                "lagrangian: the method of Moser and Veselov requires a free body, v . I v/2 with a constant I in the "
                "body, got one that depends on the attitude or is not quadratic; take a variational method"
            )

    def monitored_step(
        self, action: Action, field: Field, t: Scalar, y: Point, dt: Scalar, args: Any
    ) -> tuple[Point, None, Scalar]:
        """(state after a step, no error estimate, largest relative residual () of the equation of F)."""
        mechanics, (g, mu) = cast(DiscreteMechanics, field), y
        inertia = _inertia(mechanics, t, g, args)
        J = jnp.trace(inertia) / 2 * jnp.eye(3, dtype=mu.dtype) - inertia
        momentum = mechanics.body_momentum((g, mu))

        def residual(x: Vector) -> Vector:
            F = matrix_from_quaternion(_turn(x))
            # h hat(Pi_k) = F J - J F^T
            return so3.vee(F @ J - J @ F.T) - dt * momentum

        x, gap = self.newton.solve(residual, jnp.zeros_like(mu), jnp.ones_like(mu), 3)
        turn = _turn(x)
        F = turn if mechanics.group == UnitQuaternion else matrix_from_quaternion(turn)
        # Pi_(k+1) = F^T Pi_k is the same space momentum mu
        return (mechanics.group.compose(g, F), mu), None, gap


def _turn(x: Vector) -> Float[Array, " 4"]:
    """The unit quaternion with the vector part x and a nonnegative scalar part; NaN where |x| > 1."""
    return jnp.concatenate([jnp.sqrt(1 - x @ x)[None], x])


def _inertia(mechanics: DiscreteMechanics, t: Scalar, g: Any, args: Any) -> Float[Array, "3 3"]:
    """The inertia in the body: the second derivatives of the Lagrangian with respect to v at rest."""
    at_rest = jnp.zeros(3, jax.tree.leaves(g)[0].dtype)
    return jax.jacfwd(lambda v: mechanics.slopes(t, g, v, args).momentum)(at_rest)
