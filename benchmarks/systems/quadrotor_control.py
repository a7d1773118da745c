"""Controls of quadrotors that carry a load: constant inputs, and the geometric tracking of a path by the load.

Conventions are those of `lgsim.systems.quadrotors`: e3 points along gravity, a rotor pushes along minus the third axis
of its quadrotor. The tracking controllers are those of

    T. Lee, K. Sreenath, V. Kumar, Geometric control of cooperating multiple quadrotor UAVs with a suspended payload,
    IEEE Conference on Decision and Control, 2013,

on the attitude controller of T. Lee, M. Leok, N. H. McClamroch, Geometric tracking control of a quadrotor UAV on SE(3),
2010. All rates of the commands are exact: those of the links in closed form along the commanded motion, those of the
attitudes by differentiating the command along the motion that happens.

The cuts keep what several formulas share from being computed in each: they halve the time to compile, no result.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim._compile.xla import fusion_barrier
from lgsim.integrators.method import Number
from lgsim.systems import validation
from lgsim.systems.initial_value_problem import InitialValueProblem
from lgsim.systems.quadrotors import Control, Inputs, QuadrotorParameters, State, state_rates, two_quadrotors
from lgsim.systems.validation import Dtype, Numbers

Rows = Float[Array, "n 3"]
Matrices = Float[Array, "n 3 3"]
Load = Float[Array, "6"]
Links = Float[Array, "n 6"]


class GivenForces(NamedTuple):
    """Constant inputs of `given_forces`.

    Attributes:
        forces: Forces in the world, (n, 3), N.
        moments: Moments in the body frames, (n, 3), N m.
    """

    forces: Rows
    moments: Rows


class GivenThrusts(NamedTuple):
    """Constant inputs of `given_thrusts`.

    Attributes:
        thrusts: The rotors' thrusts, (n,), N.
        moments: Moments in the body frames, (n, 3), N m.
    """

    thrusts: Float[Array, " n"]
    moments: Rows


def given_forces(t: Number, y: State, vehicles: QuadrotorParameters, given: GivenForces) -> Inputs:
    """Constant forces in the world, whatever the attitudes: a control for `two_quadrotors`."""
    return given.forces, given.moments


def given_thrusts(t: Number, y: State, vehicles: QuadrotorParameters, given: GivenThrusts) -> Inputs:
    """Constant thrusts, u_i = -T_i R_i e3: a control for `two_quadrotors`."""
    return -given.thrusts[:, None] * y[1][:, :, 2], given.moments


class TrackingGains(NamedTuple):
    """A path of the load, a formation, and gains.

    Attributes:
        path: Coefficients of a polynomial in time, y_d(t) = sum_k path[k] t^k, shape (k, 3), m/s^k.
        spread: The forces by which the links pull against each other, shape (n, 3), N: their mean is taken off, so
            they cancel at the load. They open the formation.
        heading: The desired directions of the first axes of the quadrotors, shape (n, 3), in the world.
        position: Gain on the load's position, 1/s^2.
        velocity: Gain on the load's velocity, 1/s.
        direction: Gain on the links' directions, 1/s^2.
        swing: Gain on the links' angular velocities, 1/s.
        attitude: Gain on the quadrotors' attitudes, N m.
        spin: Gain on their angular velocities, N m s.
    """

    path: Float[Array, "k 3"]
    spread: Rows
    heading: Rows
    position: Float[Array, ""]
    velocity: Float[Array, ""]
    direction: Float[Array, ""]
    swing: Float[Array, ""]
    attitude: Float[Array, ""]
    spin: Float[Array, ""]


def desired_path(t: Number, tracking: TrackingGains) -> Float[Array, "5 3"]:
    """The desired position y_d(t) of the load and its first four derivatives, (5, 3), m/s^k in row k."""
    rows, coefficients = [], tracking.path
    for _ in range(5):
        value = jnp.zeros_like(tracking.path[0])
        for c in coefficients[::-1]:
            value = value * t + c
        rows.append(value)
        coefficients = [k * c for k, c in enumerate(coefficients)][1:]
    return jnp.stack(rows)


class Command(NamedTuple):
    """The command to the quadrotors under which the load follows its path, in the world.

    Attributes:
        forces: The forces u_i, shape (n, 3), N.
        directions: The desired directions q_id of the links, unit vectors, shape (n, 3).
        velocities: The angular velocities omega_id of the desired directions, shape (n, 3), rad/s.
    """

    forces: Rows
    directions: Rows
    velocities: Rows


def command(
    t: Number,
    load: Float[Array, "6"],
    links: Float[Array, "n 6"],
    vehicles: QuadrotorParameters,
    tracking: TrackingGains,
) -> Command:
    """The forces under which the load follows its path and the links their directions.

    The load asks for F = m_y (y_d'' - g e3 - k_x (y - y_d) - k_v (v - y_d')), each link for its share
    mu_i = F / n + spread_i, along q_id = -mu_i / |mu_i|. With a = sum q_i q_i^T mu_i / m_y, which then is y'' - g e3,

        u_i = q_i q_i^T mu_i + m_i L_i |omega_i|^2 q_i + m_i a + m_i L_i q_i x c_i,
        c_i = -k_q q_id x q_i - k_w (omega_i - P_i omega_id) - (q_i . omega_id) q_i' + P_i omega_id',

    P_i = 1 - q_i q_i^T; then omega_i' = c_i.

    Args:
        t: Time, s.
        load: (y, v) of the load, (6,), m and m/s.
        links: Rows (q, omega) of the links, (n, 6).
        vehicles: The numbers of the quadrotors.
        tracking: The path and the gains.
    """
    q, omega = links[:, :3], links[:, 3:]
    n = q.shape[0]
    goal = desired_path(t, tracking)
    down = jnp.zeros_like(load[:3]).at[2].set(vehicles.gravity)
    q_dot = jnp.cross(omega, q)

    # the share of each link with its two derivatives; each sees the acceleration that the one before it gives
    spread = tracking.spread - jnp.mean(tracking.spread, axis=0, keepdims=True)
    share = vehicles.load_mass / n
    e, e_dot = load[:3] - goal[0], load[3:] - goal[1]
    mu = fusion_barrier(share * (goal[2] - down - tracking.position * e - tracking.velocity * e_dot)[None] + spread)
    tension = fusion_barrier(_dot(q, mu))
    a = fusion_barrier(jnp.sum(tension * q, axis=0) / vehicles.load_mass)
    e_ddot = a + down - goal[2]
    mu_dot = fusion_barrier(share * (goal[3] - tracking.position * e_dot - tracking.velocity * e_ddot)[None])
    jerk = jnp.sum((_dot(q_dot, mu) + _dot(q, mu_dot)) * q + tension * q_dot, axis=0) / vehicles.load_mass
    jerk = fusion_barrier(jerk)
    mu_ddot = fusion_barrier(
        share * (goal[4] - tracking.position * e_ddot - tracking.velocity * (jerk - goal[3]))[None]
    )

    square = fusion_barrier(_dot(mu, mu))
    desired = fusion_barrier(-mu / jnp.sqrt(square))
    desired_omega = fusion_barrier(jnp.cross(mu, mu_dot) / square)
    desired_omega_dot = fusion_barrier((jnp.cross(mu, mu_ddot) - 2 * _dot(mu, mu_dot) * desired_omega) / square)

    def project(x: Rows) -> Rows:
        """The parts of the rows across the links, P_i x_i."""
        return x - _dot(q, x) * q

    swing = project(desired_omega_dot) - _dot(q, desired_omega) * q_dot
    swing -= tracking.direction * jnp.cross(desired, q) + tracking.swing * (omega - project(desired_omega))
    swing = fusion_barrier(swing)

    masses, lengths = vehicles.masses[:, None], vehicles.lengths[:, None]
    inertial = masses * (a[None] + lengths * _dot(omega, omega) * q + lengths * jnp.cross(q, swing))
    return Command(fusion_barrier(tension * q + inertial), desired, desired_omega)


def track_by_forces(t: Number, y: State, vehicles: QuadrotorParameters, tracking: TrackingGains) -> Inputs:
    """The commanded forces (n, 3), N, and no moments: the paper's experiment, which leaves the attitudes free."""
    forces = command(t, y[0], y[3], vehicles, tracking).forces
    return forces, jnp.zeros_like(forces)


def desired_attitudes(forces: Rows, heading: Rows) -> Matrices:
    """The attitudes whose thrust is along ``forces`` and whose first axis is nearest to ``heading``.

    Not defined where a force vanishes or its direction is that of the heading.

    Args:
        forces: Forces in the world, (n, 3), N.
        heading: Directions in the world, (n, 3).

    Returns:
        Rotation matrices, body to world, (n, 3, 3).
    """
    third = fusion_barrier(-forces / jnp.sqrt(_dot(forces, forces)))
    second = jnp.cross(third, heading)
    second = fusion_barrier(second / jnp.sqrt(_dot(second, second)))
    return jnp.stack([jnp.cross(second, third), second, third], axis=-1)


def track(t: Number, y: State, vehicles: QuadrotorParameters, tracking: TrackingGains) -> Inputs:
    """Thrusts and moments under which the attitudes follow the commanded forces u_i, as the load follows its path.

    The forces are those parts of the u_i that the rotors can give, R_i e3 (R_i e3 . u_i), and the moments

        M = -k_R e_R - k_O e_O + Omega x J Omega - J (Omega x W - R^T R_d Omega_d'),    W = R^T R_d Omega_d,

    with e_O = Omega - W, hat(e_R) = (R_d^T R - R^T R_d) / 2. Then J e_O' = -k_R e_R - k_O e_O.
    """
    load, R, spin, links = y
    rest = jnp.zeros_like(spin)

    def thrust(t: Number, load: Load, third: Rows, links: Links) -> Rows:
        return fusion_barrier(_dot(command(t, load, links, vehicles, tracking).forces, third) * third)

    def flow(t: Number, load: Load, third: Rows, links: Links) -> tuple[Float[Array, ""], Load, Links]:
        """The rates of time, load and links under the thrusts."""
        forces = thrust(t, load, third, links)
        load_rate, _, _, omega_dot = state_rates((load, R, rest, links), vehicles, (forces, rest))
        return (
            jnp.ones_like(t),
            load_rate,
            jnp.concatenate([jnp.cross(links[:, 3:], links[:, :3]), omega_dot], axis=-1),
        )

    def attitudes(t: Number, load: Load, links: Links) -> Matrices:
        """R_d."""
        return desired_attitudes(command(t, load, links, vehicles, tracking).forces, tracking.heading)

    def desired_motion(t: Number, load: Load, third: Rows, links: Links) -> tuple[Matrices, Rows]:
        """R_d and Omega_d."""
        R_d, R_d_dot = fusion_barrier(jax.jvp(attitudes, (t, load, links), flow(t, load, third, links)))
        return R_d, _vee(jnp.swapaxes(R_d, -1, -2) @ R_d_dot)

    t = jnp.asarray(t, load.dtype)
    third = R[:, :, 2]
    one, load_rate, link_rate = flow(t, load, third, links)
    third_dot = jnp.cross(R, spin[:, None, :])[:, :, 2]
    point, rates = (t, load, third, links), (one, load_rate, third_dot, link_rate)
    (R_d, spin_d), (_, spin_d_dot) = fusion_barrier(jax.jvp(desired_motion, point, rates))

    relative = fusion_barrier(jnp.swapaxes(R, -1, -2) @ R_d)
    W, W_dot = _apply(relative, spin_d), _apply(relative, spin_d_dot)
    moments = -tracking.attitude * _vee(jnp.swapaxes(relative, -1, -2)) - tracking.spin * (spin - W)
    moments += jnp.cross(spin, vehicles.inertia * spin) - vehicles.inertia * (jnp.cross(spin, W) - W_dot)
    return thrust(t, load, third, links), moments


def tracking_gains(
    dtype: Dtype | None = None,
    *,
    path: Numbers = ((0.0, 0.0, 0.0), (0.5, 0.0, -2.0), (0.0, 0.0, 0.4)),
    spread: Numbers = ((-5.0, 0.0, 0.0), (5.0, 0.0, 0.0)),
    heading: Numbers = ((1.0, 0.0, 0.0), (1.0, 0.0, 0.0)),
    position: Number = 4.0,
    velocity: Number = 4.0,
    direction: Number = 36.0,
    swing: Number = 12.0,
    attitude: Number = 8.0,
    spin: Number = 2.0,
) -> TrackingGains:
    """`TrackingGains` for two quadrotors and a parabola that rises by 2.5 m in 2.5 s and comes down again.

    Args:
        dtype: Floating dtype of the numbers; None for JAX's default.
        path: As the attribute of `TrackingGains`, with its shape and units; so are the others.
        spread: As the attribute.
        heading: As the attribute.
        position: As the attribute.
        velocity: As the attribute.
        direction: As the attribute.
        swing: As the attribute.
        attitude: As the attribute.
        spin: As the attribute.

    Raises:
        ValueError: a shape does not fit, or a gain is not positive.
    """
    path, spread = jnp.asarray(path), jnp.asarray(spread)
    return TrackingGains(
        path=validation.numbers("path", path, dtype, *path.shape[:1], 3),
        spread=validation.numbers("spread", spread, dtype, *spread.shape[:1], 3),
        heading=validation.numbers("heading", heading, dtype, *spread.shape[:1], 3),
        position=validation.positive("position", position, dtype),
        velocity=validation.positive("velocity", velocity, dtype),
        direction=validation.positive("direction", direction, dtype),
        swing=validation.positive("swing", swing, dtype),
        attitude=validation.positive("attitude", attitude, dtype),
        spin=validation.positive("spin", spin, dtype),
    )


def two_quadrotors_tracking(
    dtype: Dtype | None = None, *, control: Control = track, goal: TrackingGains | None = None, **start: Any
) -> InitialValueProblem:
    """Two quadrotors whose load follows a parabola; at the start it hangs at rest, off the path.

    Args:
        dtype: Floating dtype of the state and of the numbers; None for JAX's default.
        control: `track`, with thrusts and moments, or `track_by_forces`, without the attitudes.
        goal: The path, the formation and the gains; None for those of `tracking_gains`.
        start: The numbers and the initial state, as `two_quadrotors` takes them.

    Returns:
        The problem of `two_quadrotors`, with (`QuadrotorParameters`, `TrackingGains`) as args.

    Raises:
        ValueError: `two_quadrotors` takes no such numbers or state, or `goal` is for another number of quadrotors.

    Source: Celledoni et al. 2021, Section 6.2 and Figs. 14 to 18; the path and the gains are not printed there.
    """
    start = {"position": (0.3, -0.4, 0.2), **start}
    goal = tracking_gains(dtype) if goal is None else goal
    problem = two_quadrotors(dtype, control=control, parameters=goal, **start)
    expected = problem.initial[2].shape
    for name in ("spread", "heading"):
        if getattr(goal, name).shape != expected:
            raise ValueError(f"goal.{name}: expected shape {expected}, got {getattr(goal, name).shape}")
    return problem


def _dot(a: Float[Array, "#n 3"], b: Float[Array, "#n 3"]) -> Float[Array, "_ 1"]:
    """The inner products of rows, (n, 1)."""
    return jnp.sum(a * b, axis=-1, keepdims=True)


def _apply(matrices: Matrices, vectors: Rows) -> Rows:
    """The products of matrices and vectors, (n, 3)."""
    return jnp.sum(matrices * vectors[:, None, :], axis=-1)


def _vee(matrices: Matrices) -> Rows:
    """The vectors (n, 3) of the skew parts of the matrices."""
    skew = 0.5 * (matrices - jnp.swapaxes(matrices, -1, -2))
    return jnp.stack([skew[:, 2, 1], skew[:, 0, 2], skew[:, 1, 0]], axis=-1)
