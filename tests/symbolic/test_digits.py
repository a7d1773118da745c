"""Algorithms in float64 against themselves in 50 digits, and their primitives, each of which needs a rule."""

import inspect

import jax
import numpy as np
import pytest

from lgsim import dynamics, symbolic
from tests.multibody import trees
from tests.symbolic import machines

pytest.importorskip("mpmath")
ALGORITHMS = (
    dynamics.inverse_dynamics, dynamics.forward_dynamics, dynamics.mass_matrix, dynamics.coriolis_matrix,
    dynamics.forward_kinematics,
)  # fmt: skip


@pytest.mark.parametrize("kind", trees.KINDS)
def test_float64_is_right_to_rounding(kind):
    """Within 50 n roundings of the largest entry, n the degrees of freedom; numbers are the floats that they are."""
    model, state = machines.of_kind(kind)
    for f in ALGORITHMS:
        given = state[: len(inspect.signature(f).parameters) - 1]
        exact = symbolic.evaluate(lambda m, *x, f=f: f(m, *x), symbolic.Digits(50))(model, *given)
        want, got = np.asarray(exact, float), np.asarray(jax.jit(f)(model, *given))
        limit = 50 * model.nv * np.finfo(float).eps
        np.testing.assert_allclose(got, want, rtol=0, atol=limit * np.abs(want).max(), err_msg=f.__name__)


NUMBERS = {"q": "nq", "v": "nv", "a": "nv", "p": "nv", "tau": "nv"}
# of loops and contacts, of which this machine has none
OTHERS = ("actuated_", "close_loops", "loop_", "contact_", "suggest_")


def entries(f):
    """Names of the arguments without defaults, after the model; None for a function of other things."""
    given = [p.name for p in inspect.signature(f).parameters.values() if p.default is p.empty]
    return given[1:] if given[0] == "model" and {*given[1:]} <= {*NUMBERS} else None


STRAIGHT = {
    name: entries(f)
    for name in dynamics.__all__
    if inspect.isfunction(f := getattr(dynamics, name)) and not name.startswith(OTHERS) and entries(f) is not None
}


@pytest.mark.parametrize("name", STRAIGHT)
def test_every_primitive_has_a_rule(name):
    """Names of primitives change with JAX: a function that has one without a rule is an error that names it."""
    model = trees.build(["free", "revolute", "spherical"], [-1, 0, 1])
    values = [np.full(getattr(model, NUMBERS[x]), 0.5) for x in STRAIGHT[name]]
    f = getattr(dynamics, name)
    symbolic.evaluate(lambda *x: f(model, *x), symbolic.Digits(15))(*values)


def test_the_list_has_the_usual_functions():
    usual = {"forward_dynamics", "inverse_dynamics", "mass_matrix", "coriolis_matrix", "poincare_equations"}
    assert usual <= set(STRAIGHT)
    assert len(STRAIGHT) > 20
