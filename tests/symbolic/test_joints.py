"""The paper's joint matrices as formulas, against its tables and against the same maps on numbers."""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import sympy

from lgsim.multibody import joint_map
from lgsim.multibody.topology import ModelError
from lgsim.symbolic.joints import configuration_matrix, joint_map_matrix, kinematic_matrix

TABLE = json.loads((Path(__file__).parents[1] / "data" / "kwatny_blankenship.json").read_text())["table_II"]
TURNS = sympy.Matrix.vstack(sympy.eye(3), sympy.zeros(3))


def parsed(text):
    """A matrix of the paper's text, whose symbols are coordinates z, y (real) and the pitch s."""
    names = {x: sympy.Symbol(x, real=True) for x in ("z1", "z2", "y1", "y2", "y3")}
    return sympy.Matrix(sympy.sympify(text, names))


def columns(entry):
    return sympy.Matrix.hstack(*map(parsed, entry["H"]))


def same(a, b):
    """Equal as functions: zero after simplification, and at a point, which no simplification decides."""
    gap = sympy.Matrix(a) - sympy.Matrix(b)
    assert gap.applyfunc(sympy.simplify).is_zero_matrix, gap


@pytest.mark.parametrize("name", TABLE)
def test_table_II(name):
    """The kinematic matrices as printed; entries that span no subalgebra are refused, and are compound joints."""
    entry = TABLE[name]
    H = columns(entry)
    k = H.cols
    q = ["y1", "y2", "y3"][:k] if name == "spherical" else ["z1", "z2"][:k]
    if entry["columns_span_subalgebra"]:
        same(kinematic_matrix([k], H, q), parsed(entry["Gamma"]))
        same(joint_map_matrix([k], H, q), H)
        return
    for matrix in (kinematic_matrix, configuration_matrix, joint_map_matrix):
        with pytest.raises(ModelError, match=r"2 columns are not a simple joint.*compound joint r = \[1, 1\]"):
            matrix([k], H, q)
    same(kinematic_matrix([1, 1], H, q), sympy.eye(2))
    # the paper's entry is a fit: what the compound joint map leaves of H is the reference's remainder
    B = joint_map_matrix([1, 1], H, q)
    same((B * parsed(entry["Gamma"]) - H).T, parsed(entry["B_Gamma_minus_H"]))


def test_the_spherical_entry_is_printed_as_in_the_paper():
    sin, cos, tan = sympy.sin, sympy.cos, sympy.tan
    y1, y2, _ = y = sympy.symbols("y1:4", real=True)
    assert kinematic_matrix([3], TURNS, y) == sympy.Matrix(
        [[1, sin(y1) * tan(y2), cos(y1) * tan(y2)], [0, cos(y1), -sin(y1)],
         [0, sin(y1) / cos(y2), cos(y1) / cos(y2)]]
    )  # fmt: skip


def test_universal_joint_of_three_degrees():
    """(35), and that its configuration is that of the simple spherical joint."""
    t = sympy.symbols("t1:4", real=True)
    (s1, c1), (s2, c2), (s3, c3) = ((sympy.sin(x), sympy.cos(x)) for x in t)
    same(
        joint_map_matrix([1, 1, 1], TURNS, t)[:3, :],
        [[1, 0, -s2], [0, c1, c2 * s1], [0, -s1, c1 * c2]],
    )
    X = configuration_matrix([1, 1, 1], TURNS, t)
    same(X, [
        [c2 * c3, c3 * s1 * s2 - c1 * s3, c1 * c3 * s2 + s1 * s3, 0],
        [c2 * s3, c1 * c3 + s1 * s2 * s3, -c3 * s1 + c1 * s2 * s3, 0],
        [-s2, c2 * s1, c1 * c2, 0],
        [0, 0, 0, 1],
    ])  # fmt: skip
    same(kinematic_matrix([1, 1, 1], TURNS, t), sympy.eye(3))
    same(configuration_matrix([3], TURNS, t), X)


@pytest.mark.slow
def test_free_joint_of_six_degrees():
    """(36): the angles' block is the ball's, the position's is the rotation, and the position is q's own."""
    q = sympy.symbols("ax ay az x y z", real=True)
    Gamma = kinematic_matrix([6], sympy.eye(6), q)
    X = configuration_matrix([6], sympy.eye(6), q)
    same(Gamma[:3, :3], kinematic_matrix([3], TURNS, q[:3]))
    same(Gamma[3:, 3:], X[:3, :3])
    assert Gamma[:3, 3:].is_zero_matrix and Gamma[3:, :3].is_zero_matrix
    assert list(X[:3, 3]) == list(q[3:])


def turn(axis, pitch=0):
    return [*axis, *(pitch * x for x in axis)]


def slide(axis):
    return [0, 0, 0, *axis]


OBLIQUE = [sympy.Rational(3, 5), 0, sympy.Rational(4, 5)]
CHAINS = {
    "screw, slide, turn": ([1, 1, 1], [turn(OBLIQUE, sympy.Rational(1, 5)), slide((0, 1, 0)), turn((1, 0, 0))]),
    "screw and ball": ([1, 3], [turn((0, 1, 0), 2), *map(turn, np.eye(3, dtype=int).tolist())]),
    "cylinder and slide": ([2, 1], [turn((0, 0, 1)), slide((0, 0, 1)), slide(OBLIQUE)]),
    "plane": ([3], [slide((1, 0, 0)), slide((0, 1, 0)), turn((0, 0, 1))]),
    "turn not of unit length": ([1, 1], [[0, 2, 1, 0, 0, 0], slide((1, 0, 0))]),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", CHAINS)
def test_equal_to_the_maps_on_numbers(name):
    """At random coordinates; ``Gamma`` by parts, as one part of the numeric map is one simple joint."""
    r, screws = CHAINS[name]
    H = sympy.Matrix(screws).T.applyfunc(sympy.nsimplify)
    k = H.cols
    q = sympy.symbols(f"q1:{k + 1}", real=True)
    x = np.random.default_rng(0).uniform(-1.2, 1.2, k)
    at = dict(zip(q, x, strict=True))

    def number(matrix):
        return np.array(matrix.subs(at).evalf(20).tolist(), float)

    ours = jnp.asarray(np.roll(np.array(H.tolist(), float), 3, axis=0))
    back = jnp.asarray(x[::-1].copy())
    X = joint_map.configuration(ours[:, ::-1], back)
    np.testing.assert_allclose(number(configuration_matrix(r, H, q)), X, rtol=0, atol=1e-14)
    B = joint_map.velocity_map(ours[:, ::-1], back)[:, ::-1]
    np.testing.assert_allclose(np.roll(number(joint_map_matrix([1] * k, H, q)), 3, axis=0), B, rtol=0, atol=1e-14)
    Gamma, done = number(kinematic_matrix(r, H, q)), 0
    for n in r:
        part = slice(done, done + n)
        right = joint_map.kinematic_matrix(ours[:, part][:, ::-1], jnp.asarray(x[part][::-1].copy()))[::-1, ::-1]
        np.testing.assert_allclose(Gamma[part, part], right, rtol=0, atol=1e-13)
        done += n
    # the twist at q' = Gamma p is that of the joint map
    np.testing.assert_allclose(
        np.roll(number(joint_map_matrix(r, H, q)), 3, axis=0), np.asarray(B) @ Gamma, rtol=0, atol=1e-13
    )


REFUSED = {
    "shape": ([1], sympy.eye(3), ["a"], r"H: expected shape \(6, k\)"),
    "text": ([1], "H", ["a"], "H: expected a matrix"),
    "sum": ([2], TURNS, ["a", "b", "c"], "r: expected the positive numbers.*sum 3"),
    "zero part": ([3, 0], TURNS, ["a", "b", "c"], "r: expected the positive numbers"),
    "too few names": ([3], TURNS, ["a", "b"], "q: expected 3 different names or symbols"),
    "a name twice": ([3], TURNS, ["a", "b", "a"], "q: expected 3 different names or symbols"),
    "an expression": ([1], TURNS[:, 0], [sympy.Symbol("a") ** 2], "q: expected 1 different names"),
    "a clash": ([1], [[1], [0], [0], [sympy.Symbol("s")], [0], [0]], ["s"], "q: s is a coordinate and is in H"),
    "dependent": ([2], [[1, 2], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], ["a", "b"], "part 0: expected 2 independent"),
    "not holonomic": ([1, 2], sympy.Matrix([turn((0, 0, 1)), turn((0, 0, 1)), slide((1, 0, 0))]).T, ["a", "b", "c"],
                      r"part 1: .* bracket of columns 0 and 1, .* is not in their span.* is not holonomic"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    r, H, q, message = REFUSED[name]
    for matrix in (configuration_matrix, joint_map_matrix, kinematic_matrix):
        with pytest.raises(ModelError, match=message):
            matrix(r, H, q)


@pytest.mark.parametrize("spoiled", ["_bracket", "_adjoint_inverse", "_exponential"])
def test_a_wrong_sign_is_caught(spoiled, monkeypatch):
    """The comparisons above tell each of the three formulas from its mirror image."""
    from lgsim.symbolic import joints

    right = getattr(joints, spoiled)

    def mirrored(first, second):
        return right(first, -second)

    monkeypatch.setattr(joints, spoiled, mirrored)
    if spoiled == "_bracket":  # a sign changes no span
        test_table_II("spherical")
        return
    with pytest.raises(AssertionError):
        test_universal_joint_of_three_degrees()
