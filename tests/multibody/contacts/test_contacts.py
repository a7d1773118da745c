"""What contacts a machine has: builder, edits, files, texts and numbers."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.dynamics.contacts.contact_forces import contact_forces, contact_points
from lgsim.multibody import ModelBuilder, ModelError, contacts, joints, serialization
from lgsim.multibody.contacts.boxes import Box
from lgsim.multibody.contacts.contact import LAW, Shape, Surface
from lgsim.multibody.contacts.planes import Plane
from lgsim.multibody.contacts.spheres import Sphere
from lgsim.support.fingerprint import fingerprint
from tests.dynamics.contact_machines import PAIRS, pair, touching_state
from tests.multibody import trees


def arm(contact=True):
    """Two links with a foot on the second, against the ground and against a ball on the first."""
    rng = np.random.default_rng(0)
    builder = ModelBuilder()
    for name, parent in (("upper", "world"), ("lower", "upper"), ("hand", "lower")):
        numbers = {"joint_name": f"to {name}", "placement": trees.pose(rng), **trees.body(rng)}
        builder.add_body(name, parent, joints.Revolute(), **numbers)
    builder.add_frame("foot", "lower", trees.pose(rng))
    builder.add_frame("slope", "world", trees.pose(rng))
    if contact:
        builder.add_contact("ground", "foot", contacts.sphere(3.0), against="slope", stiffness=1e3, friction=0.5)
        thick, long = contacts.round_surface(2.0), contacts.capsule(2.0, 1.0)
        builder.add_contact("self", "hand", long, thick, against="upper", stiffness=1e3)
    return builder.build()


def same(found, right, rtol=1e-12):
    for name, a, b in zip(found._fields, found, right, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=rtol * np.abs(b).max(), err_msg=name)


def test_numbers_have_names():
    model = arm()
    assert model.contact_names == ("ground", "self") and model.contacts.shape == (2, 10)
    assert model.topology.contacts[1].columns == (*LAW, "radius", "length", "surface_radius", "surface_length")
    own = model.contact_numbers("ground")
    assert own.keys() == {*LAW, "radius", "surface_height"}
    expected = {"stiffness": 1e3, "exponent": 1.5, "friction": 0.5, "radius": 3.0, "slip_speed": 0.01, "viscous": 0.0}
    assert {name: float(own[name]) for name in expected} == expected
    harder = model.replace_contact(["ground", "self"], stiffness=2e3).replace_contact("self", surface_radius=1.0)
    assert harder.contact_numbers("ground")["stiffness"] == harder.contact_numbers("self")["stiffness"] == 2e3
    assert harder.contact_numbers("self")["surface_radius"] == 1.0
    assert harder.topology is model.topology
    np.testing.assert_array_equal(harder.replace(contacts=model.contacts).contacts, model.contacts)
    assert lgsim.contacts is contacts


def test_machines_without_contacts_have_no_leaf_of_them():
    model = arm(contact=False)
    assert model.contacts is None and len(jax.tree.leaves(model)) == 7
    assert "contacts" not in serialization.to_record(model)[1]


def test_digests_tell_contacts_apart_and_nothing_else():
    model, without = arm(), arm(contact=False)
    assert fingerprint(model) != fingerprint(without)
    assert serialization.fingerprint(model) != serialization.fingerprint(without)
    assert serialization.fingerprint(model) != serialization.fingerprint(model.replace_contact("self", radius=1.0))
    renamed = replace(model.topology.contacts[0], name="floor")
    other = replace(model, topology=replace(model.topology, contacts=(renamed, model.topology.contacts[1])))
    assert serialization.fingerprint(other) != serialization.fingerprint(model)
    assert fingerprint(other) != fingerprint(model)


@pytest.mark.parametrize("kinds", PAIRS.values(), ids=PAIRS.keys())
def test_files_keep_contacts(kinds):
    model = pair(*kinds)
    again = serialization.from_record(*serialization.to_record(model))
    assert again.topology == model.topology and hash(again.topology) == hash(model.topology)
    np.testing.assert_array_equal(again.contacts, model.contacts)


def test_records_without_contacts_are_read():
    text, numbers = serialization.to_record(arm(contact=False))
    assert serialization.from_record(text, numbers).contacts is None
    text, numbers = serialization.to_record(arm())
    with pytest.raises(ModelError, match="record: expected what to_record wrote"):
        serialization.from_record(text.replace('"Sphere"', '"Cone"'), numbers)


@pytest.mark.slow
def test_saved_motions_keep_contacts(tmp_path):
    model = pair(Sphere, Plane)
    q, v = touching_state(model)
    run = lgsim.simulate(model, q, v, duration=0.002, dt=1e-3, step_check=False)
    again = type(run).load(run.save(tmp_path / "run.npz")).model
    assert again.topology == model.topology
    np.testing.assert_array_equal(again.contacts, model.contacts)


@pytest.mark.parametrize("joint", ["to lower", "to hand"])
def test_locked_machines_feel_the_same_contacts(joint):
    model = arm()
    q = jnp.array([0.3, -0.4, 0.5])
    locked = model.lock([joint], q)
    at = jnp.concatenate([q[model.q_slices[name]] for name in locked.joint_names])
    rates = dict(zip(model.joint_names, (0.7, -0.3, 0.4), strict=True)) | {joint: 0.0}
    v = jnp.array([rates[name] for name in model.joint_names])
    found = contact_forces(locked, at, jnp.array([rates[name] for name in locked.joint_names]))
    right = contact_forces(model, q, v)
    assert locked.contact_names == model.contact_names and right.normal.min() > 0
    same(found._replace(wrenches=jnp.zeros(1)), right._replace(wrenches=jnp.zeros(1)))


def test_contacts_that_can_do_nothing_any_more_go():
    model = arm()
    left = model.lock(["to lower", "to hand"], model.neutral())
    assert left.contact_names == ("ground",) and left.contacts.shape == (1, 8)
    nothing = model.lock(["to upper", "to lower"], model.neutral())
    assert nothing.contact_names == ("self",)
    one = pair(Sphere, Plane)
    assert one.add_frame("more", "hand").contact_names == ("touch",)


@pytest.mark.slow
def test_attached_machines_bring_their_contacts():
    """The tool's world becomes the frame that carries it; columns are as many as the widest contact needs."""
    rng = np.random.default_rng(4)
    place = trees.pose(rng)
    tool = ModelBuilder().add_body("finger", "world", joints.Prismatic(), **trees.body(rng))
    tool = tool.add_contact("grip", "finger", contacts.sphere(0.5), contacts.plane(), stiffness=10.0).build()
    whole = arm().add_frame("mount", "hand", place).attach(tool, "mount", prefix="left ")
    assert whole.contact_names == ("ground", "self", "left grip")
    assert (whole.topology.contacts[2].frame, whole.topology.contacts[2].against) == ("left finger", "mount")
    q = whole.neutral().at[3].set(0.1)
    found = contact_points(whole, q)
    part = whole.point_slices["left grip"]
    np.testing.assert_allclose(found.depth[part], contact_points(tool, jnp.array([0.1])).depth, atol=1e-12)
    np.testing.assert_allclose(found.depth[:2], contact_points(arm(), q[:3]).depth, atol=1e-12)
    bare = arm(contact=False).attach(tool, "hand")
    assert bare.contact_names == ("grip",) and bare.topology.contacts[0].against == "hand"
    loaded = whole.add_payload("mount", lgsim.multibody.inertia.parameters(jnp.array(1.0), jnp.zeros(3), jnp.eye(3)))
    assert loaded.topology == whole.topology
    clash = ModelBuilder().add_body("nail", "world", joints.Prismatic(), **trees.body(rng))
    clash = clash.add_contact("grip", "nail", contacts.sphere(0.5), stiffness=1.0).build()
    with pytest.raises(ModelError, match="attach: contact 'grip': the name is taken"):
        bare.attach(clash, "world")


@pytest.mark.slow
def test_numbers_are_differentiable_and_mapped():
    model = arm()
    q = jnp.zeros(3)

    def push(stiffness):
        return contact_forces(model.replace_contact("ground", stiffness=stiffness), q, q).normal[0]

    np.testing.assert_allclose(jax.grad(push)(1e3), contact_forces(model, q, q).normal[0] / 1e3, rtol=1e-12)
    np.testing.assert_allclose(jax.vmap(push)(jnp.array([1e3, 2e3]))[1], 2 * push(1e3), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_builder_makes_its_dtype(dtype):
    assert pair(Box, Plane, dtype=dtype).contacts.dtype == dtype


def body():
    return ModelBuilder().add_body("a", "world", joints.Free(), mass=1.0, inertia=np.eye(3)).add_frame("f", "world")


SPHERE = contacts.sphere(0.1)
ZERO_OR_MORE = "expected a nonnegative number"
BAD = {
    "unknown frame": (("c", "b", SPHERE), {}, r"contact 'c': frame: .*got 'b'"),
    "unknown surface frame": (("c", "a", SPHERE), {"against": "g"}, r"contact 'c': against: .*got 'g'"),
    "world against world": (("c", "f", SPHERE), {}, "contact 'c': frame, against: .*both on the world"),
    "a body against itself": (("c", "a", SPHERE), {"against": "a"}, "both on the body 'a'"),
    "no shape": (("c", "a", "sphere"), {}, "contact 'c': shape: expected a shape such as"),
    "a surface as a shape": (("c", "a", contacts.plane()), {}, "contact 'c': shape: expected a shape"),
    "a shape as a surface": (("c", "a", SPHERE, SPHERE), {}, "contact 'c': surface: expected a surface"),
    "no stiffness": (("c", "a", SPHERE), {"stiffness": None}, "contact 'c': stiffness: expected a number"),
    "unknown number": (("c", "a", SPHERE), {"stifness": 1.0}, "did you mean 'stiffness'"),
    "negative stiffness": (("c", "a", SPHERE), {"stiffness": -1.0}, f"stiffness: {ZERO_OR_MORE}, got -1"),
    "infinite stiffness": (("c", "a", SPHERE), {"stiffness": np.inf}, f"stiffness: {ZERO_OR_MORE}, got inf"),
    "negative radius": (("c", "a", contacts.sphere(-0.1)), {}, f"radius: {ZERO_OR_MORE}"),
    "several": (("c", "a", SPHERE), {"stiffness": [1.0, 2.0]}, r"stiffness: expected one number, got shape \(2,\)"),
    "slip speed 0": (("c", "a", SPHERE), {"slip_speed": 0.0}, "slip_speed: expected a positive number"),
    "exponent below 1": (("c", "a", SPHERE), {"exponent": 0.9}, "exponent: expected 1 or more"),
    "smooth and an exponent": (("c", "a", SPHERE), {"smooth": True, "exponent": 1.5}, "smooth, exponent: expected one"),
    "spin speed 0": (("c", "a", SPHERE), {"torsion": 0.1, "spin_speed": 0.0}, "spin_speed: expected a positive number"),
    "negative torsion": (("c", "a", SPHERE), {"torsion": -0.1}, f"torsion: {ZERO_OR_MORE}"),
    "negative friction": (("c", "a", SPHERE), {"friction": -0.1}, f"friction: {ZERO_OR_MORE}"),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD.keys())
def test_bad_contacts(case):
    given, law, message = case
    with pytest.raises(ModelError, match=message):
        body().add_contact(*given, **{"stiffness": 1.0, **law}).build()


def test_bad_names_and_numbers_of_a_model():
    model = arm()
    with pytest.raises(ModelError, match="contact 'c': the name is taken"):
        body().add_contact("c", "a", SPHERE, stiffness=1.0).add_contact("c", "a", SPHERE, stiffness=1.0)
    with pytest.raises(ModelError, match="contact: expected the name of a contact, got 'grund'; did you mean 'ground'"):
        model.contact_numbers("grund")
    with pytest.raises(ModelError, match="the model has no contacts"):
        arm(contact=False).replace_contact("ground", stiffness=1.0)
    with pytest.raises(ModelError, match="contacts: expected None, the model has no contacts"):
        arm(contact=False).replace(contacts=jnp.ones((1, 7)))
    with pytest.raises(
        ModelError, match="contact 'ground': expected a number, got 'stifness'; did you mean 'stiffness'"
    ):
        model.replace_contact("ground", stifness=1.0)
    with pytest.raises(ModelError, match="contact 'self': friction: expected a nonnegative number, got -1"):
        model.replace_contact("self", friction=-1.0)
    with pytest.raises(ModelError, match="contact 'ground': exponent: expected 1 or more"):
        model.replace(contacts=model.contacts.at[0, LAW.index("exponent")].set(0.5))
    with pytest.raises(ModelError, match=r"contacts: expected shape \(2, 10\), got \(2, 3\)"):
        model.replace(contacts=model.contacts[:, :3])


def test_models_get_contacts_as_builders_do():
    law = {"stiffness": 10.0, "friction": 0.5, "torsion": 0.01, "smooth": True}
    model = body().build().add_contact("c", "a", SPHERE, against="f", **law)
    right = body().add_contact("c", "a", SPHERE, against="f", **law).build()
    assert model.topology == right.topology
    np.testing.assert_array_equal(model.contacts, right.contacts)
    more = model.add_contact("d", "a", contacts.box(1.0, 2.0, 3.0), stiffness=1.0)
    assert more.contact_names == ("c", "d")
    np.testing.assert_array_equal(list(more.contact_numbers("c").values()), model.contacts[0])
    again = serialization.from_record(*serialization.to_record(more))
    assert again.topology == more.topology and again.topology.contacts[0].options == (
        "torsion",
        "rolling",
        "spin_speed",
    )
    with pytest.raises(ModelError, match="contact 'c': the name is taken"):
        model.add_contact("c", "a", SPHERE, stiffness=1.0)
    with pytest.raises(ModelError, match=r"contact 'e': frame: .*got 'b'"):
        model.add_contact("e", "b", SPHERE, stiffness=1.0)


def test_a_rough_onset_is_told():
    with pytest.warns(UserWarning, match="contact 'c': exponent: 1.2 is below 3/2.* wrong by 5e-2"):
        body().add_contact("c", "a", SPHERE, stiffness=1.0, exponent=1.2)


def test_bad_vertices_and_boxes():
    for points, message in (
        (np.zeros((0, 3)), "vertices: points: expected at least one point"), (np.zeros((2, 2)), r"got \(2, 2\)"),
        ([[0, 0, np.nan]], "expected finite numbers"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            contacts.vertices(points)
    with pytest.raises(ValueError, match="most: expected at least one point, got 0"):
        contacts.vertices(np.eye(3), most=0)
    with pytest.raises(ValueError, match="edges: expected a number of points"):
        contacts.box(1.0, 1.0, 1.0, edges=-1)


def test_every_kind_is_registered_and_says_its_sizes():
    own = [kind for kind in (*Shape.kinds.values(), *Surface.kinds.values()) if kind.__module__.startswith("lgsim.")]
    shapes, surfaces = {"Sphere", "Capsule", "Box", "Vertices"}, {"Plane", "RoundSurface", "HeightField"}
    assert {kind.__name__ for kind in own} == shapes | surfaces
    assert all(kind.sizes and set(getattr(kind, "signed", ())) <= set(kind.sizes) for kind in own)
