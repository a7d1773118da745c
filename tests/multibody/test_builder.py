"""What the builder makes, in which order, and every machine that it refuses."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.multibody import ModelBuilder, ModelError, joints
from lgsim.multibody.joint import Row
from tests.multibody import trees
from tests.multibody.trees import body, pose

REVOLUTE = joints.Revolute()


def named(name="arm", parent="world", joint=REVOLUTE, **options):
    return lambda b: b.add_body(name, parent, joint, **options)


def several(*steps):
    def do(builder):
        for step in steps:
            builder = step(builder)
        return builder.build()

    return do


ARM = named()
BAD_INERTIA = np.diag([1.0, 1.0, 3.0])
REFUSED = {
    "a body twice": ((ARM, ARM), "body 'arm': the name is taken"),
    "a body named world": ((named("world"),), "body 'world': the name is taken"),
    "a body named as a frame": (
        (ARM, lambda b: b.add_frame("tip", "arm"), named("tip")), "body 'tip': the name is taken",
    ),
    "no joint": (
        (named(joint="revolute"),),
        "body 'arm': joint: expected a joint such as lgsim.joints.Revolute(), got 'revolute'",
    ),
    "a type of joint": ((named(joint=joints.Revolute),), "body 'arm': joint: expected a joint such as"),
    "unknown numbers": (
        (named(springiness=1.0, color=2.0),),
        "body 'arm': unknown color, springiness; known are armature, damping, friction, stiffness, rest, lower,"
        " upper, velocity_limit, effort_limit",
    ),
    "placement of a wrong shape": (
        (named(placement=np.eye(3)),), "body 'arm': placement: expected shape (4, 4), got (3, 3)",
    ),
    "placement not finite": (
        (named(placement=np.full((4, 4), np.nan)),), "body 'arm': placement: expected finite numbers, got [[nan",
    ),
    "mass of a wrong shape": ((named(mass=[1.0]),), "body 'arm': mass: expected shape (), got (1,)"),
    "mass not finite": ((named(mass=np.inf),), "body 'arm': mass: expected finite numbers, got inf"),
    "negative mass": ((named(mass=-1.0),), "body 'arm' has the negative mass -1 kg"),
    "center of a wrong shape": (
        (named(mass=1.0, center=[0.0]),), "body 'arm': center: expected shape (3,), got (1,)",
    ),
    "center not finite": (
        (named(mass=1.0, center=[0, np.nan, 0]),), "body 'arm': center: expected finite numbers, got [0.0, nan, 0.0]",
    ),
    "inertia of a wrong shape": (
        (named(mass=1.0, inertia=[1.0, 1.0, 1.0]),), "body 'arm': inertia: expected shape (3, 3), got (3,)",
    ),
    "inertia without mass": ((named(inertia=np.eye(3)),), "body 'arm' has no mass but an inertia"),
    "triangle inequality": (
        (named(mass=1.0, inertia=BAD_INERTIA),),
        "body 'arm' has a non-physical inertia: of its principal moments 1, 1, 3 kg m^2 the largest"
        " exceeds the sum of the others (triangle inequality)",
    ),
    "inertia not positive": (
        (named(mass=1.0, inertia=np.diag([1.0, 1.0, -0.1])),),
        "body 'arm' has an inertia that is not positive definite: principal moments -0.1, 1, 1 kg m^2",
    ),
    "parameters of a wrong shape": (
        (named(parameters=np.ones(9)),), "body 'arm': parameters: expected shape (10,), got (9,)",
    ),
    "an axis that is zero": (
        (named(axis=[0, 0, 0]),),
        "joint 'arm': axis: expected a finite nonzero vector, got [0.0, 0.0, 0.0]",
    ),
    "an axis that is not finite": (
        (named(axis=[0, np.inf, 0]),), "joint 'arm': axis: expected a finite nonzero vector",
    ),
    "axes of a ball that are no frame": (
        (named(joint=joints.Spherical(), axis=[[1, 0, 0], [0, 1, 0], [0, 0, -1]]),),
        "joint 'arm': axis: expected the axes x, y, z of one right-handed frame for a Spherical joint",
    ),
    "an axis of a wrong shape": (
        (named(axis=[0, 1]),), "joint 'arm': axis: expected shape (3,) or (1, 3), got (2,)",
    ),
    "too many axes": (
        (named(joint=joints.Universal(), axis=np.eye(3)),),
        "joint 'arm': axis: expected shape (3,) or (2, 3), got (3, 3)",
    ),
    "pitch of a wrong shape": (
        (named(pitch=[1.0, 2.0]),), "joint 'arm': pitch: expected a number or shape (1,), got shape (2,)",
    ),
    "numbers of a wrong shape": (
        (named(joint=joints.Planar(), joint_name="slide", damping=[1.0, 2.0]),),
        "joint 'slide': damping: expected a number or shape (3,), got shape (2,)",
    ),
    "numbers that are not": ((named(friction=np.nan),), "joint 'arm': friction: expected numbers, got nan"),
    "limits that cross": (
        (named(lower=1.0, upper=-1.0),), "joint 'arm': expected lower <= upper, got [1.] and [-1.]",
    ),
    "a ball that mimics": (
        (ARM, named("ball", "arm", joints.Spherical(), mimic=("arm", 1.0, 0.0))),
        "joint 'ball': only a joint of one degree of freedom can mimic, this one has 3",
    ),
    "a frame twice": (
        (ARM, lambda b: b.add_frame("tip", "arm"), lambda b: b.add_frame("tip", "arm")),
        "frame 'tip': the name is taken",
    ),
    "a frame named as a body": ((ARM, lambda b: b.add_frame("arm", "arm")), "frame 'arm': the name is taken"),
    "a frame named world": ((ARM, lambda b: b.add_frame("world", "arm")), "frame 'world': the name is taken"),
    "a frame's pose": (
        (ARM, lambda b: b.add_frame("tip", "arm", np.zeros(3))),
        "frame 'tip': placement: expected shape (4, 4), got (3,)",
    ),
    "axes of a free base": (
        (named(joint=joints.Free(), axis=np.tile(np.eye(3)[[1, 2, 0]], (2, 1))),),
        "joint 'arm': axis: a floating base has the axes of its body",
    ),
    "a frame on nothing": (
        (ARM, lambda b: b.add_frame("tip", "hand")), "frame 'tip': there is no body 'hand'; bodies are arm",
    ),
    "a parent that is missing": ((named(parent="base"),), "body 'arm': its parent 'base' is missing"),
    "a circle": (
        (ARM, named("a", "b"), named("b", "a")), "bodies a, b have circular parents; expected a path to the world",
    ),
    "a body on itself": (
        (ARM, named("a", "a")), "bodies a have circular parents; expected a path to the world",
    ),
    "nothing": ((), "expected at least one joint that is not fixed"),
    "only fixed joints": (
        (named(joint=joints.Fixed()),), "expected at least one joint that is not fixed",
    ),
    "joint names that clash": (
        (ARM, named("hand", "arm", joint_name="arm")), "joint 'arm': the name is taken by another joint",
    ),
    "mimic of a missing joint": (
        (named(mimic=("elbow", 1.0, 0.0)),), "joint 'arm': it mimics 'elbow', which does not exist or is fixed",
    ),
    "mimic of a fixed joint": (
        (ARM, named("hand", "arm", joints.Fixed()), named("finger", "arm", mimic=("hand", 1.0, 0.0))),
        "joint 'finger': it mimics 'hand', which does not exist or is fixed",
    ),
    "mimic of a ball": (
        (named("ball", joint=joints.Spherical()), named("arm", "ball", mimic=("ball", 1.0, 0.0))),
        "joint 'arm': it mimics 'ball', which has 3 coordinates",
    ),
    "mimic of itself": (
        (named(mimic=("arm", 1.0, 0.0)),), "joint 'arm': joints mimic each other in a circle: arm",
    ),
    "mimics in a circle": (
        (named("a", mimic=("b", 1.0, 0.0)), named("b", mimic=("a", 1.0, 0.0))),
        "joint 'a': joints mimic each other in a circle: a, b",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused(case, without_import_hook):
    steps, message = REFUSED[case]
    with pytest.raises(ModelError) as error:
        several(*steps)(ModelBuilder())
    assert str(error.value).startswith(message)


def test_numbers_of_the_whole_machine_are_checked():
    with pytest.raises(ModelError, match=r"^gravity: expected shape \(3,\), got \(2,\)"):
        ModelBuilder(gravity=(0.0, -9.81)).add_body("arm", "world", REVOLUTE).build()
    with pytest.raises(ModelError, match=r"^inertias of the model as float32: expected finite numbers"):
        ModelBuilder(dtype=jnp.float32).add_body("arm", "world", REVOLUTE, mass=1e39).build()


def test_bodies_that_cannot_be_are_taken_on_request():
    model = ModelBuilder(physical=False).add_body("arm", "world", REVOLUTE, mass=1.0, inertia=BAD_INERTIA).build()
    np.testing.assert_array_equal(model.inertias, [[1, 0, 0, 0, 1, 0, 1, 0, 0, 3]])
    with pytest.raises(ModelError, match="body 'arm' has the negative mass -1 kg"):
        ModelBuilder(physical=False).add_body("arm", "world", REVOLUTE, mass=-1.0)


def test_bodies_come_depth_first_in_the_order_in_which_they_were_added():
    """Children before their parents were added, and between those of others."""
    builder = ModelBuilder()
    builder.add_body("finger", "hand", joints.Universal(), joint_name="grip")
    builder.add_body("left", "world", joints.Spherical(), joint_name="ball")
    builder.add_body("right", "world", joints.Prismatic(), joint_name="slide")
    builder.add_body("eye", "left", REVOLUTE, joint_name="pan")
    builder.add_body("hand", "left", joints.Fixed(), joint_name="weld")
    builder.add_body("wing", "right", joints.Free(), joint_name="loose")
    model = builder.add_frame("flange", "hand").add_frame("table", "world").build()
    assert model.body_names == ("left", "eye", "finger", "right", "wing")
    assert model.joint_names == ("ball", "pan", "grip", "slide", "loose")
    assert model.topology.parents == (-1, 0, 0, -1, 3)
    assert model.frame_names == (*model.body_names, "hand", "flange", "table")
    assert model.topology.frame_bodies == (0, 0, -1)
    assert (model.nq, model.nv) == (4 + 1 + 2 + 1 + 7, 3 + 1 + 2 + 1 + 6)
    starts = {"ball": (0, 4), "pan": (4, 5), "grip": (5, 7), "slide": (7, 8), "loose": (8, 15)}
    assert dict(model.q_slices) == {name: slice(*ends) for name, ends in starts.items()}
    starts = {"ball": (0, 3), "pan": (3, 4), "grip": (4, 6), "slide": (6, 7), "loose": (7, 13)}
    assert dict(model.v_slices) == {name: slice(*ends) for name, ends in starts.items()}


def test_numbers_stand_where_they_belong():
    options = {
        "armature": [0.1, 0.2], "damping": 0.3, "friction": 0.4, "stiffness": 5.0, "rest": 0.6, "lower": [-1.0, -2.0],
        "upper": 3.0, "velocity_limit": 7.0, "effort_limit": [8.0, 9.0],
    }  # fmt: skip
    builder = ModelBuilder(gravity=(1, 2, 3)).add_body("a", "world", joints.Helical(), axis=[0, 3, 4], pitch=0.2)
    model = builder.add_body("b", "a", joints.Cylindrical(), axis=[0, 2, 0], **options).build()
    for name, value in options.items():
        usual = {"lower": -np.inf, "upper": np.inf, "velocity_limit": np.inf, "effort_limit": np.inf}.get(name, 0)
        np.testing.assert_array_equal(getattr(model, name), [usual, *np.broadcast_to(value, 2)], err_msg=name)
    np.testing.assert_allclose(model.axes, [[0, 0.6, 0.8], [0, 1, 0], [0, 1, 0]], atol=1e-16)
    np.testing.assert_array_equal(model.pitches, [0.2, 0, 0])
    np.testing.assert_array_equal(model.gravity, [1, 2, 3])
    np.testing.assert_array_equal(model.mimic, [[1, 0], [1, 0]])
    assert builder.gravity == (1, 2, 3) and ModelBuilder().gravity == (0.0, 0.0, -9.81)


def test_axes_of_any_length_and_none():
    model = trees.build(["planar"], [-1])
    np.testing.assert_array_equal(model.axes, np.eye(3))
    for axis in ([1e-200, 0, 0], [1e200, 0, 0]):
        model = ModelBuilder().add_body("a", "world", REVOLUTE, axis=axis).build()
        np.testing.assert_array_equal(model.axes, [[1, 0, 0]])


def by_points(part, T):
    """Mass, first moment and inertia about the origin of a body in another frame, as a sum over point masses.

    Four points on the axes of the density's ellipsoid about the center, in pairs, have the body's second moments.
    """
    mass, center, inertia = part["mass"], part["center"], part["inertia"]
    values, axes = np.linalg.eigh(0.5 * np.trace(inertia) * np.eye(3) - inertia)
    points = [center + s * np.sqrt(3 * values[i] / mass) * axes[:, i] for i in range(3) for s in (1, -1)]
    points = np.array(points) @ T[:3, :3].T + T[:3, 3]
    moment = sum(mass / 6 * (x @ x * np.eye(3) - np.outer(x, x)) for x in points)
    return np.concatenate([[mass], mass * points.mean(0), moment[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]])


def test_fixed_bodies_are_merged():
    """Two in a row on a body, one on the world; joints and frames on them keep their places."""
    rng = np.random.default_rng(0)
    parts, T = [body(rng) for _ in range(4)], [pose(rng) for _ in range(5)]
    builder = ModelBuilder().add_body("base", "world", joints.Fixed(), placement=T[0], **parts[0])
    builder.add_body("arm", "base", REVOLUTE, placement=T[1], **parts[1])
    builder.add_body("cover", "arm", joints.Fixed(), placement=T[2], **parts[2])
    builder.add_body("screw", "cover", joints.Fixed(), placement=T[3], **parts[3])
    builder.add_body("hand", "screw", REVOLUTE, placement=T[4])
    model = builder.add_frame("mark", "screw", T[1]).add_frame("corner", "base", T[2]).build()
    assert model.body_names == ("arm", "hand")
    right = by_points(parts[1], np.eye(4)) + by_points(parts[2], T[2]) + by_points(parts[3], T[2] @ T[3])
    np.testing.assert_allclose(model.inertias, [right, np.zeros(10)], rtol=0, atol=1e-14 * np.abs(right).max())
    np.testing.assert_allclose(model.placements, [T[0] @ T[1], T[2] @ T[3] @ T[4]], rtol=0, atol=1e-15)
    frames = dict(
        zip(model.topology.frame_names, zip(model.topology.frame_bodies, model.frames, strict=True), strict=True)
    )
    right = {
        "base": (-1, T[0]), "cover": (0, T[2]), "screw": (0, T[2] @ T[3]), "mark": (0, T[2] @ T[3] @ T[1]),
        "corner": (-1, T[0] @ T[2]),
    }  # fmt: skip
    assert frames.keys() == right.keys()
    for name, (holder, place) in right.items():
        assert frames[name][0] == holder
        np.testing.assert_allclose(frames[name][1], place, rtol=0, atol=1e-15)


def test_followers_of_followers_are_resolved():
    """And what resists a follower is felt at the joint that it follows, by the square of the ratio."""
    builder = ModelBuilder().add_body("a", "world", REVOLUTE, armature=1.0, damping=0.1, friction=0.01)
    builder.add_body("b", "a", joints.Prismatic(), mimic=("a", -2.0, 0.5), armature=0.3, damping=0.2, friction=0.1)
    model = builder.add_body("c", "b", REVOLUTE, mimic=("b", 3.0, -1.0), armature=1.0, stiffness=4.0).build()
    assert model.topology.mimics == (None, 0, 0)
    np.testing.assert_allclose(model.mimic, [[1, 0], [-2, 0.5], [-6, 0.5]])  # c = 3 (-2 a + 0.5) - 1
    np.testing.assert_allclose(model.armature, [1 + 4 * 0.3 + 36])
    np.testing.assert_allclose(model.damping, [0.1 + 4 * 0.2])
    np.testing.assert_allclose(model.friction, [0.01 + 2 * 0.1])
    np.testing.assert_array_equal(model.stiffness, [0])
    assert (model.nq, model.nv, model.topology.rows) == (1, 1, 3)


@pytest.mark.float32
def test_dtype(dtype):
    model = trees.build(["free", "helical"], [-1, 0], dtype=dtype)
    assert {leaf.dtype for leaf in jax.tree.leaves(model)} == {np.dtype(dtype)}
    assert model.dtype == dtype
    usual = ModelBuilder().add_body("a", "world", REVOLUTE).build()
    assert usual.dtype == jnp.zeros(()).dtype


def test_models_of_one_topology_are_one_program():
    """Numbers are leaves: a machine with other numbers has the same tree structure, and no recompilation."""
    a, b = trees.build(*trees.CASES["screws"], seed=1), trees.build(*trees.CASES["screws"], seed=2)
    chex.assert_trees_all_equal_structs(a, b)
    assert hash(a.topology) == hash(b.topology)
    f = jax.jit(chex.assert_max_traces(lambda model: model.gravity + jnp.sum(model.inertias), 1))
    f(a), f(b), f(a.replace(damping=a.damping + 1.0))


def test_a_compound_joint_takes_an_axis_for_each_row():
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0][:2]
    joint = joints.Compound((Row(True, 0), Row(False, 1)))
    model = ModelBuilder().add_body("a", "world", joint, axis=axes, pitch=[0.1, 0.0]).build()
    np.testing.assert_allclose(model.axes, axes, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(model.pitches, [0.1, 0])
