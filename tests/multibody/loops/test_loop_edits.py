"""Machines with loops that are changed, kept in records, and given other numbers."""

import json
import pickle
import re
from dataclasses import replace

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.lie import se3
from lgsim.multibody import ModelBuilder, ModelError, joints
from lgsim.multibody.loops import Coupling, JointTie, Loop, Rod
from lgsim.multibody.serialization import fingerprint, from_record, to_record
from lgsim.support.fingerprint import fingerprint as fingerprint_of_anything
from tests.multibody import loop_machines, trees
from tests.multibody.loop_machines import every_kind, link, machine, shifted

GRIPPER = (
    Loop("left_pin", "tool", "left_tip", JointTie(joints.Spherical())),
    Loop("left_rod", "left_finger", "left_thumb", Rod()),
    Loop("left_gear", "left_finger", "left_thumb", Coupling(1)),
)
"""The loops of ``gripper()`` on the frame "tool", by the prefix "left_"."""


def gripper():
    builder = ModelBuilder()
    for i, name in enumerate(("finger", "thumb")):
        builder.add_body(name, "world", joints.Revolute(), placement=shifted(0, 0.1 * i), **link())
    builder.add_frame("tip", "thumb", shifted(0.3)).add_loop("pin", "world", "tip", joints.Spherical())
    return builder.add_rod("rod", "finger", "thumb", 0.2).add_coupling("gear", "finger", "thumb", [0.4, 0.5]).build()


def test_locking_a_joint_of_a_ring_equals_building_it_without():
    model = machine("ring_weld")
    q = loop_machines.states("ring_weld")[0][0]
    builder = ModelBuilder()
    data = loop_machines.DATA["ring_weld"]
    for i, body in enumerate(data["bodies"]):
        placement, fixed = np.array(body["placement"]), body["name"] in ("b0", "b3", "b6")
        if fixed:
            placement = placement @ np.asarray(se3.exp(jnp.array([0, 0, 0, 0, 0, q[i]])))
        builder.add_body(
            body["name"], body["parent"], joints.Fixed() if fixed else joints.Revolute(), placement=placement,
            axis=None if fixed else body["axis"], mass=body["mass"], center=body["center"], inertia=body["inertia"],
        )  # fmt: skip
    builder.add_frame("loop0.a", "world", data["loops"][0]["A"]).add_frame("loop0.b", "b6", data["loops"][0]["B"])
    expected = builder.add_loop("loop0", "loop0.a", "loop0.b", joints.Fixed()).build()
    found = model.lock(["b0", "b3", "b6"], q)
    assert found.topology.loops == expected.topology.loops == model.topology.loops
    places = [tree.frame_place("loop0.b") for tree in (found.topology, expected.topology)]
    assert found.topology.body_names == ("b1", "b2", "b4", "b5") and places[0][0] == places[1][0] == 3
    for name in ("placements", "inertias", "screws", "drives"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-14)
    for model_, place in zip((found, expected), places, strict=True):
        np.testing.assert_allclose(model_.frames[place[1]], expected.frames[places[1][1]], atol=1e-14)


def test_an_end_on_a_locked_body_is_on_the_body_that_carries_it():
    model = every_kind().lock(["hub"], jnp.zeros(5))
    assert model.loop_names == ("hinge", "rod", "gear")
    np.testing.assert_array_equal(model.loops, [0.7, 0.1, 0.2, 0.3])
    base = ModelBuilder().add_body("arm", "world", joints.Revolute(), **link())
    base.add_body("hand", "arm", joints.Revolute(), placement=shifted(0.5), **link())
    base.add_body("door", "world", joints.Revolute(), placement=shifted(1.0), **link())
    found = base.add_loop("grip", "hand", "door", joints.Spherical()).build().lock(["hand"], jnp.array([0.1, 0.3, 0.2]))
    assert found.topology.loops == (Loop("grip", "hand", "door", JointTie(joints.Spherical())),)
    assert found.topology.frame_place("hand") == (0, 0)


def test_an_attached_machine_brings_its_loops():
    arm = trees.build(["revolute", "revolute"], [-1, 0]).add_frame("tool", "body0", shifted(0.2, 0.1))
    both = arm.attach(gripper(), "tool", "left_")
    assert both.topology.loops == GRIPPER
    np.testing.assert_array_equal(both.loops, [0.2, 0.4, 0.5])
    assert both.topology.frame_place("left_tip")[0] == both.body_names.index("left_thumb")
    twice = both.attach(gripper(), "body1", "right_").add_payload("left_tip", [1.0, *[0.0] * 9])
    assert twice.loop_names == ("left_pin", "left_rod", "left_gear", "right_pin", "right_rod", "right_gear")
    assert twice.topology.loops[3].a == "body1"
    np.testing.assert_array_equal(twice.loops, [0.2, 0.4, 0.5] * 2)
    np.testing.assert_array_equal(twice.loops[twice.loop_slices["right_gear"]], [0.4, 0.5])
    assert arm.attach(machine("four_bar"), "tool", "bar_").loops is None
    assert gripper().attach(arm, "world", "arm_").topology.loops == gripper().topology.loops


def test_frames_are_added_without_harm():
    model = every_kind().add_frame("more", "tip").add_frame("table", "world")
    assert model.topology.loops == every_kind().topology.loops
    assert model.topology.frame_place("tip") == (2, 0)


ERRORS = {
    "a coupled joint": (
        lambda: every_kind().lock(["guide"], jnp.zeros(5)),
        "joint 'guide': it cannot be locked: the loop 'gear' couples it with 'joint0'",
    ),
    "a coupled joint, the first": (
        lambda: every_kind().lock(["joint0"], jnp.zeros(5)),
        "joint 'joint0': it cannot be locked: the loop 'gear' couples it with 'guide'",
    ),
    "a ring": (
        lambda: machine("ring_weld").attach(machine("four_bar"), "b2", "bar.").lock(
            ["bar.link2", "bar.link0", "bar.link1", "b0"], jnp.zeros(10)
        ),
        "lock: the loop 'bar.loop0' would have both ends on one body: bar.link0, bar.link1, bar.link2 are locked; lock"
        " fewer of them",
    ),
    "a loop's name": (
        lambda: every_kind().attach(
            ModelBuilder().add_body("a", "world", joints.Revolute()).add_body("b", "a", joints.Revolute())
            .add_rod("rod", "world", "b", 1.0).build(), "world"
        ),
        "attach: loop 'rod': the name is taken; choose another prefix",
    ),
    "numbers of no loop": (
        lambda: machine("four_bar").replace(loops=[1.0]),
        "loops: expected None, the model has no rods and no couplings",
    ),
    "shape of numbers": (lambda: every_kind().replace(loops=[1.0]), "loops: expected shape (4,), got (1,)"),
    "a rod without length": (
        lambda: every_kind().replace(loops=[0.0, 1.0, 1.0, 1.0]),
        "loop 'rod': length: expected a positive number, m, got 0",
    ),
    "a rod among many": (
        lambda: every_kind().replace(loops=[[1.0] * 4, [-1.0] * 4]),
        "loop 'rod': length: expected a positive number, m, got -1",
    ),
    "a coefficient": (
        lambda: every_kind().replace(loops=[1.0, 1.0, jnp.nan, 1.0]),
        "loops, c1 of loop 'gear': expected finite numbers, got nan",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case):
    change, message = ERRORS[case]
    with pytest.raises(ModelError, match=re.escape(message)):
        change()


def test_numbers_of_loops_are_leaves():
    model = every_kind()
    assert len(jax.tree.leaves(model)) == len(jax.tree.leaves(machine("four_bar"))) + 1
    longer = jax.jit(lambda x: model.replace(loops=model.loops.at[model.loop_slices["rod"]].set(x)))(0.9)
    np.testing.assert_array_equal(longer.loops, [0.9, 0.1, 0.2, 0.3])
    many = jax.vmap(lambda x: model.replace(loops=x).loops)(jnp.ones((5, 4)))
    assert many.shape == (5, 4)


@pytest.mark.slow
@pytest.mark.float32
def test_float32_stays_float32():
    model = jax.tree.map(lambda x: x.astype(jnp.float32), every_kind())
    tool = jax.tree.map(lambda x: x.astype(jnp.float32), gripper())
    both = model.attach(tool, "slide", "on.").lock(["hub"], jnp.zeros(7, jnp.float32))
    assert {leaf.dtype for leaf in jax.tree.leaves(both)} == {jnp.dtype(jnp.float32)} and both.loops.shape == (7,)


@pytest.mark.parametrize("make", [every_kind, gripper, lambda: machine("delta")])
def test_records_and_pickles(make):
    model = make()
    text, numbers = to_record(model)
    again = from_record(json.dumps(json.loads(text)), numbers)
    for other in (again, pickle.loads(pickle.dumps(model))):
        assert other.topology == model.topology
        chex.assert_trees_all_equal(other, model)
        assert fingerprint(other) == fingerprint(model)
        assert fingerprint_of_anything(other) == fingerprint_of_anything(model)
    assert ("loops" in numbers) == (model.loops is not None)


def test_fingerprints_tell_loops_apart():
    model = every_kind()
    other = replace(model, loops=model.loops.at[0].set(0.8))
    named = replace(model, topology=replace(model.topology, loops=model.topology.loops[::-1]))
    for kind in (fingerprint, fingerprint_of_anything):
        assert len({kind(x) for x in (model, other, named)}) == 3


@pytest.mark.parametrize(("change", "message"), [
    (lambda plain: plain["loops"][0]["kind"].update(kind="Chain"), "KeyError: 'Chain'"),
    (lambda plain: plain["loops"][1].pop("a"), "TypeError"),
])  # fmt: skip
def test_broken_records(change, message):
    text, numbers = to_record(every_kind())
    plain = json.loads(text)
    change(plain)
    with pytest.raises(ModelError, match="record: expected what to_record wrote, got " + message):
        from_record(json.dumps(plain), numbers)
    with pytest.raises(ModelError, match="record: expected what to_record wrote, got KeyError: 'loops'"):
        from_record(text, {name: x for name, x in numbers.items() if name != "loops"})


def test_reprs_tell_loops():
    text = repr(every_kind().topology)
    assert "Loop(name='rod', a='slide', b='body1', kind=Rod())" in text
    assert "kind=JointTie(joint=Revolute())" in text and "kind=Coupling(degree=2, turns=False)" in text
