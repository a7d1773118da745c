"""Tendons of an MJCF file: paths of spatial ones, couplings of fixed ones, and springs of both and of joints."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from lgsim.actuators import Transmission
from lgsim.actuators.passive_springs import DryFriction, PassiveSprings, PolynomialSpring
from lgsim.actuators.stage import Stage
from lgsim.actuators.tendon_paths import Segment, TendonPaths
from lgsim.dynamics.passive_forces import stop_coefficients
from lgsim.formats.mjcformat.compilation import CompiledFile
from lgsim.formats.mjcformat.joints import HINGE, SLIDE, pose, tendon_joints
from lgsim.multibody.joint_numbers import USUAL
from lgsim.multibody.model import Model


def tendon_fault(file: CompiledFile, tendon: int) -> str:
    """The reason why the path of a tendon is not represented; "" if it is."""
    model = file.model
    for i in _wraps(file, tendon):
        if model.wrap_type[i] in _shapes(file) and (side := round(float(model.wrap_prm[i]))) >= 0:
            if model.site_bodyid[side] != model.geom_bodyid[model.wrap_objid[i]]:
                return f"its side site {file.names['site'][side]!r} is on another body than the geom"
    return ""


def is_spatial(file: CompiledFile, tendon: int) -> bool:
    """True for a tendon through sites, False for one that couples joints."""
    return bool(file.model.wrap_type[file.model.tendon_adr[tendon]] != int(file.mujoco.mjtWrap.mjWRAP_JOINT))


def coupling_row(file: CompiledFile, tendon: int, places: dict[int, slice], model: Model) -> Float[np.ndarray, " nv"]:
    """The coefficients of a fixed tendon."""
    row = np.zeros(model.nv)
    for joint, coefficient in tendon_joints(file, tendon).items():
        row[places[joint]] = coefficient
    return row


def tendon_paths(file: CompiledFile, tendons: list[int], model: Model) -> TendonPaths:
    """The paths of spatial tendons."""
    theirs, kinds, shapes = file.model, file.mujoco.mjtWrap, _shapes(file)
    sites: dict[int, int] = {}
    wraps: list[int] = []
    segments, shares = [], []
    for row, tendon in enumerate(tendons):
        share, last, wrap = 1.0, None, None
        for i in _wraps(file, tendon):
            kind = int(theirs.wrap_type[i])
            if kind == int(kinds.mjWRAP_PULLEY):
                share, last = 1 / float(theirs.wrap_prm[i]), None
            elif kind in shapes:
                wrap = len(wraps)
                wraps.append(i)
            else:
                place = sites.setdefault(int(theirs.wrap_objid[i]), len(sites))
                if last is not None:
                    segments.append(Segment(row, last, place, wrap))
                    shares.append(share)
                last, wrap = place, None
    geoms = [int(theirs.wrap_objid[i]) for i in wraps]
    beside = [round(float(theirs.wrap_prm[i])) for i in wraps]
    poses = [pose(theirs.geom_pos[g], theirs.geom_quat[g]) for g in geoms]
    sides = [
        np.zeros(3) if side < 0 else T[:3, :3].T @ (theirs.site_pos[side] - T[:3, 3])
        for side, T in zip(beside, poses, strict=True)
    ]
    radii = np.array([theirs.geom_size[g, 0] for g in geoms])
    inside = [s >= 0 and bool(np.linalg.norm(x) < r) for s, x, r in zip(beside, sides, radii, strict=True)]

    def numbers(x: Any, *shape: int) -> Any:
        return jnp.asarray(np.array(x, float).reshape(-1, *shape), model.dtype)

    return TendonPaths(
        tuple(segments), numbers(shares), tuple(file.names["body"][theirs.site_bodyid[site]] for site in sites),
        numbers([theirs.site_pos[site] for site in sites], 3),
        tuple(file.names["body"][theirs.geom_bodyid[g]] for g in geoms), numbers(poses, 4, 4), numbers(radii),
        numbers(sides, 3), tuple(int(theirs.wrap_type[i]) == int(kinds.mjWRAP_CYLINDER) for i in wraps),
        tuple(side >= 0 for side in beside), tuple(inside), len(tendons),
    )  # fmt: skip


def transmission_of(
    file: CompiledFile, tendons: list[int], joints: list[int], places: dict[int, slice], model: Model
) -> Transmission:
    """A transmission whose shafts are tendons of any kind, then joints with one coordinate."""
    spatial = [t for t in tendons if is_spatial(file, t)]
    count = len(tendons) + len(joints)
    coupling, pulls = np.zeros((count, model.nv)), np.zeros((count, len(spatial)))
    for row, tendon in enumerate(tendons):
        if tendon in spatial:
            pulls[row, spatial.index(tendon)] = 1.0
        else:
            coupling[row] = coupling_row(file, tendon, places, model)
    for row, joint in enumerate(joints, len(tendons)):
        coupling[row, places[joint]] = 1.0
    coupled = Transmission(jnp.asarray(coupling, model.dtype))
    if not spatial:
        return coupled
    return Transmission(
        coupled.coupling, paths=tendon_paths(file, spatial, model), pulls=jnp.asarray(pulls, model.dtype)
    )


def passive_springs(
    file: CompiledFile, places: dict[int, slice], model: Model, stops: float | None
) -> PassiveSprings | None:
    """Springs, dampers, dry friction and stops of tendons, and the polynomial parts of those of hinges and slides."""
    theirs = file.model
    springs, dampers = file.enabled("PASSIVE", "SPRING"), file.enabled("PASSIVE", "DAMPER")
    at_tendons = _coefficients(theirs, "tendon", springs), _coefficients(theirs, "tendon", dampers, "damping")
    at_joints = _coefficients(theirs, "jnt", springs), _coefficients(theirs, "dof", dampers, "damping")
    friction = np.array(theirs.tendon_frictionloss, float) * file.enabled("CONSTRAINT", "FRICTIONLOSS")
    dofs = theirs.jnt_dofadr
    limited = _limited(file) if stops is not None else np.zeros(len(friction), bool)
    acting = np.any(np.column_stack([*at_tendons, friction, limited]), axis=1)
    tendons = [t for t in np.flatnonzero(acting).tolist() if not tendon_fault(file, t)]
    joints = [
        j
        for j in range(theirs.njnt)
        if theirs.jnt_type[j] in (HINGE, SLIDE) and (np.any(at_joints[0][j, 1:]) or np.any(at_joints[1][dofs[j], 1:]))
    ]
    if not tendons and not joints:
        return None
    # the model has the linear part of joints
    at_joints[0][:, 0], at_joints[1][:, 0] = 0, 0
    stiffness = np.concatenate([at_tendons[0][tendons], at_joints[0][joints]])
    damping = np.concatenate([at_tendons[1][tendons], at_joints[1][dofs[joints]]])
    rest = theirs.qpos_spring[theirs.jnt_qposadr[joints]]
    ends = (np.concatenate([theirs.tendon_lengthspring[tendons, k], rest]) for k in (0, 1))
    spring = PolynomialSpring(*(jnp.asarray(x, model.dtype) for x in (stiffness, damping, *ends)))
    stages: list[Stage] = [spring]
    if friction[tendons].any():
        dry = np.concatenate([friction[tendons], np.zeros(len(joints))])
        stages.append(DryFriction(*(jnp.asarray(x, model.dtype) for x in (dry, USUAL["friction_speed"]))))
    if stops is not None and limited[tendons].any():
        mobility = np.where(limited, theirs.tendon_invweight0, np.inf)[tendons]
        numbers = *stop_coefficients(1 / mobility, stops), *theirs.tendon_range[tendons].T
        k, c, lower, upper = (jnp.asarray(np.append(x, np.zeros(len(joints))), model.dtype) for x in numbers)
        stages.append(PolynomialSpring(k[:, None], jnp.zeros_like(k)[:, None], lower, upper, c))
    return PassiveSprings(transmission_of(file, tendons, joints, places, model), *stages)


def unread_of_tendon(file: CompiledFile, tendon: int) -> list[str]:
    """Texts of findings: the properties of a tendon that neither the model nor its actuators represent."""
    model, fault = file.model, tendon_fault(file, tendon)
    if fault:
        return [f"is not represented: {fault}"]
    found = []
    if model.tendon_limited[tendon] and file.enabled("CONSTRAINT", "LIMIT"):
        by_stops = "has limits, which load_actuators represents with stops=, not the model"
        still = "is represented without limits: its length is stationary at qpos0"
        found.append(by_stops if _limited(file)[tendon] else still)
    if np.any(_entries(model, "tendon_armature", tendon)) and len(tendon_joints(file, tendon)) != 1:
        found.append("is represented without armature")
    if np.any(_entries(model, "tendon_springyield", tendon)):
        found.append("plasticity of the spring is not represented")
    named = ("stiffness", "stiffnesspoly", "damping", "dampingpoly", "frictionloss")
    if any(np.any(_entries(model, f"tendon_{name}", tendon)) for name in named):
        found.append("has a spring, a damper or dry friction, which load_actuators represents, not the model")
    return found


def _limited(file: CompiledFile) -> Bool[np.ndarray, " tendons"]:
    """True for each tendon with limits, unless its length is stationary at ``qpos0``, where stops have no inertia."""
    model = file.model
    return np.array(model.tendon_limited, bool) & file.enabled("CONSTRAINT", "LIMIT") & (model.tendon_invweight0 > 0)


def _coefficients(model: Any, kind: str, enabled: bool, what: str = "stiffness") -> Float[np.ndarray, "n k"]:
    """Coefficients of springs or dampers, the linear one first; zero where the file disables them."""
    linear = np.array(getattr(model, f"{kind}_{what}"), float)[:, None]
    more = getattr(model, f"{kind}_{what}poly", np.zeros((len(linear), 0)))
    return np.concatenate([linear, np.array(more, float)], axis=1) * enabled


def _entries(model: Any, name: str, tendon: int) -> Any:
    """Entries of an array of MuJoCo's model; zero if this version of MuJoCo lacks the array."""
    found = getattr(model, name, None)
    return 0.0 if found is None else found[tendon]


def _wraps(file: CompiledFile, tendon: int) -> range:
    """Indices of the parts of a tendon."""
    first = int(file.model.tendon_adr[tendon])
    return range(first, first + int(file.model.tendon_num[tendon]))


def _shapes(file: CompiledFile) -> tuple[int, int]:
    """MuJoCo's numbers of the shapes that tendons wrap around."""
    kinds = file.mujoco.mjtWrap
    return int(kinds.mjWRAP_SPHERE), int(kinds.mjWRAP_CYLINDER)
