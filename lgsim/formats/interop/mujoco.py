"""Conversion to and from MuJoCo's conventions, for a model that exists in both.

- free: qpos = (p, quaternion wxyz), the pose in the world; qvel = (linear velocity in WORLD axes, angular velocity in
  BODY axes): ``qvel = (R v, w)`` and ``qacc = (R (v' + w x v), w')`` with lgsim's v, w in body axes. The same holds for
  forces;
- ball: quaternion wxyz, angular velocity in the child's axes, as in lgsim;
- hinge, slide: one coordinate each. A planar joint, in MuJoCo slides along x and y and a hinge about z, has the
  derivatives of its coordinates as velocity. Other joints of lgsim are sequences of hinges and slides.
  ``SphericalAngles`` is refused: its velocity is the angular velocity of the body, that of three hinges the rates of
  their angles;
- the order is depth first; a model of ``lgsim.formats.load_mjcf`` has MuJoCo's order;
- Jacobians (jacp, jacr of ``mj_jac``) have rows in world axes: ``twist_to`` on the columns of a body Jacobian gives
  (jacr, jacp), ``jacobian_to`` converts their columns.

``q_to(model, q)``, ``v_to(model, q, v)``, ``a_to(model, q, v, a)``, ``tau_to(model, q, tau)``,
``jacobian_to(model, q, J)`` and their inverses with ``from`` are methods of ``interop.convention.Convention``, which
documents their arguments.

Source: https://mujoco.readthedocs.io/en/stable/overview.html, "Floating objects"; body_ipos, body_iquat, body_inertia:
https://mujoco.readthedocs.io/en/stable/APIreference/APItypes.html, "mjModel"; ``mj_objectVelocity``, ``mj_jac``:
https://mujoco.readthedocs.io/en/stable/APIreference/APIfunctions.html.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim.formats.interop import bodies
from lgsim.formats.interop.convention import Convention
from lgsim.formats.interop.forms import ANGLES_ABSENT, FreeInWorld, PlaneInParent
from lgsim.lie import conversions
from lgsim.multibody.joints import Free, Planar, SphericalAngles
from lgsim.support import check

_TOOL = Convention(
    forms={Free: FreeInWorld(), Planar: PlaneInParent()}, rooted=(Free,), absent={SphericalAngles: ANGLES_ABSENT}
)

q_to, q_from = _TOOL.q_to, _TOOL.q_from
v_to, v_from = _TOOL.v_to, _TOOL.v_from
a_to, a_from = _TOOL.a_to, _TOOL.a_from
tau_to, tau_from = _TOOL.tau_to, _TOOL.tau_from
jacobian_to, jacobian_from = _TOOL.jacobian_to, _TOOL.jacobian_from


def inertia_to(
    parameters: ArrayLike,
) -> tuple[Float[Array, "*batch"], Float[Array, "*batch 3"], Float[Array, "*batch 4"], Float[Array, "*batch 3"]]:
    """Fields (body_mass, body_ipos, body_iquat, body_inertia) from the ten inertial parameters (..., 10).

    Center of mass (..., 3), quaternion wxyz (..., 4) of the principal axes, and principal moments (..., 3), the largest
    first. The center of a massless body is the origin.
    """
    mass, center, inertia = bodies.central(check.floating("parameters", parameters, 10))
    moments, axes = jnp.linalg.eigh(inertia)
    third = jnp.cross(axes[..., 2], axes[..., 1])
    axes = jnp.stack([axes[..., 2], axes[..., 1], third], axis=-1)
    return mass, center, conversions.quaternion_from_matrix(axes), moments[..., ::-1]


def inertia_from(mass: ArrayLike, ipos: ArrayLike, iquat: ArrayLike, inertia: ArrayLike) -> Float[Array, "*batch 10"]:
    """The ten inertial parameters (..., 10) of the fields of a compiled model, in the shapes of ``inertia_to``."""
    mass, ipos, iquat, inertia = check.arguments(
        mass=(mass, ()), ipos=(ipos, (3,)), iquat=(iquat, (4,)), inertia=(inertia, (3,))
    )
    R = conversions.matrix_from_quaternion(iquat)
    return bodies.parameters(mass, ipos, (R * inertia[..., None, :]) @ jnp.swapaxes(R, -1, -2))


def frame_to(T: ArrayLike) -> Float[Array, "*batch 7"]:
    """Convert a pose (..., 4, 4) to (p, quaternion wxyz) (..., 7): ``xpos`` and ``xquat``, or a free joint's qpos."""
    return jnp.concatenate(bodies.split_pose(check.floating("T", T, 4, 4)), axis=-1)


def frame_from(x: ArrayLike) -> Float[Array, "*batch 4 4"]:
    """Convert (p, quaternion wxyz) (..., 7) to a pose (..., 4, 4)."""
    x = check.floating("x", x, 7)
    return bodies.assemble_pose(x[..., :3], x[..., 3:])


def twist_to(T: ArrayLike, V: ArrayLike) -> Float[Array, "*batch 6"]:
    """Convert the body twist (v, w) of a frame at T (..., 4, 4) to (w, v) in world axes, as ``mj_objectVelocity``.

    The same function converts a wrench (f, n) in the frame to (n, f) in world axes at the frame's origin.
    """
    return bodies.rotate_and_swap(T, V)


def twist_from(T: ArrayLike, V: ArrayLike) -> Float[Array, "*batch 6"]:
    """Convert (w, v) in world axes (..., 6) to the body twist (v, w), or (n, f) to the wrench (f, n) in the frame."""
    return bodies.rotate_and_swap(T, V, inverse=True)
