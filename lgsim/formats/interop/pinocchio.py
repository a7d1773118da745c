"""Conversion to and from Pinocchio's conventions, for a model that exists in both.

- free flyer: q = (p, quaternion xyzw), v = (linear, angular) in body axes, as in lgsim;
- spherical: quaternion xyzw, angular velocity in the child's axes; planar: (x, y, cos, sin), v in the child's axes;
- continuous: (cos, sin), returned as an angle in (-pi, pi]; all other joints have lgsim's coordinates;
- ``SphericalAngles`` is refused: the velocity of Pinocchio's joint of three angles is their rates, not the angular
  velocity of the body;
- twists and wrenches are linear first; the reference frame LOCAL gives lgsim's body quantities;
- Pinocchio sorts the joints on one link by name; ``order=list(pinocchio_model.names)`` gives its order.

``q_to(model, q)``, ``v_to(model, q, v)``, ``a_to(model, q, v, a)``, ``tau_to(model, q, tau)``,
``jacobian_to(model, q, J)`` and their inverses with ``from`` are methods of ``interop.convention.Convention``, which
documents their arguments.

Source: the pages of JointModelFreeFlyer, JointModelPlanar, JointModelRevoluteUnbounded, JointModelSpherical and
Inertia in https://docs.ros.org/en/jazzy/p/pinocchio/; (cos, sin) of continuous joints:
https://github.com/stack-of-tasks/pinocchio/issues/794.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim.formats.interop import bodies
from lgsim.formats.interop.convention import Convention
from lgsim.formats.interop.forms import ANGLES_ABSENT, Circle, ScalarLast
from lgsim.multibody.joints import Continuous, Free, Planar, Spherical, SphericalAngles
from lgsim.support import check

_TOOL = Convention(
    forms={Free: ScalarLast(), Spherical: ScalarLast(), Planar: Circle(), Continuous: Circle()},
    fixed=frozenset({"universe"}),
    absent={SphericalAngles: ANGLES_ABSENT},
)

q_to, q_from = _TOOL.q_to, _TOOL.q_from
v_to, v_from = _TOOL.v_to, _TOOL.v_from
a_to, a_from = _TOOL.a_to, _TOOL.a_from
tau_to, tau_from = _TOOL.tau_to, _TOOL.tau_from
jacobian_to, jacobian_from = _TOOL.jacobian_to, _TOOL.jacobian_from


def inertia_to(
    parameters: ArrayLike,
) -> tuple[Float[Array, "*batch"], Float[Array, "*batch 3"], Float[Array, "*batch 3 3"]]:
    """Arguments (mass, lever, inertia) of ``pinocchio.Inertia`` from the ten inertial parameters (..., 10).

    The lever (..., 3) is the center of mass, zero for a massless body; the inertia (..., 3, 3) is about it. The ten
    parameters are those of ``pinocchio.Inertia.FromDynamicParameters``, in the same order.
    """
    return bodies.central(check.floating("parameters", parameters, 10))


def inertia_from(mass: ArrayLike, lever: ArrayLike, inertia: ArrayLike) -> Float[Array, "*batch 10"]:
    """The ten inertial parameters (..., 10) of a ``pinocchio.Inertia``."""
    return bodies.parameters(*check.arguments(mass=(mass, ()), lever=(lever, (3,)), inertia=(inertia, (3, 3))))


def frame_to(T: ArrayLike) -> Float[Array, "*batch 7"]:
    """Convert a pose (..., 4, 4) to (p, quaternion xyzw) (..., 7), for ``pinocchio.XYZQUATToSE3``."""
    p, q = bodies.split_pose(check.floating("T", T, 4, 4))
    return jnp.concatenate([p, q[..., 1:], q[..., :1]], axis=-1)


def frame_from(x: ArrayLike) -> Float[Array, "*batch 4 4"]:
    """Convert the (..., 7) of ``pinocchio.SE3ToXYZQUAT`` to a pose (..., 4, 4)."""
    x = check.floating("x", x, 7)
    return bodies.assemble_pose(x[..., :3], jnp.concatenate([x[..., 6:], x[..., 3:6]], axis=-1))
