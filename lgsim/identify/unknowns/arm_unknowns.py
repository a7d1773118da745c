"""A ready set of unknowns for an arm with recorded joint torques."""

from __future__ import annotations

import numpy as np

from lgsim.identify.unknowns.block import Block
from lgsim.identify.unknowns.body_blocks import Inertias
from lgsim.identify.unknowns.joint_blocks import JointParameter
from lgsim.multibody.model import Model


def arm_unknowns(model: Model) -> list[Block]:
    """The unknowns of an arm: all bodies, physically consistent, and friction and damping of its joints.

    The armature is unknown where the model has one: without it, torques hardly separate a rotor from its link. Joints
    of a floating base have neither. For example ``Parameters(model, arm_unknowns(model))``.

    Raises:
        ValueError: a body has no consistent inertia; see ``nearest_consistent``.
    """
    driven = [
        name
        for name, part in model.v_slices.items()
        if part.stop > part.start and not (model.topology.floats and name == model.joint_names[0])
    ]
    motors = [name for name in driven if np.any(np.asarray(model.armature[model.v_slices[name]]) > 0)]
    bodies = Inertias()
    bodies.check(model)
    blocks: list[Block] = [bodies]
    if driven:
        blocks += [JointParameter("friction", driven), JointParameter("damping", driven)]
    return [*blocks, JointParameter("armature", motors)] if motors else blocks
