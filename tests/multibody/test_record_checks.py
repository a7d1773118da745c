"""Records of models from files are read only where names, places, counts and shapes can be those of a machine."""

import json

import numpy as np
import pytest

import lgsim
from lgsim import contacts, geometry, joints
from lgsim.multibody.serialization import from_record, to_record
from lgsim.multibody.topology import ModelError


@pytest.fixture(scope="module")
def record():
    build = lgsim.ModelBuilder()
    build.add_body("a", "world", joints.Revolute(), joint_name="one", mass=1.0, inertia=np.eye(3))
    build.add_body("b", "a", joints.Universal(), joint_name="two", mass=1.0, inertia=np.eye(3))
    build.add_body(
        "c", "b", joints.Revolute(), joint_name="three", mass=1.0, inertia=np.eye(3), mimic=("one", 2.0, 0.1)
    )
    build.add_frame("tip", "c", np.eye(4))
    model = build.build().add_rod("rod", "tip", "world", 1.0)
    model = model.add_contact("touch", "tip", contacts.sphere(0.1), contacts.height_field(np.zeros((3, 4)), 0.1),
                              stiffness=1e4)  # fmt: skip
    model = model.add_solids([("ball", "tip", geometry.Sphere(0.1), np.eye(4)),
                              ("box", "a", geometry.Box((1, 1, 1)), np.eye(4))])  # fmt: skip
    return to_record(model.exclude([("ball", "box")]))


def test_a_record_comes_back(record):
    model = from_record(*record)
    text, numbers = to_record(model)
    assert json.loads(text) == json.loads(record[0])
    for name, array in numbers.items():
        np.testing.assert_array_equal(array, record[1][name])


INFINITY = float("inf")
CHECKED = "TypeCheckError"
"""What the checks of types say in tests of some entries, drawn by chance, before those of records are reached."""


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        (("parents", 0), -5, "parents: expected a body before body 0, got -5"),
        (("parents", 0), 0, "parents: expected a body before body 0, got 0"),
        (("parents", 1), INFINITY, "parents: expected a body before body 1, got inf"),
        (("parents", 1), True, "parents: expected a body before body 1, got True"),
        (("parents",), [-1, 0], "parents: expected 3 entries"),
        (("mimics", 2), 2, "mimics: expected an independent joint, got 2"),
        (("mimics", 2), 1e308, "mimics: expected an independent joint, got 1e"),
        (("joint_names", 1), "one", "joint_names: expected different names"),
        (("body_names", 1), 5, "body_names: expected names, got 5"),
        (("frame_bodies", 0), 3, "frame_bodies: expected a body, got 3"),
        (("frame_names",), [], "frame_bodies: expected 0 entries"),
        (("stribeck",), "yes", "stribeck: expected true or false, got yes"),
        (("loops", 0, "a"), "nowhere", "loop 'rod': expected ends of the model"),
        (("contacts", 0, "frame"), "nowhere", "contact 'touch': expected frames of the model"),
        (("contacts", 0, "surface", "nodes"), [-5, 4], "contact 'touch': expected counts"),
        (
            ("contacts", 0, "surface", "nodes"),
            [INFINITY, 4],
            "contact 'touch': expected finite.*",
        ),
        (("contacts", 0, "surface", "nodes"), [30, 40], "heights: expected shape"),
        (("contacts", 0, "surface", "kind"), "Moon", "KeyError: 'Moon'"),
        (("solids", 0, "frame"), "nowhere", "solid 'ball': expected a frame of the model"),
        (("exclusions", 0), ["ball", "moon"], "exclusions: expected two solids"),
        (("joints", 0, "kind"), "Wing", "KeyError: 'Wing'"),
        (("joints",), {}, "AttributeError|entries|TypeError|ValueError"),
        ((), [], "TypeError"),
    ],
)
def test_records_that_cannot_be(path, value, fault, record):
    text, numbers = record
    tree = json.loads(text)
    at = tree
    for key in path[:-1]:
        at = at[key]
    if path:
        at[path[-1]] = value
    else:
        tree = value
    with pytest.raises(ModelError, match=f"^record: expected what to_record wrote, got .*({fault}|{CHECKED})"):
        from_record(json.dumps(tree), numbers)


@pytest.mark.parametrize("text", ["[" * 10_000, "{", "", '"x"', "null", "9" * 5000, "\ud800"])
def test_texts_that_are_no_records(text, record):
    with pytest.raises(ModelError, match="record: expected what to_record wrote"):
        from_record(text, record[1])


@pytest.mark.parametrize("name", ["placements", "screws", "inertias", "drives", "mimic", "frames", "gravity", "loops",
                                  "contacts", "heights", "solids", "solid_poses"])  # fmt: skip
def test_numbers_of_other_shapes(name, record):
    text, numbers = record
    for other in (np.zeros(0), np.zeros((2, 3, 5)), numbers[name][..., None], np.zeros(numbers[name].shape, int),
                  np.full(numbers[name].shape, "x"), np.zeros(numbers[name].shape, complex)):  # fmt: skip
        with pytest.raises(ModelError, match="record: expected what to_record wrote"):
            from_record(text, numbers | {name: other})
    with pytest.raises(ModelError, match=f"KeyError: '{name}'"):
        from_record(text, {key: x for key, x in numbers.items() if key != name})
