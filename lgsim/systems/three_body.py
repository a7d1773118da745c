"""Three rigid bodies in a chain, joined by two revolute joints and floating freely.

The numerical example of J. Park, W.-K. Chung, Geometric integration on Euclidean group with application to
articulated multibody systems, IEEE Transactions on Robotics 21(5), 2005, Section VI.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from lgsim.lie import se3
from lgsim.lie.action import LeftTranslation, Product, RightTranslation
from lgsim.lie.group import SE3, Euclidean
from lgsim.systems.problem import Problem

# A state is (T, z): T places the base in the world, and z = (q, V, qdot) stacks 2 + 6 + 2 numbers.
State = tuple[Float[Array, "4 4"], Float[Array, "10"]]


class Chain(NamedTuple):
    """The numbers of a serial chain of N + 1 bodies whose body 0 is the base; all of them can be differentiated.

    Attributes:
        mass: Masses, shape (N + 1,), kg.
        inertia: Inertias about the centres of mass in the body frames, shape (N + 1, 3, 3), kg m^2.
        offset: Centre of mass of body i + 1 in frame i at q = 0, shape (N, 3), m. All frames are parallel at q = 0.
        screw: Joint screws (v, w) in the frame of the outboard body, shape (N, 6): m/rad and the unit axis.
    """

    mass: Float[Array, " bodies"]
    inertia: Float[Array, "bodies 3 3"]
    offset: Float[Array, "joints 3"]
    screw: Float[Array, "joints 6"]


def _body_inertia(chain: Chain, i: int) -> Float[Array, "6 6"]:
    mass = chain.mass[i] * jnp.eye(3, dtype=chain.mass.dtype)
    zero = jnp.zeros_like(mass)
    return jnp.block([[mass, zero], [zero, chain.inertia[i]]])


def _joint_transform(chain: Chain, i: int, angle: Float[Array, ""]) -> Float[Array, "4 4"]:
    """T_{i,i+1}(q) = translation(offset) exp(screw q)."""
    return se3.exp(chain.screw[i] * angle).at[:3, 3].add(chain.offset[i])


def mass_matrix_and_bias(
    chain: Chain, q: Float[Array, " joints"], base_twist: Float[Array, "6"], qdot: Float[Array, " joints"]
) -> tuple[Float[Array, "velocities velocities"], Float[Array, " velocities"]]:
    """Mass matrix M and bias force b = C [V; qdot] of the free chain.

    With the body twists V_0 = V, V_{i+1} = Ad(T_{i,i+1})^-1 V_i + S_i qdot_i = J_{i+1} [V; qdot],

        M = sum_i J_i^T G_i J_i,    b = sum_i J_i^T (G_i Jdot_i [V; qdot] - ad(V_i)^T G_i V_i),

    where the exact derivative of the Jacobian follows from d/dt Ad(T)^-1 = -ad(S qdot) Ad(T)^-1:
    Jdot_{i+1} [V; qdot] = Ad(T_{i,i+1})^-1 Jdot_i [V; qdot] + [V_{i+1}, S_i qdot_i].

    Args:
        chain: Masses, inertias and geometry; N joints.
        q: Joint angles, shape (N,), rad.
        base_twist: Body twist (v, w) of the base, shape (6,), m/s and rad/s.
        qdot: Joint rates, shape (N,), rad/s.

    Returns:
        M, shape (6 + N, 6 + N), symmetric positive definite, and b, shape (6 + N,), for the velocities (V, qdot):
        a wrench on the base in its own frame, then the joint torques.

    Source: Park, Chung 2005, (34) and (43) with F = 0 and tau = 0.
    """
    joints = q.shape[0]
    dtype = base_twist.dtype
    jacobian = jnp.eye(6, 6 + joints, dtype=dtype)
    twist = base_twist
    acceleration = jnp.zeros(6, dtype)
    mass_matrix = jnp.zeros((6 + joints, 6 + joints), dtype)
    bias = jnp.zeros(6 + joints, dtype)
    for i in range(joints + 1):
        if i > 0:
            screw = chain.screw[i - 1]
            adjoint = se3.Ad(se3.inverse(_joint_transform(chain, i - 1, q[i - 1])))
            jacobian = (adjoint @ jacobian).at[:, 5 + i].add(screw)
            twist = adjoint @ twist + screw * qdot[i - 1]
            acceleration = adjoint @ acceleration + se3.bracket(twist, screw * qdot[i - 1])
        inertia = _body_inertia(chain, i)
        wrench = inertia @ acceleration - se3.ad_dual_action(twist, inertia @ twist)
        mass_matrix = mass_matrix + jacobian.T @ inertia @ jacobian
        bias = bias + jacobian.T @ wrench
    return mass_matrix, bias


def _bodies(y: State, chain: Chain) -> list[tuple[Array, Array, Array]]:
    """Pose in the world, body twist and momentum G_i V_i of every body, base first."""
    pose, z = y
    q, twist, qdot = _split(z)
    bodies = [(pose, twist, _body_inertia(chain, 0) @ twist)]
    for i in range(q.shape[0]):
        joint = _joint_transform(chain, i, q[i])
        pose = se3.compose(pose, joint)
        twist = se3.Ad_action(se3.inverse(joint), twist) + chain.screw[i] * qdot[i]
        bodies.append((pose, twist, _body_inertia(chain, i + 1) @ twist))
    return bodies


def kinetic_energy(y: State, chain: Chain) -> Float[Array, ""]:
    """Kinetic energy 1/2 sum_i V_i^T G_i V_i in J."""
    return sum((0.5 * (twist @ momentum) for _, twist, momentum in _bodies(y, chain)), jnp.zeros((), y[1].dtype))


def _spatial_momentum(y: State, chain: Chain) -> Float[Array, "6"]:
    """Total momentum in the world frame at the world origin, sum_i Ad(T_i^-1)^T G_i V_i: linear, then angular."""
    terms = [se3.Ad_dual_action(se3.inverse(pose), momentum) for pose, _, momentum in _bodies(y, chain)]
    return sum(terms, jnp.zeros(6, y[1].dtype))


def linear_momentum(y: State, chain: Chain) -> Float[Array, "3"]:
    """Total linear momentum in the world frame in kg m/s."""
    return _spatial_momentum(y, chain)[:3]


def angular_momentum(y: State, chain: Chain) -> Float[Array, "3"]:
    """Total angular momentum about the world origin, in the world frame, in kg m^2/s."""
    return _spatial_momentum(y, chain)[3:]


def _split(z: Float[Array, " coordinates"]) -> tuple[Array, Array, Array]:
    joints = (z.shape[0] - 6) // 2
    return z[:joints], z[joints : joints + 6], z[joints + 6 :]


def _field(t: Any, y: State, chain: Chain) -> Float[Array, "16"]:
    """(V, qdot, Vdot, qddot): the body twist that moves T, then the derivative of z; (44), (45)."""
    q, twist, qdot = _split(y[1])
    mass_matrix, bias = mass_matrix_and_bias(chain, q, twist, qdot)
    return jnp.concatenate([twist, qdot, -jnp.linalg.solve(mass_matrix, bias)])


def three_body(
    dtype: Any = None, *, twist: Sequence[float] = (0.0,) * 6, joint_rates: Sequence[float] = (0.4, 0.4)
) -> Problem:
    """Three spheres (10 kg, 1 m) and two revolute joints in free motion: the example of Park and Chung, Section VI.

    The base is body 0. At t = 0 all frames are parallel to the world and the centres of mass are at (0, 0, 0),
    (0, 2, 0) and (0, 2, 2) m. The first joint turns about +z through the first centre, the second about -y through
    the second centre. A sphere has the inertia 2/5 m r^2 = 4 kg m^2. The figure with the geometry is not needed: up
    to rotations and reflections this is the only one on a lattice of candidates that gives the tables of the paper.

    The state is (T, z): T (4, 4) places the base in the world, z = (q, V, qdot) has shape (10,): joint angles (2,),
    body twist (v, w) of the base (6,), joint rates (2,). T is moved from the right, T' = T hat(V).

    Args:
        dtype: Floating dtype of the state and of the parameters; None for JAX's default.
        twist: V(0), m/s and rad/s. The paper's tables start at rest, its long run (Figs. 7, 8) at
            (0.1, 0.1, 0.1, 0.3, 0.3, 0.3).
        joint_rates: qdot(0), rad/s.

    Returns:
        The problem, with `Chain` parameters and the invariants `kinetic_energy` (), `linear_momentum` (3,) and
        `angular_momentum` (3,) (about the world origin).
    """
    moment = 0.4 * 10.0 * 1.0**2
    chain = Chain(
        mass=jnp.full((3,), 10.0, dtype),
        inertia=jnp.tile(moment * jnp.eye(3, dtype=dtype), (3, 1, 1)),
        offset=jnp.asarray([[0.0, 2.0, 0.0], [0.0, 0.0, 2.0]], dtype),
        screw=jnp.asarray([[-2.0, 0.0, 0.0, 0.0, 0.0, 1.0], [-2.0, 0.0, 0.0, 0.0, -1.0, 0.0]], dtype),
    )
    z = jnp.asarray([0.0, 0.0, *twist, *joint_rates], dtype)
    return Problem(
        name="three bodies and two revolute joints (Park, Chung 2005)",
        action=Product(RightTranslation(SE3), LeftTranslation(Euclidean(10))),
        field=_field,
        initial=(jnp.eye(4, dtype=dtype), z),
        args=chain,
        invariants={
            "kinetic_energy": kinetic_energy,
            "linear_momentum": linear_momentum,
            "angular_momentum": angular_momentum,
        },
    )
