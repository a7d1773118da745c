"""Relations between components of q and v and degrees of freedom, joints, encoders and quaternions.

A quaternion has four components in q and three degrees of freedom. Per-degree-of-freedom data (weights, masks) have nv
columns, and the three of a quaternion agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from lgsim.multibody.configuration import kinds
from lgsim.multibody.joint import Joint
from lgsim.multibody.model import Model
from lgsim.multibody.topology import Topology


class Encoder(NamedTuple):
    """The coordinates that one encoder reads: a single component, or all of a joint with a quaternion.

    Attributes:
        name: The joint's name, with an index if each of several components has its own encoder.
        q: Columns of q (k,).
        v: Columns of v (m,).
    """

    name: str
    q: Int[np.ndarray, " k"]
    v: Int[np.ndarray, " m"]


def has_quaternion(joint: Joint) -> bool:
    """True if the last four coordinates of a joint are a quaternion."""
    return joint.nq != joint.nv


def dof_names(model: Model, joints: Sequence[str] | None = None) -> list[str]:
    """Names of the degrees of freedom of the given joints, by default of all, in the model's order.

    A joint with one degree of freedom contributes its own name, another one "name[0]", "name[1]", ...

    Raises:
        KeyError: the model has no such joint, or it has no degree of freedom of its own.
    """
    out = []
    for name in model.v_slices if joints is None else joints:
        part = model.v_slices[name]
        count = part.stop - part.start
        out += [name] if count == 1 else [f"{name}[{i}]" for i in range(count)]
    return out


def dof_mask(topology: Topology, coordinates: Bool[np.ndarray, "n nq"]) -> Bool[np.ndarray, "n nv"]:
    """Convert a mask of coordinates to degrees of freedom: true for a quaternion if it is true for all four."""
    out = np.ones((len(coordinates), topology.nv), bool)
    for joint, q, v in kinds(topology):
        plain = joint.nq - 4 if has_quaternion(joint) else joint.nv
        out[:, v[:plain]] = coordinates[:, q[:plain]]
        out[:, v[plain:]] = np.all(coordinates[:, q[plain:]], axis=1, keepdims=True)
    return out


def coordinate_mask(topology: Topology, dofs: Bool[np.ndarray, "n nv"]) -> Bool[np.ndarray, "n nq"]:
    """Convert a mask of degrees of freedom to coordinates: true for a quaternion if it is true for all three."""
    out = np.ones((len(dofs), topology.nq), bool)
    for joint, q, v in kinds(topology):
        plain = joint.nq - 4 if has_quaternion(joint) else joint.nv
        out[:, q[:plain]] = dofs[:, v[:plain]]
        out[:, q[plain:]] = np.all(dofs[:, v[plain:]], axis=1, keepdims=True)
    return out


def quaternions(topology: Topology) -> list[Encoder]:
    """The four columns of q and the three of v of each quaternion, by the name of its joint."""
    found = []
    for i, (name, joint) in enumerate(zip(topology.joint_names, topology.joints, strict=True)):
        if topology.mimics[i] is None and has_quaternion(joint):
            q, v = topology.q_slice(i), topology.v_slice(i)
            found.append(Encoder(name, np.arange(q.stop - 4, q.stop), np.arange(v.stop - 3, v.stop)))
    return found


def encoders(model: Model) -> list[Encoder]:
    """The encoders of a model, as many as there are independent position readings."""
    found = []
    for i, (name, joint) in enumerate(zip(model.joint_names, model.topology.joints, strict=True)):
        if model.topology.mimics[i] is not None or not joint.nv:
            continue
        q, v = model.topology.q_slice(i), model.topology.v_slice(i)
        if has_quaternion(joint):
            found.append(Encoder(name, np.arange(q.start, q.stop), np.arange(v.start, v.stop)))
        else:
            names = [f"{name}[{k}]" if joint.nq > 1 else name for k in range(joint.nq)]
            found += [Encoder(t, np.array([q.start + k]), np.array([v.start + k])) for k, t in enumerate(names)]
    return found


def angles(model: Model) -> list[tuple[str, int, int]]:
    """(name, column of q, column of v) of each coordinate that is an angle, in the order of q."""
    found = []
    for joint, q, v in kinds(model.topology):
        if not has_quaternion(joint):
            turning = [k for k, row in enumerate(joint.rows) if row.turns]
            found += [(int(q[k, m]), int(v[k, m])) for k in turning for m in range(q.shape[1])]
    names = {int(encoder.q[0]): encoder.name for encoder in encoders(model) if len(encoder.q) == 1}
    return [(names[q], q, v) for q, v in sorted(found)]


def channel_parts(model: Model, channel: str) -> list[tuple[str, Int[np.ndarray, " k"]]]:
    """(joint name, its columns) of a channel; for an IMU ("", columns) of the accelerometer and of the gyroscope."""
    if channel.startswith("imu "):
        return [("", np.arange(3)), ("", np.arange(3, 6))]
    slices = model.q_slices if channel == "q" else model.v_slices
    return [(name, np.arange(part.start, part.stop)) for name, part in slices.items() if part.stop > part.start]
