"""Equalities of MJCF files as closed kinematic loops: coincident points and frames, couplings by joints and tendons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float

from lgsim.formats.mjcformat.compilation import CompiledFile
from lgsim.formats.mjcformat.joints import HINGE, SLIDE, pose
from lgsim.formats.report import Finding
from lgsim.multibody.builder import ModelBuilder
from lgsim.multibody.joints import Fixed, Spherical
from lgsim.support.messages import counted

CONNECT, WELD, JOINT, TENDON = range(4)
"""MuJoCo's supported types of equalities, by ``MjModel.eq_type``."""

_UPRIGHT = (1.0, 0.0, 0.0, 0.0)
"""The identity quaternion."""

PAIR = 2
"""The joints that a coupling connects."""

LEFT_OUT = "solref, solimp and torquescale are not read: the loop is closed exactly"


def acting_equalities(file: CompiledFile) -> list[int]:
    """Indices of the active equalities."""
    return np.flatnonzero(file.model.eq_active0 * file.enabled("CONSTRAINT", "EQUALITY")).tolist()


def fault(file: CompiledFile, i: int) -> str:
    """The reason why a loop cannot represent an equality; "" if it can."""
    model = file.model
    if model.eq_type[i] not in (CONNECT, WELD, JOINT, TENDON):
        return "it is no connect or weld, and no equality of joints or tendons"
    if model.eq_type[i] in (CONNECT, WELD):
        return ""
    ends = [int(model.eq_obj2id[i]), int(model.eq_obj1id[i])]
    if model.eq_type[i] == TENDON:
        found = _tendon_equation(file, i)
        if found is None:
            return "it is an equality of spatial tendons, or a polynomial of their lengths"
        ends = list(found[0])
        if len(ends) != PAIR:
            return f"it couples {counted(len(ends), 'joint')}, not two"
    elif ends[0] < 0:
        return "it fixes a single joint; use Model.lock"
    for joint in ends:
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
    ``q1 - r1 = c0 + c1 (q2 - r2) + ...`` with the references r; of tendons the same with lengths.
    """
    model = file.model
    data, kind = np.array(model.eq_data[i]), int(model.eq_type[i])
    if kind == TENDON:
        found = _tendon_equation(file, i)
        assert found is not None
        ((a, x), (b, y)), constant = found[0].items(), found[1]
        builder.add_coupling(name, file.names["joint"][a], file.names["joint"][b], [constant / y, -x / y])
        return
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


def _tendon_equation(file: CompiledFile, i: int) -> tuple[dict[int, float], float] | None:
    """(coefficients k by joint, constant c) of an equality of fixed tendons, ``sum k q = c``.

    None if it is not linear. The length of a fixed tendon is the sum of its joints' coordinates times its coefficients.
    """
    model, data = file.model, np.array(file.model.eq_data[i])
    first, second = int(model.eq_obj1id[i]), int(model.eq_obj2id[i])
    if second >= 0 and np.any(data[2:5]):
        return None
    slopes = {first: 1.0} | ({second: -float(data[1])} if second >= 0 else {})
    coefficients: dict[int, float] = {}
    constant = float(data[0])
    for tendon, slope in slopes.items():
        start = int(model.tendon_adr[tendon])
        for at in range(start, start + int(model.tendon_num[tendon])):
            if model.wrap_type[at] != file.mujoco.mjtWrap.mjWRAP_JOINT:
                return None
            joint = int(model.wrap_objid[at])
            coefficients[joint] = coefficients.get(joint, 0.0) + slope * float(model.wrap_prm[at])
        constant += slope * float(model.tendon_length0[tendon])
    return {joint: k for joint, k in sorted(coefficients.items()) if k}, constant


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
