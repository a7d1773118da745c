"""Joints of one MJCF body as a chain of joints of lgsim."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from lgsim.formats import poses
from lgsim.formats.mjcformat.compilation import CompiledFile
from lgsim.multibody import joints
from lgsim.multibody.joint import Joint, Row

FREE, BALL, SLIDE, HINGE = range(4)
"""MuJoCo's joint types, by ``MjModel.jnt_type``."""

SPEEDS = {FREE: 6, BALL: 3, SLIDE: 1, HINGE: 1}
"""Degrees of freedom of MuJoCo's joint types."""

JOINT, TENDON = 2, 3
"""MuJoCo's types of equalities between joints and between tendons, by ``MjModel.eq_type``."""


@dataclass(frozen=True)
class ChainJoint:
    """One joint of a chain.

    Attributes:
        members: Indices of the represented joints of the file.
        placement: Pose of its frame in that of the previous joint, or in the parent body for the first one, (4, 4).
        axes: Axes of its degrees of freedom, (k, 3), or None for those of the joint's type.
        numbers: Limits and forces of its degrees of freedom, by the names of ``ModelBuilder.add_body``.
    """

    members: tuple[int, ...]
    joint: Joint
    placement: Float[np.ndarray, "4 4"]
    axes: Float[np.ndarray, "k 3"] | None
    numbers: dict[str, Any]


@dataclass(frozen=True)
class _Screw:
    """A joint at zero coordinates, in the frame of the body at MuJoCo's reference configuration.

    Attributes:
        index: Index of the joint in the file.
        kind: Type in MuJoCo.
        point: A point of the axis, (3,), m.
        axis: Direction of the axis, (3,).
    """

    index: int
    kind: int
    point: Float[np.ndarray, " 3"]
    axis: Float[np.ndarray, " 3"]


def joint_chain(file: CompiledFile, body: int) -> tuple[list[ChainJoint], Float[np.ndarray, "4 4"]]:
    """The joints of a body, and the pose of the body in the frame of the last joint, or in the parent without joints.

    At MuJoCo's reference q0 the body has the pose P in its parent, and its joints move it by screws s fixed in the
    body: ``T = P exp(s_1 (q_1 - r_1)) ... exp(s_k (q_k - r_k))`` with the references r. With
    ``G_i = exp(-s_1 r_1) ... exp(-s_i r_i)`` this is ``P exp(s'_1 q_1) ... exp(s'_k q_k) G_k``,
    ``s'_i = Ad(G_{i-1}) s_i``: the screws s' in the body at q = 0. Screws through a common point form one compound
    joint there; others follow after massless bodies. All frames have the body's axes at q = 0.
    """
    model = file.model
    place = pose(model.body_pos[body], model.body_quat[body])
    members = range(model.body_jntadr[body], model.body_jntadr[body] + model.body_jntnum[body])
    if not members:
        return [], place
    if model.jnt_type[members[0]] == FREE:
        return [ChainJoint((members[0],), joints.Free(), np.eye(4), None, _numbers(file, members))], np.eye(4)
    screws, moved = _screws(model, members)
    at, steps = np.eye(4), []
    for run in _runs(screws, coupled_joints(file)):
        frame = moved.copy()
        turning = [screw.point for screw in run if screw.kind != SLIDE]
        if turning:
            frame[:3, 3] = turning[0]
        step = place @ frame if not steps else poses.pose(frame[:3, :3].T @ (frame[:3, 3] - at[:3, 3]))
        axes = None if run[0].kind == BALL else np.array([screw.axis for screw in run]) @ frame[:3, :3]
        indices = tuple(screw.index for screw in run)
        steps.append(ChainJoint(indices, _joint(run), step, axes, _numbers(file, indices)))
        at = frame
    return steps, poses.pose(at[:3, :3].T @ (moved[:3, 3] - at[:3, 3]))


def pose(
    position: Float[np.ndarray, " 3"], quaternion: Float[np.ndarray, " 4"] | Sequence[float]
) -> Float[np.ndarray, "4 4"]:
    """The pose of a position and a quaternion wxyz of any norm."""
    w, x, y, z = np.asarray(quaternion, float) / np.linalg.norm(quaternion)
    return poses.pose(position, poses.rotation_from_unit_quaternion(np.array([x, y, z, w])))


def tendon_joints(file: CompiledFile, tendon: int) -> dict[int, float]:
    """The joints of a fixed tendon and their coefficients; none for a spatial tendon."""
    model, start, found = file.model, int(file.model.tendon_adr[tendon]), {}
    for i in range(start, start + int(model.tendon_num[tendon])):
        if model.wrap_type[i] == int(file.mujoco.mjtWrap.mjWRAP_JOINT):
            joint = int(model.wrap_objid[i])
            found[joint] = found.get(joint, 0.0) + float(model.wrap_prm[i])
    return found


def coupled_joints(file: CompiledFile) -> set[int]:
    """The joints in active equalities of joints and fixed tendons."""
    model = file.model
    found: set[int] = set()
    for i in np.flatnonzero(model.eq_active0).tolist() if file.enabled("CONSTRAINT", "EQUALITY") else ():
        ends = [int(x[i]) for x in (model.eq_obj1id, model.eq_obj2id) if x[i] >= 0]
        if model.eq_type[i] == JOINT:
            found.update(ends)
        elif model.eq_type[i] == TENDON:
            found.update(*(tendon_joints(file, tendon) for tendon in ends))
    return found


def _screws(model: Any, members: range) -> tuple[list[_Screw], Float[np.ndarray, "4 4"]]:
    """The screws s', and the pose ``G_k`` of the body at q = 0 in its frame at the reference."""
    moved, out = np.eye(4), []
    for j in members:
        kind, axis, point = int(model.jnt_type[j]), model.jnt_axis[j], model.jnt_pos[j]
        out.append(_Screw(j, kind, moved[:3, :3] @ point + moved[:3, 3], moved[:3, :3] @ axis))
        back = -model.qpos0[model.jnt_qposadr[j]]
        step = np.eye(4)
        if kind == SLIDE:
            step[:3, 3] = back * axis
        elif kind == HINGE:
            turn = pose(np.zeros(3), [np.cos(back / 2), *(np.sin(back / 2) * axis)])[:3, :3]
            step[:3, :3], step[:3, 3] = turn, point - turn @ point
        moved = moved @ step
    return out, moved


def _runs(screws: list[_Screw], coupled: set[int]) -> list[list[_Screw]]:
    """Group screws into runs that one joint of lgsim represents: translations, and rotations about concurrent axes.

    Coupled joints are runs of their own.
    """
    runs: list[list[_Screw]] = []
    for screw in screws:
        points = [other.point for other in runs[-1] if other.kind != SLIDE] if runs else []
        alone = (
            not runs
            or BALL in (screw.kind, runs[-1][0].kind)
            or not coupled.isdisjoint((screw.index, runs[-1][0].index))
        )
        apart = screw.kind == HINGE and points and not np.allclose(screw.point, points[0], rtol=1e-14, atol=1e-14)
        if alone or apart:
            runs.append([screw])
        else:
            runs[-1].append(screw)
    return runs


def _joint(run: list[_Screw]) -> Joint:
    """The joint of lgsim that represents a run of screws."""
    single = {BALL: joints.Spherical(), SLIDE: joints.Prismatic(), HINGE: joints.Revolute()}
    if len(run) == 1:
        return single[run[0].kind]
    return joints.Compound(tuple(Row(screw.kind == HINGE, int(np.argmax(np.abs(screw.axis)))) for screw in run))


def _numbers(file: CompiledFile, members: Iterable[int]) -> dict[str, Float[np.ndarray, " k"]]:
    """Limits and forces of the degrees of freedom of joints, by the names of ``ModelBuilder.add_body``."""
    parts = [_numbers_of_joint(file, j) for j in members]
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def _armature_of_tendons(file: CompiledFile, joint: int) -> float:
    """The inertia of the tendons whose only joint it is, kg m^2 or kg: ``a k^2`` with their coefficients k."""
    model = file.model
    inertias = getattr(model, "tendon_armature", np.zeros(model.ntendon))  # of MuJoCo 3.3 and later
    own = {t: tendon_joints(file, t) for t in np.flatnonzero(inertias).tolist()}
    return float(sum(inertias[t] * joints[joint] ** 2 for t, joints in own.items() if joints.keys() == {joint}))


def _numbers_of_joint(file: CompiledFile, j: int) -> dict[str, Float[np.ndarray, " k"]]:
    """Limits and forces of one joint's degrees of freedom."""
    model, kind = file.model, int(file.model.jnt_type[j])
    count, at = SPEEDS[kind], model.jnt_dofadr[j]
    dofs = slice(at, at + count)
    numbers = {
        "armature": model.dof_armature[dofs] + _armature_of_tendons(file, j),
        "damping": model.dof_damping[dofs] * file.enabled("PASSIVE", "DAMPER"),
        "friction": model.dof_frictionloss[dofs] * file.enabled("CONSTRAINT", "FRICTIONLOSS"),
    }
    for key, values in numbers.items():
        if np.any(values < 0):
            raise file.error("joint", j, f"{key}: expected a nonnegative number, got {min(values):g}")
    lower, upper, effort, stiffness, rest = -np.inf, np.inf, np.inf, 0.0, 0.0
    if count == 1:
        if model.jnt_limited[j]:
            lower, upper = model.jnt_range[j]
        if model.jnt_actfrclimited[j]:
            effort = np.max(np.abs(model.jnt_actfrcrange[j]))
        stiffness = model.jnt_stiffness[j] * file.enabled("PASSIVE", "SPRING")
        rest = model.qpos_spring[model.jnt_qposadr[j]]
    same = {"lower": lower, "upper": upper, "effort_limit": effort, "stiffness": stiffness, "rest": rest}
    numbers |= {key: np.full(count, float(value)) for key, value in same.items()}
    if kind == BALL and model.jnt_limited[j]:
        numbers["upper"][1] = model.jnt_range[j, 1]  # of the whole rotation angle
    return numbers
