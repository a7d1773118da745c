"""Conversion to and from Drake's conventions, for a model that exists in both.

- floating base (QuaternionFloatingJoint): q = (quaternion wxyz, p), v = (angular, linear) velocity of the body's
  origin, both in the axes of the joint's frame F, which is the world for a base: ``v_theirs = (R w, R v)``; forces are
  (torque, force);
- ball (BallRpyJoint): q = (roll, pitch, yaw), ``R = Rz(yaw) Ry(pitch) Rx(roll)``, v = angular velocity in F. The angles
  are singular at pitch +-pi/2, and are returned in (-pi, pi], [-pi/2, pi/2], (-pi, pi]; ``SphericalAngles`` has the
  same angles without wrapping;
- planar (PlanarJoint): q = (x, y, angle), v is its derivative, along the axes of F;
- revolute, continuous, prismatic, screw (its position is the angle) and universal joints have lgsim's coordinates;
- spatial velocities and forces are angular first, in world axes for V_WB: ``twist_to``;
- ``order``: the names of the plant's joints with degrees of freedom, sorted by ``joint.velocity_start()``.

``q_to(model, q)``, ``v_to(model, q, v)``, ``a_to(model, q, v, a)``, ``tau_to(model, q, tau)``,
``jacobian_to(model, q, J)`` and their inverses with ``from`` are methods of ``interop.convention.Convention``, which
documents their arguments.

Source: https://drake.mit.edu/doxygen_cxx/, classes QuaternionFloatingJoint, BallRpyJoint, PlanarJoint, ScrewJoint,
UniversalJoint, SpatialInertia, SpatialVelocity.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim.formats.interop import bodies
from lgsim.formats.interop.convention import Convention
from lgsim.formats.interop.forms import AnglesInParent, BallByAngles, FreeAngularFirst, PlaneInParent
from lgsim.multibody.inertia import rotational_inertia
from lgsim.multibody.joints import Free, Planar, Spherical, SphericalAngles
from lgsim.support import check

_TOOL = Convention(
    forms={
        Free: FreeAngularFirst(), Spherical: BallByAngles(), SphericalAngles: AnglesInParent(), Planar: PlaneInParent()
    }
)  # fmt: skip

q_to, q_from = _TOOL.q_to, _TOOL.q_from
v_to, v_from = _TOOL.v_to, _TOOL.v_from
a_to, a_from = _TOOL.a_to, _TOOL.a_from
tau_to, tau_from = _TOOL.tau_to, _TOOL.tau_from
jacobian_to, jacobian_from = _TOOL.jacobian_to, _TOOL.jacobian_from


def inertia_to(
    parameters: ArrayLike,
) -> tuple[Float[Array, "*batch"], Float[Array, "*batch 3"], Float[Array, "*batch 3 3"]]:
    """Arguments (mass, p_PScm_E, G_SP_E) of ``SpatialInertia`` from the ten inertial parameters (..., 10).

    p_PScm_E (..., 3) is the center of mass. The unit inertia G_SP_E (..., 3, 3) is the inertia about the ORIGIN of the
    frame divided by the mass. For a massless body, which has no unit inertia, it is the inertia itself.
    """
    values = check.floating("parameters", parameters, 10)
    mass, center = bodies.mass_center(values)
    return mass, center, rotational_inertia(values) / jnp.where(mass == 0, 1, mass)[..., None, None]


def inertia_from(mass: ArrayLike, center: ArrayLike, unit_inertia: ArrayLike) -> Float[Array, "*batch 10"]:
    """The ten inertial parameters (..., 10) of a ``SpatialInertia``: get_mass, get_com, get_unit_inertia."""
    mass, center, unit = check.arguments(mass=(mass, ()), center=(center, (3,)), unit_inertia=(unit_inertia, (3, 3)))
    return bodies.parameters_at_origin(mass, center, mass[..., None, None] * unit)


def frame_to(T: ArrayLike) -> Float[Array, "*batch 7"]:
    """Convert a pose (..., 4, 4), which ``RigidTransform`` also accepts, to (quaternion wxyz, p) (..., 7)."""
    p, q = bodies.split_pose(check.floating("T", T, 4, 4))
    return jnp.concatenate([q, p], axis=-1)


def frame_from(x: ArrayLike) -> Float[Array, "*batch 4 4"]:
    """Convert (quaternion wxyz, p) (..., 7) to a pose (..., 4, 4)."""
    x = check.floating("x", x, 7)
    return bodies.assemble_pose(x[..., 4:], x[..., :4])


def twist_to(T: ArrayLike, V: ArrayLike) -> Float[Array, "*batch 6"]:
    """Convert the body twist (v, w) of a frame at T (..., 4, 4) to a ``SpatialVelocity`` (w, v) in world axes (..., 6).

    The same function converts a wrench (f, n) in the frame to (n, f) in world axes at the frame's origin.
    """
    return bodies.rotate_and_swap(T, V)


def twist_from(T: ArrayLike, V: ArrayLike) -> Float[Array, "*batch 6"]:
    """Convert (w, v) in world axes (..., 6) to the body twist (v, w), or (n, f) to the wrench (f, n) in the frame."""
    return bodies.rotate_and_swap(T, V, inverse=True)
