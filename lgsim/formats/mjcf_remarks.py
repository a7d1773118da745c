"""What a model does not represent of an MJCF file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lgsim.formats.mjcf_compiled import Compiled
from lgsim.formats.mjcf_joints import BALL, FREE, SPEEDS
from lgsim.formats.report import Finding


def ignored(file: Compiled) -> Iterator[Finding]:
    """Elements and attributes that say something about the motion and were not read."""
    model = file.model
    if model.opt.density or model.opt.viscosity:
        yield Finding(1, "<option>", "density and viscosity: forces of a fluid are not represented")
    if file.enabled("CONSTRAINT", "CONTACT"):
        for geom in np.flatnonzero(model.geom_contype | model.geom_conaffinity).tolist():
            yield file.finding("geom", geom, "can touch others; contacts are not represented")
        for pair in range(model.npair):
            yield file.finding("pair", pair, "contacts are not represented")
    for kind in ("equality", "tendon", "actuator", "flex", "plugin"):
        for index, _ in enumerate(file.names[kind]):
            yield file.finding(kind, index, "is not represented")
    for body in range(model.nbody):
        if model.body_mocapid[body] >= 0:
            yield file.finding("body", body, "is moved from outside (mocap); it is fixed here")
        if model.body_gravcomp[body]:
            yield file.finding("body", body, "gravcomp is not represented")
    for joint in range(model.njnt):
        for text in _of_joint(file, joint):
            yield file.finding("joint", joint, text)


def _of_joint(file: Compiled, j: int) -> Iterator[str]:
    model, kind = file.model, int(file.model.jnt_type[j])
    dofs = slice(model.jnt_dofadr[j], model.jnt_dofadr[j] + SPEEDS[kind])
    if kind in (FREE, BALL) and model.jnt_stiffness[j] and file.enabled("PASSIVE", "SPRING"):
        yield "stiffness of a joint with a quaternion is not represented"
    if kind == FREE and np.any(model.dof_armature[dofs][:3]):
        yield "armature of a free joint acts on the velocity in the body's axes, in MuJoCo on that in world axes"
    if np.any(_attribute(model, "jnt_stiffnesspoly", j)) or np.any(_attribute(model, "dof_dampingpoly", dofs)):
        yield "polynomial damping and stiffness are not represented; the first coefficient was taken"
    if np.any(_attribute(model, "jnt_springyield", j)):
        yield "plasticity of the spring is not represented"
    if model.jnt_actfrclimited[j] and np.sum(model.jnt_actfrcrange[j]):
        yield "actuatorfrcrange is not symmetric; the larger bound was taken"


def _attribute(model: object, name: str, index: int | slice) -> Any:
    """Zero where this version of MuJoCo lacks it."""
    found = getattr(model, name, None)
    return 0.0 if found is None else found[index]
