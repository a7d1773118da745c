"""The MuJoCo model of an lgsim model of free, spherical, revolute and prismatic joints: the same bodies and numbers."""

import jax.numpy as jnp
import mujoco
import numpy as np

from lgsim.formats.interop import mujoco as tool
from lgsim.lie import conversions
from lgsim.multibody import joints
from lgsim.multibody.topology import WORLD


def mujoco_model(model, more=None):
    """Without constraints, armature and springs; ``mujoco.mj_setConst`` is still to be called.

    ``more(spec, bodies)`` may add to it, bodies by their place in the model, those of the world at ``WORLD``.

    The compiler refuses links without mass and inertias that no body has, which are in some files, so that they come
    after it.
    """
    tree = model.topology
    spec = mujoco.MjSpec()
    spec.option.gravity = np.asarray(model.gravity)
    holders = {WORLD: spec.worldbody}
    poses = np.asarray(model.placements)
    quaternions = np.asarray(conversions.quaternion_from_matrix(jnp.asarray(poses[:, :3, :3])))
    for i, (joint, parent) in enumerate(zip(tree.joints, tree.parents, strict=True)):
        body = holders[parent].add_body(
            name=f"body{i}", pos=poses[i, :3, 3], quat=quaternions[i], mass=1.0, inertia=[1.0, 1.0, 1.0],
            explicitinertial=True,
        )  # fmt: skip
        holders[i] = body
        if isinstance(joint, joints.Free):
            body.add_freejoint()
        elif isinstance(joint, joints.Spherical):
            body.add_joint(type=mujoco.mjtJoint.mjJNT_BALL)
        else:
            kind = mujoco.mjtJoint.mjJNT_HINGE if joint.rows[0].turns else mujoco.mjtJoint.mjJNT_SLIDE
            body.add_joint(type=kind, axis=np.asarray(model.axes[tree.row_starts[i]]))
    if more is not None:
        more(spec, holders)
    made = spec.compile()
    made.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    numbers = (np.asarray(x) for x in tool.inertia_to(model.inertias))
    for name, values in zip(("body_mass", "body_ipos", "body_iquat", "body_inertia"), numbers, strict=True):
        getattr(made, name)[1:] = values
    made.body_sameframe[:] = 0  # the compiler's shortcut where a body's frames were the same
    made.body_simple[:] = 0
    return made
