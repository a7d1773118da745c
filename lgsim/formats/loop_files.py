"""Closed kinematic loops from a TOML file, for robot descriptions that cannot express them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

import numpy as np
from jaxtyping import Float

from lgsim.formats.poses import pose, rotation_from_rpy
from lgsim.formats.xml import FileError
from lgsim.multibody import joints
from lgsim.multibody.joint import Joint
from lgsim.multibody.model import Model
from lgsim.support import toml_table
from lgsim.support.scenario_error import ScenarioError
from lgsim.support.toml_table import Table

JOINTS: Mapping[str, Callable[[], Joint]] = {
    "revolute": joints.Revolute,
    "hinge": joints.Revolute,
    "spherical": joints.Spherical,
    "ball": joints.Spherical,
    "fixed": joints.Fixed,
    "weld": joints.Fixed,
    "prismatic": joints.Prismatic,
    "cylindrical": joints.Cylindrical,
    "planar": joints.Planar,
    "translational": joints.Translational,
}
"""Joint type of each keyword; hinge, ball and weld are synonyms."""

_ENDS = ("frame_a", "frame_b")
_COUPLED = ("joint_a", "joint_b", "coefficients")


def add_loops(model: Model, path: str | os.PathLike[str]) -> Model:
    """Add the closed kinematic loops of a TOML file to a model.

    Its tables are::

        [[loop]]
        name = "pin"
        frame_a = "upper"                                    # a frame or a link, or "world"
        frame_b = "lower"
        placement_b = { xyz = [0.3, 0, 0], rpy = [0, 0, 0] } # pose of the loop's frame in frame_b; m and rad
        joint = "revolute"                                   # about z of the loop's frames; or
        length = 0.4                                         # a rod, m

        [[loop]]
        name = "gear"
        joint_a = "wheel"                                    # q_b = c_0 + c_1 q_a + ...
        joint_b = "rack"
        coefficients = [0, 0.02]

    A placement adds a frame "<name>.a" or "<name>.b".

    Raises:
        FileError: the file cannot be read, is not TOML, or names unknown joints or frames; the message has the line.
    """
    try:
        table = toml_table.read(path).only("loop")
        if "loop" not in table:
            raise table.fault(None, "expected tables [[loop]], got none")
        for entry in table.tables("loop"):
            with entry.at(None):
                model = _added(model, entry)
    except ScenarioError as error:
        text = ": ".join(filter(None, (error.key, error.reason)))
        raise FileError(str(error.file), error.line, text) from error
    return model


def _added(model: Model, entry: Table) -> Model:
    entry.need("name")
    name = entry.text("name", "")
    if "coefficients" in entry:
        entry.only("name", *_COUPLED)
        (joint_a, joint_b), values = (_needed(entry, key) for key in _COUPLED[:2]), entry.vector("coefficients")
        assert values is not None
        return model.add_coupling(name, joint_a, joint_b, values.tolist())
    entry.only("name", *_ENDS, "placement_a", "placement_b", "joint", "length")
    if ("joint" in entry) == ("length" in entry):
        raise entry.fault(None, "expected one of joint, length and coefficients")
    frames = []
    for key, mark in zip(_ENDS, "ab", strict=True):
        frame = _needed(entry, key)
        if f"placement_{mark}" in entry:
            with entry.at(key):
                model = model.add_frame(f"{name}.{mark}", frame, _pose(entry.table(f"placement_{mark}")))
            frame = f"{name}.{mark}"
        frames.append(frame)
    a, b = frames
    if "length" in entry:
        return model.add_rod(name, a, b, entry.needed_number("length", above=0.0))
    return model.add_loop(name, a, b, JOINTS[entry.choice("joint", list(JOINTS), "")]())


def _needed(entry: Table, key: str) -> str:
    entry.need(key)
    return entry.text(key, "")


def _pose(table: Table) -> Float[np.ndarray, "4 4"]:
    table.only("xyz", "rpy")
    xyz, rpy = table.vector("xyz", 3), table.vector("rpy", 3)
    rotation = None if rpy is None else rotation_from_rpy(*(float(angle) for angle in rpy))
    return pose(np.zeros(3) if xyz is None else xyz, rotation)
