"""Models and worlds of an SDF file: nested and included models in one flat model with scoped names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lgsim.formats.sdformat import old_versions
from lgsim.formats.sdformat.elements import (
    MODEL,
    QUIET,
    TYPES,
    Place,
    SdfJoint,
    SdfModel,
    add_frame,
    add_joint,
    add_link,
    dropped,
    pose_in,
)
from lgsim.formats.sdformat.tree import Frames
from lgsim.formats.solids.mesh_files import FOLDERS, file_at
from lgsim.formats.xml import TEXT, Element, read
from lgsim.multibody.topology import ROOT
from lgsim.support.messages import unknown_name
from lgsim.support.unused_names import unused_name

VERSIONS = ("1.3", "1.4", "1.5", "1.6", "1.7", "1.8", "1.9", "1.10", "1.11", "1.12")
SCOPE = "::"
"""Separates the name of a nested model from the names in it."""
DEPTH = 32
"""The deepest nesting of models: files that include each other end here."""

_WORLD_QUIET = QUIET | {"gui", "scene", "physics", "atmosphere", "audio", "magnetic_field", "spherical_coordinates"}
"""Tags of a world that do not affect the motion, or whose effect an argument replaces."""


def sdf_model(file: str, root: Element, name: str | None = None) -> SdfModel:
    """The model of a file: that of its <model>, or all models of its <world>; with a name, that model alone.

    Models in models and models in worlds have names with scopes, "<model>::<name>"; those of the only model in a world
    that moves have none. Links of static models are fixed to the world.

    Raises:
        FileError: not an SDF file of a supported version with one model or world, a missing or invalid value, or two
            elements with one name.
    """
    old = root.tag == old_versions.ROOT_TAG
    version = _version(root)
    worlds, models = root.children("world"), root.children("model")
    if name is not None:
        tags = ("model", "include")
        inner = [each for world in worlds for tag in tags for each in world.children(tag)]
        model, version = _named(root, [*models, *inner], name)
        worlds, models = [], [model]
    if len(worlds) + len(models) != 1:
        line = f", the second one in line {sorted(x.line for x in (*worlds, *models))[1]}" if worlds + models else ""
        raise root.error(f"expected one <model> or one <world>, got {len(worlds) + len(models)}{line}")
    if worlds:
        out = _world(worlds[0], version)
    else:
        out = _model(models[0], version, 0)
        static = models[0].child("static")
        if static is not None and static.flag():
            raise static.error("expected a model that is not static; a <world> may include it")
        if out.places[MODEL].relative_to and name is None:
            raise models[0].error(f"<pose>: relative_to: there is no {out.places[MODEL].relative_to!r} outside of it")
    if old:
        out.assumed.append(root.finding(f"of version {root.text('version')}; attributes are read as elements of 1.3"))
    out.ignored.extend(root.unread())
    return out


def _named(root: Element, models: Sequence[Element], name: str) -> tuple[Element, str]:
    """The <model> of this name among models and includes, and the version of its file.

    Raises:
        FileError: there is no such model.
    """
    names = []
    for each in models:
        given = each.child("name") if each.tag == "include" else None
        file = _included(each) if each.tag == "include" else root
        found = file.required("model") if each.tag == "include" else each
        names.append(found.name() if given is None else given.words)
        if names[-1] == name:
            return found, _version(file)
    raise root.error(unknown_name("model: expected the name of a model of the file", name, names))


def _version(root: Element) -> str:
    """The version of a file; files of older ones are converted."""
    if root.tag == old_versions.ROOT_TAG and root.text("version") in old_versions.VERSIONS:
        old_versions.convert(root.node)
        return VERSIONS[0]
    if root.tag != "sdf":
        hint = {"robot": ": a URDF file, which lgsim.load_urdf reads", "mujoco": ": an MJCF file, see lgsim.load_mjcf"}
        hint["gazebo"] = ": the root of versions 1.0 to 1.2, which the attribute 'version' names"
        raise root.error(f"expected <sdf>, the root of an SDF file, got <{root.tag}>{hint.get(root.tag, '')}")
    return root.choice("version", VERSIONS)


def _model(element: Element, version: str, depth: int) -> SdfModel:
    """A <model> with the models in it."""
    out = SdfModel(element)
    for link in element.children("link"):
        add_link(link, out)
    _add_models(element, version, out, depth)
    if not out.links:
        raise element.error("expected at least one <link>, got none")
    out.canonical = element.text("canonical_link") or next(iter(out.links))
    if out.canonical not in out.links:
        raise element.error(f"canonical_link: there is no link {out.canonical!r}")
    out.places[MODEL] = Place(element, *pose_in(element, "", out), out.canonical)
    _add_frames_and_joints(element, version, out)
    for attribute in ("name", "placement_frame"):
        element.text(attribute)
    for gripper in element.children("gripper"):
        out.ignored.append(dropped(gripper, "is not represented"))
    element.child("static")
    out.ignored.extend(element.unread(QUIET))
    return _without_frames_of_models(out)


def _world(element: Element, version: str) -> SdfModel:
    """A <world> as one model, whose frame is that of the world."""
    out = SdfModel(element)
    element.text("name")
    moving = _add_models(element, version, out, 0)
    if not moving:
        raise element.error("expected at least one model that is not static, got none")
    out.places[MODEL] = Place(element, np.eye(4), "", ROOT)
    _add_frames_and_joints(element, version, out)
    given = element.child("gravity")
    if given is not None:
        out.ignored.append(given.finding(f"is {given.words}; the argument gravity decides"))
    out.ignored.extend(element.unread(_WORLD_QUIET))
    out = _without_frames_of_models(out)
    short = {name: name.removeprefix(moving[0] + SCOPE) for name in out.places if name.startswith(moving[0] + SCOPE)}
    if len(moving) > 1 or not out.places.keys().isdisjoint(short.values()) or ROOT in short.values():
        return out
    return _renamed(out, lambda name: short.get(name, name))


def _without_frames_of_models(model: SdfModel) -> SdfModel:
    """The model with the names of nested models in the place of those of their frames, "<model>::__model__"."""
    return _renamed(model, lambda name: name if name in model.places else name.removesuffix(SCOPE + MODEL))


def _add_frames_and_joints(element: Element, version: str, out: SdfModel) -> None:
    for frame in element.children("frame"):
        add_frame(frame, out)
    for joint in element.children("joint"):
        add_joint(joint, version, out)
    for plugin in element.children("plugin"):
        out.ignored.append(dropped(plugin, "is not run"))


def _add_models(element: Element, version: str, out: SdfModel, depth: int) -> list[str]:
    """Add the nested and included models of a model or world; the names of those that are not static."""
    moving = []
    for nested in element.children("model"):
        model = _model(nested, version, depth + 1)
        _add_model(out, nested, model, nested.name(), nested.text("placement_frame"), _flag(nested))
        moving += [] if _flag(nested) else [nested.name()]
    for include in element.children("include"):
        if depth >= DEPTH:
            raise include.error(f"expected at most {DEPTH} models in each other; a file may include itself")
        root = _included(include)
        models = root.children("model")
        if len(models) != 1:
            raise root.error(f"expected one <model> to include, got {len(models)}")
        model = _model(models[0], _version(root), depth + 1)
        given = include.child("name")
        name = models[0].name() if given is None else given.words
        mark, placed, static = (include.child(tag) for tag in ("placement_frame", "pose", "static"))
        if placed is not None:
            model.places[MODEL] = replace(model.places[MODEL], **_place(include, out))
        fixed = _flag(include) if static is not None else _flag(models[0])
        merged = (include.text("merge") or "false").lower() in ("true", "1")
        for plugin in include.children("plugin"):
            out.ignored.append(dropped(plugin, "is not run"))
        out.ignored.extend(include.unread())
        mark = models[0].text("placement_frame") if mark is None else mark.words
        _add_model(out, include, _with_file(model, root.file), name, mark, fixed, merged)
        moving += [] if fixed else [name]
    return moving


def _place(include: Element, out: SdfModel) -> dict[str, Any]:
    pose, relative_to = pose_in(include, "", out)
    return {"pose": pose, "relative_to": relative_to}


def _flag(element: Element) -> bool:
    static = element.child("static")
    return static is not None and static.flag()


def _included(include: Element) -> Element:
    """The root of an included file: the file of the URI, or that of the newest version in its folder."""
    uri = include.required("uri").words
    if uri.partition("://")[0] in ("http", "https"):
        raise include.error(f"expected a local file, got {uri!r}; download it and include model://<folder>")
    folder = None if include.file == TEXT else Path(include.file).resolve().parent
    found = file_at(uri, folder, Path.exists) or file_at(f"model://{uri}", folder, Path.exists)
    if found is None:
        names = ", ".join(FOLDERS)
        raise include.error(f"there is no file or folder {uri!r}; further folders of models are those of {names}")
    if found.is_dir():
        config = found / "model.config"
        files = Element(*read(config, None)[:2]).children("sdf") if config.is_file() else []
        order = (*old_versions.VERSIONS, *VERSIONS)
        known = [file for file in files if file.text("version") in order]
        last = max(known, key=lambda file: order.index(file.text("version") or ""), default=None)
        found = found / ("model.sdf" if last is None else last.words)
        if not found.is_file():
            raise include.error(f"the folder of {uri!r} has no file {found.name!r}")
    return Element(*read(found, None)[:2])


def _with_file(model: SdfModel, file: str) -> SdfModel:
    """The model with findings that name its file."""
    end = f" of {Path(file).name}"
    for findings in (model.assumed, model.ignored):
        findings[:] = [replace(finding, subject=finding.subject + end) for finding in findings]
    for name, link in model.links.items():
        element = Element(link.element.file, link.element.node, link.element.subject + end)
        model.links[name] = replace(link, element=element)
    return model


def _add_model(
    out: SdfModel, element: Element, model: SdfModel, name: str, mark: str | None, static: bool, merged: bool = False
) -> None:
    """Add a model to another one.

    Args:
        element: The element <model> or <include>.
        mark: Frame of the model that has the pose of the model's place; None for the model's own.
        static: True fixes all links to the world.
        merged: True adds the elements without a scope.
    """
    place = model.places[MODEL]
    if mark:
        place = replace(place, pose=place.pose @ np.linalg.inv(Frames(model).pose(mark, element)))
    own = f"_merged__{name}{MODEL}" if merged else name

    def scoped(known: str) -> str:
        if known in ("", ROOT) or (merged and known != MODEL):
            return known
        return own if known == MODEL else f"{name}{SCOPE}{known}"

    place = replace(place, element=element, relative_to=place.relative_to or MODEL, attached_to=scoped(model.canonical))
    del model.places[MODEL]
    if static:
        model.joints.clear()
        for link in list(model.links):
            joint = unused_name(f"{link} to world", set(model.places))
            model.places[joint] = Place(element, np.eye(4), link, link)
            model.joints[joint] = SdfJoint(joint, element, TYPES["fixed"], ROOT, link, (element, element), (), 0.0)
    model = _renamed(model, scoped)
    for taken in [known for known in (own, *model.places) if known in out.places or known in (ROOT, MODEL)]:
        line = out.places[taken].element.line if taken in out.places else 1
        raise element.error(f"the name {taken!r} is taken by the element in line {line}")
    out.places |= {own: place} | model.places
    out.links |= model.links
    out.joints |= model.joints
    out.frames += model.frames
    out.assumed += model.assumed
    out.ignored += model.ignored


def _renamed(model: SdfModel, name: Callable[[str], str]) -> SdfModel:
    """The model with other names of links, joints and frames."""
    joints = [
        replace(
            joint, name=name(joint.name), parent=name(joint.parent), child=name(joint.child),
            gearbox=joint.gearbox and replace(joint.gearbox, reference=name(joint.gearbox.reference)),
            axes=tuple(
                replace(
                    axis, frame=name(axis.frame),
                    mimic=axis.mimic and replace(axis.mimic, joint=name(axis.mimic.joint)),
                )
                for axis in joint.axes
            ),
        )
        for joint in model.joints.values()
    ]  # fmt: skip
    return replace(
        model,
        links={name(key): replace(link, name=name(key)) for key, link in model.links.items()},
        joints={joint.name: joint for joint in joints},
        frames=[name(key) for key in model.frames],
        places={
            name(key): replace(place, relative_to=name(place.relative_to), attached_to=name(place.attached_to))
            for key, place in model.places.items()
        },
        canonical=name(model.canonical),
    )
