"""A torque-free rigid body: with its attitude, on the cotangent bundle of SO(3), and by its momentum only.

E. Celledoni, E. Cokaj, A. Leone, D. Murari, B. Owren, Lie group integrators for mechanical systems, 2021, Sections 2.1
and 3. An asymmetric body (moments 1, 2, 3) is the default; all functions use the same initial state.
"""

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.integrators.method import Number
from lgsim.lie.action import Coadjoint, LeftTranslation, Product, RightTranslation, Translation
from lgsim.lie.group import SO3
from lgsim.lie.product import Cotangent
from lgsim.systems import validation
from lgsim.systems.initial_value_problem import InitialValueProblem
from lgsim.systems.validation import Dtype, Numbers

# (R, Omega): attitude (body to world) and angular velocity in the body frame; or (R, pi) with the space momentum.
State = tuple[Float[Array, "3 3"], Float[Array, "3"]]
Moments = Float[Array, "3"]


def _numbers(
    dtype: Dtype | None, inertia: Numbers, angular_velocity: Numbers
) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
    """Principal moments and angular velocity as arrays (3,)."""
    return (
        validation.positive("inertia", inertia, dtype, 3),
        validation.numbers("angular_velocity", angular_velocity, dtype, 3),
    )


# Fields are module-level functions, so that two problems of one kind share their compiled programs.
def _euler(t: Number, y: State, moments: Moments) -> Float[Array, "6"]:
    omega = y[1]
    return jnp.concatenate([omega, jnp.cross(moments * omega, omega) / moments])


def free_rigid_body(
    dtype: Dtype | None = None,
    *,
    inertia: Numbers = (1.0, 2.0, 3.0),
    angular_velocity: Numbers = (0.8, 0.0, 1.1),
    attitude: Numbers | None = None,
) -> InitialValueProblem:
    """A torque-free rigid body on SO(3) x R^3: R' = R hat(Omega), I Omega' = (I Omega) x Omega.

    Args:
        dtype: Floating dtype of the state and of the parameters; None for JAX's default.
        inertia: Principal moments of inertia about the center of mass, kg m^2.
        angular_velocity: Omega(0) in the body frame, rad/s.
        attitude: R(0), body to world, (3, 3); None for the identity.

    Returns:
        The problem: state (R (3, 3), Omega (3,)), the principal moments (3,) as args, and the invariants
        `kinetic_energy` () and `angular_momentum` (3,) (R I Omega, in the world frame).

    Raises:
        ValueError: a moment is not positive, or `attitude` is not a rotation.

    Source: Euler's equations, (19) and (20) of Celledoni et al. 2021 without gravity.
    """
    moments, omega = _numbers(dtype, inertia, angular_velocity)

    return InitialValueProblem(
        name="free rigid body",
        action=Product(RightTranslation(SO3), Translation(3)),
        field=_euler,
        initial=(validation.attitude("attitude", attitude, moments.dtype), omega),
        args=moments,
        invariants={
            "kinetic_energy": lambda y, moments: 0.5 * (moments * y[1]) @ y[1],
            "angular_momentum": lambda y, moments: y[0] @ (moments * y[1]),
        },
    )


def _lie_poisson(t: Number, momentum: Float[Array, "3"], moments: Moments) -> Float[Array, "3"]:
    return -momentum / moments


def free_rigid_body_momentum(
    dtype: Dtype | None = None,
    *,
    inertia: Numbers = (1.0, 2.0, 3.0),
    angular_velocity: Numbers = (0.8, 0.0, 1.1),
) -> InitialValueProblem:
    """A torque-free rigid body on so(3)*, by the coadjoint action: Pi' = Pi x I^-1 Pi, Pi = I Omega.

    The Lie-Poisson equation of H(Pi) = 1/2 Pi . I^-1 Pi. The action moves Pi by xi x Pi, so the field is minus the
    angular velocity. |Pi| is constant on every orbit of the action, hence for any step size.

    The arguments are those of `free_rigid_body` without the attitude.

    Returns:
        The problem: state Pi (3,) in the body frame, the principal moments (3,) as args, and the invariants
        `kinetic_energy` () and `momentum_squared` ().

    Raises:
        ValueError: a moment is not positive.

    Source: Celledoni et al. 2021, Example 1, where the sign of f is printed wrong.
    """
    moments, omega = _numbers(dtype, inertia, angular_velocity)
    return InitialValueProblem(
        name="free rigid body, Lie-Poisson on so(3)*",
        action=Coadjoint(SO3),
        field=_lie_poisson,
        initial=moments * omega,
        args=moments,
        invariants={
            "kinetic_energy": lambda momentum, moments: 0.5 * momentum @ (momentum / moments),
            "momentum_squared": lambda momentum, moments: momentum @ momentum,
        },
    )


def space_angular_velocity(
    attitude: Float[Array, "3 3"], momentum: Float[Array, "3"], moments: Float[Array, "3"]
) -> Float[Array, "3"]:
    """The angular velocity ``omega = R I^-1 R^T pi`` in the world frame, rad/s.

    Args:
        attitude: R, body to world, (3, 3).
        momentum: The space momentum pi, (3,), kg m^2/s.
        moments: The principal moments of inertia I, (3,), kg m^2.
    """
    return attitude @ ((attitude.T @ momentum) / moments)


def _canonical(t: Number, y: State, moments: Moments) -> Float[Array, "6"]:
    omega = space_angular_velocity(*y, moments)
    return jnp.concatenate([omega, -jnp.cross(omega, y[1])])


def _hamiltonian(R: Float[Array, "3 3"], momentum: Float[Array, "3"], moments: Moments) -> Float[Array, ""]:
    return 0.5 * momentum @ space_angular_velocity(R, momentum, moments)


def free_rigid_body_cotangent(
    dtype: Dtype | None = None,
    *,
    inertia: Numbers = (1.0, 2.0, 3.0),
    angular_velocity: Numbers = (0.8, 0.0, 1.1),
    attitude: Numbers | None = None,
) -> InitialValueProblem:
    """A torque-free rigid body on T*SO(3), in space variables: R' = hat(omega) R, pi' = 0, omega = R I^-1 R^T pi.

    The canonical equations of H(R, pi) = 1/2 pi . R I^-1 R^T pi. States are elements of `lgsim.Cotangent(lgsim.SO3)`
    with the group acting from the left, pi' = f2 + omega x pi, so the field is (omega, -omega x pi).

    The arguments are those of `free_rigid_body`.

    Returns:
        The problem: state (R (3, 3), pi (3,)) with the space momentum, the principal moments (3,) as args, the
        invariants `kinetic_energy` () and `angular_momentum` (3,) (pi itself), and the Hamiltonian.

    Raises:
        ValueError: a moment is not positive, or `attitude` is not a rotation.

    Source: Celledoni et al. 2021, (12), (14), (21) and (22) without gravity.
    """
    moments, omega = _numbers(dtype, inertia, angular_velocity)
    start = validation.attitude("attitude", attitude, moments.dtype)

    return InitialValueProblem(
        name="free rigid body on T*SO(3)",
        action=LeftTranslation(Cotangent(SO3)),
        field=_canonical,
        initial=(start, start @ (moments * omega)),
        args=moments,
        invariants={
            "kinetic_energy": lambda y, moments: _hamiltonian(y[0], y[1], moments),
            "angular_momentum": lambda y, moments: y[1],
        },
        hamiltonian=_hamiltonian,
    )
