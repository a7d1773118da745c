"""Free rigid body against Jacobi's elliptic functions, heavy tops against extended-precision states."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.systems import euler_poisson, free_rigid_body, heavy_top

DATA = json.loads((Path(__file__).parents[1] / "data" / "rigid_body.json").read_text())
STEPS_PER_SECOND = {"asymmetric": 100, "bruls_cardona": 2000, "celledoni": 2000}


def solve(problem, time, steps, method=lgsim.MK8):
    solution = lgsim.integrate(
        method, problem.action, problem.field, problem.initial, dt=time / steps, steps=steps, args=problem.args
    )
    for name, invariant in problem.invariants.items():
        values = np.asarray(jax.vmap(lambda y, f=invariant: f(y, problem.args))(solution.ys))
        assert np.abs(values - values[0]).max() < 2e-12 * np.abs(values).max(), name
    return jax.tree.map(lambda leaf: leaf[-1], solution.ys)


def top_arguments(case):
    arguments = {name: case[name] for name in ("inertia", "weight_moment", "up", "arm")}
    return {**arguments, "angular_velocity": case["angular_velocity_0"]}


def floats(strings):
    return np.array(strings, dtype=np.float64)


@pytest.mark.parametrize("case", DATA["free"], ids=lambda case: f"I{case['inertia']}-t{case['t']}")
def test_free_body_follows_jacobi(case):
    problem = free_rigid_body(inertia=case["inertia"], angular_velocity=case["angular_velocity_0"])
    attitude, omega = solve(problem, case["t"], round(40 * case["t"]))
    np.testing.assert_allclose(omega, floats(case["angular_velocity"]), rtol=0, atol=2e-13)
    np.testing.assert_allclose(attitude, floats(case["attitude"]), rtol=0, atol=2e-13)


@pytest.mark.parametrize("name", DATA["tops"])
def test_heavy_top_reaches_the_reference(name):
    case = DATA["tops"][name]
    problem = heavy_top(**top_arguments(case))
    attitude, omega = solve(problem, case["t"], round(STEPS_PER_SECOND[name] * case["t"]))
    momentum = floats(case["momentum"])
    np.testing.assert_allclose(attitude, floats(case["attitude"]), rtol=0, atol=1e-11)
    np.testing.assert_allclose(
        np.array(case["inertia"]) * omega, momentum, rtol=0, atol=1e-11 * np.linalg.norm(momentum)
    )


@pytest.mark.parametrize("name", DATA["tops"])
def test_euler_poisson_reaches_the_same_state(name):
    case = DATA["tops"][name]
    state = solve(euler_poisson(**top_arguments(case)), case["t"], round(STEPS_PER_SECOND[name] * case["t"]))
    momentum = floats(case["momentum"])
    np.testing.assert_allclose(state[:3], floats(case["up_in_body"]), rtol=0, atol=1e-11)
    np.testing.assert_allclose(state[3:], momentum, rtol=0, atol=1e-11 * np.linalg.norm(momentum))


@pytest.mark.parametrize("make", [heavy_top, euler_poisson])
@pytest.mark.parametrize("name", DATA["tops"])
def test_energy_at_the_start(make, name):
    case = DATA["tops"][name]
    problem = make(**top_arguments(case))
    np.testing.assert_allclose(problem.invariants["energy"](problem.initial, problem.args), case["energy"], rtol=1e-14)


def test_euler_poisson_keeps_its_casimirs_at_any_step():
    """A large step ruins the energy, but no method can leave the coadjoint orbit."""
    problem = euler_poisson()
    solution = lgsim.integrate(
        lgsim.MK4, problem.action, problem.field, problem.initial, dt=0.5, steps=40, args=problem.args
    )
    drift = {}
    for name, invariant in problem.invariants.items():
        values = np.asarray(jax.vmap(lambda y, f=invariant: f(y, problem.args))(solution.ys))
        drift[name] = np.abs(values - values[0]).max()
    assert drift["energy"] > 1e-3
    assert drift["up_squared"] < 1e-14
    assert drift["vertical_momentum"] < 1e-13


@pytest.mark.float32
@pytest.mark.parametrize("make", [free_rigid_body, heavy_top, euler_poisson])
def test_problems_follow_the_dtype(make):
    problem = make(jnp.float32)
    solution = lgsim.integrate(
        lgsim.MK4, problem.action, problem.field, problem.initial, dt=0.01, steps=10, args=problem.args
    )
    leaves = jax.tree.leaves((problem.initial, problem.args, solution.ys))
    assert {leaf.dtype for leaf in leaves} == {jnp.dtype("float32")}
