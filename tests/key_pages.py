"""The keys of all tables of TOML files, seen while files are read, and those of docs/toml_keys.md.

Each table of a file is checked for unknown keys by ``Table.only``, which is watched while examples and further files
are read; each function that checks a table is among those that were seen.
"""

from __future__ import annotations

import ast
import contextlib
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from unittest import mock

import lgsim
from lgsim import data, identify
from lgsim.formats.loop_files import add_loops
from lgsim.scenarios import load_scenario, load_study, unknowns
from lgsim.scenarios.recording_map import TABLES, load_recording_map
from lgsim.scenarios.study import load_motion
from lgsim.support.toml_table import Document, Table

PAGE = Path(__file__).parents[1] / "docs" / "toml_keys.md"
PACKAGE = Path(lgsim.__file__).parent

STUDY = """
[machine]
file = "lgsim:arm7"
solids = true
[[machine.obstacles]]
name = "post"
sphere = 0.1
position = [2, 0, 0]
[time]
dt = 0.01
steps = 10
method = "MK4"
[control]
law = {law}
[dispersions]
placements = {{ position = 0.01 }}
damping = {{ low = 0.1, high = 0.2 }}
masses = {{ relative = 0.1 }}
[[outputs.distance]]
name = "a"
frame = "flange"
point = [0, 0, 0]
[[outputs.least_clearance]]
name = "b"
solids = ["post"]
[[outputs.maximum]]
name = "c"
joint = "joint1"
[[outputs.minimum]]
name = "d"
joint = "joint1"
[[outputs.time_of]]
name = "e"
joint = "joint1"
value = 1
"""
DRIVEN = """
[machine]
file = "arm.xml"
[time]
dt = 0.01
steps = 10
method = "MK4"
[control]
law = "actuators"
"""
INERTIAS = """
[machine]
file = "lgsim:cart_pole"
[time]
dt = 0.01
steps = 10
method = "MK4"
[dispersions.inertias]
mass = 0.1
[dispersions.inertias.about.pole]
mass = 0.2
inertia = [0.1, 0.1, 0.1]
"""
SCENARIO = """
[machine]
file = "lgsim:arm7"
solids = true
[[machine.obstacles]]
name = "post"
sphere = 0.1
position = [2, 0, 0]
[time]
dt = 0.01
horizon = 10
[[reach]]
frame = "flange"
position = [0.4, 0, 0.4]
[[posture]]
q = { joint1 = 0.1 }
[[follow]]
frame = "flange"
points = [[0, 0.4, 0, 0.6], [0.1, 0.4, 0.1, 0.6]]
[[clear]]
margin = 0.01
"""
LOOPS = """
[[loop]]
name = "a"
frame_a = "world"
frame_b = "flange"
joint = "spherical"
placement_a = { xyz = [0, 0, 1], rpy = [0, 0, 0] }
placement_b = { xyz = [0, 0, 1] }
[[loop]]
name = "b"
joint_a = "joint1"
joint_b = "joint2"
coefficients = [0, 1]
"""
MACHINE = """<mujoco><worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody>
<actuator><motor joint="j"/></actuator></mujoco>"""


class Seen:
    """The keys of the tables of one kind of file by their dotted paths, and the functions that asked for them."""

    def __init__(self) -> None:
        self.keys: dict[str, dict[str, None]] = {}
        self.functions: set[tuple[str, str]] = set()


@contextlib.contextmanager
def watched() -> Iterator[Seen]:
    """A context in which ``Table.only`` records its keys."""
    seen, only = Seen(), Table.only

    def see(self: Table, *keys: str) -> Table:
        frame = sys._getframe(1)
        seen.functions.add((Path(frame.f_code.co_filename).name, frame.f_code.co_name))
        path = ".".join(part for part in self.path if isinstance(part, str))
        seen.keys.setdefault(path, {}).update(dict.fromkeys(keys))
        return only(self, *keys)

    with mock.patch.object(Table, "only", see):
        yield seen


def _study(folder: Path) -> None:
    load_study(data.study("hover"))
    (folder / "arm.xml").write_text(MACHINE, encoding="utf-8")
    file = folder / "study.toml"
    for text, read in (
        (STUDY.format(law='"gravity"'), load_study),
        (INERTIAS, load_study),
        (STUDY.format(law='"pd"\nstiffness = 1\ndamping = 1'), load_motion),
        (DRIVEN, load_motion),
    ):
        file.write_text(text, encoding="utf-8")
        read(file)


def _scenario(folder: Path) -> None:
    for name in data.SCENARIOS:
        load_scenario(data.scenario(name))
    (folder / "scenario.toml").write_text(SCENARIO, encoding="utf-8")
    load_scenario(folder / "scenario.toml")


def _map(folder: Path) -> None:
    del folder
    model = lgsim.load_urdf(data.arm7())
    text = data.recording_map().read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as home:
        file = Path(home) / "map.toml"
        file.write_text(text.replace("shoulder", "joint1").replace("elbow", "joint2"), encoding="utf-8")
        load_recording_map(file, model)
    table = Table(Document(Path("map"), "", {}), ("unknowns",), {})
    with contextlib.suppress(ValueError):
        unknowns.read_blocks(table, identify.Plant(model))
    for name in unknowns.KINDS:
        with contextlib.suppress(ValueError, AttributeError):  # what follows needs values
            unknowns._block(name, table, identify.Plant(model))


def _loops(folder: Path) -> None:
    (folder / "loops.toml").write_text(LOOPS, encoding="utf-8")
    add_loops(lgsim.load_urdf(data.arm7()), folder / "loops.toml")


FILES: dict[str, Callable[[Path], None]] = {
    "Studies and motions": _study,
    "Trajectory optimization": _scenario,
    "Maps of recordings": _map,
    "Closed kinematic loops": _loops,
}
"""Kinds of files with a function that reads some of them in a folder."""


@cache
def seen() -> dict[str, Seen]:
    """What was seen of each kind of file."""
    out = {}
    for kind, read in FILES.items():
        with tempfile.TemporaryDirectory() as folder, watched() as found:
            read(Path(folder))
        out[kind] = found
    return out


def askers() -> set[tuple[str, str]]:
    """The functions of lgsim that call ``Table.only``."""
    out = set()
    for path in PACKAGE.rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(function, ast.FunctionDef):
                continue
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "only":
                    out.add((path.name, function.name))
    return out


_SPREADS = {"std", "relative", "low", "high", "mean"}


def place(kind: str, path: str, keys: dict[str, None]) -> str:
    """The name of a table on the page; "" for tables whose keys are names of a model, or the tables themselves."""
    first, _, rest = path.partition(".")
    if first == "dispersions" and _SPREADS == set(keys):
        return "dispersions.<value>"
    if path.startswith("dispersions.inertias.about."):
        return "dispersions.inertias.about.<body>"
    if path in ("", "dispersions.wind", "dispersions.control", "dispersions.actuators"):
        return ""
    if kind == "Maps of recordings" and first not in TABLES:
        return "<column>"
    return "unknowns.<parameter>" if first == "unknowns" and rest else path


def read_keys() -> set[tuple[str, str, str]]:
    """(kind of file, table, key) of all keys that are read."""
    return {
        (kind, name, key)
        for kind, found in seen().items()
        for path, keys in found.keys.items()
        if (name := place(kind, path, keys))
        for key in keys
    }


def listed_keys(page: str) -> list[tuple[str, str, str]]:
    """(kind of file, table, key) of the rows of a page; a heading may name several tables."""
    found, kind, tables = [], "", []
    for line in page.splitlines():
        if line.startswith("## "):
            kind = line[3:]
        elif line.startswith("### "):
            tables = [name.strip("[]`") for name in line[4:].split(", ")]
        elif row := re.match(r"\| `(\w+)` \| \S", line):
            found += [(kind, table, row[1]) for table in tables]
    return found
