"""Poses of an SDF model's frames, and the spanning tree of its joints; the other joints close loops."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np
from jaxtyping import Float

from lgsim.formats.sdformat.elements import MODEL, Place, SdfJoint, SdfModel
from lgsim.formats.xml import Element, FileError
from lgsim.multibody.topology import ROOT
from lgsim.support.messages import unknown_name


class Frames:
    """Poses of links, joints and frames at zero coordinates, and the links that they are fixed to."""

    def __init__(self, model: SdfModel) -> None:
        self.model = model
        self._poses: dict[str, Float[np.ndarray, "4 4"]] = {MODEL: np.eye(4)}
        self._links: dict[str, str] = {ROOT: ROOT} | {name: name for name in model.links}
        for name in model.places:
            self.pose(name)
            self.link(name)

    def pose(self, name: str, element: Element | None = None) -> Float[np.ndarray, "4 4"]:
        """The pose (4, 4) of a frame in the model's frame.

        Raises:
            FileError: an unknown frame, or circular references between poses.
        """
        way: dict[str, None] = {}
        while name not in self._poses:
            if name == ROOT:
                self._poses[ROOT] = np.linalg.inv(self.in_world)
                break
            if name in way:
                first = self.model.places[name].element
                raise first.error(f"<pose>: circular references between frames: {', '.join(map(repr, way))}")
            place = self._place(name, element)
            way[name] = None
            name, element = place.relative_to, place.element
        for below in reversed(way):
            place = self.model.places[below]
            self._poses[below] = self._poses[place.relative_to] @ place.pose
            name = below
        return self._poses[name]

    def link(self, name: str, element: Element | None = None) -> str:
        """The name of the link that a frame is fixed to, "world" for a fixed frame.

        Raises:
            FileError: an unknown frame, or circular attachments.
        """
        way: dict[str, None] = {}
        while name not in self._links:
            if name in way:
                first = self.model.places[name].element
                raise first.error(f"circular attachments of frames: {', '.join(map(repr, way))}")
            way[name] = None
            place = self._place(name, element)
            name, element = place.attached_to, place.element
        self._links.update(dict.fromkeys(way, self._links[name]))
        return self._links[name]

    def ends(self, joint: SdfJoint) -> tuple[str, str]:
        """The parent link and the child link of a joint."""
        parent, child = (
            self.link(name, end) for name, end in zip((joint.parent, joint.child), joint.ends, strict=True)
        )
        if child == ROOT:
            raise joint.ends[1].error("expected a link as child, got the world")
        if parent == child:
            raise joint.ends[1].error(f"expected two different links, got {child!r} as parent and child")
        return parent, child

    @property
    def in_world(self) -> Float[np.ndarray, "4 4"]:
        """The pose of the model's frame in the world."""
        pose = self.model.places[MODEL].pose
        mark = self.model.element.text("placement_frame")
        return pose @ np.linalg.inv(self.pose(mark, self.model.element)) if mark else pose

    def _place(self, name: str, element: Element | None) -> Place:
        if name not in self.model.places:
            known = list(self.model.places)
            assert element is not None
            raise element.error(unknown_name("expected the name of a link, joint or frame", name, known))
        return self.model.places[name]


def spanning_tree(model: SdfModel, frames: Frames) -> tuple[list[SdfJoint], list[SdfJoint]]:
    """Split joints but gearboxes into those of a spanning tree, in the order of the file, and those that close loops.

    The tree grows from the world and from links without a parent joint: each time by the first joint of the file from a
    link of the tree to a new link.

    Raises:
        FileError: circular parents without a root.
    """
    joints = [joint for joint in model.joints.values() if joint.gearbox is None]
    ends = {joint.name: frames.ends(joint) for joint in joints}
    moved = {child for _, child in ends.values()}
    reached = {ROOT, *(link for link in model.links if link not in moved)}
    tree: set[str] = set()
    order = list(ends)
    carried: dict[str, list[int]] = {}
    for place, (parent, _) in enumerate(ends.values()):
        carried.setdefault(parent, []).append(place)
    waiting = [place for link in reached for place in carried.get(link, ())]
    heapify(waiting)  # indices of joints with a reached parent: the first of the file comes first
    while waiting:
        name = order[heappop(waiting)]
        child = ends[name][1]
        if child not in reached:
            tree.add(name)
            reached.add(child)
            for place in carried.get(child, ()):
                heappush(waiting, place)
    left = [joint for joint in joints if ends[joint.name][1] not in reached]
    if left:
        raise _circle(left, ends)
    return [joint for joint in joints if joint.name in tree], [joint for joint in joints if joint.name not in tree]


def _circle(joints: list[SdfJoint], ends: dict[str, tuple[str, str]]) -> FileError:
    """The error about circular parents."""
    parent = {}
    for joint in joints:
        parent.setdefault(ends[joint.name][1], ends[joint.name][0])
    way, at = {}, next(iter(parent))
    while at not in way:
        way[at] = None
        at = parent[at]
    circle = dict.fromkeys(list(way)[list(way).index(at) :])
    first = min((joint for joint in joints if ends[joint.name][1] in circle), key=lambda joint: joint.element.line)
    shown = ", ".join(repr(link) for link in reversed(circle))
    return first.element.error(
        f"circular parents: {shown}; expected at least one link that no joint of the circle moves"
    )
