"""A free rigid body by its unit quaternion, a vector with a constraint.

Source: Wendlandt 1997, Control and simulation of multibody systems, chapter 2; Wendlandt and Marsden 1997.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.integrators.discrete.mechanics import DiscreteMechanics
from lgsim.lie import quaternion
from lgsim.lie.action import LeftTranslation
from lgsim.lie.group import Euclidean
from lgsim.lie.product import Cotangent
from lgsim.systems import InitialValueProblem, validation
from lgsim.systems.validation import Dtype, Numbers


def _quaternion_lagrangian(
    q: Float[Array, " 4"], rate: Float[Array, " 4"], moments: Float[Array, " 3"]
) -> Float[Array, ""]:
    spin = quaternion.vee(quaternion.compose(quaternion.inverse(q), rate))
    return 0.5 * jnp.sum(moments * spin * spin)


def _unit_norm(q: Float[Array, " 4"], moments: Float[Array, " 3"]) -> Float[Array, " 1"]:
    return (jnp.sum(q * q)[None] - 1) / 2


def _body_momentum(y: tuple[Float[Array, " 4"], Float[Array, " 4"]]) -> Float[Array, " 3"]:
    """The momentum in the body of the momentum of the quaternion: p is half of q times it, plus what is along q."""
    return quaternion.vee(quaternion.compose(quaternion.inverse(y[0]), y[1])) / 4


def free_rigid_body_quaternion(
    dtype: Dtype | None = None,
    *,
    inertia: Numbers = (1.0, 2.0, 3.0),
    angular_velocity: Numbers = (0.8, 0.0, 1.1),
    attitude: Numbers | None = None,
) -> InitialValueProblem:
    """A free rigid body by its unit quaternion, a vector of R^4 with the constraint (|q|^2 - 1)/2 = 0.

        L = w . I w/2,    w = 2 vec(conj(q) q').

    With ``VariationalMidpoint`` it is the thesis' discrete body, whose steps are those of Moser and Veselov.

    Args:
        dtype: Floating dtype of the state and of the parameters; None for JAX's default.
        inertia: Principal moments of inertia about the center of mass, kg m^2.
        angular_velocity: w(0) in the body frame, rad/s.
        attitude: q(0), (4,), scalar first; None for the identity.

    Returns:
        The problem: state (q (4,), momentum (4,)), a ``DiscreteMechanics`` as field, the principal moments (3,) as
        args, and the invariants `kinetic_energy` (), `angular_momentum` (3,) (in the world) and `norm` ().

    Raises:
        ValueError: a shape does not fit, or a moment is not positive.

    Source: Wendlandt and Marsden 1997, section 4; Wendlandt 1997, chapter 2.
    """
    moments = validation.positive("inertia", inertia, dtype, 3)
    spin = validation.numbers("angular_velocity", angular_velocity, dtype, 3)
    q = validation.numbers("attitude", (1.0, 0.0, 0.0, 0.0) if attitude is None else attitude, dtype, 4)
    mechanics = DiscreteMechanics(Euclidean(4), _quaternion_lagrangian, constraints=_unit_norm)

    def energy(y: tuple[Array, Array], moments: Array) -> Array:
        return 0.5 * jnp.sum(_body_momentum(y) ** 2 / moments)

    return InitialValueProblem(
        name="free rigid body, unit quaternion with a constraint",
        action=LeftTranslation(Cotangent(mechanics.group)),
        field=mechanics,
        initial=mechanics.state(q, quaternion.compose(q, quaternion.hat(spin)), moments),
        args=moments,
        invariants={
            "kinetic_energy": energy,
            "angular_momentum": lambda y, moments: quaternion.Ad_action(y[0], _body_momentum(y)),
            "norm": lambda y, moments: jnp.sum(y[0] * y[0]),
        },
    )
