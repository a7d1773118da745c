"""Free rigid bodies against Jacobi's elliptic functions, in three formulations."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.systems import free_rigid_body, free_rigid_body_cotangent, free_rigid_body_momentum
from tests.systems.checks import check_gradients, check_hamiltonian, floats, solve

DATA = json.loads((Path(__file__).parents[1] / "data" / "rigid_body.json").read_text())
CASES = pytest.mark.parametrize("case", DATA["free"], ids=lambda case: f"I{case['inertia']}-t{case['t']}")
ALL = pytest.mark.parametrize("make", [free_rigid_body, free_rigid_body_momentum, free_rigid_body_cotangent])


def solved(make, case):
    problem = make(inertia=case["inertia"], angular_velocity=case["angular_velocity_0"])
    return solve(problem, case["t"], round(40 * case["t"]))


@CASES
@pytest.mark.quick
def test_attitude_and_rates_follow_jacobi(case):
    attitude, omega = solved(free_rigid_body, case)
    np.testing.assert_allclose(omega, floats(case["angular_velocity"]), rtol=0, atol=2e-13)
    np.testing.assert_allclose(attitude, floats(case["attitude"]), rtol=0, atol=2e-13)


@CASES
def test_body_momentum_follows_jacobi(case):
    momentum = solved(free_rigid_body_momentum, case)
    expected = np.array(case["inertia"]) * floats(case["angular_velocity"])
    np.testing.assert_allclose(momentum, expected, rtol=0, atol=5e-13)


@CASES
def test_space_variables_follow_jacobi(case):
    attitude, momentum = solved(free_rigid_body_cotangent, case)
    np.testing.assert_allclose(attitude, floats(case["attitude"]), rtol=0, atol=2e-13)
    body = np.array(case["inertia"]) * floats(case["angular_velocity"])
    np.testing.assert_allclose(momentum, floats(case["attitude"]) @ body, rtol=0, atol=5e-13)


def test_momentum_form_keeps_the_orbit_at_any_step():
    problem = free_rigid_body_momentum()
    settings = {"dt": 1.0, "steps": 30, "args": problem.args}
    states = lgsim.integrate(lgsim.MK4, problem.action, problem.field, problem.initial, **settings).ys
    energies = jax.vmap(problem.invariants["kinetic_energy"], (0, None))(states, problem.args)
    assert np.abs(energies - energies[0]).max() > 1e-3
    squares = jax.vmap(problem.invariants["momentum_squared"], (0, None))(states, problem.args)
    assert np.abs(squares - squares[0]).max() < 2e-14 * squares[0]


def test_the_canonical_field_belongs_to_its_hamiltonian():
    problem = free_rigid_body_cotangent()
    check_hamiltonian(problem, (lgsim.so3.exp(jnp.array([0.4, -0.7, 0.3])), jnp.array([1.0, 0.5, -0.8])))


@pytest.mark.repeats
@ALL
def test_gradients(make):
    check_gradients(make(), make(angular_velocity=(0.0, 0.0, 0.0)))


def test_another_body_compiles_nothing():
    problems = [free_rigid_body_cotangent(angular_velocity=(0.1, 0.2, w)) for w in (0.3, 0.4)]
    assert problems[0].field is problems[1].field
    assert problems[0].action == problems[1].action


@pytest.mark.usefixtures("without_import_hook")
def test_bad_numbers_are_named():
    with pytest.raises(ValueError, match=r"attitude: .*R\^T R = 1 fails by 0\.2.*project\(attitude\)"):
        free_rigid_body(attitude=1.1 * np.eye(3))
    with pytest.raises(ValueError, match=r"attitude: .*det R = 1 fails by 2"):
        free_rigid_body_cotangent(attitude=np.diag([1.0, 1.0, -1.0]))
    with pytest.raises(ValueError, match="inertia: expected numbers above zero"):
        free_rigid_body_momentum(inertia=(1.0, 0.0, 2.0))
    with pytest.raises(ValueError, match=r"angular_velocity: expected shape \(3,\), got \(2,\)"):
        free_rigid_body(angular_velocity=(1.0, 2.0))


@pytest.mark.repeats
@pytest.mark.float32
@ALL
def test_problems_follow_the_dtype(make):
    problem = make(jnp.float32)
    solution = lgsim.integrate(
        lgsim.MK4, problem.action, problem.field, problem.initial, dt=0.01, steps=10, args=problem.args
    )
    leaves = jax.tree.leaves((problem.initial, problem.args, solution.ys))
    assert {leaf.dtype for leaf in leaves} == {jnp.dtype("float32")}
