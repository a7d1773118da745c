"""Writer of URDF files with the parameters of a model; only the values that differ are changed."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float
from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

from lgsim.formats import urdf_elements, urdf_tree
from lgsim.formats.urdf import ROOT_JOINT, read_urdf
from lgsim.formats.urdf_elements import Robot
from lgsim.formats.xacro_file import SUFFIX as XACRO
from lgsim.formats.xml import Element, FileError, file_content, read
from lgsim.multibody.builder import ten_parameters
from lgsim.multibody.inertia import PLACES, defect
from lgsim.multibody.model import DRIVES, Model
from lgsim.support.files import write_whole

_PROLOGUE = re.compile(r"(?:\ufeff|\s|<\?.*?\?>|<!--.*?-->|<![^-\[>]*(?:\[.*?\])?\s*>)*", re.DOTALL)
"""The text before a root element: declaration, comments, document type."""

_ROUNDING = 1e-12
"""Relative difference of the numbers of locked bodies that count as equal: their poses are products."""

_DYNAMICS = ("damping", "friction")
"""Joint parameters that URDF supports."""


def write_urdf(source: str | os.PathLike[str], model: Model, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Write a URDF file with the parameters of a model, atomically.

    The rest of the file is unchanged: names, comments, meshes, limits. For each link with different inertial
    parameters, mass, center of mass and inertia about it are replaced, in the link's axes; for each joint ``damping``,
    ``friction`` and the origin. Links on fixed joints keep their parameters, and their parent gets the rest of the
    body's; if that rest is non-physical, the parent gets all, and they lose their ``<inertial>``. Numbers are written
    with all digits, so that reading them back is exact. Joints that the model has locked, by ``Model.lock``, become
    fixed joints at their positions.

    Args:
        source: The file that the model came from.
        model: A model with the joints and bodies of that file, some of which may be locked.
        path: Path of the new file; it may be the source.

    Returns:
        A sentence for each changed parameter that URDF cannot represent, and for each link that lost its inertial;
        empty if the new file contains all parameters of the model.

    Raises:
        FileError: the source cannot be read, or its joints or bodies differ from those of the model.
        ValueError: a parameter of the model is not finite, or the path is that of a file of macros.
    """
    if Path(path).suffix == XACRO:
        raise ValueError(f"path: expected the name of a URDF file, got {str(path)!r}, which would be a file of macros")
    file, node, _ = read(source, None)
    robot = urdf_elements.robot(file, Element(file, node))
    floating = ROOT_JOINT in model.joint_names and ROOT_JOINT not in robot.joints
    before, _ = read_urdf(source, floating, dtype=model.dtype)
    content = file_content(source, None)[1]
    tree = _tree_with_comments(file, content)
    locked = [name for name in before.joint_names if name not in model.joint_names and name in robot.joints]
    if locked:
        _fix(tree, robot, model, locked)
        text = etree.tostring(tree, encoding="unicode")
        robot = urdf_elements.robot(file, Element(file, read(None, text)[1]))
        before, _ = read_urdf(text=text, floating_base=floating, dtype=model.dtype)
    if (before.joint_names, before.body_names) != (model.joint_names, model.body_names):
        raise FileError(file, None, "expected the file of the model, got one with other joints or bodies")
    if not all(np.all(np.isfinite(np.asarray(x))) for x in (model.inertias, model.placements, model.gravity)):
        raise ValueError("model: expected finite numbers, got NaN or infinity")
    writer = _Writer(tree, robot, before, model, _ROUNDING if locked else 0.0)
    remarks = [*writer.bodies(), *writer.origins(), *writer.drives(), *_unwritable(before, model, writer.rounding)]
    write_whole(Path(path), _content(tree, content))
    return tuple(remarks)


def _tree_with_comments(file: str, content: bytes) -> etree._ElementTree:
    """The elements of a file with its comments, which ``xml.read`` omits.

    Raises:
        FileError: the file cannot be read.
    """
    parser = etree.XMLParser(recover=True, resolve_entities=False, no_network=True, load_dtd=False)
    try:
        return etree.ElementTree(etree.fromstring(content, parser))
    except etree.XMLSyntaxError as error:
        raise FileError(file, None, f"the file cannot be read: {error}") from error


def _content(tree: etree._ElementTree, before: bytes) -> bytes:
    """The content of the new file; the text before the root element is unchanged."""
    encoding = tree.docinfo.encoding or "UTF-8"
    root = tree.getroot()
    pieces = [etree.tostring(node, encoding="unicode") for node in (root, *root.itersiblings())]
    prologue = _PROLOGUE.match(before.decode(encoding))
    return ((prologue[0] if prologue else "") + "\n".join(pieces).rstrip() + "\n").encode(encoding)


def _fix(tree: etree._ElementTree, robot: Robot, model: Model, locked: Sequence[str]) -> None:
    """Make locked joints fixed ones, at the poses of their links among the frames of the model.

    Raises:
        FileError: the model has neither the joint nor the frame of its link.
    """
    for node in tree.getroot().iterchildren("joint"):
        if node.get("name") not in locked:
            continue
        joint = robot.joints[node.get("name")]
        poses = [_pose(model, link) for link in (joint.parent, joint.child)]
        if poses[1] is None:
            raise joint.element.error("expected the file of the model, got one with other joints or bodies")
        node.set("type", "fixed")
        for mimic in node.findall("mimic"):
            node.remove(mimic)
        _write_origin(node, np.linalg.solve(np.eye(4) if poses[0] is None else poses[0], poses[1]))


def _pose(model: Model, link: str) -> Float[np.ndarray, "4 4"] | None:
    """The pose of a link in its moving body, or in the world; None if it is neither a body nor a frame."""
    if link in model.body_names:
        return np.eye(4)
    names = model.topology.frame_names
    return np.asarray(model.frames[names.index(link)], float) if link in names else None


class _Writer:
    """Changes the elements of a file where its model and another one differ by more than rounding."""

    def __init__(self, tree: etree._ElementTree, robot: Robot, before: Model, model: Model, rounding: float) -> None:
        self.robot, self.before, self.model, self.rounding = robot, before, model, rounding
        self.links = {node.get("name"): node for node in tree.getroot().iterchildren("link")}
        self.joints = {node.get("name"): node for node in tree.getroot().iterchildren("joint")}
        self.holders = {joint.child: joint for joint in robot.joints.values()}
        self.root = urdf_tree.root(robot).name

    def carrier(self, link: str) -> tuple[str, Float[np.ndarray, "4 4"]]:
        """The link with a body's frame that a link is fixed to, and the pose of the link in it."""
        pose = np.eye(4)
        while link not in self.model.body_names and link in self.holders:
            holder = self.holders[link]
            pose, link = holder.placement @ pose, holder.parent
        return link, pose

    def bodies(self) -> list[str]:
        """Write the inertials; return sentences about links that lost theirs."""
        remarks = []
        for i, name in enumerate(self.model.body_names):
            old, new = (np.asarray(m.inertias[i], float) for m in (self.before, self.model))
            if _equal(old, new, self.rounding):
                continue
            fixed = [link for link in self.robot.links if link != name and self.carrier(link)[0] == name]
            heavy = [link for link in fixed if self.robot.links[link].mass]
            rest = new - sum((self._carried(link) for link in heavy), np.zeros(10))
            if heavy and (rest[0] <= 0 or defect(rest) is not None) and defect(new) is None:
                for link in heavy:
                    inertial = self.links[link].find("inertial")
                    inertial.getparent().remove(inertial)
                rest = new
                remarks.append(
                    f"link {name!r} now has all of the mass of its body: without {', '.join(heavy)}, fixed to it, the"
                    " rest would be non-physical"
                )
            _write_inertial(self.links[name], rest)
        return remarks

    def _carried(self, link: str) -> Float[np.ndarray, " 10"]:
        """The ten inertial parameters of a fixed link about the origin of the body that it is fixed to."""
        own, (_, pose) = self.robot.links[link], self.carrier(link)
        R, p = pose[:3, :3], pose[:3, 3]
        return ten_parameters(np.array(own.mass), R @ own.center + p, R @ own.inertia @ R.T)

    def origins(self) -> list[str]:
        """Write the origins of joints; return sentences about placements without a joint in the file."""
        remarks = []
        for i, name in enumerate(self.model.joint_names):
            old, new = (np.asarray(m.placements[i], float) for m in (self.before, self.model))
            if _equal(old, new, self.rounding):
                continue
            if name not in self.joints:
                remarks.append(f"the placement of joint {name!r}: the file has no such joint")
                continue
            carrier = self.carrier(self.robot.joints[name].parent)[1]
            _write_origin(self.joints[name], np.linalg.solve(carrier, new))
        return remarks

    def drives(self) -> list[str]:
        """Write damping and friction; return sentences about other changed parameters of joints."""
        changed: dict[str, list[str]] = {}
        for name, part in self.model.v_slices.items():
            for k in range(part.start, part.stop):
                for column, what in enumerate(DRIVES):
                    old, new = (float(m.drives[k, column]) for m in (self.before, self.model))
                    if old == new:
                        continue
                    if what in _DYNAMICS and part.stop - part.start == 1 and np.isfinite(new):
                        _child(self.joints[name], "dynamics").set(what, _text_of(new))
                    else:
                        changed.setdefault(what, []).append(f"{name} {new!r}")
        return [
            f"{what.replace('_', ' ')} of joints, which URDF cannot represent: {', '.join(values)}"
            for what, values in changed.items()
        ]


def _equal(old: Float[np.ndarray, "*shape"], new: Float[np.ndarray, "*shape"], rounding: float) -> bool:
    """True if no entry differs by more than rounding, relative to the largest."""
    return old.shape == new.shape and bool(np.all(np.abs(old - new) <= rounding * np.max(np.abs(old), initial=0)))


def _unwritable(before: Model, model: Model, rounding: float) -> list[str]:
    """Sentences about changed parameters that URDF cannot represent."""
    remarks = []
    # a model with locked joints or loops has its frames in another order, or more of them
    own = model.topology.frame_names
    order = np.array([own.index(name) for name in before.topology.frame_names if name in own], int)
    pairs = {what: (getattr(before, what), getattr(model, what)) for what in ("screws", "mimic")}
    pairs["frames"] = before.frames, np.asarray(model.frames)[order]
    for what, (old, new) in pairs.items():
        if not _equal(np.asarray(old, float), np.asarray(new, float), rounding):
            remarks.append(f"{what} of the model differ from those of the file, which are kept")
    if model.topology.loops:
        names = ", ".join(model.loop_names)
        remarks.append(f"loops, which URDF cannot represent: {names}; keep them in a TOML file, load_urdf(loops=...)")
    gravity = np.asarray(model.gravity, float)
    if not np.array_equal(gravity, np.asarray(before.gravity)):
        values = ", ".join(repr(float(x)) for x in gravity)
        remarks.append(f"gravity, which URDF cannot represent: ({values}) m/s^2")
    return remarks


def _text_of(*values: float) -> str:
    """Text of numbers with all digits."""
    return " ".join(repr(float(x) + 0.0) for x in values)


def _write_inertial(link: etree._Element, parameters: Float[np.ndarray, " 10"]) -> None:
    """Write the ten inertial parameters of a link."""
    mass, moment = float(parameters[0]), parameters[1:4]
    center = moment / mass if mass else np.zeros(3)
    central = parameters[PLACES] - mass * (center @ center * np.eye(3) - np.outer(center, center))
    inertial = _child(link, "inertial", first=True)
    origin = _child(inertial, "origin", first=True)
    origin.attrib.pop("quat_xyzw", None)
    origin.set("xyz", _text_of(*center))
    origin.set("rpy", "0 0 0")
    _child(inertial, "mass").set("value", _text_of(mass))
    inertia = _child(inertial, "inertia")
    for key, i, j in (("ixx", 0, 0), ("ixy", 0, 1), ("ixz", 0, 2), ("iyy", 1, 1), ("iyz", 1, 2), ("izz", 2, 2)):
        inertia.set(key, _text_of(central[i, j]))


def _write_origin(joint: etree._Element, pose: Float[np.ndarray, "4 4"]) -> None:
    """Write the pose of a joint."""
    R = pose[:3, :3]
    pitch = np.arctan2(-R[2, 0], np.hypot(R[0, 0], R[1, 0]))
    level = np.hypot(R[0, 0], R[1, 0])
    # at a pitch of 90 degrees only the sum of the other angles is determined
    roll, yaw = (np.arctan2(R[2, 1], R[2, 2]), np.arctan2(R[1, 0], R[0, 0])) if level else (
        np.arctan2(-R[1, 2], R[1, 1]), 0.0
    )  # fmt: skip
    origin = _child(joint, "origin", first=True)
    origin.attrib.pop("quat_xyzw", None)
    origin.set("xyz", _text_of(*pose[:3, 3]))
    origin.set("rpy", _text_of(roll, pitch, yaw))


def _child(node: etree._Element, tag: str, first: bool = False) -> etree._Element:
    """The child with a tag; a missing one is created as the first or the last child."""
    found = node.find(tag)
    if found is None:
        found = etree.Element(tag)
        node.insert(0 if first else len(node), found)
    return found
