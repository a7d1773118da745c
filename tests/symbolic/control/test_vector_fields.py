"""Brackets, relative degrees and linearizing feedback, against closed forms of textbooks."""

import numpy as np
import pytest
import sympy
from scipy.integrate import solve_ivp

from lgsim.symbolic import (
    accessibility_rank,
    control_affine,
    controllability_rank,
    feedback_linearize,
    lie_bracket,
    lie_derivative,
    relative_degree,
)
from tests.symbolic import textbook
from tests.symbolic.textbook import reference, same

x1, x2, x3, x4 = X = sympy.symbols("x1:5", real=True)


@pytest.fixture(scope="module")
def cart_pole():
    return control_affine(textbook.cart_pole(), actuated=["cart"], names=["x", "theta"])


def test_derivatives_and_brackets():
    f, g = [x2, -sympy.sin(x1)], [0, sympy.cos(x1)]
    assert lie_derivative(f, x1, [x1, x2]) == x2
    same([lie_derivative(f, x1, [x1, x2], order=2)], [-sympy.sin(x1)])
    # dg/dx f - df/dx g by hand
    same(lie_bracket(f, g, [x1, x2]), [-sympy.cos(x1), -x2 * sympy.sin(x1)])
    same(lie_bracket(g, f, [x1, x2]), [sympy.cos(x1), x2 * sympy.sin(x1)])


def test_brackets_satisfy_jacobi():
    fields = [[x2 * x3, sympy.sin(x1), x1], [x3**2, x1, sympy.cos(x2)], [1, x1 * x2, x3]]
    three = X[:3]
    total = sympy.zeros(3, 1)
    for i in range(3):
        a, b, c = (fields[(i + k) % 3] for k in range(3))
        total += lie_bracket(a, lie_bracket(b, c, three), three)
    same(total, sympy.zeros(3, 1))


def test_relative_degrees_of_the_cart_pole(cart_pole):
    f, g, (x, theta, *_) = cart_pole
    text = textbook.REFERENCE["cart_pole"]["relative_degree"]
    cart, pole = (relative_degree(f, g, h, cart_pole.x) for h in (x, theta))
    assert text == {"x": "2", "theta": "2, where cos(theta) is not 0"}
    assert cart.degrees == (2,) and pole.degrees == (2,) and pole.fails == (sympy.cos(theta),)
    # x: the numerator J + mp r^2 knows no coordinate
    assert cart.fails == ()
    B2 = reference("cart_pole", "B2")
    same(cart.decoupling, [B2[0]])
    same(pole.decoupling, [B2[1]])


def test_feedback_of_the_cart_pole_moves_the_pole_as_asked(cart_pole):
    """In simulation with numbers: the angle's second derivative is the new input, and at a right angle it fails."""
    f, g, x = cart_pole
    found = feedback_linearize(f, g, x[1], x)
    assert found.degrees == (2,) and found.hidden == 2 and found.fails == (sympy.cos(x[1]),)
    (v,) = found.v
    assert v.name == "v1_"
    closed = (f + g * found.u).applyfunc(sympy.simplify)
    same([closed[3]], [v])
    numbers = {"mc": 1.5, "mp": 1.2, "r": 0.4, "J": 0.25, "g": 9.81}
    at = {s: numbers[s.name] for s in closed.free_symbols - {*x, v}}
    law = -2 * x[1] - 3 * x[3]
    rate = sympy.lambdify([x], list(closed.xreplace(at).subs(v, law)))
    end = solve_ivp(lambda t, y: rate(y), (0, 2), [0, 1.0, 0, 0], rtol=1e-11, atol=1e-12).y[1, -1]
    np.testing.assert_allclose(end, 2 * np.exp(-2.0) - np.exp(-4.0), rtol=1e-8)
    assert found.u[0].subs(x[1], sympy.pi / 2).has(sympy.zoo, sympy.oo, sympy.nan)


@pytest.mark.slow
def test_feedback_of_a_whole_arm():
    """All joints driven, angles as outputs: computed torque, defined everywhere."""
    model = control_affine(textbook.double_pendulum())
    f, g, x = model
    found = feedback_linearize(f, g, x[:2], x)
    assert found.degrees == (2, 2) and found.hidden == 0 and found.fails == ()
    M, Cv, G = (reference("double_pendulum", name) for name in ("M", "Cv", "G"))
    new = {s: sympy.Symbol(f"w{i}") for i, s in enumerate(found.v)}
    same(found.u.xreplace(new), M * sympy.Matrix(list(new.values())) + Cv + G)


def test_tip_of_an_arm_fails_where_it_is_straight():
    """Outputs in place of angles: the Jacobian's determinant, l1 l2 sin q2, up to a factor."""
    l1, l2 = sympy.symbols("l1 l2", positive=True)
    q1, q2, v1, v2 = x = sympy.symbols("q1 q2 v1 v2", real=True)
    f, g = [v1, v2, 0, 0], sympy.Matrix.vstack(sympy.zeros(2), sympy.eye(2))
    tip = [l1 * sympy.cos(q1) + l2 * sympy.cos(q1 + q2), l1 * sympy.sin(q1) + l2 * sympy.sin(q1 + q2)]
    found = relative_degree(f, g, tip, x)
    assert found.degrees == (2, 2) and found.fails == (sympy.sin(q2),)
    same([found.decoupling.det()], [l1 * l2 * sympy.sin(q2)])


def test_ranks_of_known_systems():
    # the car of Nelson, without slip: two inputs reach all four coordinates, the linear model at rest two fewer
    drive = sympy.Matrix([sympy.cos(x3 + x4), sympy.sin(x3 + x4), sympy.sin(x4), 0])
    steer = sympy.Matrix([0, 0, 0, 1])
    assert accessibility_rank([0, 0, 0, 0], sympy.Matrix.hstack(drive, steer), X) == 4
    assert controllability_rank(sympy.zeros(4), sympy.Matrix.hstack(drive, steer).subs(dict.fromkeys(X, 0))) == 2
    # Euler's equations with one torque about the first principal axis keep x2^2 + 6 x3^2; about an oblique one nothing
    spin = [x2 * x3, -2 * x1 * x3, x1 * x2 / 3]
    assert accessibility_rank(spin, [1, 0, 0], X[:3]) == 2
    assert accessibility_rank(spin, [1, 1, 0], X[:3]) == 3
    assert accessibility_rank(spin, [[1, 0], [0, 1], [0, 0]], X[:3]) == 3
    # two masses driven by a force between them
    k = sympy.Symbol("k", positive=True)
    A = sympy.Matrix([[0, 0, 1, 0], [0, 0, 0, 1], [-k, k, 0, 0], [k, -k, 0, 0]])
    assert controllability_rank(A, [[0], [0], [1], [-1]]) == 2 and controllability_rank(A, [[0], [0], [1], [0]]) == 4


@pytest.mark.repeats
@pytest.mark.parametrize("seed", range(3))
def test_rank_is_that_of_brackets_themselves(seed):
    """The Taylor polynomials against brackets of expressions at a point."""
    f, g = [sympy.sin(x2) * x3, x1**2 / (2 + x3), sympy.cos(x1)], [x3, 0, 1 / (1 + x1**2)]
    three = X[:3]
    fields = [sympy.Matrix(g)]
    for _ in range(2):
        fields.append(lie_bracket(f, fields[-1], three))
    at = dict(zip(three, np.random.default_rng(seed).uniform(0.1, 1, 3), strict=True))
    rank = np.linalg.matrix_rank(np.array(sympy.Matrix.hstack(*fields).subs(at).evalf().tolist(), float), tol=1e-6)
    assert rank == 3 == accessibility_rank(f, g, three, seed)


REFUSED = {
    "drift": (lambda: relative_degree([x2], [0, 1], x1, [x1, x2]), "f: expected 2 entries"),
    "inputs": (lambda: relative_degree([x2, 0], [1], x1, [x1, x2]), r"g: expected shape \(2, m\)"),
    "no input": (lambda: relative_degree([x2, 0], [1, 0], x2, [x1, x2]), "no input appears in any derivative"),
    "dependent": (
        lambda: relative_degree([x3, x4, 0, 0], [[0, 0], [0, 0], [1, 0], [0, 1]], [x1, 2 * x1], X),
        "dependently everywhere.*no vector relative degree",
    ),
    "outputs": (lambda: feedback_linearize([x2, 0], [0, 1], [x1, x2], [x1, x2]), "expected as many outputs as inputs"),
    "function": (lambda: accessibility_rank([sympy.exp(x1)], [1], [x1]), "expected rational functions"),
    "shapes": (lambda: controllability_rank([[1, 2]], [[1]]), r"A, B: expected shapes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    call, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        call()
