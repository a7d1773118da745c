"""Bad input: what cannot be done on symbols says where in lgsim, and what to do."""

import jax.numpy as jnp
import numpy as np
import pytest

from lgsim import ModelBuilder, ModelError, joints, symbolic
from lgsim.dynamics import forward_dynamics, inverse_mass_matrix, mass_matrix, passive_forces
from lgsim.lie import so3
from lgsim.symbolic.arithmetics.trigonometric import Trigonometric
from tests.symbolic import machines

pytest.importorskip("sympy")
Q, V = symbolic.symbols("q1:3"), symbolic.symbols("v1:3")


def ring():
    return Trigonometric(["q1", "q2"], "m1 m2 c1 c2 I1 I2 l g v1 v2".split())


def test_a_branch_on_a_symbol_names_primitive_function_and_line():
    stopped = (
        ModelBuilder()
        .add_body("a", "world", joints.Revolute(), mass=1.0, lower=-1.0, upper=1.0, limit_stiffness=5.0, friction=0.1)
        .build()
    )
    q, v = symbolic.symbols("q1:2"), symbolic.symbols("v1:2")
    with pytest.raises(symbolic.SymbolicError, match=r"passive_forces.*joint limits|joint limits.*line \d+") as caught:
        symbolic.evaluate(passive_forces, symbolic.Expressions())(stopped, q, v)
    text = str(caught.value)
    assert "primitive" in text
    assert "lgsim/dynamics/" in text
    assert "line " in text
    assert "give a number" in text


def test_a_branch_on_numbers_is_decided():
    def f(x, y):
        return jnp.where(x > 1, y, -y)

    (y,) = symbolic.symbols("y1:2")
    found = symbolic.evaluate(f, symbolic.Expressions())(np.array(2.0), np.array(y, object))
    assert found[()] == y
    with pytest.raises(symbolic.SymbolicError, match="primitive gt"):
        symbolic.evaluate(f, symbolic.Expressions())(np.array(y, object), np.array(2.0))


def test_both_branches_alike_are_no_branch():
    (y,) = symbolic.symbols("y1:2")
    found = symbolic.evaluate(lambda y: jnp.where(y > 1, 2 * y, 2 * y), symbolic.Expressions())(np.array(y, object))
    assert found[()] == 2 * y


def test_series_have_no_branch_on_symbols():
    """exp and dexp of a rotation are Rodrigues' formulas; a number decides its own branch."""
    (t,) = symbolic.symbols("t1:2")
    found = symbolic.evaluate(so3.exp, symbolic.Expressions())(np.array([0, 0, t], object))
    import sympy

    np.testing.assert_array_equal(
        np.vectorize(sympy.simplify)(found),
        np.array([[sympy.cos(t), -sympy.sin(t), 0], [sympy.sin(t), sympy.cos(t), 0], [0, 0, 1]]),
    )


def test_loops_that_depend_on_a_symbol():
    import jax

    def f(x):
        return jax.lax.while_loop(lambda x: x < 3, lambda x: 2 * x, x)

    (y,) = symbolic.symbols("y1:2")
    assert float(symbolic.evaluate(f, symbolic.Expressions())(np.array(1.0))[()]) == 4
    with pytest.raises(symbolic.SymbolicError, match=r"a loop whose end depends on the state.*while"):
        symbolic.evaluate(f, symbolic.Expressions())(np.array(y, object))


def test_an_unknown_primitive_is_named():
    (y,) = symbolic.symbols("y1:2")
    with pytest.raises(symbolic.SymbolicError, match="no rule for the primitive sort"):
        symbolic.evaluate(jnp.sort, symbolic.Expressions())(np.array([y, 1], object))
    with pytest.raises(symbolic.SymbolicError, match=r"exp of a symbol.*Trigonometric has no rule.*sin"):
        symbolic.evaluate(jnp.exp, ring())(Q)


def test_division_in_the_ring():
    with pytest.raises(symbolic.SymbolicError, match=r"divides only by numbers; use TrigonometricFractions.*line"):
        symbolic.evaluate(forward_dynamics, ring())(machines.double_pendulum(), Q, V, V)
    with pytest.raises(symbolic.SymbolicError, match="use TrigonometricFractions"):
        symbolic.evaluate(inverse_mass_matrix, ring())(machines.double_pendulum(), Q)
    with pytest.raises(symbolic.SymbolicError, match="root of"):
        symbolic.evaluate(jnp.sqrt, ring())(Q)
    with pytest.raises(symbolic.SymbolicError, match="not a sum of integer multiples"):
        symbolic.evaluate(lambda q: jnp.sin(0.5 * q), ring())(Q)


def test_symbols_that_clash():
    clashing = symbolic.model(machines.double_pendulum(), {"damping.b1": "q1"})
    with pytest.raises(ValueError, match=r"symbol 'q1' occurs twice.*no coordinate has"):
        symbolic.lagrange(clashing)
    with pytest.raises(ValueError, match="'sin_q1' clashes with the sine"):
        Trigonometric(["q1"], ["sin_q1"])
    with pytest.raises(symbolic.SymbolicError, match="the symbol z is not in this ring, which has"):
        symbolic.evaluate(mass_matrix, ring())(machines.double_pendulum(), np.array(["z", "q2"], object))
    with pytest.raises(ValueError, match="expected 2 names, got 1"):
        symbolic.lagrange(machines.double_pendulum(), q=["a"])


def test_addresses_of_numbers():
    plain = machines.double_pendulum()
    for address, match in {
        "mas.b1": "did you mean|expected a kind",
        "mass.b9": "expected the name of a body",
        "center.b1.w": "expected at its end",
        "placement.b9.z": "expected the name of a joint",
    }.items():
        with pytest.raises(ModelError, match=match):
            symbolic.model(plain, {address: "x"})
    with pytest.raises(ModelError, match="change the same parameter"):
        symbolic.model(plain, {"mass.b1": "x", "parameters.b1.m": "y"})
    with pytest.raises(ModelError, match="change the same parameter"):
        symbolic.model(machines.spatial_arm(), {"gravity": "x", "gravity.z": "y"})
    with pytest.raises(ModelError, match=r"'gravity'.*expected gravity with a rational direction"):
        symbolic.model(plain, {"gravity": "x"})
    with pytest.raises(ModelError, match="expected the name of a symbol"):
        symbolic.model(plain, {"mass.b1": "not a name"})


def test_lagrange_needs_a_chart():
    with pytest.raises(ValueError, match=r"joints with charts, got 'base', a Free.*poincare"):
        symbolic.lagrange(machines.free_body())
    with pytest.raises(ValueError, match="frame"):
        symbolic.end_effector(machines.double_pendulum(), "nowhere")


def test_a_missing_package_names_the_extra(monkeypatch):
    import importlib

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'lgsim\[symbolic\]'"):
        symbolic.Expressions()


def test_numbers_that_are_none():
    with pytest.raises(ModelError, match=r"values: 'mass.b1': expected a finite number.*got nan"):
        symbolic.model(machines.double_pendulum(), {"mass.b1": float("nan")})
    pytest.importorskip("mpmath")
    with pytest.raises(ValueError, match="digits: expected at least 1, got 0"):
        symbolic.Digits(0)
