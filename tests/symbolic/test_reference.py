"""Formulas against Lagrange's equations made by sympy, and the examples of Kwatny and Blankenship."""

import json
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from systems import kwatny_blankenship

from lgsim import symbolic
from lgsim.dynamics import forward_kinematics, inverse_dynamics, kinetic_energy, mass_matrix, potential_energy
from lgsim.symbolic.coordinates import coordinates
from lgsim.symbolic.merge import merged
from tests.symbolic import machines

sympy = pytest.importorskip("sympy")
DATA = Path(__file__).parents[1] / "data"
LAGRANGE = json.loads((DATA / "symbolic.json").read_text())
PAPER = json.loads((DATA / "kwatny_blankenship.json").read_text())
ARM = ["s2", "s1", "e", "t3", "t2", "t1"]
ORDER = [1, 0, 2, 5, 4, 3]  # the paper counts a joint's parameters from the child


def parsed(text):
    """A matrix of the file, whose symbols are real as those of lgsim."""
    found = sympy.Matrix(sympy.sympify(text))
    return found.subs({x: sympy.Symbol(x.name, real=True) for x in found.free_symbols})


def same(found, text):
    return sympy.simplify(sympy.expand_trig(found - parsed(text))).is_zero_matrix


def numbers(values):
    return np.array([[float(sympy.Rational(x)) for x in np.ravel(row)] for row in values]).squeeze()


def at(expression, names, values):
    """A formula at a rational point, in 30 digits, as floats."""
    point = {sympy.Symbol(n, real=True): sympy.Rational(x) for n, x in zip(names, values, strict=True)}
    return np.array(sympy.Matrix(expression).subs(point).evalf(30).tolist(), float)


@pytest.mark.repeats
@pytest.mark.parametrize("simplify", [True, False])
@pytest.mark.parametrize(
    ("name", "machine", "q"),
    [("double_pendulum", machines.double_pendulum, None), ("cart_pole", machines.cart_pole, ["x", "theta"])],
)
def test_equations_are_those_that_sympy_makes_of_the_lagrangian(name, machine, q, simplify):
    found, expected = symbolic.lagrange(machine(), q=q, simplify=simplify), LAGRANGE[name]
    assert same(found.M, expected["M"])
    assert same(found.c, expected["Cv"])
    assert same(found.g, expected["G"])
    made = symbolic.poincare(machine(), q=q, p=["v1", "v2"], simplify=simplify)
    assert made.V == sympy.eye(2)
    assert same(made.M, expected["M"])
    assert same(made.velocity_terms, expected["Cv"])
    assert same(made.F, expected["G"])


def test_kinetic_energy_is_the_form_of_the_matrix():
    found = symbolic.kinetic_energy(machines.cart_pole(), q=["x", "theta"], p=["v1", "v2"])
    v = sympy.Matrix(sympy.symbols("v1 v2", real=True))
    assert sympy.simplify(found - (v.T * parsed(LAGRANGE["cart_pole"]["M"]) * v)[0] / 2) == 0


def test_formulas_print_as_in_a_book():
    found = symbolic.lagrange(machines.double_pendulum())
    m1, m2, c1, c2, length, g, q1, q2 = sympy.symbols("m1 m2 c1 c2 l g q1 q2", real=True)
    top = -g * (c1 * m1 * sympy.sin(q1) + c2 * m2 * sympy.sin(q1 + q2) + length * m2 * sympy.sin(q1))
    assert found.g[0] == sympy.expand(top)
    assert r"\cos{\left(q_{2} \right)}" in found._repr_latex_()
    energy = symbolic.potential(machines.double_pendulum())
    up = g * (m1 * c1 * sympy.cos(q1) + m2 * (length * sympy.cos(q1) + c2 * sympy.cos(q1 + q2)))
    assert sympy.expand(energy - up) == 0


def test_disk_in_a_ball_joint_is_euler_identically():
    found = symbolic.poincare(kwatny_blankenship.thin_disk(), p=["w1", "w2", "w3"])
    w1, w2, w3 = sympy.symbols("w1:4", real=True)
    assert found.M == sympy.diag(5, 5, 10)
    assert found.velocity_terms == sympy.Matrix([5 * w2 * w3, -5 * w1 * w3, 0])
    assert found.F == sympy.zeros(3, 1)
    assert "w_{1}" in found._repr_latex_()


def test_disk_on_three_turns():
    names, rates = ["t3", "t2", "t1"], ["u3", "u2", "u1"]
    found, given = symbolic.poincare(kwatny_blankenship.thin_disk_on_turns(), names, rates), PAPER["disk"]
    t1, t2 = sympy.symbols("t1 t2", real=True)
    s, c = sympy.sin, sympy.cos
    last = 5 * c(t1) ** 2 * c(t2) ** 2 + 5  # with 5 sin^2 t2 at its end, see the misprints of (55a)
    expected = sympy.Matrix(
        [[5, 0, -5 * s(t2)], [0, 5 * s(t1) ** 2 + 5, -5 * s(t1) * c(t1) * c(t2)],
         [-5 * s(t2), -5 * s(t1) * c(t1) * c(t2), last]]
    )  # fmt: skip
    assert (found.M[::-1, ::-1] - expected).applyfunc(sympy.simplify).is_zero_matrix
    point = [*given["t"][::-1], *given["vel"][::-1]]
    np.testing.assert_allclose(
        at(found.velocity_terms, names + rates, point)[::-1].ravel(), numbers(given["F_compound"]).ravel(), atol=1e-13
    )


def test_mass_matrix_of_the_arm_is_exact_small_and_quick():
    c = coordinates(kwatny_blankenship.six_joint_arm(), ARM)
    symbolic.evaluate(mass_matrix, c.ring)(c.machine, c.q)  # the functions are traced
    start = time.process_time()
    M = symbolic.evaluate(mass_matrix, c.ring)(c.machine, c.q)
    operations = sum(sympy.count_ops(merged(c.ring, x)) for x in M.flat)
    assert time.process_time() - start < 5
    assert operations <= 3700
    # the moment of inertia of the gripper about the wrist: no float was taken for its binary value
    assert c.ring.expression(M[5, 5]) == sympy.Rational(931, 9600)


@pytest.mark.slow
def test_arm_of_six_joints_at_the_points_of_the_reference():
    arm = kwatny_blankenship.six_joint_arm()
    rates = [f"p{i}" for i in range(1, 7)]
    found = symbolic.lagrange(arm, q=ARM, v=rates)
    pose, energy = symbolic.end_effector(arm, "end", q=ARM), symbolic.potential(arm, q=ARM)
    for point in PAPER["arm"]["points"]:
        q, p = [point["q"][i] for i in ORDER], [point["p"][i] for i in ORDER]
        M, c, g = at(found.M, ARM, q), at(found.c, ARM + rates, q + p), at(found.g, ARM, q)
        np.testing.assert_allclose(M[np.ix_(ORDER, ORDER)], numbers(point["M_compound"]), rtol=0, atol=1e-13)
        np.testing.assert_allclose(c.ravel()[ORDER], numbers(point["F_compound_Cp"]), rtol=0, atol=1e-13)
        np.testing.assert_allclose(g.ravel()[ORDER], numbers(point["gradPE"]), rtol=0, atol=1e-13)
        np.testing.assert_allclose(at(pose, ARM, q), numbers(point["X_end"]), rtol=0, atol=1e-13)
        if "PE_unit_g" in point:
            np.testing.assert_allclose(at([energy], ARM, q).item(), float(point["PE_unit_g"]), rtol=0, atol=1e-13)


@pytest.mark.slow
@pytest.mark.typed
def test_arm_with_a_ball_for_its_wrist():
    """The quaternion of Rx(t3) Rz(t2) Ry(t1); the two joints of the shoulder are no simple joint, and are left out."""
    arm = kwatny_blankenship.six_joint_arm_with_ball()
    names = ["s2", "s1", "e", "w", "x", "y", "z"]
    c = coordinates(arm, names)
    M = c.formula(mass_matrix)
    turns = {"x": (0, 5), "z": (2, 4), "y": (1, 3)}
    for point in PAPER["arm"]["points"]:
        q = [sympy.Rational(x) for x in point["q"]]
        total = sympy.Quaternion(1, 0, 0, 0)
        for axis, place in turns.values():
            u = [1 if i == axis else 0 for i in range(3)]
            total = total * sympy.Quaternion.from_axis_angle(u, q[place])
        values = [q[1], q[0], q[2], total.a, total.b, total.c, total.d]
        where = dict(zip(sympy.symbols(names, real=True), [sympy.N(x, 30) for x in values], strict=True))
        found = np.array([[float(sympy.N(x.subs(where), 30)) for x in row] for row in M])
        wrist = [4, 5, 3]  # about y, z, x, the order of the paper
        order = [1, 0, 2, *wrist]
        expected = numbers(point["M_simple_wrist_and_shoulder"])
        np.testing.assert_allclose(found[np.ix_(order, order)][2:, 2:], expected[2:, 2:], rtol=0, atol=1e-13)


MACHINES = [
    machines.three_joints,
    machines.with_mimic,
    machines.helical,
    machines.free_body,
    pytest.param(machines.floating, marks=pytest.mark.slow),
]


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES, ids=lambda f: f.__name__)
def test_formulas_at_a_point_are_the_numbers(machine):
    made = machine()
    c = coordinates(made, None, "p", "a")
    rng = np.random.default_rng(0)
    values = {x: rng.uniform(0.2, 1) for x in sorted({*c.ring.symbols_of_sympy}, key=str)}
    plain = numeric(made, values)
    q = unit_quaternions(plain, np.array([values[x] for x in c.q]))
    values |= dict(zip(c.q, q, strict=True))
    vectors = [jnp.asarray([values[x] for x in v]) for v in c.vectors]
    for f, n in ((mass_matrix, 0), (inverse_dynamics, 2), (kinetic_energy, 1), (potential_energy, 0),
                 (forward_kinematics, 0)):  # fmt: skip
        found = symbolic.evaluate(f, c.ring)(c.machine, c.q, *c.vectors[:n])
        for simplified in (c.ring.expression, lambda x: merged(c.ring, x)):
            got = [float(sympy.N(simplified(x).subs(values))) for x in np.ravel(found)]
            expected = np.ravel(f(plain, jnp.asarray(q), *vectors[:n]))
            np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


def numeric(machine, values):
    """The machine with numbers in the place of its symbols."""

    def number(x):
        return float(x.subs(values)) if hasattr(x, "free_symbols") else float(x)

    return jax.tree.map(lambda x: jnp.asarray(np.vectorize(number, otypes=[float])(x)), machine)


def unit_quaternions(machine, q):
    return np.asarray(machine.retract(machine.neutral(), jnp.asarray(q[: machine.nv])))
