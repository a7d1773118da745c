"""Three rigid bodies in a chain, joined by two revolute joints and floating freely.

The numerical example of J. Park, W.-K. Chung, Geometric integration on Euclidean group with application to
articulated multibody systems, IEEE Transactions on Robotics 21(5), 2005, Section VI.
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim import dynamics
from lgsim.integrators.method import Number
from lgsim.lie import se3
from lgsim.lie.action import LeftTranslation, Product, RightTranslation
from lgsim.lie.group import SE3, Euclidean
from lgsim.multibody import Model, ModelBuilder, joints
from lgsim.systems.initial_value_problem import InitialValueProblem
from lgsim.systems.validation import Dtype

# A state is (T, z): T places the base in the world, and z = (q, V, qdot) stacks 2 + 6 + 2 numbers.
State = tuple[Float[Array, "4 4"], Float[Array, "10"]]


def chain(dtype: Dtype | None = None) -> Model:
    """The three bodies: spheres of 10 kg and 1 m, the first one free, two revolute joints, no gravity.

    At rest all frames are parallel, and the centers of mass are at (0, 0, 0), (0, 2, 0) and (0, 2, 2) m. The first
    joint turns about +z through the first center, the second about -y through the second center; the frame of an
    outboard body lies on its joint.
    """
    sphere = {"mass": 10.0, "inertia": 0.4 * 10.0 * 1.0**2 * np.eye(3)}
    right, up = [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]
    second = np.eye(4)
    second[:3, 3] = right
    return (
        ModelBuilder(gravity=(0.0, 0.0, 0.0), dtype=dtype)
        .add_body("base", "world", joints.Free(), **sphere)
        .add_body("second", "base", joints.Revolute(), axis=[0, 0, 1], center=right, **sphere)
        .add_body("third", "second", joints.Revolute(), placement=second, axis=[0, -1, 0], center=up, **sphere)
        .build()
    )


def _split(z: Float[Array, " coordinates"]) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """Configuration and velocity with the base at the origin: its position and attitude have no effect."""
    count = (z.shape[0] - 6) // 2
    at_origin = jnp.asarray([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], z.dtype)
    return jnp.concatenate([at_origin, z[:count]]), z[count:]


def kinetic_energy(y: State, model: Model) -> Float[Array, ""]:
    """The kinetic energy of a state (T, z), J."""
    return dynamics.kinetic_energy(model, *_split(y[1]))


def _spatial_momentum(y: State, model: Model) -> Float[Array, "6"]:
    """The total momentum (6,) in the world frame at the world origin: linear, then angular.

    In the frame of a free base it is the base's part of ``M v``.
    """
    q, v = _split(y[1])
    return se3.Ad_dual_action(se3.inverse(y[0]), dynamics.mass_matrix(model, q)[:6] @ v)


def linear_momentum(y: State, model: Model) -> Float[Array, "3"]:
    """The total linear momentum of a state (T, z) in the world frame, (3,), kg m/s."""
    return _spatial_momentum(y, model)[:3]


def angular_momentum(y: State, model: Model) -> Float[Array, "3"]:
    """The total angular momentum of a state (T, z) about the world origin, in the world frame, (3,), kg m^2/s."""
    return _spatial_momentum(y, model)[3:]


def _field(t: Number, y: State, model: Model) -> Float[Array, "16"]:
    """The algebra vector (V, qdot, Vdot, qddot): the body twist that moves T, then the derivative of z; (44), (45)."""
    q, v = _split(y[1])
    return jnp.concatenate([v, dynamics.forward_dynamics(model, q, v, jnp.zeros_like(v))])


def three_body(
    dtype: Dtype | None = None, *, twist: Sequence[float] = (0.0,) * 6, joint_rates: Sequence[float] = (0.4, 0.4)
) -> InitialValueProblem:
    """Three spheres and two revolute joints in free motion: the example of Park and Chung, Section VI.

    The model is that of ``chain``. The figure with the geometry is not needed: up to rotations and reflections this
    is the only one on a lattice of candidates that gives the tables of the paper.

    The state is (T, z): T (4, 4) places the base in the world, z = (q, V, qdot) has shape (10,): joint angles (2,),
    body twist (v, w) of the base (6,), joint rates (2,). T is moved from the right, T' = T hat(V).

    Args:
        dtype: Floating dtype of the state and of the parameters; None for JAX's default.
        twist: V(0), (v, w) in the base's frame, m/s and rad/s. The paper's tables start at rest, its long run (Figs. 7,
            8) at (0.1, 0.1, 0.1, 0.3, 0.3, 0.3).
        joint_rates: qdot(0), rad/s.

    Returns:
        The problem, with a `Model` as parameters and the invariants `kinetic_energy` (), `linear_momentum` (3,) and
        `angular_momentum` (3,) (about the world origin).
    """
    z = jnp.asarray([0.0, 0.0, *twist, *joint_rates], dtype)
    return InitialValueProblem(
        name="three bodies and two revolute joints (Park, Chung 2005)",
        action=Product(RightTranslation(SE3), LeftTranslation(Euclidean(10))),
        field=_field,
        initial=(jnp.eye(4, dtype=dtype), z),
        args=chain(dtype),
        invariants={
            "kinetic_energy": kinetic_energy,
            "linear_momentum": linear_momentum,
            "angular_momentum": angular_momentum,
        },
    )
