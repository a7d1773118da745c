"""Machines with frames on a body, on the base and on the world, and the same in Pinocchio."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pinocchio as pin

from tests.multibody import trees
from tests.multibody.twin import Twin


def framed(case, **options):
    """A machine with three frames, its twin, and the twin's number of every frame."""
    model = trees.build(*trees.CASES[case], **options)
    rng = np.random.default_rng(8)
    bodies = (model.topology.bodies - 1, -1, 0)
    tree = replace(model.topology, frame_names=("tool", "table", "camera"), frame_bodies=bodies)
    poses = np.stack([trees.pose(rng) for _ in bodies])
    model = model.replace(topology=tree, frames=jnp.asarray(poses, model.dtype))
    twin = Twin(model)
    numbers = []
    for name, body, T in zip(
        model.frame_names,
        [*range(tree.bodies), *bodies],
        [*[np.eye(4)] * tree.bodies, *poses],
        strict=True,
    ):
        joint = 0 if body < 0 else twin.ids[body]
        placement = pin.SE3(T[:3, :3], T[:3, 3])
        numbers.append(twin.pin.addFrame(pin.Frame(name, joint, 0, placement, pin.FrameType.OP_FRAME)))
    twin.data = twin.pin.createData()
    return model, twin, numbers
