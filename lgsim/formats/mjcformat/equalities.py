"""Equalities of MJCF files as closed kinematic loops: coincident points and frames, couplings by joints and tendons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from lgsim.formats.mjcformat.compilation import CompiledFile
from lgsim.formats.mjcformat.joints import HINGE, JOINT, SLIDE, TENDON, coupled_joints, pose, tendon_joints
from lgsim.formats.report import Finding
from lgsim.multibody.builder import ModelBuilder
from lgsim.multibody.joints import Fixed, Spherical
from lgsim.support.messages import counted

CONNECT, WELD = range(2)
"""MuJoCo's types of equalities between frames, by ``MjModel.eq_type``."""

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
    kind = file.model.eq_type[i]
    if kind in (CONNECT, WELD):
        return ""
    if kind not in (JOINT, TENDON):
        return "it is no connect or weld, and no equality of joints or tendons"
    found = _coupling(file, i)
    return found if isinstance(found, str) else ""


def add_equality(file: CompiledFile, i: int, builder: ModelBuilder, name: str, frames: tuple[str, str]) -> None:
    """Add the loop of a representable equality.

    Args:
        builder: Receives the loop.
        frames: Names for the frames on its first and its second body.

    Raises:
        ModelError: both ends are on one body.

    Source: MuJoCo's ``mj_instantiateEquality``. ``eq_data`` of a connect contains the anchors in both bodies; of a weld
    the anchor in the second body and the pose of that frame in the first one; of joints
    or tendons see ``_coupling``.
    """
    model = file.model
    data, kind = np.array(model.eq_data[i]), int(model.eq_type[i])
    if kind in (JOINT, TENDON):
        found = _coupling(file, i)
        assert isinstance(found, _Equation)
        builder.add_coupling(name, file.names["joint"][found.a], file.names["joint"][found.b], found.coefficients)
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


class _Equation(NamedTuple):
    """``q_b = c_0 + c_1 q_a + ...`` of two joints."""

    a: int
    b: int
    coefficients: Float[np.ndarray, " k"]


def _coupling(file: CompiledFile, i: int) -> _Equation | str:
    """The equation of an equality of joints or fixed tendons, or the reason why two joints cannot represent it.

    With the lengths l of both sides, sums of coordinates times coefficients, and their references r it is
    ``l1 - r1 = P(l2 - r2)``.
    """
    model, c = file.model, np.array(file.model.eq_data[i, :5])
    indices = [int(x[i]) for x in (model.eq_obj1id, model.eq_obj2id) if x[i] >= 0]
    if model.eq_type[i] == TENDON:
        sides = [tendon_joints(file, t) for t in indices]
        references = [float(model.tendon_length0[t]) for t in indices]
    else:
        sides = [{j: 1.0} for j in indices]
        references = [float(model.qpos0[model.jnt_qposadr[j]]) for j in indices]
    if len(indices) < PAIR:
        sides.append({})
        references.append(0.0)
        c[1:] = 0
    (first, second), (r1, r2) = sides, references
    if not first or (len(indices) == PAIR and not second):
        return "it is an equality of spatial tendons"
    if len(first) == len(second) == 1 and first.keys() != second.keys():
        ((b, k1),), ((a, k2),) = first.items(), second.items()
        polynomial: Any = (np.polynomial.Polynomial(c)(np.polynomial.Polynomial([-r2, k2])) + r1) / k1
        terms = np.array(polynomial.coef)
        return _Equation(a, b, terms[: 1 + max(int(np.max(np.flatnonzero(terms), initial=0)), 1)])
    if np.any(c[2:]):
        return "it is a polynomial of tendons of several joints"
    both = {j: first.get(j, 0.0) - c[1] * second.get(j, 0.0) for j in sorted({*first, *second})}
    both = {j: k for j, k in both.items() if k}
    if len(both) == 1:
        # a coupling of slope zero to any other joint
        other = _another(file, *both)
        if other is None:
            return "it fixes a single joint; use Model.lock"
        both = {other: 0.0} | both
    if len(both) != PAIR:
        return f"it couples {counted(len(both), 'joint')}, not two"
    (a, x), (b, y) = both.items()
    return _Equation(a, b, np.array([c[0] + r1 - c[1] * r2, -x]) / y)


def _another(file: CompiledFile, joint: int) -> int | None:
    """A hinge or slide that is one joint in lgsim too, other than a joint; None without one."""
    model = file.model
    alone = {int(j) for j in range(model.njnt) if model.body_jntnum[model.jnt_bodyid[j]] == 1}
    fine = [j for j in alone | coupled_joints(file) if j != joint and model.jnt_type[j] in (HINGE, SLIDE)]
    return min(fine, default=None)


def _of_sites(file: CompiledFile, i: int) -> bool:
    """True if an equality connects sites; before MuJoCo 3.2 all connect bodies."""
    kinds = getattr(file.model, "eq_objtype", None)
    return kinds is not None and int(kinds[i]) == int(file.mujoco.mjtObj.mjOBJ_SITE)
