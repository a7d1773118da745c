"""Joints from joint map matrices: the tables of Kwatny and Blankenship, velocities, what is refused."""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.dynamics.kinematics import forward_kinematics, frame_twists
from lgsim.multibody import joints
from lgsim.multibody.builder import ModelBuilder
from lgsim.multibody.joint_map import compound_joint, configuration, kinematic_matrix, simple_joint, velocity_map
from lgsim.multibody.topology import ModelError
from tests.multibody import trees

PAPER = json.loads((Path(__file__).parents[2] / "data" / "kwatny_blankenship.json").read_text())
TABLE = PAPER["table_II"]
X, Y, Z = np.eye(3)


def turn(axis, pitch=0.0, point=(0, 0, 0)):
    return np.concatenate([pitch * np.asarray(axis) + np.cross(point, axis), axis])


def slide(axis):
    return np.concatenate([axis, np.zeros(3)])


def columns(*screws):
    return np.stack(screws, axis=1)


def evaluated(text, e):
    names = {"sin": np.sin, "cos": np.cos, "tan": np.tan, "s": 0.35, "z1": e[0], "y1": e[0], "y2": e[1]}
    return np.array(eval(text, {"__builtins__": {}}, names), float)


def moving(found):
    """A body on the joint, placed at the world's origin."""
    return ModelBuilder().add_body(
        "body", "world", found.joint, axis=found.axes, pitch=found.pitches, mass=1.0, inertia=np.eye(3)
    ).build()  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_table_II(name):
    """The kinematic matrices as printed; the entries whose columns span no subalgebra are least squares only."""
    entry, e = TABLE[name], np.array([0.4, -0.7, 0.9])
    H = np.roll(np.stack([evaluated(h, e) for h in entry["H"]], axis=1), 3, axis=0)
    k = H.shape[1]
    # the paper counts from the child
    ours, q = jnp.asarray(H[:, ::-1]), jnp.asarray(e[:k][::-1])
    Gamma = np.asarray(kinematic_matrix(ours, q))[::-1, ::-1]
    np.testing.assert_allclose(Gamma, evaluated(entry["Gamma"], e), rtol=0, atol=1e-14)
    gap = np.asarray(velocity_map(ours, q))[:, ::-1] @ Gamma - H
    expected = evaluated(entry["B_Gamma_minus_H"], e).T
    np.testing.assert_allclose(np.roll(gap, 3, axis=0), expected, rtol=0, atol=1e-14)
    assert isinstance(compound_joint(H).joint, joints.Compound)
    if entry["columns_span_subalgebra"]:
        assert simple_joint(H).joint.nv == k
    else:
        assert np.abs(expected).max() > 0.1
        with pytest.raises(
            ModelError, match=r"do not span a subalgebra: the bracket of columns 0 and 1.*compound_joint"
        ):
            simple_joint(H)


def test_universal_joint_of_three_degrees():
    """(35)."""
    disk = {name: np.array(value, float) for name, value in PAPER["disk"].items() if name in ("t", "X_R", "H")}
    H = jnp.asarray(np.roll(np.eye(6, 3), 3, axis=0)[:, ::-1])
    q = jnp.asarray(disk["t"][::-1])
    np.testing.assert_allclose(configuration(H, q)[:3, :3], disk["X_R"], rtol=0, atol=1e-15)
    np.testing.assert_allclose(velocity_map(H, q)[3:, ::-1], disk["H"], rtol=0, atol=1e-15)


def test_compound_joint_moves_as_its_screws():
    rng = np.random.default_rng(0)
    H = columns(turn(trees.unit(rng), 0.2), slide(trees.unit(rng)), turn(trees.unit(rng)), turn(trees.unit(rng), -0.1))
    model = moving(compound_joint(H))
    q, v, _ = trees.state(model)
    np.testing.assert_allclose(forward_kinematics(model, q)[0], configuration(jnp.asarray(H), q), rtol=0, atol=1e-14)
    np.testing.assert_allclose(frame_twists(model, q, v)[0], velocity_map(jnp.asarray(H), q) @ v, rtol=0, atol=1e-14)


R = np.asarray(trees.rotation(np.random.default_rng(1)))
SIMPLE = {
    "screw": (columns(turn(R[0], 0.3)), joints.Compound),
    "cylindrical": (columns(turn(R[0]), slide(R[0])), joints.Compound),
    "two slides": (columns(slide(X), slide(R[0])), joints.Compound),
    "spherical": (columns(*map(turn, R)), joints.Spherical),
    "spherical, as the wrist of the paper": (columns(turn(Y), turn(Z), turn(X)), joints.Spherical),
    "planar": (columns(slide(R[0]), slide(R[1]), turn(R[2])), joints.Planar),
    "free": (columns(*map(slide, (X, Y, Z)), *map(turn, (X, Y, Z))), joints.Free),
}


@pytest.mark.repeats
@pytest.mark.parametrize("name", SIMPLE)
def test_simple_joint_has_constant_columns(name):
    H, kind = SIMPLE[name]
    found = simple_joint(H)
    assert isinstance(found.joint, kind)
    model = moving(found)
    q, v, _ = trees.state(model)
    np.testing.assert_allclose(frame_twists(model, q, v)[0], H @ v, rtol=0, atol=1e-14)


REFUSED = {
    "shape": (np.eye(3), r"expected shape \(6, k\)"),
    "no column": (np.zeros((6, 0)), r"expected shape \(6, k\)"),
    "not finite": (columns(turn(X) * np.nan), "expected finite entries"),
    "long turn": (columns(turn(Z), 2 * turn(X)), "column 1: expected an angular part of length 1.*got 2"),
    "long slide": (columns(0.5 * slide(Z)), "column 0: expected a linear part of length 1.*got 0.5"),
    "zero": (columns(0 * slide(Z)), "column 0: expected a linear part of length 1.*got 0"),
    "axis beside the origin": (columns(turn(Z, 0.1, (0.2, -0.3, 5))), r"its axis passes through \[0.2, -0.3, 0.0\]"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_both(name):
    H, message = REFUSED[name]
    with pytest.raises(ModelError, match=message):
        compound_joint(H)
    with pytest.raises(ModelError):
        simple_joint(H)


@pytest.mark.parametrize(
    ("H", "message"),
    [
        (columns(turn(X), turn(X)), "expected 2 independent columns, got rank 1"),
        (columns(turn(X), turn(Y)), "do not span a subalgebra"),
        (columns(turn(Z), slide(X)), "do not span a subalgebra"),
        (columns(turn(Y), turn(X), turn(Z)), "no joint has these columns in this order.*Spherical: turn x, turn y"),
        (columns(turn(Z), slide(X), slide(Y)), "no joint has these columns in this order.*Planar: slide x, slide y"),
        (columns(slide(X), slide(Y), turn(Z, 0.1)), "no joint has these columns"),
        (columns(slide(X), slide(Y), slide(Z), turn(Z)), "no joint has these columns"),
    ],
)
def test_refused_as_simple(H, message):
    with pytest.raises(ModelError, match=message):
        simple_joint(H)
    compound_joint(H)
