"""Machines and discrete motions made independently of lgsim, see the file of their numbers."""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import lgsim
from lgsim import joints

DATA = json.loads((Path(__file__).parents[1] / "data" / "variational_machines.json").read_text(encoding="utf-8"))
NAMES = ("double_pendulum", "double_pendulum_damped", "spherical_chain", "floating_tree")
KINDS = {
    "revolute": joints.Revolute, "prismatic": joints.Prismatic, "spherical": joints.Spherical, "free": joints.Free
}  # fmt: skip


def machine(name):
    """The machine of that name."""
    builder = lgsim.ModelBuilder(gravity=np.array(DATA[name]["gravity"], float))
    for i, body in enumerate(DATA[name]["bodies"]):
        xx, xy, xz, yy, yz, zz = body["inertia"]
        builder.add_body(
            f"body{i}",
            "world" if body["parent"] < 0 else f"body{body['parent']}",
            KINDS[body["type"]](),
            joint_name=f"joint{i}",
            placement=_pose(body["xyz"], body["rpy"]),
            mass=float(body["mass"]),
            center=body["com"],
            inertia=np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]),
            **{key: body[key] for key in ("axis", "armature", "damping") if key in body},
        )
    return builder.build()


def runs(name):
    """The discrete motions of a machine: map, h, q0, v0, tau, states."""
    return DATA[name]["runs"]


def start(run):
    """(q0, v0, tau or None) of a run."""
    tau = None if run["tau"] is None else jnp.array(run["tau"])
    return jnp.array(run["q0"]), jnp.array(run["v0"]), tau


def _pose(xyz, rpy):
    (a, b, c), T = rpy, np.eye(4)
    x = np.array([[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]])
    y = np.array([[np.cos(b), 0, np.sin(b)], [0, 1, 0], [-np.sin(b), 0, np.cos(b)]])
    z = np.array([[np.cos(c), -np.sin(c), 0], [np.sin(c), np.cos(c), 0], [0, 0, 1]])
    T[:3, :3], T[:3, 3] = z @ y @ x, xyz
    return T
