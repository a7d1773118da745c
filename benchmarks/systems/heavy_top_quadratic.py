"""The heavy top on T*(SO(3) x R^3) with a quadratic Hamiltonian.

E. Celledoni, E. Cokaj, A. Leone, D. Murari, B. Owren, Lie group integrators for mechanical systems, 2021, Section
3.4.3. Numbers and start are those of `lgsim.systems.heavy_top`.
"""

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.integrators.method import Number
from lgsim.lie import product
from lgsim.lie.action import LeftTranslation
from lgsim.lie.group import SO3, Euclidean
from lgsim.systems import InitialValueProblem, heavy_top, validation
from lgsim.systems.heavy_top import HeavyTop
from lgsim.systems.rigid_body import space_angular_velocity
from lgsim.systems.validation import Dtype, Numbers

# ((R, q), (pi, p) in one array): an element of the cotangent group of SO(3) x R^3
QuadraticState = tuple[tuple[Float[Array, "3 3"], Float[Array, "3"]], Float[Array, "6"]]


def _quadratic(t: Number, y: QuadraticState, top: HeavyTop) -> Float[Array, "12"]:
    (R, _), mu = y
    momentum, p = mu[:3], mu[3:]
    omega = space_angular_velocity(R, momentum, top.inertia)
    torque = -jnp.cross(top.up, R @ p)
    return jnp.concatenate([omega, p - R.T @ top.up, torque - jnp.cross(omega, momentum), jnp.zeros_like(p)])


def _quadratic_hamiltonian(
    g: tuple[Float[Array, "3 3"], Float[Array, "3"]], mu: Float[Array, "6"], top: HeavyTop
) -> Float[Array, ""]:
    momentum, p = mu[:3], mu[3:]
    relative = p - g[0].T @ top.up
    kinetic = 0.5 * momentum @ space_angular_velocity(g[0], momentum, top.inertia)
    return kinetic + 0.5 * relative @ relative - 0.5 * top.up @ top.up


def heavy_top_quadratic(
    dtype: Dtype | None = None,
    *,
    inertia: Numbers = (1.0, 2.0, 3.0),
    weight_moment: Number = 5.0,
    up: Numbers = (0.6, 0.0, 0.8),
    arm: Numbers = (0.0, 1.0, 0.0),
    angular_velocity: Numbers = (0.5, -1.0, 0.8),
    attitude: Numbers | None = None,
    position: Numbers = (0.0, 0.0, 0.0),
) -> InitialValueProblem:
    """A heavy top on T*(SO(3) x R^3) with a quadratic Hamiltonian, its weight a constant momentum p = -m g l X.

    H = 1/2 pi . omega + 1/2 |p - R^T e|^2 - 1/2 |e|^2, omega = R I^-1 R^T pi; its canonical equations are

        R' = hat(omega) R,    q' = p - R^T e,    pi' = -e x R p,    p' = 0.

    H is the energy of the top plus the constant 1/2 |p|^2. q feeds back on nothing. Only p knows the weight and the
    arm, so a derivative by them is taken through the initial state.

    Args:
        dtype: As of `heavy_top`.
        inertia: As of `heavy_top`.
        weight_moment: As of `heavy_top`.
        up: As of `heavy_top`.
        arm: As of `heavy_top`.
        angular_velocity: As of `heavy_top`.
        attitude: As of `heavy_top`.
        position: q(0), (3,), without a meaning for the top.

    Returns:
        The problem: state ((R (3, 3), q (3,)), mu (6,) = (pi, p)), an element of
        `lgsim.Cotangent(lgsim.Product(lgsim.SO3, lgsim.Euclidean(3)))`; `HeavyTop` parameters, of which `inertia` and
        `up` are used; the invariants `hamiltonian` (), `energy` () (of the top), `vertical_momentum` () and `weight`
        (3,) (p); and the Hamiltonian.

    Raises:
        ValueError: a moment is not positive, `up` or `arm` no unit vector, or `attitude` no rotation.

    Source: Celledoni et al. 2021, Section 3.4.3, (29) to (32).
    """
    problem = heavy_top(
        dtype,
        inertia=inertia,
        weight_moment=weight_moment,
        up=up,
        arm=arm,
        angular_velocity=angular_velocity,
        attitude=attitude,
    )
    top, (start, omega) = problem.args, problem.initial
    q = validation.numbers("position", position, top.up.dtype, 3)

    return InitialValueProblem(
        name="heavy top with a quadratic Hamiltonian",
        action=LeftTranslation(product.Cotangent(product.Product(SO3, Euclidean(3)))),
        field=_quadratic,
        initial=(
            (start, q),
            jnp.concatenate([start @ (top.inertia * omega), -top.weight_moment * top.arm]),
        ),
        args=top,
        invariants={
            "hamiltonian": lambda y, top: _quadratic_hamiltonian(y[0], y[1], top),
            "energy": lambda y, top: _quadratic_hamiltonian(y[0], y[1], top) - 0.5 * y[1][3:] @ y[1][3:],
            "vertical_momentum": lambda y, top: top.up @ y[1][:3],
            "weight": lambda y, top: y[1][3:],
        },
        hamiltonian=_quadratic_hamiltonian,
    )
