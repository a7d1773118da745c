"""Machines made of other machines: against Pinocchio's reduced models, and against machines built at once."""

import inspect
from dataclasses import replace

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

from lgsim.dynamics.forward_dynamics import forward_dynamics
from lgsim.dynamics.inverse_dynamics import inverse_dynamics
from lgsim.multibody import Model, ModelBuilder, ModelError, edit, joints
from lgsim.multibody import inertia as ten
from tests.dynamics.machines import close, lanes, mimicking
from tests.multibody import trees
from tests.multibody.twin import Twin

LOCKED = {
    "two roots": ["joint0", "joint3"],
    "screws": ["joint0", "joint2", "joint3", "joint4", "joint5"],
    "groups": ["joint1", "joint2", "joint3"],
    "floating": ["joint1", "joint3", "joint4", "joint6"],
    "floating chain": ["joint0", "joint2"],
}
"""At the root, inside and at the tip; every type of joint is among them."""


def state_of(reduced, model, *states):
    """What stays of states of a machine when joints are locked."""
    parts = []
    for x, slices in zip(states, [model.q_slices, model.v_slices, model.v_slices], strict=False):
        parts.append(jnp.concatenate([x[slices[name]] for name in reduced.joint_names]))
    return parts


def locked(model, names, q):
    """``model.lock(names, q)`` as one program."""
    return jax.jit(lambda model, q: model.lock(names, q))(model, q)


@pytest.mark.repeats
@pytest.mark.parametrize("case", lanes(["two roots", "floating chain"], ["screws", "groups", "floating"]))
def test_locked_machines_equal_pinocchio(case):
    model = trees.build(*trees.CASES[case], armature=True)
    q, v, a = trees.state(model)
    reduced = locked(model, LOCKED[case], q)
    assert set(reduced.joint_names) == set(model.joint_names) - set(LOCKED[case])
    assert set(reduced.frame_names) == set(model.frame_names)
    twin = Twin(model)
    for joint in twin.ids:
        twin.pin.addJointFrame(joint)  # without them buildReducedModel ends the process
    ids = [twin.pin.getJointId(name) for name in LOCKED[case]]
    oracle = pin.buildReducedModel(twin.pin, ids, twin.q(q))
    expected = Twin(reduced)  # its maps of coordinates alone: the joints' order and types
    q, v, a = state_of(reduced, model, q, v, a)
    right = pin.rnea(oracle, oracle.createData(), expected.q(q), expected.v(v), expected.v(a))
    close(inverse_dynamics(reduced, q, v, a), expected.back(right))


def poses(model, q):
    """Poses of all frames, by Pinocchio."""
    twin = Twin(model)
    pin.forwardKinematics(twin.pin, twin.data, twin.q(q))
    world = [pin.SE3.Identity(), *(twin.data.oMi[i] for i in twin.ids)]
    own = dict(zip(model.body_names, world[1:], strict=True))
    tree = model.topology
    fixed = {
        name: world[body + 1] * pin.SE3(np.array(T))
        for name, body, T in zip(tree.frame_names, tree.frame_bodies, model.frames, strict=True)
    }
    return {name: T.homogeneous for name, T in (own | fixed).items()}


def test_frames_stay_where_they_were():
    rng = np.random.default_rng(2)
    model = trees.build(*trees.CASES["screws"]).add_frame("tool", "body5", trees.pose(rng))
    model = model.add_frame("tip", "tool", trees.pose(rng)).add_frame("table", "world", trees.pose(rng))
    q, _, _ = trees.state(model)
    before = poses(model, q)
    reduced = locked(model, ["joint0", "joint2", "joint5"], q)
    after = poses(reduced, *state_of(reduced, model, q))
    assert before.keys() == after.keys()
    for name, T in before.items():
        close(after[name], T)


def test_a_locked_base_and_a_root_are_fixed_to_the_world():
    model = trees.build(*trees.CASES["floating chain"])
    q, _, _ = trees.state(model)
    reduced = model.lock(["joint0"], q)
    assert not reduced.topology.floats
    assert reduced.topology.parents == (-1, 0, 1)
    assert reduced.topology.frame_bodies == (-1,)


def test_no_joint_locked_is_the_same_machine():
    model = mimicking()
    same = model.lock([], model.neutral())
    assert same.topology == model.topology
    chex.assert_trees_all_equal(same, model)


def test_what_mimics_a_locked_joint_is_locked():
    model = mimicking()  # joint2 follows joint0, joint3 follows joint1
    q = jnp.array([0.4, -0.9])
    reduced = model.lock(["joint0"], q)
    assert reduced.joint_names == ("joint1", "joint3")
    assert reduced.topology.mimics == (None, 0)
    before, after = poses_of_all(model, q), poses_of_all(reduced, q[1:])
    for name, T in before.items():
        close(after[name], T)
    both = model.lock(["joint2", "joint0"], q)
    assert both.topology == reduced.topology
    with pytest.raises(ModelError, match=r"joint 'joint3': it mimics 'joint1'; lock that one instead"):
        model.lock(["joint3"], q)


def poses_of_all(model, q):
    """Poses at q of a machine of revolute joints that mimic, which Pinocchio sees as free ones."""
    tree = model.topology
    free = model.replace(
        topology=replace(tree, mimics=(None,) * tree.bodies),
        drives=jnp.zeros((tree.bodies, 13)),
    )
    k, b = np.asarray(model.mimic).T
    return poses(free, k * np.asarray(q)[tree.row_v] + b)


def attached(builder, names, parent, rng, kinds):
    for name, kind in zip(names, kinds, strict=True):
        builder.add_body(
            name, parent, trees.KINDS[kind], joint_name=f"{name}_joint", placement=trees.pose(rng),
            axis=trees.axis(kind, rng), pitch=0.1 if kind == "helical" else 0.0, armature=0.1, damping=rng.uniform(),
            **trees.body(rng),
        )  # fmt: skip
        parent = name


def test_attached_machines_equal_one_built_at_once():
    arm, tool = ["upper", "lower"], ["palm", "finger"]
    pose = trees.pose(np.random.default_rng(7))

    def assembled(*parts):
        builder, rng = ModelBuilder(), np.random.default_rng(1)
        attached(builder, arm, "world", rng, ["helical", "revolute"])
        builder.add_frame("flange", "upper", pose)
        if parts:
            inner = np.random.default_rng(5)
            builder.add_body("mount", "upper", joints.Fixed(), placement=pose)
            attached(builder, tool, "mount", inner, ["spherical", "prismatic"])
            builder.add_frame("eye", "mount", pose)
        attached(builder, ["camera"], "world", rng, ["universal"])
        return builder.build()

    gripper = ModelBuilder(gravity=(1.0, 2.0, 3.0))
    attached(gripper, tool, "world", np.random.default_rng(5), ["spherical", "prismatic"])
    gripper = gripper.add_frame("eye", "world", pose).build()
    found, right = assembled().attach(gripper, "flange"), assembled("tool")
    assert found.joint_names == right.joint_names
    assert (found.topology.parents, found.body_names) == (right.topology.parents, right.body_names)
    for name in (*edit.BODIES, *edit.ROWS, *edit.DEGREES, "gravity"):
        np.testing.assert_allclose(getattr(found, name), getattr(right, name), rtol=0, atol=1e-14, err_msg=name)
    tree, other = found.topology, right.topology
    for name in ("flange", "eye"):
        i, j = tree.frame_names.index(name), other.frame_names.index(name)
        assert tree.frame_bodies[i] == other.frame_bodies[j]
        close(found.frames[i], np.asarray(right.frames[j]))


def test_the_same_tool_twice_and_on_the_world():
    arm, tool = trees.build(["revolute", "revolute"], [-1, 0]), mimicking()
    both = arm.attach(tool, "body0", prefix="left_").attach(tool, "body0", prefix="right_").attach(tool, "world", "on_")
    assert both.topology.parents == (-1, 0, 0, 2, 3, 3, 0, 6, 7, 7, -1, 10, 11, 11)
    assert both.topology.mimics == (None,) * 2 + (None, None, 2, 3, None, None, 6, 7, None, None, 10, 11)
    assert both.joint_names[1:3] == ("joint1", "left_joint0")
    assert both.nv == 8


def test_a_floating_tool_is_locked_to_the_flange_with_its_base():
    rng = np.random.default_rng(4)
    arm, hand, finger = trees.body(rng), trees.body(rng), trees.body(rng)
    pose, axis = trees.pose(rng), trees.unit(rng)
    whole = ModelBuilder().add_body("arm", "world", joints.Revolute(), **arm)
    whole.add_body("hand", "arm", joints.Fixed(), placement=pose, **hand)
    whole = whole.add_body("finger", "hand", joints.Prismatic(), axis=axis, **finger).build()
    tool = ModelBuilder().add_body("hand", "world", joints.Free(), joint_name="root_joint", **hand)
    tool = tool.add_body("finger", "hand", joints.Prismatic(), axis=axis, **finger).build()
    robot = ModelBuilder().add_body("arm", "world", joints.Revolute(), **arm).add_frame("flange", "arm", pose).build()
    robot = robot.attach(tool, "flange")
    robot = robot.lock(["root_joint"], robot.neutral())
    assert robot.body_names == whole.body_names
    for name in (*edit.BODIES, *edit.ROWS):
        np.testing.assert_allclose(getattr(robot, name), getattr(whole, name), rtol=0, atol=1e-14, err_msg=name)


def test_a_payload_is_a_body_on_a_fixed_joint():
    rng = np.random.default_rng(6)
    model, pose, load = trees.build(["revolute", "spherical"], [-1, 0]), trees.pose(rng), trees.body(rng)
    model = model.add_frame("flange", "body1", pose)
    ten_numbers = ten.parameters(*(jnp.asarray(load[key]) for key in ("mass", "center", "inertia")))
    found = model.add_payload("flange", ten_numbers)
    at = pin.SE3(pose)
    right = at.act(pin.Inertia(load["mass"], load["center"], load["inertia"])).toDynamicParameters()
    close(found.inertias[1], np.asarray(model.inertias[1]) + right)
    np.testing.assert_array_equal(found.inertias[0], model.inertias[0])
    on_body = model.add_payload("body1", ten_numbers)
    close(on_body.inertias[1], np.asarray(model.inertias[1]) + np.asarray(ten_numbers))


LEAVES = ("placements", "screws", "inertias", "mimic", "frames", "gravity")


@pytest.mark.slow
@pytest.mark.parametrize("case", ["mimics", "groups and screws"])
def test_gradients_pass_through_lock(case):
    """By every number of the machine and by q, against differences."""
    if case == "mimics":
        model, names = mimicking(), ["joint0"]
    else:
        model = trees.build(["revolute", "helical", "planar", "universal"], [-1, 0, 1, 2])
        names = ["joint1", "joint2"]
    model = model.add_frame("tool", f"body{names[-1][-1]}", trees.pose(np.random.default_rng(3)))
    q, _, _ = trees.state(model)
    shapes = jax.eval_shape(lambda: model.lock(names, q))
    rng = np.random.default_rng(9)
    weights = {name: rng.normal(size=getattr(shapes, name).shape) for name in LEAVES}

    def value(model, q):
        reduced = model.lock(names, q)
        return sum(jnp.sum(jnp.tanh(getattr(reduced, name)) * w) for name, w in weights.items())

    value = jax.jit(value)
    slope, by_q = jax.jit(jax.grad(value, (0, 1)))(model, q)
    step = 1e-6
    for name in LEAVES:
        number = np.asarray(getattr(model, name))
        change = rng.normal(size=number.shape)
        if name in ("placements", "frames"):
            change[:, 3] = 0
        ends = [float(value(model.replace(**{name: number + s * change}), q)) for s in (step, -step)]
        found = float(np.sum(np.asarray(getattr(slope, name)) * change))
        assert abs(found - (ends[0] - ends[1]) / (2 * step)) < 1e-7, name
    change = rng.normal(size=model.nq)
    ends = [float(value(model, q + s * change)) for s in (step, -step)]
    assert abs(float(by_q @ change) - (ends[0] - ends[1]) / (2 * step)) < 1e-7


def test_locked_models_move_and_batch():
    model = trees.build(["revolute", "spherical", "prismatic"], [-1, 0, 1])
    q, v, tau = trees.state(model, batch=(3,))
    still = v[:, [0, -1]]

    def acceleration(q, v, tau):
        reduced = model.lock(["joint1"], q)
        return forward_dynamics(reduced, q[jnp.array([0, -1])], v, tau)

    found = jax.jit(jax.vmap(acceleration))(q, still, tau[:, [0, -1]])
    lock = jax.jit(lambda model, q: model.lock(["joint1"], q))
    for i in range(3):
        oracle = Twin(lock(model, q[i]))
        right = pin.aba(oracle.pin, oracle.data, *(np.asarray(x[i])[[0, -1]] for x in (q, v, tau)))
        close(found[i], right, 1e-11)


@pytest.mark.slow
@pytest.mark.float32
def test_float32_stays_float32():
    model = trees.build(["revolute", "prismatic"], [-1, 0], dtype=jnp.float32).add_frame("tool", "body1")
    model = model.add_payload("tool", [1.0, *[0.0] * 9]).attach(
        trees.build(["planar"], [-1], dtype=jnp.float32), "tool", "on_"
    )
    model = model.lock(["joint1"], model.neutral())
    assert {leaf.dtype for leaf in jax.tree.leaves(model)} == {jnp.dtype(jnp.float32)}


def test_every_number_has_its_place():
    numbers = set(inspect.signature(Model).parameters) - {"topology"}
    rare = {"loops", "contacts", "heights", "solids", "solid_poses", "grids"}
    assert numbers == {*edit.BODIES, *edit.ROWS, *edit.DEGREES, "frames", "gravity", *rare}


def robot():
    return trees.build(["revolute", "spherical"], [-1, 0]).add_frame("tool", "body1").add_frame("table", "world")


def alone(name, **options):
    return ModelBuilder().add_body(name, "world", joints.Revolute(), **options).build()


ERRORS = {
    "no such joint": (
        lambda m: m.lock(["elbow"], m.neutral()),
        "joint 'elbow': there is no such joint; joints are joint0, joint1",
    ),
    "one string": (
        lambda m: m.lock("joint0", m.neutral()),
        "lock: expected a list of names of joints, got the string 'joint0'",
    ),
    "all joints": (
        lambda m: m.lock(m.joint_names, m.neutral()),
        "expected at least one joint that is not locked",
    ),
    "q of another length": (lambda m: m.lock(["joint0"], jnp.zeros(4)), "q: expected shape (5,), got (4,)"),
    "q not finite": (lambda m: m.lock(["joint0"], jnp.full(5, jnp.nan)), "q: expected finite numbers, got [nan, nan"),
    "frame taken": (lambda m: m.add_frame("tool", "body0"), "frame 'tool': the name is taken"),
    "frame of a body's name": (lambda m: m.add_frame("body0", "body1"), "frame 'body0': the name is taken"),
    "frame named world": (lambda m: m.add_frame("world", "body1"), "frame 'world': the name is taken"),
    "no such frame": (
        lambda m: m.add_frame("tip", "hand"),
        "frame 'hand': there is no such frame; frames are world, body0, body1, tool, table",
    ),
    "placement": (
        lambda m: m.add_frame("tip", "tool", np.eye(3)),
        "frame 'tip': placement: expected shape (4, 4), got (3, 3)",
    ),
    "placement not finite": (
        lambda m: m.add_frame("tip", "tool", np.full((4, 4), np.inf)),
        "frame 'tip': placement: expected finite numbers",
    ),
    "other joint names": (
        lambda m: m.attach(alone("hand", joint_name="joint0"), "tool"),
        "attach: joint 'joint0': the name is taken; choose another prefix",
    ),
    "other frame names": (lambda m: m.attach(alone("tool"), "tool"), "attach: frame 'tool': the name is taken"),
    "other dtype": (
        lambda m: m.attach(trees.build(["revolute"], [-1], dtype=jnp.float32), "tool", "on_"),
        "attach: expected a model of float64, got float32; convert one",
    ),
    "attach to nothing": (lambda m: m.attach(m, "hand", "on_"), "frame 'hand': there is no such frame"),
    "payload on the world": (
        lambda m: m.add_payload("table", np.ones(10)),
        "payload on frame 'table': expected a frame on a body, this one is fixed to the world",
    ),
    "payload too short": (
        lambda m: m.add_payload("tool", np.ones(9)),
        "payload on frame 'tool': parameters: expected shape (10,), got (9,)",
    ),
    "a joint that is not there, and a configuration that does not fit": (
        lambda m: m.lock(["elb"], jnp.zeros(77)),
        "joint 'elb': there is no such joint",
    ),
    "payload that cannot be": (
        lambda m: m.add_payload("tool", [-2.0, *[0.0] * 9]),
        "payload on frame 'tool' has the negative mass -2 kg",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_name_what_is_wrong(case):
    do, message = ERRORS[case]
    with pytest.raises(ModelError) as error:
        do(robot())
    assert str(error.value).startswith(message)


def test_only_a_model_is_attached(without_import_hook):
    with pytest.raises(ModelError, match=r"attach: expected an lgsim.Model, got str"):
        robot().attach("gripper", "tool")


def test_replacing_takes_single_numbers_and_refuses_other_shapes():
    """One number for all degrees of freedom, in the model's dtype; what has no such meaning is an error."""
    model = trees.build(["revolute", "helical", "spherical"], [-1, 0, 1], armature=True, dtype=jnp.float32)
    new = model.replace(friction=0.0, damping=2, armature=np.float64(0.5), pitches=0.1, gravity=[0, 0, -1])
    for name, value in (("friction", 0), ("damping", 2), ("armature", 0.5)):
        np.testing.assert_array_equal(getattr(new, name), np.full(model.nv, value))
    np.testing.assert_array_equal(new.pitches, np.full(5, np.float32(0.1)))
    np.testing.assert_array_equal(new.gravity, [0, 0, -1])
    assert {leaf.dtype for leaf in jax.tree.leaves(new)} == {jnp.dtype(jnp.float32)}
    np.testing.assert_array_equal(new.axes, model.axes)
    slope = jax.grad(lambda d: jnp.sum(model.replace(damping=d).damping * jnp.arange(5.0, dtype=jnp.float32)))
    assert slope(jnp.float32(1.0)) == 10
    assert model.replace(inertias=jnp.stack([model.inertias] * 2)).inertias.shape == (2, 3, 10)
    for name, value, message in (
        ("friction", np.zeros(3), r"friction: expected a number or shape \(5,\), got \(3,\)"),
        ("friction", np.zeros((5, 1)), r"friction: expected a number or shape \(5,\), got \(5, 1\)"),
        ("gravity", 0.0, r"gravity: expected shape \(3,\), got \(\)"),
        ("inertias", np.zeros((2, 10)), r"inertias: expected shape \(3, 10\), got \(2, 10\)"),
        ("axes", np.zeros(3), r"axes: expected shape \(5, 3\), got \(3,\)"),
        ("color", 1.0, r"replace: there is no color; a model has placements, screws, .*, damping"),
    ):
        with pytest.raises(ModelError, match=message):
            model.replace(**{name: value})
