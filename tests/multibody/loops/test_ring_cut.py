"""Rings of bodies cut elsewhere: the same machine in other coordinates."""

import re
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.dynamics.energy import kinetic_energy
from lgsim.dynamics.forward_dynamics import forward_dynamics
from lgsim.dynamics.kinematics import forward_kinematics, frame_twists
from lgsim.lie import se3
from lgsim.multibody import ModelBuilder, ModelError, joints
from lgsim.multibody.joint import Row
from lgsim.multibody.loops.closing_joints import CLOSING
from tests.dynamics.machines import close, lanes
from tests.multibody import loop_machines, trees
from tests.multibody.loop_machines import every_kind, link, machine, shifted

CUTS = {
    "four_bar at the ground": ("four_bar", "link0", None),
    "four_bar at the coupler": ("four_bar", "link1", None),
    "four_bar beside the loop": ("four_bar", "link2", None),
    "ring_hinge at the ground": ("ring_hinge", "b0", None),
    "ring_hinge inside": ("ring_hinge", "b3", None),
    "ring_hinge beside the loop": ("ring_hinge", "b5", None),
    "ring_weld at the ground": ("ring_weld", "b0", None),
    "ring_weld inside": ("ring_weld", "b3", None),
    "ring_weld beside the loop": ("ring_weld", "b6", None),
    "delta at an arm": ("delta", "arm0", "loop0"),
    "delta at a forearm": ("delta", "cross1r", "loop3"),
    "delta beside the platform": ("delta", "rod2l", "loop4"),
}


def torque_as_wrenches(model, cut, joint, tau):
    """The torque (s,) of a hinge of the old machine as wrenches (s, n, 6) on bodies of the new one, in their frames."""
    tree, at = model.topology, model.joint_names.index(joint)
    axis = np.asarray(model.axes[tree.row_starts[at]])
    moments = {tree.body_names[at]: axis}
    if tree.parents[at] >= 0:
        moments[tree.body_names[tree.parents[at]]] = -np.asarray(model.placements[at])[:3, :3] @ axis
    out = np.zeros((len(tau), len(cut.body_names), 6))
    for body, moment in moments.items():
        if body in cut.body_names:  # else it is welded to the world
            before = f"{body}.uncut"
            frames = dict(zip(cut.topology.frame_names, np.asarray(cut.frames), strict=True))
            R = frames[before][:3, :3] if before in frames else np.eye(3)
            out[:, cut.body_names.index(body), 3:] = tau[:, None] * (R @ moment)
    return out


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    lanes(
        ["four_bar at the coupler", "ring_hinge inside", "ring_weld inside", "delta at an arm"],
        [name for name in CUTS if name not in ("four_bar at the coupler", "ring_hinge inside", "ring_weld inside",
                                               "delta at an arm")],
    ),
)  # fmt: skip
def test_accelerations_are_those_of_the_oracle(case):
    name, joint, loop = CUTS[case]
    model = machine(name)
    cut = model.cut(joint, loop)
    q, v, tau, a = loop_machines.states(name)
    new_q, new_v = jax.jit(jax.vmap(lambda q, v: model.cut_state(joint, q, v, loop)))(q, v)
    same = [other for other in cut.joint_names if other in model.joint_names]
    assert set(model.joint_names) - set(same) == {joint}
    old, new = (np.concatenate([np.r_[of.v_slices[other]] for other in same]) for of in (model, cut))
    torques = np.zeros((len(q), cut.nv))
    torques[:, new] = tau[:, old]
    wrenches = torque_as_wrenches(model, cut, joint, tau[:, model.v_slices[joint].start])
    found = forward_dynamics(cut, new_q, new_v, jnp.asarray(torques), jnp.asarray(wrenches))
    close(np.asarray(found)[:, new], a[:, old], 1e-9)
    assert cut.topology.loop_rows == model.topology.loop_rows + cut.nv - model.nv


@pytest.mark.slow
def test_a_motion_is_that_of_the_machine_cut_elsewhere():
    model = machine("four_bar")
    cut = model.cut("link1")
    q, v, _, _ = loop_machines.states("four_bar")
    q, v = jnp.asarray(q[0]), jnp.asarray(v[0])
    steps = {"dt": 5e-4, "steps": 400, "save_every": 40}
    run = lgsim.rollout(model, q, v, **steps)
    other = lgsim.rollout(cut, *model.cut_state("link1", q, v), **steps)
    moved, rates = jax.vmap(lambda q, v: model.cut_state("link1", q, v))(run.q, run.v)
    close(other.q, moved, 1e-9)
    close(other.v, rates, 1e-9)
    assert float(jnp.ptp(run.q[:, 0])) > 0.02


PIN = joints.Revolute()
KINDS = {
    "revolute": joints.Revolute(), "spherical": joints.Spherical(), "cylindrical": joints.Cylindrical(),
    "universal": joints.Universal(), "helical": joints.Helical(), "planar": joints.Planar(),
    "slide": joints.Prismatic(), "shift": joints.Translational(),
    "compound": joints.Compound((Row(True, 2), Row(False, 0), Row(True, 1), Row(False, 1))), "last": joints.Revolute(),
}  # fmt: skip
"""The joints of a ring, one after another: the first one is cut, the others are turned round."""


def ring(closing, swapped):
    """(a machine with a ring of all kinds of joints and a branch, a state in which it is closed)."""

    def builder():
        made, parent, draw = ModelBuilder(), "base", np.random.default_rng(5)
        made.add_body("base", "world", joints.Free(), **trees.body(draw))
        for name, kind in KINDS.items():
            made.add_body(
                name, parent, kind, joint_name=f"{name}_joint", placement=trees.pose(draw),
                axis=trees.axis(type(kind).__name__.lower(), draw), pitch=0.1 if name == "helical" else 0.0,
                **trees.body(draw),
            )  # fmt: skip
            parent = name
        made.add_body("branch", "universal", joints.Revolute(), placement=trees.pose(draw), **trees.body(draw))
        made.add_frame("tool", "planar", trees.pose(draw)).add_frame("plate", "base", trees.pose(draw))
        return made

    tree = builder().build()
    q = tree.random(jax.random.key(2))
    poses = dict(zip(tree.frame_names, np.asarray(forward_kinematics(tree, q)), strict=True))
    between = np.asarray(se3.exp(jnp.asarray(motion(closing, np.random.default_rng(3)))))
    # the frame on the last body such that the loop is closed
    pose = np.linalg.inv(poses["last"]) @ poses["plate"] @ (np.linalg.inv(between) if swapped else between)
    a, b = ("end", "plate") if swapped else ("plate", "end")
    made = builder().add_frame("end", "last", pose).add_loop("loop", a, b, closing)
    made.add_loop("other", "tool", "branch", joints.Spherical()).add_rod("rod", "helical", "plate", 0.5)
    return made.build(), q


def motion(kind, rng):
    """A motion (6,) that a joint lets through."""
    u = np.zeros(6)
    for row in kind.rows:
        u[3 * row.turns + row.axis] = rng.normal()
    return u


def closed_velocity(model, q):
    """A velocity that keeps the loop named "loop" closed, by the derivative of the ends' relative pose."""
    tie = model.topology.loops[0]
    names = list(model.frame_names)

    def relative(q):
        poses = forward_kinematics(model, q)
        return se3.compose(se3.inverse(poses[names.index(tie.a)]), poses[names.index(tie.b)])

    def twist(v):
        T, rate = jax.jvp(relative, (q,), (model.rate(q, v),))
        return se3.vee(se3.inverse(T) @ rate)

    rows = np.array([3 * turns + axis for turns, axis in tie.kind.forbidden])
    J = np.asarray(jax.jit(jax.vmap(twist))(jnp.eye(model.nv))).T[rows]
    v = np.random.default_rng(8).normal(size=model.nv)
    return jnp.asarray(v - np.linalg.pinv(J) @ (J @ v))


TURNS = [(kind.__name__, swapped) for swapped in (False, True) for kind in CLOSING]
OFTEN = [("Cylindrical", False), ("Fixed", True)]


@pytest.mark.slow
@pytest.mark.parametrize("case", lanes(OFTEN, [case for case in TURNS if case not in OFTEN]))
def test_every_joint_is_turned_round(case):
    """Poses, velocities and energy of all frames, where each kind of joint is turned round."""
    kind, swapped = getattr(joints, case[0]), case[1]
    model, q = ring(kind(), swapped)
    v = closed_velocity(model, q)
    cut = model.cut("revolute_joint", "loop")
    new_q, new_v = model.cut_state("revolute_joint", q, v, "loop")
    names = [n for n in model.frame_names if n in cut.frame_names]
    moved = list(KINDS)[:-1] if kind is joints.Fixed else list(KINDS)
    again = [f"{name}.uncut" if name in moved else name for name in names]
    assert set(model.frame_names) == set(names)
    for values in (forward_kinematics, frame_twists):
        states = ((q,), (new_q,)) if values is forward_kinematics else ((q, v), (new_q, new_v))
        old, new = (np.asarray(values(m, *state)) for m, state in zip((model, cut), states, strict=True))
        close(
            new[[cut.frame_names.index(name) for name in again]],
            old[[model.frame_names.index(name) for name in names]], 1e-12,
        )  # fmt: skip
    close(kinetic_energy(cut, new_q, new_v), kinetic_energy(model, q, v), 1e-12)


@pytest.mark.slow
def test_accelerations_with_joints_that_are_turned_round():
    model, q = ring(joints.Spherical(), True)
    model = replace(model, topology=replace(model.topology, loops=model.topology.loops[:1]), loops=None)
    v = closed_velocity(model, q)
    cut = model.cut("revolute_joint")
    tau = np.random.default_rng(4).normal(size=model.nv)
    tau[6:] = 0
    torques = np.zeros(cut.nv)
    torques[:6] = tau[:6]
    a = forward_dynamics(model, q, v, jnp.asarray(tau))
    state = partial(model.cut_state, "revolute_joint")
    (new_q, new_v), (_, rate) = jax.jit(lambda: jax.jvp(state, (q, v), (model.rate(q, v), a)))()
    close(forward_dynamics(cut, new_q, new_v, jnp.asarray(torques)), rate, 1e-9)


def test_a_ring_cut_and_cut_back_has_its_coordinates_again():
    model = machine("ring_hinge")
    q, v, _, _ = loop_machines.states("ring_hinge")
    cut = model.cut("b2")
    assert cut.loop_names == ("b2",) and cut.joint_names == ("b0", "b1", "loop0", "b5", "b4", "b3")
    assert cut.body_names == ("b0", "b1", "b5", "b4", "b3", "b2")
    again = cut.cut("loop0")
    assert again.loop_names == ("loop0",) and set(again.joint_names) == set(model.joint_names)
    new = again_q, again_v = cut.cut_state("loop0", *model.cut_state("b2", q[0], v[0]))
    for name in model.joint_names:
        close(again_q[again.q_slices[name]], q[0][model.q_slices[name]], 1e-12)
        close(again_v[again.v_slices[name]], v[0][model.v_slices[name]], 1e-12)
    assert [x.shape for x in new] == [(6,), (6,)]
    rest, still = model.cut_state("b2", q[0])
    close(rest, model.cut_state("b2", q[0], v[0])[0])
    np.testing.assert_array_equal(still, 0)


def test_frames_keep_their_places_and_couplings_their_joints():
    model = every_kind()
    cut = model.cut("joint1")
    assert cut.loop_names == ("joint1", "rod", "gear")
    hinge, rod, gear = cut.topology.loops
    assert (hinge.a, hinge.b) == ("joint1.a", "joint1.b") and hinge.kind == model.topology.loops[0].kind
    assert (rod.a, rod.b) == ("slide", "body1.uncut") and gear == model.topology.loops[2]
    np.testing.assert_array_equal(cut.loops, model.loops)
    twice = cut.cut("hinge")
    assert "body1.uncut" in twice.frame_names and "joint1.a" in twice.frame_names
    assert twice.cut("joint1").topology.loops[0].a == "joint1.a.2"


def test_derivatives_by_every_number():
    model = machine("four_bar")
    names = ("placements", "screws", "inertias", "frames")
    rng = np.random.default_rng(1)
    shapes = jax.eval_shape(lambda m: m.cut("link0"), model)
    weights = {name: rng.normal(size=getattr(shapes, name).shape) for name in names}

    @jax.jit
    def value(model):
        cut = model.cut("link0")
        return sum(jnp.sum(jnp.tanh(getattr(cut, name)) * w) for name, w in weights.items())

    slope = jax.jit(jax.grad(value))(model)
    for name in names:
        number = np.asarray(getattr(model, name))
        change = rng.normal(size=number.shape)
        if name in ("placements", "frames"):
            change[:, :, :3] = change[:, 3] = 0  # poses stay poses
        ends = [float(value(model.replace(**{name: number + s * change}))) for s in (1e-6, -1e-6)]
        found = float(np.sum(np.asarray(getattr(slope, name)) * change))
        assert abs(found - (ends[0] - ends[1]) / 2e-6) < 1e-7, name


def chain(*kinds, closing=PIN, **numbers):
    """A chain of bodies of the world, closed by a joint at its end."""
    builder, parent = ModelBuilder(), "world"
    for i, kind in enumerate(kinds):
        builder.add_body(f"body{i}", parent, kind, joint_name=f"joint{i}", placement=shifted(0.4), **link(), **numbers)
        parent = f"body{i}"
    return builder.add_frame("end", parent, shifted(0.4)).add_loop("loop", "world", "end", closing)


TWO = (joints.Revolute(), joints.Revolute())

ERRORS = {
    "no such joint": (lambda: every_kind().cut("elbow"), "cut: expected the name of a joint, got 'elbow'"),
    "no such loop": (lambda: every_kind().cut("joint1", "chain"), "cut: expected the name of a loop, got 'chain'"),
    "no ring": (
        lambda: every_kind().cut("hub"),
        "cut: joint 'hub' is in no kinematic loop that a joint closes; the loops are ['hinge', 'rod', 'gear']",
    ),
    "no ring of that loop": (
        lambda: every_kind().cut("joint1", "rod"),
        "cut: joint 'joint1' is in no kinematic loop that a joint 'rod' closes",
    ),
    "several rings": (
        lambda: machine("delta").cut("arm0"),
        "cut: joint 'arm0' is in the loops ['loop0', 'loop1']; choose one: loop=...",
    ),
    "a coupled joint": (
        lambda: every_kind().cut("joint0"), "cut: joint 'joint0': the loop 'gear' couples it with another joint"
    ),
    "a joint that closes no loop": (
        lambda: chain(joints.Universal(), *TWO).build().cut("joint0"),
        "loop 'joint0': joint: expected one of Spherical, Revolute",
    ),
    "a free joint": (lambda: machine("delta").cut("platform", "loop0"), "a Free joint has no constraints"),
    "a damper": (
        lambda: chain(*TWO, damping=0.1, armature=0.2).build().cut("joint0"),
        "cut: joint 'joint0' has armature, damping, which a loop cannot have; cut another joint",
    ),
    "a ball with a damper": (
        lambda: chain(joints.Revolute(), joints.Spherical(), armature=0.0)
        .add_body("body2", "body0", joints.Spherical(), damping=[0.1, 0.1, 0.2], **link())
        .add_loop("other", "world", "body2", joints.Spherical()).build().cut("joint0", "other"),
        "cut: joint 'body2' would be reversed, parent for child, but has damping about the axes of its child",
    ),
    "a joint that mimics": (
        lambda: chain(*TWO).add_body("body2", "world", joints.Revolute(), mimic=("joint1", 2.0, 0.0), **link())
        .build().cut("joint1"),
        "cut: joint 'joint1': 'body2' mimics 'joint1'",
    ),
    "a joint's name": (
        lambda: chain(*TWO).add_body("loop", "world", joints.Revolute(), **link()).build().cut("joint1"),
        "cut: the name of the loop 'loop' is taken by a joint",
    ),
    "a loop's name": (
        lambda: chain(*TWO).add_rod("joint1", "world", "body1", 0.5).build().cut("joint1"),
        "cut: the name of the joint 'joint1' is taken by a loop",
    ),
    "one body": (
        lambda: chain(*TWO, closing=joints.Fixed()).add_loop("pin", "body1", "world", joints.Revolute()).build()
        .cut("joint0", "loop"),
        "lock: the loop 'pin' would have both ends on one body",
    ),
    "q": (lambda: machine("four_bar").cut_state("link0", jnp.zeros(2)), "q: expected shape (3,), got (2,)"),
    "v": (lambda: machine("four_bar").cut_state("link0", jnp.zeros(3), jnp.zeros(2)), "v: expected shape (3,)"),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case):
    change, message = ERRORS[case]
    with pytest.raises(ModelError, match=re.escape(message)):
        change()


@pytest.mark.slow
@pytest.mark.float32
def test_float32_stays_float32():
    model = jax.tree.map(lambda x: x.astype(jnp.float32), machine("ring_weld"))
    assert {leaf.dtype for leaf in jax.tree.leaves(model.cut("b2"))} == {jnp.dtype(jnp.float32)}
    state = model.cut_state("b2", jnp.zeros(7, jnp.float32))
    assert {x.dtype for x in state} == {jnp.dtype(jnp.float32)}


def test_contacts_stay_where_they_are():
    builder = chain(*TWO).add_contact("foot", "body1", lgsim.contacts.sphere(0.1), stiffness=1e4)
    model = builder.add_contact("tip", "end", lgsim.contacts.sphere(0.2), stiffness=1e4).build()
    cut = model.cut("joint0")
    assert [contact.frame for contact in cut.topology.contacts] == ["body1.uncut", "end"]
    np.testing.assert_array_equal(cut.contacts, model.contacts)
