"""Equalities of MJCF files as closed kinematic loops: coincident points and frames, and joint couplings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float

from lgsim.formats.mjcf_compiled import CompiledFile
from lgsim.formats.mjcf_joints import HINGE, SLIDE, pose
from lgsim.formats.report import Finding
from lgsim.multibody.builder import ModelBuilder
from lgsim.multibody.joints import Fixed, Spherical

CONNECT, WELD, JOINT = range(3)
"""MuJoCo's supported types of equalities, by ``MjModel.eq_type``."""

_UPRIGHT = (1.0, 0.0, 0.0, 0.0)
"""The identity quaternion."""

LEFT_OUT = "solref, solimp and torquescale are not read: the loop is closed exactly"


def acting_equalities(file: CompiledFile) -> list[int]:
    """Indices of the active equalities."""
    return np.flatnonzero(file.model.eq_active0 * file.enabled("CONSTRAINT", "EQUALITY")).tolist()


def fault(file: CompiledFile, i: int) -> str:
    """The reason why a loop cannot represent an equality; "" if it can."""
    model = file.model
    if model.eq_type[i] not in (CONNECT, WELD, JOINT):
        return "it is neither a connect, a weld nor a joint equality"
    if model.eq_type[i] != JOINT:
        return ""
    a, b = model.eq_obj2id[i], model.eq_obj1id[i]
    if a < 0:
        return "it fixes a single joint; use Model.lock"
    for joint in (a, b):
        alone = model.body_jntnum[model.jnt_bodyid[joint]] == 1
        if not alone or model.jnt_type[joint] not in (HINGE, SLIDE):
            return f"{file.subject('joint', int(joint))} is not the only hinge or slide of its body"
    return ""


def add_equality(file: CompiledFile, i: int, builder: ModelBuilder, name: str, frames: tuple[str, str]) -> None:
    """Add the loop of a representable equality.

    Args:
        builder: Receives the loop.
        frames: Names for the frames on its first and its second body.

    Raises:
        ModelError: both ends are on one body.

    Source: MuJoCo's ``mj_instantiateEquality``. ``eq_data`` of a connect contains the anchors in both bodies; of a weld
    the anchor in the second body and the pose of that frame in the first one; of joints
    ``q1 - r1 = c0 + c1 (q2 - r2) + ...`` with the references r.
    """
    model = file.model
    data, kind = np.array(model.eq_data[i]), int(model.eq_type[i])
    if kind == JOINT:
        a, b = int(model.eq_obj2id[i]), int(model.eq_obj1id[i])
        references = [float(model.qpos0[model.jnt_qposadr[j]]) for j in (a, b)]
        coefficients = _shifted_polynomial(data[:5], *references)
        builder.add_coupling(name, file.names["joint"][a], file.names["joint"][b], coefficients)
        return
    ends = [int(model.eq_obj1id[i]), int(model.eq_obj2id[i])]
    if _of_sites(file, i):
        bodies = [int(model.site_bodyid[site]) for site in ends]
        poses = [pose(model.site_pos[site], model.site_quat[site]) for site in ends]
    else:
        bodies = ends
        if kind == CONNECT:
            poses = [pose(data[:3], _UPRIGHT), pose(data[3:6], _UPRIGHT)]
        else:
            poses = [pose(data[3:6], data[6:10]), pose(data[:3], _UPRIGHT)]
    for frame, body, T in zip(frames, bodies, poses, strict=True):
        builder.add_frame(frame, file.names["body"][body], T)
    builder.add_loop(name, *frames, Spherical() if kind == CONNECT else Fixed())


def remarks(file: CompiledFile, read: bool) -> Iterator[Finding]:
    """Findings about equalities and their unread attributes; ``read`` is true if active equalities are loops."""
    acting = acting_equalities(file)
    for i, _ in enumerate(file.names["equality"]):
        if i not in acting:
            yield file.finding("equality", i, "is not active")
        elif read:
            yield file.finding("equality", i, LEFT_OUT)
        else:
            yield file.dropped("equality", i, "is not represented")


def _shifted_polynomial(
    c: Float[np.ndarray, " 5"], reference: float, other_reference: float
) -> Float[np.ndarray, " k"]:
    """Coefficients of ``r + c(x - s)`` in powers of x, with the reference s of x and r of the value."""
    polynomial: Any = np.polynomial.Polynomial(c)(np.polynomial.Polynomial([-reference, 1.0]))
    out = np.array(polynomial.coef) + other_reference * (np.arange(len(polynomial.coef)) == 0)
    return out[: 1 + max(int(np.max(np.flatnonzero(out), initial=0)), 1)]


def _of_sites(file: CompiledFile, i: int) -> bool:
    """True if an equality connects sites; before MuJoCo 3.2 all connect bodies."""
    kinds = getattr(file.model, "eq_objtype", None)
    return kinds is not None and int(kinds[i]) == int(file.mujoco.mjtObj.mjOBJ_SITE)
