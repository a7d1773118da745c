"""Algorithms in float64 against themselves in 50 digits, and their primitives, each of which needs a rule."""

import inspect

import jax
import numpy as np
import pytest

from lgsim import dynamics, symbolic
from tests.dynamics import contact_machines
from tests.dynamics.loops import test_loop_assembly
from tests.multibody import trees
from tests.public_record import listed
from tests.symbolic import machines

pytest.importorskip("mpmath")
ALGORITHMS = (
    dynamics.inverse_dynamics, dynamics.forward_dynamics, dynamics.mass_matrix, dynamics.coriolis_matrix,
    dynamics.forward_kinematics,
)  # fmt: skip


@pytest.mark.slow
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
# of loops and contacts, which have machines of their own below
OTHERS = ("actuated_", "close_loops", "loop_", "contact_", "suggest_")


def entries(f):
    """Names of the arguments without defaults, after the model; None for a function of other things."""
    given = [p.name for p in inspect.signature(f).parameters.values() if p.default is p.empty]
    return given[1:] if given[0] == "model" and {*given[1:]} <= {*NUMBERS} else None


STRAIGHT = {
    name: entries(f)
    for name in listed(dynamics)
    if inspect.isfunction(f := getattr(dynamics, name)) and not name.startswith(OTHERS) and entries(f) is not None
}


@pytest.mark.repeats("bias_forces", "centroidal_momentum_rate", "energy_regressor", "passive_forces", "spring_energy")
@pytest.mark.parametrize("name", STRAIGHT)
def test_every_primitive_has_a_rule(name):
    """Names of primitives change with JAX: a function that has one without a rule is an error that names it."""
    model = trees.build(["free", "revolute", "spherical"], [-1, 0, 1])
    values = [np.full(getattr(model, NUMBERS[x]), 0.5) for x in STRAIGHT[name]]
    f = getattr(dynamics, name)
    symbolic.evaluate(lambda *x: f(model, *x), symbolic.Digits(15))(*values)


def linkage():
    """A four-bar linkage at a pose that closes it."""
    model = test_loop_assembly.four_bar()
    return model, np.asarray(test_loop_assembly.closed_form(0.7, 1))


def ball():
    """A ball that sinks into the ground and slides."""
    model = contact_machines.ball(stiffness=1e4, friction=0.5)
    q = np.array(model.neutral())
    q[2] = 0.04
    return model, q


CONSTRAINED = [
    (machine, f)
    for machine, functions in {
        linkage: (dynamics.loop_residual, dynamics.loop_jacobian, dynamics.loop_forces, dynamics.forward_dynamics),
        ball: (dynamics.contact_points, dynamics.contact_energy, dynamics.contact_forces, dynamics.forward_dynamics),
    }.items()
    for f in functions
]


@pytest.mark.repeats("linkage-loop_residual", "ball-contact_energy")
@pytest.mark.parametrize(("machine", "f"), CONSTRAINED, ids=lambda x: x.__name__)
def test_loops_and_contacts_have_rules_and_are_right_to_rounding(machine, f):
    model, q = machine()
    rest = entries(f)[1:]
    given = [q, *(np.linspace(0.1, 0.4, model.nv) for _ in rest)]
    exact = symbolic.evaluate(lambda *x: f(model, *x), symbolic.Digits(50))(*given)
    for want, got in zip(jax.tree.leaves(exact), jax.tree.leaves(jax.jit(f)(model, *given)), strict=True):
        want = np.asarray(want, float)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-13 * max(1, np.abs(want).max(initial=0)))


@pytest.mark.slow
def test_a_rank_is_no_straight_line():
    model, q = linkage()
    with pytest.raises(symbolic.SymbolicError, match="no rule for the primitive svd"):
        symbolic.evaluate(lambda q: dynamics.loop_rank(model, q), symbolic.Digits(15))(q)


def test_the_list_has_the_usual_functions():
    usual = {"forward_dynamics", "inverse_dynamics", "mass_matrix", "coriolis_matrix", "poincare_equations"}
    assert usual <= set(STRAIGHT)
    assert len(STRAIGHT) > 20
