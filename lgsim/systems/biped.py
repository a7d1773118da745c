"""A biped robot: a central body on two legs with six joints each, and rectangular feet on soft ground.

The robot of J. M. Wendlandt, Control and simulation of multibody systems, thesis, Berkeley 1997, chapter 4: a central
body and two legs with three revolute axes in each hip, one in each knee and two in each ankle. The thesis gives no
dimensions in its text; these are those of a person of 64 kg.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim import dynamics
from lgsim.dynamics.workspace.feet import FlatFoot
from lgsim.multibody import Model, ModelBuilder, contacts, joints
from lgsim.systems.validation import Dtype

SIDES = {"left": 1.0, "right": -1.0}
_SOLE = {"front": 0.14, "back": 0.08, "side": 0.05}
"""The sole extends from x = -back to front and from y = -side to side about the point below the ankle, m."""
_ANKLE = 0.08
"""The height of the ankle above the sole, m."""
FRICTION = 0.8
# name of the joint, axis, distance below the previous joint, mass, center of mass, moments of inertia about it
_LEG = (
    ("hip_yaw", (0, 0, 1), 0.0, 0.5, (0, 0, 0), (2e-3, 2e-3, 2e-3)),
    ("hip_roll", (1, 0, 0), 0.0, 0.5, (0, 0, 0), (2e-3, 2e-3, 2e-3)),
    ("hip_pitch", (0, 1, 0), 0.0, 6.0, (0, 0, -0.2), (0.08, 0.08, 0.01)),
    ("knee", (0, 1, 0), 0.4, 3.5, (0, 0, -0.2), (0.05, 0.05, 0.005)),
    ("ankle_pitch", (0, 1, 0), 0.4, 0.3, (0, 0, 0), (1e-3, 1e-3, 1e-3)),
    ("ankle_roll", (1, 0, 0), 0.0, 1.0, (0.03, 0, -0.05), (2e-3, 5e-3, 5e-3)),
)


class BipedGains(NamedTuple):
    """Gains of ``lgsim.controls.Workspace`` for the biped, under the same names.

    Attributes:
        stiffness: Gain on the position, (3,), 1/s^2.
        damping: Gain on its rate, (3,), 1/s.
        attitude: Gain on the attitude, 1/s^2.
        spin: Gain on its rate, 1/s.
    """

    stiffness: Float[Array, " 3"]
    damping: Float[Array, " 3"]
    attitude: Float[Array, ""]
    spin: Float[Array, ""]


def biped(
    dtype: Dtype | None = None,
    *,
    ground: bool = True,
    damping: float = 1.0,
    effort: float = 250.0,
    slip_speed: float = 0.1,
) -> Model:
    """The biped model: 13 bodies, 18 degrees of freedom, x forward, y to the left.

    The frames of the feet are ``left_sole`` and ``right_sole``, below the ankles, parallel to the central body's at
    rest.

    Args:
        dtype: Floating dtype of the numbers; None for JAX's default.
        ground: True if the corners of the soles touch the plane z = 0 of the world.
        damping: Damping of each joint, N m s/rad.
        effort: Largest torque of each joint, N m, for ``lgsim.controls.MotorLimits``.
        slip_speed: Slip speed of the contacts, m/s.
    """
    builder = ModelBuilder(dtype=dtype)
    body = {"mass": 40.0, "center": (0, 0, 0.15), "inertia": np.diag([2.0, 1.8, 0.8])}
    builder.add_body("body", "world", joints.Free(), joint_name="root_joint", **body)
    corners = [(x, y, 0.0) for x in (-_SOLE["back"], _SOLE["front"]) for y in (-_SOLE["side"], _SOLE["side"])]
    for side, sign in SIDES.items():
        parent, place = "body", (0.0, 0.1 * sign, -0.1)
        for name, axis, below, mass, center, moments in _LEG:
            at = _at(place if below == 0 else (0.0, 0.0, -below))
            builder.add_body(
                f"{side}_{name}", parent, joints.Revolute(), axis=axis, placement=at,
                mass=mass, center=center, inertia=np.diag(moments), damping=damping, effort_limit=effort,
            )  # fmt: skip
            parent, place = f"{side}_{name}", (0.0, 0.0, 0.0)
        builder.add_frame(f"{side}_sole", parent, _at((0.0, 0.0, -_ANKLE)))
        if ground:
            builder.add_contact(
                f"{side}_foot", f"{side}_sole", contacts.vertices(corners), stiffness=4e5, dissipation=0.5,
                friction=FRICTION, slip_speed=slip_speed,
            )  # fmt: skip
    return builder.build()


def biped_stance(model: Model, bend: float = 0.5, depth: float = 8e-4) -> Float[Array, " nq"]:
    """The standing configuration (nq,) with bent knees and an upright central body.

    Args:
        bend: Angle of the thighs and shanks from the vertical, rad.
        depth: Penetration of the soles into the ground, m.
    """
    q = model.neutral()
    for side in SIDES:
        for name, angle in (("hip_pitch", -bend), ("knee", 2 * bend), ("ankle_pitch", -bend)):
            q = q.at[model.q_slices[f"{side}_{name}"]].set(angle)
    height = dynamics.forward_kinematics(model, q)[model.frame_names.index("left_sole"), 2, 3]
    return q.at[2].add(-height - depth)


def biped_feet(dtype: Dtype | None = None) -> tuple[FlatFoot, FlatFoot]:
    """The soles as feet of ``lgsim.controls.Workspace``, with the friction of the ground."""
    numbers = {**_SOLE, "friction": FRICTION, "torsion": 0.05}
    arrays = {name: jnp.asarray(x, dtype) for name, x in numbers.items()}
    left, right = (FlatFoot(f"{side}_sole", **arrays) for side in SIDES)
    return left, right


def biped_gains(dtype: Dtype | None = None) -> BipedGains:
    """Gains tuned by hand, with which the biped keeps standing after a forward push of 120 N for 0.1 s."""
    numbers = ((16.0, 16.0, 60.0), (4.5, 4.5, 14.0), 60.0, 14.0)
    return BipedGains(*(jnp.asarray(x, dtype) for x in numbers))


def _at(place: tuple[float, float, float]) -> Float[np.ndarray, "4 4"]:
    """A pose without rotation."""
    T = np.eye(4)
    T[:3, 3] = place
    return T
