"""Models from MJCF files, and reports of what the models do not represent."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Float

from lgsim.formats.contacts.file_contacts import Names
from lgsim.formats.contacts.mjcf_geoms import add_geoms
from lgsim.formats.mjcformat.actuators import faults_of_actuators
from lgsim.formats.mjcformat.body_forces import forced_bodies
from lgsim.formats.mjcformat.compilation import UNKNOWN_LINE, CompiledFile, compile_file
from lgsim.formats.mjcformat.equalities import acting_equalities, add_equality, fault, remarks
from lgsim.formats.mjcformat.joints import BALL, FREE, HINGE, SLIDE, SPEEDS, joint_chain, pose
from lgsim.formats.mjcformat.tendons import unread_of_tendon
from lgsim.formats.report import FileWarning, Finding, Inertia, Report
from lgsim.formats.solids.geom_solids import add_solid_geoms
from lgsim.formats.solids.model_solids import SolidNames
from lgsim.formats.unit_checks import odd_length, odd_range
from lgsim.formats.urdf import FLOATS, NOTHING_MOVES, ROOT_JOINT
from lgsim.formats.xml import FileError, built, errors_at
from lgsim.multibody.builder import ModelBuilder, ten_parameters
from lgsim.multibody.inertia import defect
from lgsim.multibody.joint_slices import JOINED
from lgsim.multibody.joints import Fixed, Free
from lgsim.multibody.model import Model
from lgsim.multibody.topology import ROOT
from lgsim.support.messages import counted
from lgsim.support.unused_names import unused_name


def load_mjcf(
    path: str | os.PathLike[str] | None = None,
    *,
    text: str | None = None,
    dtype: DTypeLike | None = None,
    ignore_equalities: bool = False,
    floating_base: bool = False,
    contacts: Names = (),
    contact_law: Mapping[str, Any] | None = None,
    solids: SolidNames = (),
    solid_meshes: Mapping[str, int] | None = None,
) -> Model:
    """Load a model from an MJCF file.

    MuJoCo compiles the file, so that defaults, classes, angles, orientations and inertias from geometry are those of
    MuJoCo. q is MuJoCo's qpos. v is its qvel except for free joints, whose velocity is in body axes here;
    ``lgsim.formats.interop.mujoco`` converts it. Coordinates are relative to MuJoCo's zero, not to ``qpos0``.

    Bodies without joints are merged into their parents, and their frames are kept; sites are frames. Several hinges and
    slides of one body whose axes meet become one compound joint, named after them with "+" between; otherwise, or if an
    equality couples one of them, a massless body is inserted. The frame with a body's name is that of the file. If the
    body rotates about a point other than its origin, the moving body of the model has its frame there, and is named
    ``body:joint``.

    Springs, dampers, dry friction, armature, limits and force ranges of joints are read, and gravity. Position limits
    are not enforced, see ``lgsim.with_stops``. ``load_actuators`` reads actuators. The report of ``read_mjcf`` lists
    what is not represented, such as contacts and tendons.

    An active ``<equality>`` is a closed kinematic loop with its name: "connect" a ball joint between the frames
    "<name>.a" and "<name>.b", "weld" a fixed joint, by bodies or by sites, "joint" a coupling, and "tendon" a
    coupling of two joints. Loops are closed exactly: ``solref`` and ``solimp`` are not read.

    Args:
        text: The MJCF itself instead of a path; its files are searched in the working directory.
        dtype: float32 or float64; None for JAX's default float.
        ignore_equalities: True ignores ``<equality>``, so that the model has no loops.
        floating_base: True gives bodies of the world without joints a free joint, ``root_joint``, or
            "root_joint:<body>" if there are several.
        contacts: Names of geoms, or of bodies all of whose colliding geoms touch the ground, or contact parameters by
            such names; none by default. Cylinders have contact points on their rims, meshes at some vertices.
        contact_law: Default contact parameters, as in ``Model.add_contact``; those of MuJoCo are not read.
        solids: True, or names of geoms that become collision geometry, or of bodies (also the world) all of whose
            colliding geoms do, named after the geoms; or a mapping from such names to settings that differ from
            ``solid_meshes``; none by default. Pairs that contype and conaffinity or <exclude> exclude stay excluded.
        solid_meshes: Representation of meshes, as for ``load_urdf``.

    Returns:
        The model. A ``FileWarning`` counts limits and lengths that look like degrees or millimeters, another one
        lists features of the file that affect the motion and that the model does not represent.

    Raises:
        FileError: the file is missing, MuJoCo rejects it, it has no joints, or a loop cannot represent an equality, so
            that the model would be a different system; or its copies and grids, as of <replicate>, have more than
            50 000 elements (the environment variable ``LGSIM_MAX_BODIES`` sets another limit). The message has the
            line.
        ImportError: the package ``mujoco`` is missing; ``pip install 'lgsim[mjcf]'``.
        TypeError: both or neither of ``path`` and ``text`` are given.

    Source: MuJoCo's documentation, chapters "XML reference" and "Computation", section "Joint space and coordinates";
    the order and place of a body's joints: ``mj_kinematics``.
    """
    model, report = read_mjcf(
        path, text=text, dtype=dtype, ignore_equalities=ignore_equalities, floating_base=floating_base,
        contacts=contacts, contact_law=contact_law, solids=solids, solid_meshes=solid_meshes,
    )  # fmt: skip
    if report.dropped:
        warnings.warn(f"{report.file}: {report.dropped}", FileWarning, stacklevel=2)
    if report.units:
        warnings.warn(
            f"{report.file}: {counted(len(report.units), 'number')} may be in other units; the first one:"
            f" {report.units[0]}. lgsim.formats.read_mjcf returns the full report without a warning.",
            FileWarning,
            stacklevel=2,
        )
    return model


def read_mjcf(
    path: str | os.PathLike[str] | None = None,
    *,
    text: str | None = None,
    dtype: DTypeLike | None = None,
    ignore_equalities: bool = False,
    floating_base: bool = False,
    contacts: Names = (),
    contact_law: Mapping[str, Any] | None = None,
    solids: SolidNames = (),
    solid_meshes: Mapping[str, int] | None = None,
) -> tuple[Model, Report]:
    """Load a model as ``load_mjcf`` does, and report findings in the file and features that are not represented.

    Line 0 in the report is an element without a known line, such as one of an included file.

    Args:
        text: The MJCF itself instead of a path.
        dtype: float32 or float64; None for JAX's default float.
        ignore_equalities: See ``load_mjcf``.
        floating_base: See ``load_mjcf``.
        contacts: See ``load_mjcf``.
        contact_law: See ``load_mjcf``.
        solids: See ``load_mjcf``.
        solid_meshes: See ``load_mjcf``.

    Raises:
        FileError, ImportError, TypeError: see ``load_mjcf``.
    """
    file = compile_file(path, text)
    if not ignore_equalities:
        _refuse_equalities(file)
    # overflow of numbers near the largest float is detected by the checks below, without NumPy's warnings
    with np.errstate(all="ignore"):
        reader = _Reader(file, dtype, floating_base)
        for body in range(1, file.model.nbody):
            reader.add_body(body)
        for site in range(file.model.nsite):
            reader.add_site(site)
        for equality in () if ignore_equalities else acting_equalities(file):
            reader.add_equality(equality)
        if file.model.nbody == 1:
            raise FileError(file.file, None, "expected at least one <body>, got none")
        if floating_base and not reader.floating:
            text = (
                "floating_base: expected a body of the world without a joint, got none; other bodies have <freejoint/>"
            )
            raise FileError(file.file, None, text)
        if not file.model.njnt and not floating_base:
            raise FileError(file.file, None, NOTHING_MOVES + FLOATS)
        model = reader.build()
    touching: set[int] = set()
    if contacts:
        model, assumed, touching = add_geoms(file, model, contacts, contact_law)
        reader.assumed.extend(assumed)
    if solids:
        model, assumed, left_out = add_solid_geoms(file, model, solids, solid_meshes)
        reader.assumed.extend(assumed)
        reader.left_out.extend(left_out)
    ignored = (*_ignored(file, not ignore_equalities, touching), *reader.left_out)
    report = Report(
        file.file,
        inertias=tuple(reader.inertias),
        units=tuple(_odd_units(file)),
        clashes=tuple(reader.clashes),
        assumed=(*(Finding(UNKNOWN_LINE, "MuJoCo:", warning) for warning in file.warnings), *reader.assumed),
        ignored=tuple(sorted(ignored, key=lambda finding: finding.line)),
    )
    return model, report


def _refuse_equalities(file: CompiledFile) -> None:
    """Check that each active equality can be represented; without it the model would be a different system.

    Raises:
        FileError: an equality cannot be represented.
    """
    odd = [(i, text) for i in acting_equalities(file) if (text := fault(file, i))]
    if odd:
        more = f", and {len(odd) - 1} more" if len(odd) > 1 else ""
        raise file.error(
            "equality",
            odd[0][0],
            f"{odd[0][1]}{more}: not represented by lgsim, and the model would be a different system without it. To"
            " read the file without equalities, use ignore_equalities=True, in a scenario `ignore_equalities = true` in"
            " `[machine]`, or lgsim simulate --ignore-equalities",
        )


class _Reader:
    """Passes the elements of a compiled file to a builder."""

    def __init__(self, file: CompiledFile, dtype: DTypeLike | None, floating_base: bool) -> None:
        gravity = np.array(file.model.opt.gravity) * file.enabled("GRAVITY")
        self.file = file
        self.builder = ModelBuilder(gravity, dtype, physical=False)
        self.taken = {*file.names["body"]}
        model = file.model
        mounted = (model.body_parentid == 0) & (model.body_jntnum == 0) & (model.body_mocapid < 0)
        self.floating = np.flatnonzero(mounted)[1:].tolist() if floating_base else []  # without the world
        self.inertias: list[Inertia] = []
        self.clashes: list[Finding] = []
        self.assumed: list[Finding] = []
        self.left_out: list[Finding] = []

    def add_body(self, body: int) -> None:
        """Add a body and its joints."""
        file, model = self.file, self.file.model
        name, at = file.names["body"][body], file.names["body"][model.body_parentid[body]]
        if body in self.floating:
            joint = ROOT_JOINT if len(self.floating) == 1 else f"{ROOT_JOINT}:{name}"
            with self.errors_at("body", body):
                self.builder.add_body(name, at, Free(), joint_name=joint, parameters=self._parameters(body))
            where = ", ".join(f"{x:g}" for x in model.body_pos[body])
            text = f"has a floating base {joint!r}; its position in the file is ({where}) m"
            self.assumed.append(file.finding("body", body, text))
            return
        steps, rest = joint_chain(file, body)
        # the body's frame is that of the last joint unless its anchor is elsewhere
        is_last = bool(steps) and np.array_equal(rest, np.eye(4))
        for step in steps:
            joint, first = JOINED.join(file.names["joint"][j] for j in step.members), step.members[0]
            last = is_last and step is steps[-1]
            carried = name if last else unused_name(f"{name}:{joint}", self.taken)
            if len(step.members) > 1:
                self.assumed.append(file.finding("joint", first, f"and the following are one joint, {joint!r}"))
            with self.errors_at("joint", first):
                self.builder.add_body(
                    carried,
                    at,
                    step.joint,
                    joint_name=joint,
                    placement=step.placement,
                    axis=step.axes,
                    parameters=self._parameters(body) if last else np.zeros(10),
                    **step.numbers,
                )
            at = carried
        if not is_last:
            with self.errors_at("body", body):
                self.builder.add_body(name, at, Fixed(), placement=rest, parameters=self._parameters(body))

    def add_site(self, site: int) -> None:
        """Add a frame at a site."""
        file, model = self.file, self.file.model
        name = file.names["site"][site]
        if name in self.taken or name == ROOT:
            frame = unused_name(f"site:{name}", self.taken)
            self.clashes.append(file.finding("site", site, f"has the name of a body; its frame is {frame!r}"))
            name = frame
        self.taken.add(name)
        body = file.names["body"][model.site_bodyid[site]]
        with self.errors_at("site", site):
            self.builder.add_frame(name, body, pose(model.site_pos[site], model.site_quat[site]))

    def add_equality(self, i: int) -> None:
        """Add the loop of an equality."""
        name = self.file.names["equality"][i]
        frames = unused_name(f"{name}.a", self.taken), unused_name(f"{name}.b", self.taken)
        with self.errors_at("equality", i):
            add_equality(self.file, i, self.builder, name, frames)

    def build(self) -> Model:
        """Build the model; an error of a loop names its equality."""
        error = self.file.error
        loops = {name: partial(error, "equality", i) for i, name in enumerate(self.file.names["equality"])}
        return built(self.builder, loops, partial(error, "body", 0))

    def errors_at(self, kind: str, index: int) -> AbstractContextManager[None]:
        """A context that raises errors of the builder as errors of an element."""
        return errors_at(partial(self.file.error, kind, index))

    def _parameters(self, body: int) -> Float[np.ndarray, " 10"]:
        """The ten inertial parameters of a body; adds a finding if they are non-physical."""
        model = self.file.model
        turn = pose(model.body_ipos[body], model.body_iquat[body])[:3, :3]
        inertia = turn @ np.diag(model.body_inertia[body]) @ turn.T
        values = ten_parameters(np.array(model.body_mass[body]), model.body_ipos[body], inertia)
        fault = defect(values)
        if fault is not None:
            remark = self.file.finding("body", body, fault)
            self.inertias.append(Inertia(remark.line, remark.subject, remark.text, values))
        return values


def _odd_units(file: CompiledFile) -> Iterator[Finding]:
    """Findings about limits and lengths that look like other units."""
    model = file.model
    for body in range(1, model.nbody):
        mounted = model.body_parentid[body] == 0 and model.body_jntnum[body] == 0
        free = model.body_jntnum[body] > 0 and model.jnt_type[model.body_jntadr[body]] == FREE
        offset = (
            "" if mounted or free else odd_length("has an offset from its parent of", np.array(model.body_pos[body]))
        )
        center = odd_length("has its center of mass at a distance of", np.array(model.body_ipos[body]))
        for text in (offset, center if model.body_mass[body] and not mounted else ""):
            if text:
                yield file.finding("body", body, text)
    for joint in range(model.njnt):
        if model.jnt_limited[joint] and model.jnt_type[joint] in (HINGE, SLIDE):
            lower, upper = map(float, model.jnt_range[joint])
            text = odd_range(bool(model.jnt_type[joint] == HINGE), lower, upper)
            if text:
                yield file.finding("joint", joint, text)


def _ignored(file: CompiledFile, equalities: bool, touching: set[int]) -> Iterator[Finding]:
    """Findings about unread elements and attributes that affect the motion."""
    model = file.model
    if file.enabled("CONSTRAINT", "CONTACT"):
        for geom in sorted({*np.flatnonzero(model.geom_contype | model.geom_conaffinity).tolist()} - touching):
            yield file.dropped("geom", geom, "can collide; contacts are not represented")
        for pair in range(model.npair):
            yield file.dropped("pair", pair, "contacts are not represented")
    yield from remarks(file, equalities)
    for tendon in range(len(file.names["tendon"])):
        for text in unread_of_tendon(file, tendon):
            yield file.dropped("tendon", tendon, text)
    for kind in ("flex", "plugin"):
        for index, _ in enumerate(file.names[kind]):
            yield file.dropped(kind, index, "is not represented")
    for index, text in faults_of_actuators(file).items():
        yield file.dropped("actuator", index, text)
    for body in range(model.nbody):
        if model.body_mocapid[body] >= 0:
            yield file.dropped("body", body, "is a mocap body; it is fixed here")
    for body, text in forced_bodies(file):
        yield file.dropped("body", body, text)
    for joint in range(model.njnt):
        for text in _ignored_of_joint(file, joint):
            yield file.dropped("joint", joint, text)


def _ignored_of_joint(file: CompiledFile, j: int) -> Iterator[str]:
    """Texts of the findings about a joint."""
    model, kind = file.model, int(file.model.jnt_type[j])
    dofs = slice(model.jnt_dofadr[j], model.jnt_dofadr[j] + SPEEDS[kind])
    if kind in (FREE, BALL) and model.jnt_stiffness[j] and file.enabled("PASSIVE", "SPRING"):
        yield "stiffness of a joint with a quaternion is not represented"
    if kind == FREE and np.any(model.dof_armature[dofs][:3]):
        yield "armature of a free joint acts on the velocity in body axes, in MuJoCo on that in world axes"
    if np.any(_attribute(model, "jnt_stiffnesspoly", j)) or np.any(_attribute(model, "dof_dampingpoly", dofs)):
        if kind in (FREE, BALL):
            yield "polynomial damping and stiffness are not represented; only the first coefficient is used"
        else:
            yield "is polynomial in damping or stiffness: load_actuators represents it, the model has the linear part"
    if np.any(_attribute(model, "jnt_springyield", j)):
        yield "plasticity of the spring is not represented"
    if model.jnt_actfrclimited[j] and np.sum(model.jnt_actfrcrange[j]):
        yield "actuatorfrcrange is not symmetric; the larger bound is used"
    if model.jnt_actgravcomp[j] and model.jnt_actfrclimited[j] and model.ngravcomp:
        yield "actuatorfrcrange does not bound the gravity compensation (actuatorgravcomp)"


def _attribute(model: object, name: str, index: int | slice) -> ArrayLike:
    """Entries of an array of MuJoCo's model; zero if this version of MuJoCo lacks the array."""
    found = getattr(model, name, None)
    return 0.0 if found is None else found[index]
