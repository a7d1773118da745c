"""Checks that the links and joints of a URDF file form a tree, and that mimicked joints exist."""

from __future__ import annotations

from dataclasses import replace

from lgsim.formats.links import Link
from lgsim.formats.urdf_elements import Connection, Robot
from lgsim.formats.xml import FileError

MOVES_BY_ITSELF = "it becomes independent"


def free_missing_mimics(robot: Robot) -> None:
    """Make joints that mimic a missing joint independent, and report them."""
    for name, joint in robot.joints.items():
        if joint.mimic is not None and joint.mimic.joint not in robot.joints:
            text = f"there is no joint {joint.mimic.joint!r} that joint {name!r} could mimic: {MOVES_BY_ITSELF}"
            robot.assumed.append(joint.mimic.element.finding(text))
            robot.joints[name] = replace(joint, mimic=None)


def root(robot: Robot) -> Link:
    """The root of the tree: the link without a parent joint.

    Raises:
        FileError: a joint connects missing links, a link has two parents, there is no root or several, the parents are
            circular, or a mimicked joint is invalid.
    """
    if not robot.links:
        raise robot.element.error("expected at least one <link>, got none")
    holders: dict[str, Connection] = {}
    for joint in robot.joints.values():
        _check_ends(robot, joint)
        other = holders.setdefault(joint.child, joint)
        if other is not joint:
            raise joint.ends[1].error(
                f"link {joint.child!r} is already the child of the joint {other.name!r} in line {other.element.line};"
                " expected a tree"
            )
    roots = [link for link in robot.links.values() if link.name not in holders]
    if len(roots) > 1:
        raise roots[1].element.error(
            f"expected one root, got {len(roots)} links that no joint moves: {_listed([link.name for link in roots])}"
        )
    _check_circles(robot, holders)
    sound: set[str] = set()
    for joint in robot.joints.values():
        _check_mimic(robot, joint, sound)
    return roots[0]


def _check_ends(robot: Robot, joint: Connection) -> None:
    """Check that a joint connects two different existing links."""
    for element, name in zip(joint.ends, (joint.parent, joint.child), strict=True):
        if name not in robot.links:
            raise element.error(f"there is no link {name!r}; links are {_listed(list(robot.links))}")
    if joint.parent == joint.child:
        raise joint.ends[1].error(f"expected two different links, got {joint.child!r} as parent and child")


def _check_circles(robot: Robot, holders: dict[str, Connection]) -> None:
    """Check that every link leads to a root."""
    reached = {name for name in robot.links if name not in holders}
    for name in robot.links:
        way, at = {}, name  # a dict keeps the order and finds names in constant time
        while at not in reached and at not in way:
            way[at] = None
            at = holders[at].parent
        if at not in reached:
            circle = list(way)[list(way).index(at) :]
            first = min((holders[link] for link in circle), key=lambda joint: joint.element.line)
            raise first.element.error(f"circular parents: {_listed(circle)}; expected a tree")
        reached.update(way)


def _check_mimic(robot: Robot, joint: Connection, sound: set[str]) -> None:
    """Check that a chain of mimic joints ends at an independent joint with one coordinate.

    Args:
        joint: Start of the chain.
        sound: Joints with valid chains; those of this chain are added.
    """
    seen, at = {joint.name: None}, joint
    while at.mimic is not None and at.name not in sound:
        name = at.mimic.joint
        if name not in robot.joints:
            known = f"there is no joint {name!r}; joints are {_listed(list(robot.joints))}"
            raise _mimic_error(at, f"{known}; load_urdf(..., missing_mimic='free') makes it independent")
        if name in seen:
            circle = list(seen)[list(seen).index(name) :]
            whom = "itself" if name == at.name else f"in a circle: {_listed(circle)}"
            raise _mimic_error(at, f"expected an independent joint, got joints that mimic {whom}")
        follower, at = at, robot.joints[name]
        seen[name] = None
        if at.joint.nv != 1:
            raise _mimic_error(follower, f"expected a joint of one degree of freedom, {name!r} has {at.joint.nv}")
    sound.update(seen)


def _mimic_error(joint: Connection, message: str) -> FileError:
    assert joint.mimic is not None
    return joint.mimic.element.error(message)


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:12])
    return f"{shown} and {len(names) - 12} more" if len(names) > 12 else shown
