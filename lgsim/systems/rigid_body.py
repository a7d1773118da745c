"""One rigid body: turning freely, and as a heavy top, on the group and in the reduced Lie-Poisson form.

E. Celledoni, E. Cokaj, A. Leone, D. Murari, B. Owren, Lie group integrators for mechanical systems, 2021, Section 3.4.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from lgsim.lie.action import Coadjoint, LeftTranslation, Product, RightTranslation
from lgsim.lie.group import SE3, SO3, Euclidean
from lgsim.systems.problem import Problem

# A state is (R, Omega): attitude (body to world) and angular velocity in the body frame.
State = tuple[Float[Array, "3 3"], Float[Array, "3"]]


class HeavyTop(NamedTuple):
    """The numbers of a rigid body with a fixed point in a uniform field.

    Attributes:
        inertia: Principal moments of inertia about the fixed point, shape (3,), kg m^2.
        weight_moment: m g l, scalar, N m.
        up: Unit vector against gravity in the world, shape (3,).
        arm: Unit vector from the fixed point to the centre of mass in the body frame, shape (3,).
    """

    inertia: Float[Array, "3"]
    weight_moment: Float[Array, ""]
    up: Float[Array, "3"]
    arm: Float[Array, "3"]


def _attitude_action() -> Product:
    return Product(RightTranslation(SO3), LeftTranslation(Euclidean(3)))


def free_rigid_body(
    dtype: Any = None,
    *,
    inertia: Sequence[float] = (1.0, 2.0, 3.0),
    angular_velocity: Sequence[float] = (0.8, 0.0, 1.1),
) -> Problem:
    """A torque-free rigid body on SO(3) x R^3: R' = R hat(Omega), I Omega' = (I Omega) x Omega.

    Args:
        dtype: Floating dtype of the state and of the parameters; None for JAX's default.
        inertia: Principal moments of inertia about the centre of mass, kg m^2.
        angular_velocity: Omega(0) in the body frame, rad/s. R(0) is the identity.

    Returns:
        The problem: state (R (3, 3), Omega (3,)), the principal moments (3,) as args, and the invariants
        `kinetic_energy` () and `angular_momentum` (3,) (R I Omega, in the world frame).

    Source: Euler's equations, (19) and (20) of Celledoni et al. 2021 without gravity.
    """

    def field(t: Any, y: State, moments: Array) -> Array:
        omega = y[1]
        return jnp.concatenate([omega, jnp.cross(moments * omega, omega) / moments])

    return Problem(
        name="free rigid body",
        action=_attitude_action(),
        field=field,
        initial=(jnp.eye(3, dtype=dtype), jnp.asarray(angular_velocity, dtype)),
        args=jnp.asarray(inertia, dtype),
        invariants={
            "kinetic_energy": lambda y, moments: 0.5 * (moments * y[1]) @ y[1],
            "angular_momentum": lambda y, moments: y[0] @ (moments * y[1]),
        },
    )


def _heavy_top_parameters(
    dtype: Any, inertia: Sequence[float], weight_moment: float, up: Sequence[float], arm: Sequence[float]
) -> HeavyTop:
    return HeavyTop(
        inertia=jnp.asarray(inertia, dtype),
        weight_moment=jnp.asarray(weight_moment, dtype),
        up=jnp.asarray(up, dtype),
        arm=jnp.asarray(arm, dtype),
    )


def heavy_top(
    dtype: Any = None,
    *,
    inertia: Sequence[float] = (1.0, 2.0, 3.0),
    weight_moment: float = 5.0,
    up: Sequence[float] = (0.6, 0.0, 0.8),
    arm: Sequence[float] = (0.0, 1.0, 0.0),
    angular_velocity: Sequence[float] = (0.5, -1.0, 0.8),
) -> Problem:
    """A heavy top on SO(3) x R^3: R' = R hat(Omega), I Omega' = (I Omega) x Omega + m g l Gamma x X, Gamma = R^T e.

    e is `up`, X is `arm`. The default is an asymmetric top without a further integral.

    Args:
        dtype: Floating dtype of the state and of the parameters; None for JAX's default.
        inertia: Principal moments of inertia about the fixed point, kg m^2.
        weight_moment: m g l, N m.
        up: Unit vector against gravity in the world.
        arm: Unit vector from the fixed point to the centre of mass in the body frame.
        angular_velocity: Omega(0) in the body frame, rad/s. R(0) is the identity.

    Returns:
        The problem: state (R (3, 3), Omega (3,)), `HeavyTop` parameters, and the invariants `energy` () and
        `vertical_momentum` () (angular momentum about `up`).

    Source: Celledoni et al. 2021, (19) and (20), with Omega = I^-1 Pi in place of Pi.
    """

    def field(t: Any, y: State, top: HeavyTop) -> Array:
        attitude, omega = y
        weight = top.weight_moment * jnp.cross(attitude.T @ top.up, top.arm)
        return jnp.concatenate([omega, (jnp.cross(top.inertia * omega, omega) + weight) / top.inertia])

    def energy(y: State, top: HeavyTop) -> Array:
        attitude, omega = y
        return 0.5 * (top.inertia * omega) @ omega + top.weight_moment * (top.up @ (attitude @ top.arm))

    return Problem(
        name="heavy top",
        action=_attitude_action(),
        field=field,
        initial=(jnp.eye(3, dtype=dtype), jnp.asarray(angular_velocity, dtype)),
        args=_heavy_top_parameters(dtype, inertia, weight_moment, up, arm),
        invariants={
            "energy": energy,
            "vertical_momentum": lambda y, top: top.up @ (y[0] @ (top.inertia * y[1])),
        },
    )


def euler_poisson(
    dtype: Any = None,
    *,
    inertia: Sequence[float] = (1.0, 2.0, 3.0),
    weight_moment: float = 5.0,
    up: Sequence[float] = (0.6, 0.0, 0.8),
    arm: Sequence[float] = (0.0, 1.0, 0.0),
    angular_velocity: Sequence[float] = (0.5, -1.0, 0.8),
) -> Problem:
    """The same heavy top without its attitude: the Euler-Poisson equations on se(3)*, by the coadjoint action.

    With Gamma = R^T e (the upward direction in the body) and Pi = I Omega (the momentum in the body),

        Gamma' = Gamma x Omega,    Pi' = Pi x Omega + m g l Gamma x X,

    which is the Lie-Poisson equation mu' = -ad*(dH) of mu = (Gamma, Pi) for H = 1/2 Pi . I^-1 Pi + m g l Gamma . X;
    so the field is -dH = -(m g l X, Omega). |Gamma| and Gamma . Pi are constant on every orbit of the action.

    Args: as `heavy_top`.

    Returns:
        The problem: state mu (6,) = (Gamma, Pi), `HeavyTop` parameters, and the invariants `energy` (),
        `up_squared` () (|Gamma|^2) and `vertical_momentum` () (Gamma . Pi).

    Source: Celledoni et al. 2021, (23) and (24), which write (Pi, Gamma).
    """
    top = _heavy_top_parameters(dtype, inertia, weight_moment, up, arm)
    momentum = top.inertia * jnp.asarray(angular_velocity, dtype)

    def field(t: Any, mu: Array, top: HeavyTop) -> Array:
        return -jnp.concatenate([top.weight_moment * top.arm, mu[3:] / top.inertia])

    return Problem(
        name="heavy top, Euler-Poisson equations",
        action=Coadjoint(SE3),
        field=field,
        initial=jnp.concatenate([top.up, momentum]),
        args=top,
        invariants={
            "energy": lambda mu, top: 0.5 * mu[3:] @ (mu[3:] / top.inertia) + top.weight_moment * (mu[:3] @ top.arm),
            "up_squared": lambda mu, top: mu[:3] @ mu[:3],
            "vertical_momentum": lambda mu, top: mu[:3] @ mu[3:],
        },
    )
