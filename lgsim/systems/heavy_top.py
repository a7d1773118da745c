"""A rigid body with a fixed point in a uniform field, in the formulations of one paper and on SO(3) x R^3.

E. Celledoni, E. Cokaj, A. Leone, D. Murari, B. Owren, Lie group integrators for mechanical systems, 2021, Section 3.4.
The defaults are an asymmetric top without a further integral; all functions use the same parameters and initial state.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.integrators.method import Number
from lgsim.lie import product
from lgsim.lie.action import Coadjoint, LeftTranslation, Product, RightTranslation, Translation
from lgsim.lie.group import SE3, SO3
from lgsim.systems import validation
from lgsim.systems.initial_value_problem import InitialValueProblem
from lgsim.systems.rigid_body import State, space_angular_velocity
from lgsim.systems.validation import Dtype, Numbers


class HeavyTop(NamedTuple):
    """The parameters of a rigid body with a fixed point in a uniform field.

    Attributes:
        inertia: Principal moments of inertia about the fixed point, shape (3,), kg m^2.
        weight_moment: m g l, scalar, N m.
        up: Unit vector against gravity in the world, shape (3,).
        arm: Unit vector from the fixed point to the center of mass in the body frame, shape (3,).
    """

    inertia: Float[Array, "3"]
    weight_moment: Float[Array, ""]
    up: Float[Array, "3"]
    arm: Float[Array, "3"]


_FAST_SPIN = {"up": (0.0, 0.0, 1.0), "arm": (0.0, 1.0, 0.0), "angular_velocity": (0.0, 150.0, -4.61538)}

BRULS_CARDONA_TOP: Mapping[str, Any] = MappingProxyType(
    {"inertia": (15.234375, 0.46875, 15.234375), "weight_moment": 15 * 9.81, **_FAST_SPIN}
)
"""The fast symmetric top of Bruls and Cardona, arguments of all functions: 15 kg at 1 m from the fixed point.

The moments are those about the fixed point; the paper prints (0.234375, 0.46875, 0.234375) about the center of mass.

Source: O. Bruls, A. Cardona, On the use of Lie group time integrators in multibody dynamics, Journal of Computational
and Nonlinear Dynamics 5(3), 2010.
"""

CELLEDONI_TOP: Mapping[str, Any] = MappingProxyType(
    {"inertia": (0.234375, 0.46875, 0.234375), "weight_moment": 15 * 9.81 * 2, **_FAST_SPIN}
)
"""The top of Figs. 2 and 3 as printed, arguments of all functions: 15 kg at 2 m, the moments about the fixed point.

No rigid body has these moments with this arm; gravity points down, as Section 3.4.1 has it and 3.4.4 does not.

Source: Celledoni et al. 2021, Section 3.4.4.
"""


def _parameters(dtype: Any, inertia: Any, weight_moment: Number, up: Any, arm: Any) -> HeavyTop:
    return HeavyTop(
        inertia=validation.positive("inertia", inertia, dtype, 3),
        weight_moment=validation.numbers("weight_moment", weight_moment, dtype),
        up=validation.direction("up", up, dtype),
        arm=validation.direction("arm", arm, dtype),
    )


# Fields are module-level functions, so that two problems of one kind share their compiled programs.
def _euler(t: Number, y: State, top: HeavyTop) -> Float[Array, "6"]:
    attitude, omega = y
    weight = top.weight_moment * jnp.cross(attitude.T @ top.up, top.arm)
    return jnp.concatenate([omega, (jnp.cross(top.inertia * omega, omega) + weight) / top.inertia])


def _energy(y: State, top: HeavyTop) -> Float[Array, ""]:
    attitude, omega = y
    return 0.5 * (top.inertia * omega) @ omega + top.weight_moment * (top.up @ (attitude @ top.arm))


def heavy_top(
    dtype: Dtype | None = None,
    *,
    inertia: Numbers = (1.0, 2.0, 3.0),
    weight_moment: Number = 5.0,
    up: Numbers = (0.6, 0.0, 0.8),
    arm: Numbers = (0.0, 1.0, 0.0),
    angular_velocity: Numbers = (0.5, -1.0, 0.8),
    attitude: Numbers | None = None,
) -> InitialValueProblem:
    """A heavy top on SO(3) x R^3: R' = R hat(Omega), I Omega' = (I Omega) x Omega + m g l Gamma x X, Gamma = R^T e.

    e is `up`, X is `arm`.

    Args:
        dtype: Floating dtype of the state and of the parameters; None for JAX's default.
        inertia: Principal moments of inertia about the fixed point, kg m^2.
        weight_moment: m g l, N m.
        up: Unit vector against gravity in the world.
        arm: Unit vector from the fixed point to the center of mass in the body frame.
        angular_velocity: Omega(0) in the body frame, rad/s.
        attitude: R(0), body to world, (3, 3); None for the identity.

    Returns:
        The problem: state (R (3, 3), Omega (3,)), `HeavyTop` parameters, and the invariants `energy` () and
        `vertical_momentum` () (angular momentum about `up`).

    Raises:
        ValueError: a moment is not positive, `up` or `arm` is not a unit vector, or `attitude` is not a rotation.

    Source: Celledoni et al. 2021, (19) and (20), with Omega = I^-1 Pi instead of Pi.
    """
    top = _parameters(dtype, inertia, weight_moment, up, arm)

    return InitialValueProblem(
        name="heavy top",
        action=Product(RightTranslation(SO3), Translation(3)),
        field=_euler,
        initial=(
            validation.attitude("attitude", attitude, top.up.dtype),
            validation.numbers("angular_velocity", angular_velocity, top.up.dtype, 3),
        ),
        args=top,
        invariants={
            "energy": _energy,
            "vertical_momentum": lambda y, top: top.up @ (y[0] @ (top.inertia * y[1])),
        },
    )


def _canonical(t: Number, y: State, top: HeavyTop) -> Float[Array, "6"]:
    R, momentum = y
    omega = space_angular_velocity(R, momentum, top.inertia)
    weight = top.weight_moment * jnp.cross(top.up, R @ top.arm)
    return jnp.concatenate([omega, weight - jnp.cross(omega, momentum)])


def _hamiltonian(R: Float[Array, "3 3"], momentum: Float[Array, "3"], top: HeavyTop) -> Float[Array, ""]:
    kinetic = 0.5 * momentum @ space_angular_velocity(R, momentum, top.inertia)
    return kinetic + top.weight_moment * (top.up @ (R @ top.arm))


def heavy_top_cotangent(
    dtype: Dtype | None = None,
    *,
    inertia: Numbers = (1.0, 2.0, 3.0),
    weight_moment: Number = 5.0,
    up: Numbers = (0.6, 0.0, 0.8),
    arm: Numbers = (0.0, 1.0, 0.0),
    angular_velocity: Numbers = (0.5, -1.0, 0.8),
    attitude: Numbers | None = None,
) -> InitialValueProblem:
    """A heavy top on T*SO(3), in space variables: R' = hat(omega) R, pi' = m g l e x R X, omega = R I^-1 R^T pi.

    The canonical equations of H(R, pi) = 1/2 pi . omega + m g l e . R X. States are elements of
    `lgsim.Cotangent(lgsim.SO3)` with the group acting from the left, so the field is
    (dH/dpi, -dH/dR) = (omega, m g l e x R X - omega x pi).

    The arguments are those of `heavy_top`.

    Returns:
        The problem: state (R (3, 3), pi (3,)) with the space momentum, `HeavyTop` parameters, the invariants `energy`
        () and `vertical_momentum` (), and the Hamiltonian.

    Raises:
        ValueError: a moment is not positive, `up` or `arm` is not a unit vector, or `attitude` is not a rotation.

    Source: Celledoni et al. 2021, Section 3.4.1, (14), (21) and (22).
    """
    top = _parameters(dtype, inertia, weight_moment, up, arm)
    start = validation.attitude("attitude", attitude, top.up.dtype)
    omega = validation.numbers("angular_velocity", angular_velocity, top.up.dtype, 3)

    return InitialValueProblem(
        name="heavy top on T*SO(3)",
        action=LeftTranslation(product.Cotangent(SO3)),
        field=_canonical,
        initial=(start, start @ (top.inertia * omega)),
        args=top,
        invariants={
            "energy": lambda y, top: _hamiltonian(y[0], y[1], top),
            "vertical_momentum": lambda y, top: top.up @ y[1],
        },
        hamiltonian=_hamiltonian,
    )


def _lie_poisson(t: Number, mu: Float[Array, "6"], top: HeavyTop) -> Float[Array, "6"]:
    return -jnp.concatenate([top.weight_moment * top.arm, mu[3:] / top.inertia])


def euler_poisson(
    dtype: Dtype | None = None,
    *,
    inertia: Numbers = (1.0, 2.0, 3.0),
    weight_moment: Number = 5.0,
    up: Numbers = (0.6, 0.0, 0.8),
    arm: Numbers = (0.0, 1.0, 0.0),
    angular_velocity: Numbers = (0.5, -1.0, 0.8),
    attitude: Numbers | None = None,
) -> InitialValueProblem:
    """The same heavy top without its attitude: the Euler-Poisson equations on se(3)*, by the coadjoint action.

    With Gamma = R^T e (the upward direction in the body) and Pi = I Omega (the momentum in the body),

        Gamma' = Gamma x Omega,    Pi' = Pi x Omega + m g l Gamma x X,

    which is the Lie-Poisson equation mu' = -ad*(dH) of mu = (Gamma, Pi) for H = 1/2 Pi . I^-1 Pi + m g l Gamma . X;
    so the field is -dH = -(m g l X, Omega). |Gamma| and Gamma . Pi are constant on every orbit of the action.

    The arguments are those of `heavy_top`.

    Returns:
        The problem: state mu (6,) = (Gamma, Pi), `HeavyTop` parameters, and the invariants `energy` (),
        `up_squared` () (|Gamma|^2) and `vertical_momentum` () (Gamma . Pi).

    Raises:
        ValueError: a moment is not positive, `up` or `arm` is not a unit vector, or `attitude` is not a rotation.

    Source: Celledoni et al. 2021, (23) and (24), which write (Pi, Gamma).
    """
    top = _parameters(dtype, inertia, weight_moment, up, arm)
    momentum = top.inertia * validation.numbers("angular_velocity", angular_velocity, top.up.dtype, 3)
    start = validation.attitude("attitude", attitude, top.up.dtype)

    return InitialValueProblem(
        name="heavy top, Euler-Poisson equations",
        action=Coadjoint(SE3),
        field=_lie_poisson,
        initial=jnp.concatenate([start.T @ top.up, momentum]),
        args=top,
        invariants={
            "energy": lambda mu, top: 0.5 * mu[3:] @ (mu[3:] / top.inertia) + top.weight_moment * (mu[:3] @ top.arm),
            "up_squared": lambda mu, top: mu[:3] @ mu[:3],
            "vertical_momentum": lambda mu, top: mu[:3] @ mu[3:],
        },
    )
