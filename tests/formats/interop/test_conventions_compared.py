"""The page that puts one motion in four tools' numbers side by side shows what is computed, and the tools agree."""

import re

import numpy as np
import pytest

from lgsim.formats import interop
from tests.formats.interop import conventions_compared as compared

pytestmark = [pytest.mark.oracle, pytest.mark.slow]


@pytest.fixture(scope="module")
def found():
    return compared.numbers()


@pytest.fixture(scope="module")
def model():
    return compared.machine()


def close(ours, theirs, tolerance=1e-10):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * max(1, np.max(np.abs(theirs))))


def same(page, made):
    """Whether two texts differ in the last digit of their numbers at most, which rounding may change elsewhere."""
    number = r"-?\d+\.\d{3}"
    values = [np.array(re.findall(number, text), float) for text in (page, made)]
    words = [re.sub(number, "x", text) for text in (page, made)]
    return words[0] == words[1] and np.max(np.abs(values[0] - values[1])) < 1.01e-3


def test_page_shows_what_is_computed(found, monkeypatch):
    monkeypatch.setattr(compared, "numbers", lambda: found)
    page = compared.PAGE.read_text(encoding="utf-8")
    assert same(page, compared.page()), "python -m tests.formats.interop.conventions_compared"
    assert not same(page.replace("-2.000", "-2.010"), page) and not same(page.replace("elbow", "wrist"), page)


@pytest.mark.parametrize(("name", "tool"), [("Pinocchio", interop.pinocchio), ("MuJoCo", interop.mujoco)])
def test_tools_find_the_same_on_their_own(name, tool, found, model):
    for i, state in enumerate(found["lgsim"]["states"]):
        theirs = found[name]["states"][i]
        close(tool.a_from(model, state["q"], state["v"], theirs["a"]), state["a"])
        close(found[name]["energy"][i], found["lgsim"]["energy"][i])
        assert theirs["tau"] @ theirs["v"] == pytest.approx(state["tau"] @ state["v"], rel=1e-12)
    close(found["Pinocchio"]["twist"], found["lgsim"]["twist"])
    close(found["MuJoCo"]["twist"], found["Drake"]["twist"])


def turn(quaternion):
    """The rotation of a quaternion w, x, y, z."""
    w, x, y, z = quaternion
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + 2 * w * K + 2 * K @ K


def about(axis, angle):
    return turn([np.cos(angle / 2), *(np.sin(angle / 2) * np.eye(3)[axis])])


def test_drake_s_numbers_follow_from_its_documentation(found):
    for ours, theirs in zip(found["lgsim"]["states"], found["Drake"]["states"], strict=True):
        base, ball, elbow = compared.parts("lgsim", "q", ours["q"])
        close(theirs["q"][:7], [*base[3:], *base[:3]])
        R, S = turn(base[3:]), turn(ball)
        roll, pitch, yaw = theirs["q"][7:10]
        close(about(2, yaw) @ about(1, pitch) @ about(0, roll), S)
        assert abs(pitch) < np.pi / 2 and theirs["q"][10] == elbow
        v, w = ours["v"][:3], ours["v"][3:6]
        close(theirs["v"], [*(R @ w), *(R @ v), *(S @ ours["v"][6:9]), ours["v"][9]])
        a = R @ (ours["a"][:3] + np.cross(w, v))
        close(theirs["a"], [*(R @ ours["a"][3:6]), *a, *(S @ ours["a"][6:9]), ours["a"][9]])
        force = [*(R @ ours["tau"][3:6]), *(R @ ours["tau"][:3]), *(S @ ours["tau"][6:9]), ours["tau"][9]]
        close(theirs["tau"], force)


def test_conventions_differ_where_the_page_says_so(found):
    """No two tools have all numbers in common, else the motion would show nothing."""
    for name in ("q", "v", "a", "tau"):
        rows = {tool: found[tool]["states"][1][name] for tool in compared.TOOLS}
        assert len(rows["lgsim"]) == len(rows["MuJoCo"]) and not np.array_equal(rows["Drake"][:6], rows["lgsim"][:6])
        close(rows["MuJoCo"][6:], rows["lgsim"][6:], 1e-9)
    assert not np.allclose(found["MuJoCo"]["states"][1]["v"], found["lgsim"]["states"][1]["v"])
    assert not np.allclose(found["Pinocchio"]["states"][1]["q"], found["lgsim"]["states"][1]["q"])


def in_drake(model):
    """The machine in Drake, and a context; its floating base gets its joint by itself."""
    tree = pytest.importorskip("pydrake.multibody.tree")
    plant = pytest.importorskip("pydrake.multibody.plant").MultibodyPlant(time_step=0.0)
    bodies = []
    for name, values in zip(compared.JOINTS, model.inertias, strict=True):
        mass, center, unit = (np.array(x) for x in interop.drake.inertia_to(values))
        entries = [unit[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
        inertia = tree.SpatialInertia(float(mass), center, tree.UnitInertia(*entries))
        bodies.append(plant.AddRigidBody(name, inertia))
    frames = []
    for i in (1, 2):
        pose = pytest.importorskip("pydrake.math").RigidTransform(np.array(model.placements[i]))
        frames.append(plant.AddFrame(tree.FixedOffsetFrame(f"F{i}", bodies[i - 1].body_frame(), pose)))
    plant.AddJoint(tree.BallRpyJoint("ball", frames[0], bodies[1].body_frame()))
    plant.AddJoint(tree.RevoluteJoint("elbow", frames[1], bodies[2].body_frame(), [0, 0, 1]))
    plant.Finalize()
    return plant, plant.CreateDefaultContext(), tree.MultibodyForces(plant)


def test_drake_finds_the_same_where_it_is_installed(found, model):
    plant, context, forces = in_drake(model)
    for i, state in enumerate(found["Drake"]["states"]):
        plant.SetPositions(context, state["q"])
        plant.SetVelocities(context, state["v"])
        plant.CalcForceElementsContribution(context, forces)
        close(plant.CalcInverseDynamics(context, state["a"], forces), state["tau"])
        body = plant.GetBodyByName("elbow")
        close(plant.EvalBodySpatialVelocityInWorld(context, body).get_coeffs(), found["Drake"]["twist"][i])
        energy = [plant.EvalKineticEnergy(context), plant.EvalPotentialEnergy(context)]
        close(energy, found["lgsim"]["energy"][i])
