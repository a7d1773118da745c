"""A chain of point masses on rigid massless rods from a fixed pivot: the N-fold spherical pendulum on (TS^2)^N.

q_i (unit vectors) are the directions of the rods from the pivot outwards, x_i = x_{i-1} + L_i q_i the positions of the
masses, omega_i . q_i = 0 the angular velocities in the world, q_i' = omega_i x q_i; e3 points up. A state is one array
(N, 6): rows (q_i, omega_i), or (q_i, pi_i) in the Hamiltonian form. The same program serves all N: longer chains
compile as fast, and a field costs O(N), because the forces in the rods solve a tridiagonal system.

E. Celledoni, E. Cokaj, A. Leone, D. Murari, B. Owren, Lie group integrators for mechanical systems, 2021, Section 5.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim._compile.linalg import tridiagonal
from lgsim.integrators.method import Number
from lgsim.lie.action import TangentSphere
from lgsim.lie.power import Power
from lgsim.systems import validation
from lgsim.systems.initial_value_problem import InitialValueProblem
from lgsim.systems.validation import Dtype, Numbers

State = Float[Array, "rods 6"]
Vectors = Float[Array, "rods 3"]


class PendulumParameters(NamedTuple):
    """The parameters of a chain of N point masses.

    Attributes:
        masses: Masses from the pivot outwards, shape (N,), kg.
        lengths: Lengths of the rods, shape (N,), m.
        gravity: Gravitational acceleration, downwards, scalar, m/s^2.
    """

    masses: Float[Array, " rods"]
    lengths: Float[Array, " rods"]
    gravity: Float[Array, ""]


def planar_start(rods: int) -> tuple[Float[np.ndarray, "rods 3"], Float[np.ndarray, "rods 3"]]:
    """The initial state of the paper, (q, omega) of shapes (N, 3): a straight chain that rotates in the xz plane.

    Source: Celledoni et al. 2021, Section 5.3: q_i = (sqrt 2 / 2, 0, sqrt 2 / 2), omega_i = (0, 1, 0).
    """
    return np.tile([np.sqrt(0.5), 0.0, np.sqrt(0.5)], (rods, 1)), np.tile([0.0, 1.0, 0.0], (rods, 1))


def generic_start(rods: int) -> tuple[Float[np.ndarray, "rods 3"], Float[np.ndarray, "rods 3"]]:
    """A generic initial state without symmetry, (q, omega) of shapes (N, 3): a hanging helix with different rates.

    q_i = (sin a cos b_i, sin a sin b_i, -cos a) with a = 0.6, b_i = 0.5 i, and omega_i = q_i x (0.4, -0.3, 0.2 cos i).
    """
    i = np.arange(rods)
    q = np.stack([np.sin(0.6) * np.cos(0.5 * i), np.sin(0.6) * np.sin(0.5 * i), np.full(rods, -np.cos(0.6))], axis=-1)
    return q, np.cross(q, np.stack([np.full(rods, 0.4), np.full(rods, -0.3), 0.2 * np.cos(i)], axis=-1))


def spherical_pendulum(
    dtype: Dtype | None = None,
    *,
    masses: Numbers = (1.0, 1.0),
    lengths: Numbers | None = None,
    gravity: Number = 9.81,
    directions: Numbers | None = None,
    angular_velocities: Numbers | None = None,
) -> InitialValueProblem:
    """The N-fold spherical pendulum with angular velocities: state (N, 6), rows (q_i, omega_i).

    The tensions T_i of the rods follow from q_i . (x_i'' - x_{i-1}'') = -L_i |omega_i|^2, a symmetric positive definite
    tridiagonal system; then omega_i' = q_i x (x_i'' - x_{i-1}'') / L_i. This solves the paper's R(q) omega' = g, of
    size 3 N, in O(N).

    Args:
        dtype: Floating dtype of the state and of the parameters; None for JAX's default.
        masses: Masses from the pivot outwards, (N,), kg; their number is the number of rods.
        lengths: Lengths of the rods, (N,), m; None for 1 m each.
        gravity: Gravitational acceleration, downwards, m/s^2.
        directions: q(0), (N, 3), unit vectors; None for `planar_start`.
        angular_velocities: omega(0), (N, 3), rad/s in the world, omega_i . q_i = 0; None for `planar_start`.

    Returns:
        The problem: state (N, 6), `PendulumParameters`, and the invariants `energy` (), `vertical_momentum` () (angular
        momentum about the vertical through the pivot), `norms` (N,) (|q_i|^2) and `tangency` (N,) (q_i . omega_i).

    Raises:
        ValueError: a shape does not fit, a mass or length is not positive, or (q, omega) is off the manifold.

    Source: Celledoni et al. 2021, Section 5.2.
    """
    chain = _parameters(dtype, masses, lengths, gravity)
    return InitialValueProblem(
        name=f"{chain.masses.shape[0]}-fold spherical pendulum",
        action=Power(TangentSphere(), chain.masses.shape[0]),
        field=_field,
        initial=_start(chain, directions, angular_velocities),
        args=chain,
        invariants={
            "energy": lambda y, chain: _energy(y[:, :3], _differences(y, chain), chain),
            "vertical_momentum": lambda y, chain: _vertical_momentum(y[:, :3], _differences(y, chain), chain),
            **_ON_THE_MANIFOLD,
        },
    )


def double_spherical_pendulum(dtype: Dtype | None = None) -> InitialValueProblem:
    """Two rods of 4 and 3 m with 2 and 3.5 kg in generic motion, hanging.

    The parameters are from no paper; the example of Celledoni et al. 2021, Section 5.3, is `spherical_pendulum()`.

    Args:
        dtype: Floating dtype of the state and of the parameters; None for JAX's default.

    Returns:
        The problem, see `spherical_pendulum`.
    """
    return spherical_pendulum(
        dtype,
        masses=(2.0, 3.5),
        lengths=(4.0, 3.0),
        directions=[[1 / 3, 2 / 3, -2 / 3], [-6 / 7, 2 / 7, -3 / 7]],
        angular_velocities=[[1 / 3, -5 / 6, -2 / 3], [0.4, 0.3, -0.6]],
    )


def spherical_pendulum_hamiltonian(
    dtype: Dtype | None = None,
    *,
    masses: Numbers = (1.0, 1.0),
    lengths: Numbers | None = None,
    gravity: Number = 9.81,
    directions: Numbers | None = None,
    angular_velocities: Numbers | None = None,
) -> InitialValueProblem:
    """The N-fold spherical pendulum with momenta: state (N, 6), rows (q_i, pi_i), pi_i = dT/domega_i.

    With P_i = sum_{j >= i} m_j x_j' the momentum of the masses beyond rod i, pi_i = L_i q_i x P_i, and

        q_i' = omega_i x q_i,    pi_i' = dH/dq_i x q_i + omega_i x pi_i,
        dH/dq_i = L_i (omega_i x P_i + g sum_{j >= i} m_j e3).

    pi determines P_i up to its part along q_i, which follows from q_i . (x_i' - x_{i-1}') = 0: the tridiagonal system
    of the tensions again, so that omega(q, pi) costs O(N).

    The arguments are those of `spherical_pendulum`.

    Returns:
        The problem: state (N, 6), `PendulumParameters`, and the invariants `energy` (), `vertical_momentum` (), `norms`
        (N,) (|q_i|^2) and `tangency` (N,) (q_i . pi_i).

    Raises:
        ValueError: a shape does not fit, a mass or length is not positive, or (q, omega) is off the manifold.

    Source: Celledoni et al. 2021, end of Section 5.2.
    """
    chain = _parameters(dtype, masses, lengths, gravity)
    start = _start(chain, directions, angular_velocities)
    q, outer = start[:, :3], _outer_sum(chain.masses[:, None] * jnp.cumsum(_differences(start, chain), axis=0))
    return InitialValueProblem(
        name=f"{chain.masses.shape[0]}-fold spherical pendulum, Hamiltonian form",
        action=Power(TangentSphere(), chain.masses.shape[0]),
        field=_hamiltonian_field,
        initial=jnp.concatenate([q, chain.lengths[:, None] * jnp.cross(q, outer)], axis=-1),
        args=chain,
        invariants={
            "energy": lambda y, chain: _energy(y[:, :3], _outer_momenta(y, chain)[1], chain),
            "vertical_momentum": lambda y, chain: jnp.sum(y[:, 5]),
            **_ON_THE_MANIFOLD,
        },
    )


_ON_THE_MANIFOLD = {
    "norms": lambda y, chain: _dot(y[:, :3], y[:, :3]),
    "tangency": lambda y, chain: _dot(y[:, :3], y[:, 3:]),
}


def _parameters(dtype: Dtype | None, masses: Numbers, lengths: Numbers | None, gravity: Number) -> PendulumParameters:
    """The parameters of a chain as checked arrays."""
    rods = validation.count("masses", masses)
    return PendulumParameters(
        masses=validation.positive("masses", masses, dtype, rods),
        lengths=validation.positive("lengths", [1.0] * rods if lengths is None else lengths, dtype, rods),
        gravity=validation.numbers("gravity", gravity, dtype),
    )


def _start(chain: PendulumParameters, directions: Numbers | None, angular_velocities: Numbers | None) -> State:
    """The initial state with rows (q_i, omega_i), by default that of `planar_start`, checked."""
    rods, dtype = chain.masses.shape[0], chain.masses.dtype
    q, omega = planar_start(rods)
    q = validation.numbers("directions", q if directions is None else directions, dtype, rods, 3)
    omega = omega if angular_velocities is None else angular_velocities
    omega = validation.numbers("angular_velocities", omega, dtype, rods, 3)
    y = jnp.concatenate([q, omega], axis=-1)
    return validation.point("(directions, angular_velocities)", y, Power(TangentSphere(), rods))


def _dot(a: Vectors, b: Vectors) -> Float[Array, " rods"]:
    """The inner products of rows."""
    return jnp.sum(a * b, axis=-1)


def _inner(a: Float[Array, "rods ..."]) -> Float[Array, "rods ..."]:
    """The array with a_{i-1} in row i and zero in the first: the pivot does not move."""
    return jnp.concatenate([jnp.zeros_like(a[:1]), a[:-1]])


def _outer(a: Float[Array, "rods ..."]) -> Float[Array, "rods ..."]:
    """The array with a_{i+1} in row i and zero in the last: no mass follows the last one."""
    return jnp.concatenate([a[1:], jnp.zeros_like(a[:1])])


def _outer_sum(a: Float[Array, "rods ..."]) -> Float[Array, "rods ..."]:
    """The array with the sum of a_j over j >= i in row i."""
    return jnp.cumsum(a[::-1], axis=0)[::-1]


def _differences(y: State, chain: PendulumParameters) -> Vectors:
    """The relative velocities x_i' - x_{i-1}' of neighboring masses, (N, 3), m/s."""
    return chain.lengths[:, None] * jnp.cross(y[:, 3:], y[:, :3])


def _relative_accelerations(force: Vectors, chain: PendulumParameters) -> Vectors:
    """The accelerations x_i'' - x_{i-1}'' when rod i pulls with force_i at mass i and with -force_i at mass i - 1."""
    acceleration = (force - _outer(force)) / chain.masses[:, None]
    return acceleration - _inner(acceleration)


def _rod_forces(q: Vectors, target: Float[Array, " rods"], chain: PendulumParameters) -> Float[Array, " rods"]:
    """The s for which forces s_i q_i give relative accelerations with the components ``target`` along the rods."""
    inverse_masses = 1 / chain.masses
    lower = -_dot(q, _inner(q)) * _inner(inverse_masses)
    return tridiagonal.solve(inverse_masses + _inner(inverse_masses), lower, target)


def _field(t: Number, y: State, chain: PendulumParameters) -> Float[Array, " algebra"]:
    omega_dot = pendulum_accelerations(y, chain)
    return jnp.concatenate([jnp.cross(y[:, :3], omega_dot), y[:, 3:]], axis=-1).ravel()


def pendulum_accelerations(y: State, chain: PendulumParameters) -> Vectors:
    """The angular accelerations omega_i' of a state with rows (q_i, omega_i), (N, 3), rad/s^2 in the world.

    They are orthogonal to the rods, omega_i' . q_i = 0.

    Source: Celledoni et al. 2021, Section 5.2; Fig. 11(c) plots their second components.
    """
    q, omega = y[:, :3], y[:, 3:]
    # gravity accelerates all masses equally, and so separates only the first from the pivot
    fall = jnp.zeros_like(q).at[0, 2].set(-chain.gravity)
    # rod forces for q_i . (x_i'' - x_(i-1)'') = -L_i |omega_i|^2
    compression = _rod_forces(q, -chain.lengths * _dot(omega, omega) - _dot(q, fall), chain)
    relative = _relative_accelerations(compression[:, None] * q, chain) + fall
    return jnp.cross(q, relative) / chain.lengths[:, None]


def _outer_momenta(y: State, chain: PendulumParameters) -> tuple[Vectors, Vectors]:
    """The momenta P_i of the masses beyond each rod and the velocities x_i' - x_{i-1}', from rows (q_i, pi_i)."""
    q, momentum = y[:, :3], y[:, 3:]
    # across and along the rods; momenta separate the masses as forces do, with velocities instead of accelerations
    across = jnp.cross(momentum, q) / chain.lengths[:, None]
    along = _rod_forces(q, -_dot(q, _relative_accelerations(across, chain)), chain)
    outer = across + along[:, None] * q
    return outer, _relative_accelerations(outer, chain)


def _hamiltonian_field(t: Number, y: State, chain: PendulumParameters) -> Float[Array, " algebra"]:
    q = y[:, :3]
    outer, differences = _outer_momenta(y, chain)
    omega = jnp.cross(q, differences) / chain.lengths[:, None]
    weight = jnp.zeros_like(q).at[:, 2].set(chain.gravity * _outer_sum(chain.masses))
    slope = chain.lengths[:, None] * (jnp.cross(omega, outer) + weight)
    return jnp.concatenate([slope, omega], axis=-1).ravel()


def _energy(q: Vectors, differences: Vectors, chain: PendulumParameters) -> Float[Array, ""]:
    velocities, heights = jnp.cumsum(differences, axis=0), jnp.cumsum(chain.lengths * q[:, 2])
    return jnp.sum(chain.masses * (0.5 * _dot(velocities, velocities) + chain.gravity * heights))


def _vertical_momentum(q: Vectors, differences: Vectors, chain: PendulumParameters) -> Float[Array, ""]:
    positions, velocities = jnp.cumsum(chain.lengths[:, None] * q, axis=0), jnp.cumsum(differences, axis=0)
    return jnp.sum(chain.masses * jnp.cross(positions, velocities)[:, 2])
