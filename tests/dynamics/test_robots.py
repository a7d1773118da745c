"""Real robots in every algorithm that Pinocchio and MuJoCo have.

A small one that flies runs always. With `--exhaustive` (`make exhaustive`) a robot of every family of the package
runs. The four-legged ones are one tree and share its compiled programs; the others run operation by operation: a tree
takes minutes to compile in all algorithms, and what compiling changes is round-off.
"""

from contextlib import nullcontext
from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.formats import load_urdf
from lgsim.lie import se3
from tests.dynamics.mujoco_peer import MuJoCo
from tests.dynamics.pinocchio_peer import Pinocchio
from tests.dynamics.quantities import quantities
from tests.formats.robots import FILES, FOLDER
from tests.multibody.trees import state

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

STATES = 3
FLOATING = (
    "a1 alex alexander anymal b1 bolt borinot centauro g1 go1 go2 hector hextilt human hyq icub iris laikago quadruped"
    " romeo simple_humanoid solo talos"
).split()  # fmt: skip
ALWAYS = ["borinot"]
COMPILED = "a1 anymal_b anymal_c b1 go1 go2 hyq laikago solo".split()
FAMILIES = sorted({name.split("/")[0] for name in FILES})


def robot(family):
    """The family's file with the shortest name; of Solo the one with twelve motors."""
    names = [name for name in FILES if name.startswith(family + "/") and ("solo" not in name or "12" in name)]
    return min(names, key=lambda name: (len(name.split("/")[-1]), name))


def starts(family, words):
    return any(family == word or family.startswith(word + "_") for word in words)


CASES = [
    pytest.param(
        robot(family),
        starts(family, FLOATING),
        marks=() if starts(family, ALWAYS) else pytest.mark.exhaustive,
        id=family.removesuffix("_description"),
    )
    for family in FAMILIES
]


def anonymous(model):
    """(the machine without names, with one frame on its last body; the frame's name): trees that are the same share
    a compiled program."""
    tree = model.topology
    last = tree.bodies - 1
    held = [i for i, body in enumerate(tree.frame_bodies) if body == last]
    T = model.frames[held[-1]] if held else jnp.eye(4)
    numbers = [str(i) for i in range(tree.bodies)]
    topology = replace(
        tree, joint_names=tuple(numbers), body_names=tuple(numbers), frame_names=("tool",), frame_bodies=(last,)
    )
    return model.replace(topology=topology, frames=T[None]), tree.frame_names[held[-1]] if held else tree.body_names[-1]


def bound(name, condition):
    solves = name.startswith("forward dynamics") or name in ("inverse mass", "solve")
    return max(1e-12, 1e-15 * condition) if solves else 1e-12


@cache
def solved(name, floating):
    """(the model, its states and wrenches, all quantities, and the name of the frame that has a Jacobian)."""
    named = load_urdf(FOLDER / name, floating, physical="report")
    model, tool = anonymous(named)
    q, v, x = (np.asarray(y) for y in state(model, batch=(STATES,)))
    wrenches = np.random.default_rng(5).normal(size=(STATES, model.topology.bodies, 6))
    args = (*(jnp.asarray(y) for y in (q, v, x, wrenches)), model.topology.bodies)
    with nullcontext() if starts(name.split("/")[0], COMPILED) else jax.disable_jit():
        ours = {key: np.asarray(y) for key, y in quantities(model, *args).items()}
    C = ours["Coriolis"]  # not unique, its forces and its symmetric part are
    ours |= {"Coriolis forces": np.einsum("sij,sj->si", C, v), "mass matrix rate": C + C.mT}
    return named, (q, v, x, wrenches), ours, tool


RATES = {"jacobian rate": "jacobian", "mass matrix rate": "mass matrix"}


def size(key, right):
    """The largest entry of a quantity, of a rate (at speeds of order 1) also of what it is the rate of; 1 for zero."""
    return max(np.abs(right[name]).max() for name in {key, RATES.get(key, key)}) or 1.0


def compare(ours, theirs, at, record):
    """All of the peer's quantities at all states; records the largest errors as shares of their sizes."""
    largest = {}
    for i, here in enumerate(zip(*at, strict=True)):
        right = theirs.quantities(*here)
        condition = np.linalg.cond(right["mass matrix"])
        for key, wanted in right.items():
            error = np.abs(ours[key][i] - wanted).max() / size(key, right)
            share = error / bound(key, condition)
            if not share <= largest.get(key, (-1,))[0]:  # also where it is not a number, which stays
                largest[key] = share, error, condition
    for key, (share, error, condition) in largest.items():
        record(key, f"{error:.2e} {condition:.1e} {share:.2e}")
    wrong = {key: (error, condition) for key, (share, error, condition) in largest.items() if not share <= 1}
    assert not wrong
    return set(largest)


def test_thirty_robots():
    assert len(CASES) >= 30
    assert {floating for _, floating in (case.values for case in CASES)} == {False, True}


@pytest.mark.parametrize(("name", "floating"), CASES)
def test_equals_pinocchio(name, floating, record_property):
    named, at, ours, tool = solved(name, floating)
    compared = compare(ours, Pinocchio(named, FOLDER / name, floating, tool), at, record_property)
    assert compared == set(ours) - {"Coriolis"}


@pytest.mark.parametrize(("name", "floating"), CASES)
def test_equals_mujoco(name, floating, record_property):
    """Machines without joints that mimic, which MuJoCo holds together by constraints."""
    model, at, ours, _ = solved(name, floating)
    if model.topology.has_mimic:
        pytest.skip("joints mimic")
    count = model.topology.bodies
    ours = ours | {key: ours[key][:, :count] for key in ("poses", "twists")}
    # the frame is fixed to the last body
    back = se3.Ad(jnp.asarray(anonymous(model)[0].frames[0]))
    ours["body jacobian"] = np.asarray(back) @ ours["jacobian"]
    compare(ours, MuJoCo(model), at, record_property)
