"""docs/toml_keys.md: the keys of all tables of TOML files, seen while the files are read.

python -m tests.key_pages        draws the tables anew

Each table of a file is checked for unknown keys by ``Table.only``, which is watched while examples and further files
are read. What a key means is the comment of the commented examples in lgsim/data, or a text of ``MEANINGS``.
"""

from __future__ import annotations

import ast
import contextlib
import re
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import lgsim
from lgsim import data, identify
from lgsim.formats.loop_files import add_loops
from lgsim.scenarios import load_scenario, load_study, unknowns
from lgsim.scenarios.recording_map import load_recording_map
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
[control]
law = "actuators"
"""
INERTIAS = """
[machine]
file = "lgsim:cart_pole"
[time]
dt = 0.01
steps = 10
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
[[loop]]
name = "b"
joint_a = "joint1"
joint_b = "joint2"
coefficients = [0, 1]
"""
MACHINE = """<mujoco><worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody>
<actuator><motor joint="j"/></actuator></mujoco>"""

Keys = dict[str, tuple[str, ...]]
"""Keys of tables by their dotted paths."""


class Seen:
    """The keys of the tables of one kind of file, and the functions that asked for them."""

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
    for name in data.STUDIES:
        load_study(data.study(name))
    (folder / "arm.xml").write_text(MACHINE, encoding="utf-8")
    file = folder / "study.toml"
    for text in (*(STUDY.format(law=law) for law in ('"gravity"', '"pd"\nstiffness = 1\ndamping = 1')), INERTIAS):
        file.write_text(text, encoding="utf-8")
        load_study(file)
    file.write_text(DRIVEN, encoding="utf-8")
    load_motion(file)


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


_HEADER = re.compile(r"^(?:# )?\[{1,2}([\w.]+)\]{1,2}(?:\s+# (.*))?$")
_KEY = re.compile(r"^\s*(?:# )?(?:\"[^\"]+\"|[\w.]+)? *?([\w.]+) *= *(?:\"[^\"]*\"|[^#\"]|\"[^\"]*\")*?(?:# (.*))?$")


def comments(text: str) -> dict[tuple[str, str], str]:
    """The comments of a commented example by table and key; that of a table has the key ""."""
    found: dict[tuple[str, str], str] = {}
    table = last = ""
    for line in text.splitlines():
        if header := _HEADER.match(line.strip()):
            table, last = header[1], ""
            found[table, ""] = header[2] or ""
        elif key := re.match(r"^\s*(?:# )?([\w.]+)\s*=\s*(.*)$", line):
            parts = re.split(r"\s# ", key[2], maxsplit=1)
            last = key[1]
            if len(parts) == 2:
                found.setdefault((table, last), parts[1].strip())
        elif (more := re.match(r"^\s{8,}# (.*)$", line)) and (table, last) in found:
            found[table, last] += f" {more[1].strip()}"
    return found


SAME = {"minimum": "maximum"}
"""Tables that have the comments of another one."""

MEANINGS: dict[tuple[str, str], str] = {}


def meanings() -> dict[tuple[str, str], str]:
    """What keys mean, by table and key."""
    examples = [*map(data.study, data.STUDIES), *map(data.scenario, data.SCENARIOS), data.recording_map()]
    found: dict[tuple[str, str], str] = {}
    for text in (*(path.read_text(encoding="utf-8") for path in examples), textwrap.dedent(add_loops.__doc__ or "")):
        found = comments(text) | found
    return found | MEANINGS
