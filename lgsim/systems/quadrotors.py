"""Two quadrotors that carry a point mass on rigid massless links; any other number is possible as well.

e3 = (0, 0, 1) points **along** gravity. y is the load, q_i the unit vector from quadrotor i to the load, so the
quadrotors are at y - L_i q_i; q_i' = omega_i x q_i with omega_i . q_i = 0 in the world; R_i is the attitude of
quadrotor i (body to world), Omega_i its angular velocity in the body. Forces u_i (world) and moments M_i (body) act at
the quadrotors' centers:

    (m_y + sum m_i q_i q_i^T)(y'' - g e3) = sum q_i (q_i . u_i - m_i L_i |omega_i|^2),
    omega_i' = q_i x (y'' - g e3 - u_i / m_i) / L_i,    J_i Omega_i' = J_i Omega_i x Omega_i + M_i.

E. Celledoni, E. Cokaj, A. Leone, D. Murari, B. Owren, Lie group integrators for mechanical systems, 2021, Section 6,
(36) and (37).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim._compile.spatial import Mat, Vec, pack, unpack
from lgsim._compile.xla import fusion_barrier
from lgsim.integrators.method import Number
from lgsim.lie.action import Product, RightTranslation, TangentSphere, Translation
from lgsim.lie.group import SO3
from lgsim.lie.power import Power
from lgsim.systems import validation
from lgsim.systems.initial_value_problem import InitialValueProblem
from lgsim.systems.validation import Dtype, Numbers

# ((y, v), R, Omega, rows (q, omega)): load, attitudes, angular velocities, links of n quadrotors.
State = tuple[Float[Array, "6"], Float[Array, "n 3 3"], Float[Array, "n 3"], Float[Array, "n 6"]]


class QuadrotorParameters(NamedTuple):
    """The parameters of n quadrotors and their load.

    Attributes:
        load_mass: Mass of the load, scalar, kg.
        masses: Masses of the quadrotors, shape (n,), kg.
        lengths: Lengths of the links, shape (n,), m.
        inertia: Principal moments of inertia of each quadrotor about its center of mass, shape (n, 3), kg m^2.
        gravity: Gravitational acceleration along e3, scalar, m/s^2.
    """

    load_mass: Float[Array, ""]
    masses: Float[Array, " n"]
    lengths: Float[Array, " n"]
    inertia: Float[Array, "n 3"]
    gravity: Float[Array, ""]


Inputs = tuple[Float[Array, "n 3"], Float[Array, "n 3"]]
"""Forces in the world, N, and moments in the body frames, N m."""
Control = Callable[[Number, State, QuadrotorParameters, Any], Inputs]
"""``control(t, y, vehicles, parameters)``: the forces and moments at time t in the state y."""


@dataclass(frozen=True)
class QuadrotorField:
    """The field of `two_quadrotors`; fields with one control are equal, so that they share their compiled programs.

    Attributes:
        control: `control(t, y, vehicles, parameters)`, forces and moments; None for no inputs.
    """

    control: Control | None

    def __call__(self, t: Number, y: State, args: tuple[QuadrotorParameters, Any]) -> Float[Array, " algebra"]:
        """The algebra vector of (y, v), of the attitudes, of Omega and of the links."""
        vehicles, parameters = args
        inputs = None if self.control is None else self.control(t, y, vehicles, parameters)
        load_rate, spin, spin_rate, link_rate = state_rates(y, vehicles, inputs)
        swing = jnp.concatenate([jnp.cross(y[3][:, :3], link_rate), y[3][:, 3:]], axis=-1)
        return jnp.concatenate([load_rate, spin.ravel(), spin_rate.ravel(), swing.ravel()])


_TWO: dict[str, Any] = {
    "load_mass": 1.5, "masses": (0.8, 1.0), "lengths": (1.0, 1.3), "gravity": 9.81,
    "inertia": ((0.082, 0.0845, 0.1377), (0.09, 0.1, 0.15)),
}  # fmt: skip


def two_quadrotors(
    dtype: Dtype | None = None,
    *,
    vehicles: QuadrotorParameters | None = None,
    position: Numbers = (0.0, 0.0, 0.0),
    velocity: Numbers = (0.0, 0.0, 0.0),
    attitudes: Numbers | None = None,
    angular_velocities: Numbers | None = None,
    directions: Numbers = ((0.6, 0.0, 0.8), (-0.48, 0.36, 0.8)),
    link_velocities: Numbers | None = None,
    control: Control | None = None,
    parameters: Any = None,
) -> InitialValueProblem:
    """Two quadrotors with a load, without inputs or with any control; the default parameters are from no paper.

    `benchmarks/systems/quadrotor_control.py` has controls: given forces, given thrusts, and path tracking.

    Args:
        dtype: Floating dtype of the state and of the numbers; None for JAX's default.
        vehicles: Parameters of n quadrotors and their load; n = 2 unless all arguments have other shapes.
        position: y(0), (3,), m.
        velocity: v(0), (3,), m/s.
        attitudes: R_i(0), (n, 3, 3), body to world; None for the identity, with thrust against gravity.
        angular_velocities: Omega_i(0) in the body frames, (n, 3), rad/s; None for rest.
        directions: q_i(0), (n, 3), unit vectors from quadrotor to load.
        link_velocities: omega_i(0) in the world, (n, 3), rad/s, omega_i . q_i = 0; None for rest.
        control: `control(t, y, vehicles, parameters)`, the forces (world) and moments (body), each (n, 3); None for
            none.
        parameters: A pytree for `control`, such as gains: its arrays are differentiable.

    Returns:
        The problem: state ((y, v) (6,), R (n, 3, 3), Omega (n, 3), links (n, 6) with rows (q, omega)); as args
        (`QuadrotorParameters`, parameters); and the invariants `norms` (n,) (|q_i|^2) and `tangency` (n,)
        (q_i . omega_i), without a control also `energy` (), `horizontal_momentum` (2,) and `spins` (n, 3)
        (R_i J_i Omega_i).

    Raises:
        ValueError: a shape does not fit, a mass, length or moment is not positive, or the state is off the manifold.
    """
    given = QuadrotorParameters(**_TWO) if vehicles is None else vehicles
    n = validation.count("masses", given.masses)
    vehicles = QuadrotorParameters(
        load_mass=validation.positive("load_mass", given.load_mass, dtype),
        masses=validation.positive("masses", given.masses, dtype, n),
        lengths=validation.positive("lengths", given.lengths, dtype, n),
        inertia=validation.positive("inertia", given.inertia, dtype, n, 3),
        gravity=validation.numbers("gravity", given.gravity, dtype),
    )
    attitudes = np.tile(np.eye(3), (n, 1, 1)) if attitudes is None else attitudes
    rest = np.zeros((n, 3))
    load = [
        validation.numbers("position", position, dtype, 3),
        validation.numbers("velocity", velocity, dtype, 3),
    ]
    R = validation.numbers("attitudes", attitudes, dtype, n, 3, 3)
    links = [
        validation.numbers("directions", directions, dtype, n, 3),
        validation.numbers("link_velocities", rest if link_velocities is None else link_velocities, dtype, n, 3),
    ]
    rates = rest if angular_velocities is None else angular_velocities
    bodies, rods = Power(RightTranslation(SO3), n), Power(TangentSphere(), n)
    return InitialValueProblem(
        name=f"{n} quadrotors with a load",
        action=Product(Translation(6), bodies, Power(Translation(3), n), rods),
        field=QuadrotorField(control),
        initial=(
            jnp.concatenate(load),
            validation.point("attitudes", R, bodies),
            validation.numbers("angular_velocities", rates, dtype, n, 3),
            validation.point("(directions, link_velocities)", jnp.concatenate(links, axis=-1), rods),
        ),
        args=(vehicles, parameters),
        invariants=_ON_THE_MANIFOLD | (_WITHOUT_INPUTS if control is None else {}),
    )


_ON_THE_MANIFOLD = {
    "norms": lambda y, args: jnp.sum(y[3][:, :3] ** 2, axis=-1),
    "tangency": lambda y, args: jnp.sum(y[3][:, :3] * y[3][:, 3:], axis=-1),
}
_WITHOUT_INPUTS = {
    "energy": lambda y, args: energy(y, args[0]),
    "horizontal_momentum": lambda y, args: linear_momentum(y, args[0])[:2],
    "spins": lambda y, args: jnp.einsum("nij,nj->ni", y[1], args[0].inertia * y[2]),
}


Rates = tuple[Float[Array, "6"], Float[Array, "n 3"], Float[Array, "n 3"], Float[Array, "n 3"]]


def state_rates(y: State, vehicles: QuadrotorParameters, inputs: Inputs | None) -> Rates:
    """The rates of a state under forces and moments.

    Args:
        vehicles: The parameters of the quadrotors.
        inputs: Forces in the world (n, 3), N, and moments in the body frames (n, 3), N m; None for none.

    Returns:
        (v, v') of the load (6,), Omega (n, 3) and Omega' (n, 3) in the body frames, omega' of the links (n, 3) in the
        world; m, rad and s.

    Source: Celledoni et al. 2021, (37) and (38).
    """
    load, _, spin, links = y
    forces, moments = (jnp.zeros_like(spin), jnp.zeros_like(spin)) if inputs is None else inputs
    load_acceleration, omega_dot = _accelerations(unpack(links), unpack(links, 3), unpack(forces), vehicles)
    down = jnp.zeros_like(load[3:]).at[2].set(vehicles.gravity)
    spin_dot = (jnp.cross(vehicles.inertia * spin, spin) + moments) / vehicles.inertia
    return jnp.concatenate([load[3:], pack(load_acceleration, (3,)) + down]), spin, spin_dot, pack(omega_dot, (3,))


def _accelerations(q: Vec, omega: Vec, forces: Vec, vehicles: QuadrotorParameters) -> tuple[Vec, Vec]:
    """The accelerations y'' - g e3, with components (), and omega_i', with components (n,) for all links at once."""
    masses, lengths = vehicles.masses, vehicles.lengths
    # (m_y + sum m_i q_i q_i^T)(y'' - g e3) = sum q_i (q_i . u_i - m_i L_i |omega_i|^2)
    pull = _sum(q * (q.dot(forces) - masses * lengths * omega.dot(omega)))
    load_acceleration = fusion_barrier(_solve(*fusion_barrier((_effective_mass(q, vehicles), pull))))
    return load_acceleration, q.cross(load_acceleration - forces * (1 / masses)) * (1 / lengths)


def _sum(a: Vec) -> Vec:
    """The sum over all links."""
    return Vec(jnp.sum(a.x), jnp.sum(a.y), jnp.sum(a.z))


def _effective_mass(q: Vec, vehicles: QuadrotorParameters) -> Mat:
    """The matrix m_y + sum m_i q_i q_i^T, the effective mass at the load, kg."""
    m, load = vehicles.masses, vehicles.load_mass
    weighted = q * m
    r0, r1, r2 = _sum(weighted * q.x), _sum(weighted * q.y), _sum(weighted * q.z)
    return Mat(Vec(r0.x + load, r0.y, r0.z), Vec(r1.x, r1.y + load, r1.z), Vec(r2.x, r2.y, r2.z + load))


def _solve(A: Mat, b: Vec) -> Vec:
    """The solution x of A x = b, A symmetric and positive definite, by the factorization L D L^T."""
    d0, low1, low2 = A.r0.x, A.r1.x / A.r0.x, A.r2.x / A.r0.x
    d1 = A.r1.y - low1 * A.r1.x
    low3 = (A.r2.y - low2 * A.r1.x) / d1
    d2 = A.r2.z - low2 * A.r2.x - low3 * low3 * d1
    z1 = b.y - low1 * b.x
    x2 = (b.z - low2 * b.x - low3 * z1) / d2
    x1 = z1 / d1 - low3 * x2
    return Vec(b.x / d0 - low1 * x1 - low2 * x2, x1, x2)


def quadrotor_motion(y: State, vehicles: QuadrotorParameters) -> tuple[Float[Array, "n 3"], Float[Array, "n 3"]]:
    """The positions and the velocities of the quadrotors in the world, each (n, 3), m and m/s."""
    load, _, _, links = y
    q, omega = links[:, :3], links[:, 3:]
    lengths = vehicles.lengths[:, None]
    return load[None, :3] - lengths * q, load[None, 3:] - lengths * jnp.cross(omega, q)


def energy(y: State, vehicles: QuadrotorParameters) -> Float[Array, ""]:
    """The sum of kinetic and potential energy, J."""
    positions, velocities = quadrotor_motion(y, vehicles)
    load, _, spin, _ = y
    kinetic = vehicles.load_mass * load[3:] @ load[3:] + jnp.sum(vehicles.masses[:, None] * velocities**2)
    kinetic = 0.5 * (kinetic + jnp.sum(vehicles.inertia * spin**2))
    depth = vehicles.load_mass * load[2] + vehicles.masses @ positions[:, 2]
    return kinetic - vehicles.gravity * depth


def linear_momentum(y: State, vehicles: QuadrotorParameters) -> Float[Array, "3"]:
    """The linear momentum of load and quadrotors in the world, (3,), kg m/s."""
    _, velocities = quadrotor_motion(y, vehicles)
    return vehicles.load_mass * y[0][3:] + jnp.sum(vehicles.masses[:, None] * velocities, axis=0)
