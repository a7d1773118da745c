"""The robots of the dynamics benchmark, in lgsim and in Pinocchio."""

import os
import re
from importlib.metadata import distribution
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import lgsim
from lgsim.formats import read_urdf
from lgsim.lie import so3
from lgsim.multibody.inertia import mass_center_inertia

FILES = {
    "Panda": ("panda_description/urdf/panda.urdf", False),
    "ANYmal": ("anymal_b_simple_description/robots/anymal.urdf", True),
    "Talos": ("talos_data/robots/talos_reduced.urdf", True),
}


def robot(name, dtype):
    """A robot of example-robot-data or of the folder LGSIM_ROBOTS, or a chain of revolute joints."""
    if name.startswith("chain"):
        return chain(int(name.removeprefix("chain")), dtype)
    folder = os.environ.get("LGSIM_ROBOTS")
    if folder is None:
        folder = distribution("example-robot-data").locate_file("cmeel.prefix/share/example-robot-data/robots")
    path, floats = FILES[name.removesuffix(" with fingers")]
    text = (Path(str(folder)) / path).read_text(encoding="utf-8")
    text = re.sub(r"<mimic[^>]*/>", "", text)  # the twin has no mimic joints
    model, _ = read_urdf(text=text, floating_base=floats, dtype=dtype)
    if name == "Panda":
        fingers = [joint for joint in model.joint_names if "finger" in joint]
        model = model.lock(fingers, model.neutral())
    return model


def chain(length, dtype):
    """Bodies of 0.5 to 3 kg in a row, about axes in all directions."""
    rng = np.random.default_rng(0)
    builder = lgsim.ModelBuilder(dtype=dtype)
    for i in range(length):
        pose = np.eye(4)
        pose[:3, :3] = so3.exp(jnp.asarray(rng.normal(size=3)))
        pose[:3, 3] = rng.uniform(-0.3, 0.3, 3)
        mass, spread = rng.uniform(0.5, 3.0), rng.uniform(0.005, 0.02, 3)
        builder.add_body(
            f"body{i}",
            f"body{i - 1}" if i else "world",
            lgsim.joints.Revolute(),
            placement=pose,
            mass=mass,
            center=rng.uniform(-0.15, 0.15, 3),
            inertia=mass * np.diag(spread.sum() - spread),
        )
    return builder.build()


def state(model, batch):
    """q, v, tau, each (batch, ...), of one dtype with the model."""
    rng = np.random.default_rng(1)
    dq = rng.uniform(-1, 1, (batch, model.nv)) * np.pi / 2
    v, tau = rng.uniform(-1, 1, (2, batch, model.nv))
    q = model.retract(model.neutral(), jnp.asarray(dq, model.dtype))
    return q, jnp.asarray(v, model.dtype), jnp.asarray(5 * tau, model.dtype)


class Twin:
    """A model of free, revolute and prismatic joints in Pinocchio, body by body; v in the same order."""

    def __init__(self, model):
        import pinocchio as pin

        tree = model.topology
        self.model, self.pin, self.floats = pin.Model(), pin, tree.floats
        self.model.gravity.linear = np.asarray(model.gravity, float)
        ids = []
        for i, joint in enumerate(tree.joints):
            axis = np.asarray(model.axes[tree.row_starts[i]], float)
            turns = joint.rows[0].turns
            kinds = (pin.JointModelPrismaticUnaligned, pin.JointModelRevoluteUnaligned)
            kind = pin.JointModelFreeFlyer() if joint.nv == 6 else kinds[turns](axis)
            T = np.asarray(model.placements[i], float)
            parent = 0 if tree.parents[i] < 0 else ids[tree.parents[i]]
            ids.append(self.model.addJoint(parent, kind, pin.SE3(T[:3, :3], T[:3, 3]), tree.joint_names[i]))
            mass, center, inertia = (np.asarray(x, float) for x in mass_center_inertia(model.inertias[i]))
            self.model.appendBodyToJoint(ids[-1], pin.Inertia(float(mass), center, inertia), pin.SE3.Identity())
        self.data = self.model.createData()
        self.pool = pin.ModelPool(self.model, 1)

    def states(self, q, v, tau):
        """The states for Pinocchio: columns, quaternions (x, y, z, w)."""
        q = np.asarray(q, float)
        if self.floats:
            q = np.concatenate([q[:, :3], q[:, 4:7], q[:, 3:4], q[:, 7:]], axis=1)
        return tuple(np.asfortranarray(np.asarray(x, float).T) for x in (q, v, tau))

    def forward_dynamics(self, q, v, tau):
        """Accelerations of a batch on a pool of one thread; the time is within 4 % of a native build."""
        out = np.zeros_like(v)
        return lambda: self.pin.abaInParallel(1, self.pool, q, v, tau, out)

    def each(self, f, *columns):
        """``f(model, data, ...)`` on one state after another."""
        states = [tuple(np.ascontiguousarray(c[:, i]) for c in columns) for i in range(columns[0].shape[1])]

        def run():
            for x in states:
                f(self.model, self.data, *x)

        return run
