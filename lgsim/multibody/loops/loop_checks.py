"""Checks of loops: unknown frames, both ends on one body, unsupported joints, rods without length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lgsim.multibody.joint import Joint
from lgsim.multibody.joints import Free, Universal
from lgsim.multibody.loops.closing_joints import CLOSING
from lgsim.multibody.loops.joint_tie import JointTie
from lgsim.multibody.loops.loop import FrameLoop, Loop
from lgsim.multibody.number_checks import check_loop_numbers
from lgsim.multibody.topology import ROOT, ModelError, Topology
from lgsim.support.messages import unknown_name


def closing_joint(name: str, joint: Any) -> JointTie:
    """The kind of a loop that a joint closes.

    Raises:
        ModelError: not a joint, or a joint that cannot close a loop.
    """
    known = ", ".join(kind.__name__ for kind in CLOSING)
    if not isinstance(joint, Joint):
        raise ModelError(f"loop {name!r}: joint: expected a joint such as lgsim.joints.Revolute(), got {joint!r}")
    if isinstance(joint, CLOSING):
        return JointTie(joint)
    kind = type(joint).__name__
    why = f"a {kind} is not among them"
    if isinstance(joint, Free):
        why = "a Free joint has no constraints"
    elif isinstance(joint, Universal):
        why = (
            "the motions of a Universal joint are not a subgroup, so its constraints are not constant in its frame;"
            " insert a massless body between two Revolute joints, the second of which is the loop"
        )
    raise ModelError(f"loop {name!r}: joint: expected one of {known}, got {joint!r}: {why}")


def check_loops(tree: Topology, numbers: np.ndarray) -> None:
    """Check the loops of a model and their parameters.

    Raises:
        ModelError: a name is taken, a frame or joint is missing, both ends are on one body, a joint does not have
            exactly one independent coordinate, or a parameter is invalid.
    """
    names: set[str] = set()
    for loop in tree.loops:
        if loop.name in names:
            raise ModelError(f"loop {loop.name!r}: the name is taken by another loop")
        names.add(loop.name)
        (_check_frames if isinstance(loop.kind, FrameLoop) else _check_joints)(tree, loop)
    for place in np.flatnonzero(~np.isfinite(numbers)):
        raise ModelError(f"{tree.loop_number(int(place))}: expected a finite number, got {numbers[place]}")
    check_loop_numbers(tree, numbers)


def _check_frames(tree: Topology, loop: Loop) -> None:
    bodies = [tree.carrier(frame, f"loop {loop.name!r}") for frame in (loop.a, loop.b)]
    if bodies[0] == bodies[1]:
        body = ROOT if bodies[0] < 0 else tree.body_names[bodies[0]]
        raise ModelError(
            f"loop {loop.name!r}: both ends, {loop.a!r} and {loop.b!r}, are on {body!r}; expected frames of two bodies"
        )


def _check_joints(tree: Topology, loop: Loop) -> None:
    for name in (loop.a, loop.b):
        if name not in tree.joint_places:
            what = f"loop {loop.name!r}: expected the name of a joint"
            raise ModelError(unknown_name(what, name, tree.joint_names))
        joint = tree.joint_places[name]
        if tree.joints[joint].nq != 1 or tree.mimics[joint] is not None:
            why = "mimics another one" if tree.mimics[joint] is not None else f"has {tree.joints[joint].nq} coordinates"
            raise ModelError(f"loop {loop.name!r}: expected joints with one independent coordinate, {name!r} {why}")
    if loop.a == loop.b:
        raise ModelError(f"loop {loop.name!r}: expected two joints, got {loop.a!r} twice")


def coefficients(name: str, values: Any) -> Sequence[float]:
    """The coefficients of a polynomial.

    Raises:
        ModelError: not a list of numbers.
    """
    array = np.asarray(values, float)
    if array.ndim != 1 or not len(array):
        raise ModelError(f"loop {name!r}: coefficients: expected a nonempty list of numbers, got shape {array.shape}")
    return array.tolist()
