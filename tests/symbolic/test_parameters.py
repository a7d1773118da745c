"""Base parameters as formulas, against Lagrange's equations, against ranks of numbers and published counts."""

import jax.numpy as jnp
import numpy as np
import pytest
import sympy

import lgsim
from lgsim.identify import Parameters, StandardParameters, base_parameters
from lgsim.multibody import joints
from lgsim.symbolic import linear_parameters
from tests.symbolic import textbook
from tests.symbolic.textbook import reference


def test_double_pendulum():
    found = linear_parameters(textbook.double_pendulum())
    names = {s.name: s for s in found.parameters}
    assert len(names) == 20
    text = textbook.REFERENCE["double_pendulum"]["base_parameters"]
    right = [sympy.sympify(x, {**names, "l": sympy.Symbol("l", real=True)}) for x in text]
    assert list(found.combinations) == right


def test_the_linear_form_is_the_equations_of_lagrange():
    """With the parameters of the links about their joints in the combinations, term by term."""
    found = linear_parameters(textbook.double_pendulum())
    m, c, about = (sympy.symbols(f"{x}1:3", real=True) for x in "mcI")
    given = {s: 0 for s in found.parameters}
    for s in found.parameters:
        i = int(s.name[-1]) - 1
        given[s] = {"m": m[i], "mz": m[i] * c[i], "Iyy": about[i] + m[i] * c[i] ** 2}.get(s.name[:-1], 0)
    tau = found.Y * found.combinations.xreplace(given)
    M, Cv, G = (reference("double_pendulum", name) for name in ("M", "Cv", "G"))
    textbook.same(tau, M * sympy.Matrix(found.a) + Cv + G)


def test_a_wrong_sign_is_caught():
    """Of the length between the joints."""
    found = linear_parameters(lgsim.symbolic.model(textbook.arm(2), {"placement.b2.z": -sympy.Symbol("l", real=True)}))
    assert str(found.combinations[1]) == "-l*m2 + mz1"


def numeric(name):
    if name == "planar 3R":
        return textbook.arm(3)
    if name == "spatial 3R":
        return textbook.arm(3, axes=[(0, 0, 1), (0, 1, 0), (0, 1, 0)])
    builder = lgsim.ModelBuilder(gravity=textbook.DOWN)
    if name == "free body":
        return builder.add_body("a", "world", joints.Free(), **textbook.link()).build()
    if name == "slide and screw":
        builder.add_body("a", "world", joints.Prismatic(), axis=[0, 0, 1], **textbook.link())
        return builder.add_body(
            "b", "a", joints.Helical(), axis=[1, 0, 0], pitch=0.25, placement=textbook.up(0.5), **textbook.link()
        ).build()
    builder.add_body("a", "world", joints.Revolute(), axis=[0, 1, 0], **textbook.link())
    return builder.add_body(
        "b",
        "a",
        joints.Revolute(),
        axis=[1, 0, 0],
        mimic=("a", 2.0, 0.0),
        placement=textbook.up(0.5),
        **textbook.link(),
    ).build()


# of the planar arm every link shows two first moments and an inertia, of the others what Khalil and Dombre count
COUNTS = {"planar 3R": 9, "spatial 3R": 15, "free body": 10, "slide and screw": None, "mimic": None}


@pytest.mark.repeats("mimic")
@pytest.mark.parametrize("name", COUNTS)
def test_as_many_as_the_rank_of_numbers_and_the_same_torques(name):
    model = numeric(name)
    found = linear_parameters(lgsim.symbolic.model(model, {}))
    rng = np.random.default_rng(1)
    q = model.retract(model.neutral(), jnp.asarray(rng.normal(size=(40, model.nv))))
    v, a = jnp.asarray(rng.normal(size=(2, 40, model.nv)))
    Y = np.asarray(lgsim.torque_regressor(model, q, v, a)).reshape(40 * model.nv, -1)
    rank = np.linalg.matrix_rank(Y, tol=1e-9 * np.abs(Y).max())
    assert len(found.combinations) == rank
    assert COUNTS[name] in (None, rank)
    pi = dict(zip(found.parameters, np.asarray(model.inertias).reshape(-1).tolist(), strict=True))
    base = np.array(found.combinations.xreplace(pi).evalf().tolist(), float)[:, 0]
    for i in range(3):
        at = dict(zip((*found.q, *found.v, *found.a), [*q[i].tolist(), *v[i].tolist(), *a[i].tolist()], strict=True))
        tau = np.array(found.Y.xreplace(at).evalf(20).tolist(), float) @ base
        np.testing.assert_allclose(tau, lgsim.inverse_dynamics(model, q[i], v[i], a[i]), rtol=0, atol=1e-11)


@pytest.mark.slow
def test_the_same_count_as_identification():
    model = numeric("spatial 3R")
    numbers = base_parameters(Parameters(model, [StandardParameters()]))
    assert len(linear_parameters(lgsim.symbolic.model(model, {})).combinations) == len(numbers.names)


def test_gravity_that_is_zero_shows_less():
    weightless = linear_parameters(lgsim.symbolic.model(textbook.arm(2, gravity=(0, 0, 0)), {"placement.b2.z": "l"}))
    assert [str(x) for x in weightless.combinations] == ["Iyy1 + l**2*m2", "mx2", "mz2", "Iyy2"]
