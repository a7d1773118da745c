"""Poincare's equations: the examples of Kwatny and Blankenship at numbers, and the equations of any machine."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.dynamics.inverse_dynamics import inverse_dynamics
from lgsim.dynamics.kinematics import forward_kinematics
from lgsim.dynamics.poincare import poincare_equations, structure_coefficients
from lgsim.lie import conversions
from lgsim.multibody.builder import ModelBuilder
from lgsim.multibody.joint_map import compound_joint, simple_joint
from tests.dynamics.machines import close
from tests.multibody import trees

PAPER = json.loads((Path(__file__).parents[1] / "data" / "kwatny_blankenship.json").read_text())
X, Y, Z = (np.concatenate([np.zeros(3), axis]) for axis in np.eye(3))


def numbers(values):
    if isinstance(values, list):
        return np.array([numbers(value) for value in values])
    top, _, bottom = values.partition("/")
    return float(top) / float(bottom or 1)


def columns(*screws):
    return np.stack(screws, axis=1)


def joined(builder, name, parent, found, **body):
    return builder.add_body(name, parent, found.joint, axis=found.axes, pitch=found.pitches, **body)


def disk(found):
    return joined(ModelBuilder(), "disk", "world", found, mass=5.0, inertia=np.diag([5.0, 5, 10])).build()


def arm(wrist):
    """Two slender bars and a gripper along z, gravity 1; parameters run from the parent to the child."""
    up = above(3)
    bar = {"mass": 1.0, "center": [0, 0, 1.5], "inertia": np.diag([0.75, 0.75, 0])}
    m, length, radius = 0.5, 0.7, 0.35
    across = m * (length**2 + 3 * radius**2) / 12
    builder = ModelBuilder(gravity=(0, 0, -1.0))
    joined(builder, "upper", "world", compound_joint(columns(Z, Y)), **bar)
    joined(builder, "lower", "upper", compound_joint(columns(Y)), placement=up, **bar)
    inertia = np.diag([across, across, m * radius**2 / 12])
    joined(builder, "gripper", "lower", wrist, placement=up, mass=m, center=[0, 0, length / 2], inertia=inertia)
    return builder.add_frame("end", "gripper", above(length)).build()


def above(z):
    T = np.eye(4)
    T[2, 3] = z
    return T


def about(axis, angle):
    s, c = np.sin(angle), np.cos(angle)
    K = np.cross(np.eye(3), np.eye(3)[axis])
    return np.eye(3) + s * K + (1 - c) * K @ K


def quaternion(R, frame=None):
    frame = np.eye(3) if frame is None else frame
    return conversions.quaternion_from_matrix(jnp.asarray(frame @ R @ frame.T))


@pytest.mark.slow
def test_disk_on_a_spherical_joint_is_euler():
    """(54) with the right sign, wherever the disk points."""
    model = disk(simple_joint(columns(X, Y, Z)))
    given = {name: numbers(value) for name, value in PAPER["disk"].items()}
    q = quaternion(given["X_R"])
    _, M, C, F = poincare_equations(model, q, jnp.asarray(given["vel"]))
    np.testing.assert_allclose(M, np.diag([5, 5, 10]), rtol=0, atol=1e-14)
    np.testing.assert_allclose(C @ given["vel"], given["F_simple"].ravel(), rtol=0, atol=1e-13)
    w1, w2, w3 = given["vel"]
    np.testing.assert_allclose(C @ given["vel"], [5 * w2 * w3, -5 * w1 * w3, 0], rtol=0, atol=1e-13)
    np.testing.assert_allclose(F, 0, atol=1e-13)


@pytest.mark.slow
def test_disk_on_a_universal_joint_is_lagrange():
    """(55) with the right signs."""
    model = disk(compound_joint(columns(Z, Y, X)))
    given = {name: numbers(value) for name, value in PAPER["disk"].items()}
    p = jnp.asarray(given["vel"][::-1])
    V, M, C, _ = poincare_equations(model, jnp.asarray(given["t"][::-1]), p)
    np.testing.assert_array_equal(V, np.eye(3))
    np.testing.assert_allclose(M[::-1, ::-1], given["M_compound"], rtol=0, atol=1e-14)
    np.testing.assert_allclose((C @ p)[::-1], given["F_compound"].ravel(), rtol=0, atol=1e-13)


@pytest.mark.slow
def test_arm_of_six_degrees_of_freedom():
    order = np.array([1, 0, 2, 5, 4, 3])  # the paper counts a joint's parameters from the child
    compound, ball = arm(compound_joint(columns(X, Z, Y))), arm(simple_joint(columns(Y, Z, X)))
    for point in PAPER["arm"]["points"]:
        given = {name: numbers(value) for name, value in point.items()}
        q, p = jnp.asarray(given["q"][order]), jnp.asarray(given["p"][order])
        close(forward_kinematics(compound, q)[-1], given["X_end"], 1e-14)
        _, M, C, F = poincare_equations(compound, q, p)
        close(M[np.ix_(order, order)], given["M_compound"], 1e-14)
        close((C @ p)[order], given["F_compound_Cp"].ravel(), 1e-13)
        close(F[order], given["gradPE"].ravel(), 1e-14)
        # the wrist alone: the paper's simple shoulder is no joint
        t1, t2, t3 = given["q"][3:]
        R = about(0, t3) @ about(2, t2) @ about(1, t1)
        q = jnp.concatenate([q[:3], quaternion(R, np.eye(3)[[1, 2, 0]])])
        M = poincare_equations(ball, q, p).M
        close(M[2:, 2:], given["M_simple_wrist_and_shoulder"][2:, 2:], 1e-14)


KINDS = [
    ["spherical", "helical"],
    pytest.param(["free", "planar", "helical", "spherical"], marks=pytest.mark.exhaustive),
]


@pytest.mark.slow
@pytest.mark.parametrize("kinds", KINDS, ids=" ".join)
def test_equations_are_those_of_the_recursion(kinds):
    model = trees.build(kinds, [-1, 0, 0, 2][: len(kinds)], armature=True)
    q, p, a = trees.state(model)
    _, M, C, F = poincare_equations(model, q, p)
    close(M @ a + C @ p + F, inverse_dynamics(model, q, p, a))


def test_structure_coefficients_are_the_brackets_of_the_fields():
    model = trees.build(["free", "planar", "helical", "spherical"], [-1, 0, 0, 2])
    q, x, y = trees.state(model)
    along = jax.jit(lambda q, x, y: jax.jvp(lambda q: model.rate(q, y), (q,), (model.rate(q, x),))[1])
    along_x, along_y = along(q, x, y), along(q, y, x)
    expected = np.einsum("kij,i,j->k", structure_coefficients(model), x, y)
    assert np.abs(expected).max() > 0.1
    close(model.velocity(q, along_x - along_y), expected, 1e-13)


@pytest.mark.slow
def test_batch_is_one_by_one():
    model = disk(compound_joint(columns(Z, Y, X)))
    q, p, _ = trees.state(model, batch=(2,))
    for found, one in zip(poincare_equations(model, q, p), poincare_equations(model, q[1], p[1]), strict=True):
        close(found[1], one, 1e-13)
