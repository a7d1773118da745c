"""MCAP files of trajectories in the layout of ROS 2 recordings, for Foxglove, Rerun and PlotJuggler.

- ``/joint_states``, sensor_msgs/JointState: positions, velocities and forces of all one-dimensional joints;
- ``/<joint>/odometry``, nav_msgs/Odometry, for each free joint: its pose in the parent and its body twist;
- ``/tf``, tf2_msgs/TFMessage: the pose of each body in its parent, and ``/tf_static`` that of each fixed frame;
- ``/robot_description``, std_msgs/String: the URDF, if given.

Message definitions: ROS 2 common_interfaces, geometry2 (Apache 2.0, BSD).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from lgsim.dynamics.kinematics import forward_kinematics
from lgsim.lie.conversions import quaternion_from_matrix
from lgsim.multibody.model import Model
from lgsim.multibody.topology import ROOT, WORLD
from lgsim.support.files import whole_file
from lgsim.support.packages import package

_RULE = "=" * 80 + "\n"
_TIME = f"{_RULE}MSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n"
_HEADER = f"{_RULE}MSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id\n{_TIME}"
_VECTOR = f"{_RULE}MSG: geometry_msgs/Vector3\nfloat64 x\nfloat64 y\nfloat64 z\n"
_POINT = f"{_RULE}MSG: geometry_msgs/Point\nfloat64 x\nfloat64 y\nfloat64 z\n"
_QUATERNION = f"{_RULE}MSG: geometry_msgs/Quaternion\nfloat64 x\nfloat64 y\nfloat64 z\nfloat64 w\n"
_DEFINITIONS = {
    "sensor_msgs/msg/JointState": "std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\n"
    "float64[] effort\n" + _HEADER,
    "tf2_msgs/msg/TFMessage": "geometry_msgs/TransformStamped[] transforms\n"
    f"{_RULE}MSG: geometry_msgs/TransformStamped\nstd_msgs/Header header\nstring child_frame_id\n"
    "geometry_msgs/Transform transform\n"
    f"{_RULE}MSG: geometry_msgs/Transform\ngeometry_msgs/Vector3 translation\ngeometry_msgs/Quaternion rotation\n"
    + _VECTOR + _QUATERNION + _HEADER,
    "nav_msgs/msg/Odometry": "std_msgs/Header header\nstring child_frame_id\ngeometry_msgs/PoseWithCovariance pose\n"
    "geometry_msgs/TwistWithCovariance twist\n"
    f"{_RULE}MSG: geometry_msgs/PoseWithCovariance\ngeometry_msgs/Pose pose\nfloat64[36] covariance\n"
    f"{_RULE}MSG: geometry_msgs/Pose\ngeometry_msgs/Point position\ngeometry_msgs/Quaternion orientation\n"
    f"{_RULE}MSG: geometry_msgs/TwistWithCovariance\ngeometry_msgs/Twist twist\nfloat64[36] covariance\n"
    f"{_RULE}MSG: geometry_msgs/Twist\ngeometry_msgs/Vector3 linear\ngeometry_msgs/Vector3 angular\n"
    + _POINT + _VECTOR + _QUATERNION + _HEADER,
    "std_msgs/msg/String": "string data\n",
}  # fmt: skip
_STATES = 1024  # batch size of the computed poses
_AXES = ("x", "y", "z")


class _Joint(NamedTuple):
    """A one-dimensional joint: its index in q and v, and for a mimic joint its multiplier and offset."""

    name: str
    q: int
    v: int
    factor: float
    offset: float
    driven: bool


def save(motion: Any, path: Path, description: str = "") -> Path:
    """Write a trajectory as an MCAP file, atomically.

    Args:
        motion: A ``Trajectory``.
        description: The text of the robot's URDF file; "" for none.

    Raises:
        ModuleNotFoundError: the packages of the extra ``logs`` are missing.
        OSError: the file cannot be written.
    """
    make = package("mcap_ros2.writer", "logs", "an .mcap file").Writer
    with whole_file(path) as file:
        writer, schemas = make(file), {}
        for topic, kind, message, time in _messages(motion, description):
            if kind not in schemas:
                schemas[kind] = writer.register_msgdef(kind, _DEFINITIONS[kind])
            writer.write_message(topic, schemas[kind], message, log_time=time)
        about = {name: str(getattr(motion, name)) for name in ("method", "dt", "result", "version", "fingerprint")}
        writer.add_metadata("lgsim", about)
        writer.finish()
    return path


def _messages(motion: Any, description: str) -> Iterator[tuple[str, str, dict[str, Any], int]]:
    """(topic, type, message, time in ns after the first state) in chronological order."""
    model: Model = motion.model
    times = _nanoseconds(motion.time)
    first = int(times[0]) if len(times) else 0
    if description:
        yield "/robot_description", "std_msgs/msg/String", {"data": description}, first
    frames = _frame_chain(model)
    fixed = [frame for frame in frames if frame[1] >= model.topology.bodies]
    moving = [frame for frame in frames if frame[1] < model.topology.bodies]
    joints, free = _single_joints(model), _free_joints(model)
    names = [joint.name for joint in joints]
    q_at, v_at = [joint.q for joint in joints], [joint.v for joint in joints]
    factors, offsets = np.array([joint.factor for joint in joints]), np.array([joint.offset for joint in joints])
    # a mimic joint has no drive of its own
    driven = np.array([joint.driven for joint in joints], bool)
    for start in range(0, len(times), _STATES):
        part = slice(start, start + _STATES)
        q, v, tau = (np.asarray(x[part], float) for x in (motion.q, motion.v, motion.tau))
        poses = np.asarray(forward_kinematics(model, jnp.asarray(motion.q[part], model.dtype)), float)
        chain = {child: _relative(poses, child, parent) for _, child, parent in frames}
        position, velocity = factors * q[:, q_at] + offsets, factors * v[:, v_at]
        effort = np.where(driven, tau[:, v_at], 0.0)
        for i, time in enumerate(times[part].tolist()):
            if start == i == 0 and fixed:
                yield "/tf_static", "tf2_msgs/msg/TFMessage", _transforms(model, fixed, chain, 0, time), time
            if names:
                states = {"position": position[i].tolist(), "velocity": velocity[i].tolist()}
                message = {"header": _header(time, ""), "name": names, **states, "effort": effort[i].tolist()}
                yield "/joint_states", "sensor_msgs/msg/JointState", message, time
            for name, parent, child, place, rate in free:
                message = _odometry(q[i, place], v[i, rate], parent, child, time)
                yield f"/{name}/odometry", "nav_msgs/msg/Odometry", message, time
            if moving:
                yield "/tf", "tf2_msgs/msg/TFMessage", _transforms(model, moving, chain, i, time), time


def _nanoseconds(time: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """Times in ns; stamps are unsigned, so that times before 0 are counted from the first one."""
    ns = np.round(np.asarray(time, float) * 1e9).astype(np.int64)
    return ns - min(int(ns.min()), 0) if len(ns) else ns


def _frame_chain(model: Model) -> list[tuple[str, int, int]]:
    """(name, frame, parent frame or WORLD) of each frame: bodies in their parents, fixed frames in their bodies."""
    tree = model.topology
    bodies = [(name, i, tree.parents[i]) for i, name in enumerate(tree.body_names)]
    return bodies + [
        (name, tree.bodies + i, body)
        for i, (name, body) in enumerate(zip(tree.frame_names, tree.frame_bodies, strict=True))
    ]


def _relative(poses: Float[np.ndarray, "n frames 4 4"], child: int, parent: int) -> Float[np.ndarray, "n 7"]:
    """The pose of a frame in another one: position and quaternion (w, x, y, z)."""
    R, p = poses[:, child, :3, :3], poses[:, child, :3, 3]
    if parent != WORLD:
        turned = np.swapaxes(poses[:, parent, :3, :3], 1, 2)
        R, p = turned @ R, (turned @ (p - poses[:, parent, :3, 3])[..., None])[..., 0]
    return np.concatenate([p, np.asarray(quaternion_from_matrix(jnp.asarray(R)))], axis=1)


def _single_joints(model: Model) -> list[_Joint]:
    """The one-dimensional joints, including mimic joints."""
    tree, found = model.topology, []
    for i, name in enumerate(tree.joint_names):
        other = tree.mimics[i]
        if tree.joints[i].nv == 1 and other is None:
            found.append(_Joint(name, tree.q_slice(i).start, tree.v_slice(i).start, 1.0, 0.0, True))
        elif other is not None and tree.joints[other].nv == 1:
            factor, offset = (float(x) for x in model.mimic[i])
            found.append(_Joint(name, tree.q_slice(other).start, tree.v_slice(other).start, factor, offset, False))
    return found


def _free_joints(model: Model) -> list[tuple[str, str, str, slice, slice]]:
    """(joint, parent body, body, slice in q, slice in v) of each free joint."""
    tree = model.topology
    return [
        (name, ROOT if tree.parents[i] == WORLD else tree.body_names[tree.parents[i]], tree.body_names[i],
         tree.q_slice(i), tree.v_slice(i))
        for i, name in enumerate(tree.joint_names)
        if (tree.joints[i].nq, tree.joints[i].nv) == (7, 6)
    ]  # fmt: skip


def _transforms(
    model: Model, frames: list[tuple[str, int, int]], chain: dict[int, Float[np.ndarray, "n 7"]], i: int, time: int
) -> dict[str, Any]:
    names = model.topology.body_names
    return {
        "transforms": [
            {
                "header": _header(time, ROOT if parent == WORLD else names[parent]),
                "child_frame_id": name,
                "transform": {"translation": _vector(chain[child][i]), "rotation": _turn(chain[child][i, 3:])},
            }
            for name, child, parent in frames
        ]
    }


def _odometry(
    q: Float[np.ndarray, " 7"], v: Float[np.ndarray, " 6"], parent: str, child: str, time: int
) -> dict[str, Any]:
    """Pose in the parent and twist in the child's frame, as nav_msgs/Odometry requires."""
    none = [0.0] * 36
    pose = {"position": _vector(q), "orientation": _turn(q[3:])}
    twist = {"linear": _vector(v), "angular": _vector(v[3:])}
    return {
        "header": _header(time, parent), "child_frame_id": child, "pose": {"pose": pose, "covariance": none},
        "twist": {"twist": twist, "covariance": none},
    }  # fmt: skip


def _header(time: int, frame: str) -> dict[str, Any]:
    return {"stamp": {"sec": time // 10**9, "nanosec": time % 10**9}, "frame_id": frame}


def _vector(x: Float[np.ndarray, " n"]) -> dict[str, float]:
    return dict(zip(_AXES, x[:3].tolist(), strict=True))


def _turn(q: Float[np.ndarray, " 4"]) -> dict[str, float]:
    w, x, y, z = q.tolist()
    return {"x": x, "y": y, "z": z, "w": w}
