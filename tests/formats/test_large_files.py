"""Loading is linear in the joints: how often names are compared grows as their number, not as its square."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lgsim
from lgsim.formats import read_mjcf, read_sdf, read_urdf
from lgsim.formats.mjcformat import compilation
from lgsim.formats.xml import Element
from lgsim.multibody.topology import Topology

ROOT = Path(__file__).parents[2]


class Name(str):
    """A name that counts how often it is compared; a look-up in a dictionary compares once or not at all."""

    compared = 0

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other):
        Name.compared += 1
        return str.__eq__(self, other)


def urdf(n, order=1, mimic=False, parent=lambda i: i - 1):
    """n joints on a root, each on the one before; in the file's order or from the last one on."""
    links = [f'<link name="l{i}"><inertial><mass value="{i % 2}"/></inertial></link>' for i in range(n + 1)]
    joints = [
        f'<joint name="j{i}" type="revolute"><parent link="l{parent(i)}"/><child link="l{i}"/><axis xyz="0 1 0"/>'
        + (f'<mimic joint="j{i - 1}"/>' if mimic and i > 1 else "")
        + '<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
        for i in range(1, n + 1)
    ]
    return f'<robot name="chain">{"".join(links[::order])}{"".join(joints[::order])}</robot>'


def sdf(n, order=1):
    """The same chain, and one of frames that are attached to each other."""
    links = [f'<link name="l{i}"><pose relative_to="l{i - 1}">0 0 1 0 0 0</pose></link>' for i in range(1, n + 1)]
    links = ['<link name="l0"/>', *links]
    frames = [f'<frame name="f{i}" attached_to="{f"f{i - 1}" if i else "l1"}"/>' for i in range(n)]
    joints = [
        f'<joint name="j{i}" type="revolute"><parent>l{i - 1}</parent><child>l{i}</child></joint>'
        for i in range(1, n + 1)
    ]
    parts = "".join("".join(each[::order]) for each in (links, frames, joints))
    return f'<sdf version="1.9"><model name="chain" canonical_link="l0">{parts}</model></sdf>'


def mjcf(n):
    bodies = [f'<body name="b{i}"><joint name="j{i}"/><geom size="1"/><site name="s{i}"/></body>' for i in range(n)]
    pairs = [f'<joint joint1="j{i}" joint2="j{i + 1}"/>' for i in range(0, n - 1, 2)]
    return f"<mujoco><worldbody>{''.join(bodies)}</worldbody><equality>{''.join(pairs)}</equality></mujoco>"


FILES = {
    "URDF": (read_urdf, urdf),
    "URDF, last joint first": (read_urdf, lambda n: urdf(n, -1)),
    "URDF, joints that mimic": (read_urdf, lambda n: urdf(n, mimic=True)),
    "URDF, joints that mimic, last joint first": (read_urdf, lambda n: urdf(n, -1, mimic=True)),
    "URDF, all on the root": (read_urdf, lambda n: urdf(n, parent=lambda i: 0)),
    "SDF": (read_sdf, sdf),
    "SDF, last joint first": (read_sdf, lambda n: sdf(n, -1)),
    "MJCF": (read_mjcf, mjcf),
}


@pytest.mark.parametrize("kind", FILES)
def test_names_are_compared_linearly_often(kind, monkeypatch):
    if kind == "MJCF":
        pytest.importorskip("mujoco")
    text, words, name = Element.text, Element.words.__get__, compilation._name
    counted = lambda found: Name(found) if isinstance(found, str) else found  # noqa: E731
    monkeypatch.setattr(Element, "text", lambda self, *args: counted(text(self, *args)))
    monkeypatch.setattr(Element, "words", property(lambda self: counted(words(self))))
    monkeypatch.setattr(compilation, "_name", lambda *args: counted(name(*args)))
    # whether each body carries each other one is n^2 numbers
    monkeypatch.setattr(Topology, "carried", property(lambda self: pytest.fail("a table of n^2 entries")))
    monkeypatch.setattr(Topology, "row_carried", property(lambda self: pytest.fail("a table of n^2 entries")))
    read, write = FILES[kind]

    def comparisons(n):
        Name.compared = 0
        model, _ = read(text=write(n))
        assert len(model.topology.joints) >= n
        return Name.compared

    few, many = comparisons(40), comparisons(160)
    assert few > 100  # it counts
    assert many < 5 * few, (few, many)


def test_a_builder_compares_names_linearly_often():
    def comparisons(n):
        builder = lgsim.ModelBuilder()
        for i in range(n):
            builder.add_body(Name(f"b{i}"), Name(f"b{i - 1}" if i else "world"), lgsim.joints.Revolute(),
                             joint_name=Name(f"j{i}"), mass=1.0, inertia=np.eye(3),
                             mimic=(Name(f"j{i - 1}"), 1.0, 0.0) if i % 2 else None)  # fmt: skip
            builder.add_frame(Name(f"f{i}"), Name(f"b{i}"))
            builder.add_solid(Name(f"s{i}"), Name(f"f{i}"), lgsim.geometry.Sphere(0.1))
            if i % 4 == 2:
                builder.add_coupling(Name(f"c{i}"), Name(f"j{i - 2}"), Name(f"j{i}"), [0.0, 1.0])
                builder.add_rod(Name(f"r{i}"), Name(f"f{i - 2}"), Name(f"f{i}"), 1.0)
        Name.compared = 0
        builder.build()
        return Name.compared

    few, many = comparisons(40), comparisons(160)
    assert many < 5 * few + 100, (few, many)


def test_bodies_without_mass_behind_which_nothing_has_mass():
    """Of a tree: two branches from a body without mass, of which only one has any, and a chain without any."""
    masses = {"a": 0, "b": 0, "c": 2, "d": 0, "e": 0, "f": 1, "g": 0}
    parents = {"a": "root", "b": "a", "c": "b", "d": "a", "e": "d", "f": "root", "g": "f"}
    text = '<robot name="r"><link name="root"/>'
    text += "".join(f'<link name="{x}"><inertial><mass value="{m}"/></inertial></link>' for x, m in masses.items())
    text += "".join(
        f'<joint name="j{x}" type="continuous"><parent link="{p}"/><child link="{x}"/></joint>'
        for x, p in parents.items()
    )
    _, report = read_urdf(text=text + "</robot>")
    singular = {x.subject for x in report.massless if "mass matrix is singular" in x.text}
    assert singular == {"link 'd'", "link 'e'", "link 'g'"}
    assert {x.subject for x in report.massless} - singular == {"link 'a'", "link 'b'"}


def test_joints_that_mimic_joints_that_mimic():
    """``q_i = 2 q_(i-1) + 1``: of a chain of them against the numbers that this gives, in both orders of the file."""
    text = urdf(6, mimic=True).replace("<mimic ", '<mimic multiplier="2" offset="1" ')
    for each in (text, urdf(6, -1, mimic=True).replace("<mimic ", '<mimic multiplier="2" offset="1" ')):
        model = lgsim.load_urdf(text=each, physical="report")
        place = {name: i for i, name in enumerate(model.joint_names)}
        k, b = 1, 0
        for i in range(1, 7):
            assert model.mimic[place[f"j{i}"]].tolist() == [k, b]
            assert model.topology.mimics[place[f"j{i}"]] == (None if i == 1 else place["j1"])
            k, b = 2 * k, 2 * b + 1


SCRIPT = """
import json, sys, time
import lgsim
from tests.formats.test_large_files import sdf, urdf
lgsim.load_urdf(text=urdf(3), physical="report")
seconds = []
for joints in (20_000, 100_000):
    start = time.process_time()
    model = lgsim.load_urdf(text=urdf(joints), physical="report")
    seconds.append(time.process_time() - start)
print(json.dumps({"growth": seconds[1] / seconds[0], "joints": model.nv}))
"""


@pytest.mark.slow
def test_a_chain_of_100_000_joints():
    """In a process without checks of types; five times the joints: quadratic growth would take 25 times as long."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-1000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["joints"] == 100_000 and found["growth"] < 12, found
