"""Heavy tops against extended-precision states, in four formulations that agree."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from systems.heavy_top_quadratic import heavy_top_quadratic

import lgsim
from lgsim.systems import CELLEDONI_TOP, euler_poisson, heavy_top, heavy_top_cotangent
from lgsim.systems.heavy_top import BRULS_CARDONA_TOP
from tests.systems.checks import along, check_gradients, check_hamiltonian, floats, solve

DATA = json.loads((Path(__file__).parents[1] / "data" / "rigid_body.json").read_text())["tops"]
STEPS = 4000  # the same for all, so that each form is compiled once
FORMS = (heavy_top, heavy_top_cotangent, euler_poisson, heavy_top_quadratic)
ALL = pytest.mark.parametrize("make", FORMS)


def arguments(case):
    numbers = {name: case[name] for name in ("inertia", "weight_moment", "up", "arm")}
    return {**numbers, "angular_velocity": case["angular_velocity_0"]}


def upward_and_momentum(make, state, case):
    """Gamma and Pi of a state in any form."""
    up = np.array(case["up"])
    if make is euler_poisson:
        return state[:3], state[3:]
    if make is heavy_top:
        return state[0].T @ up, np.array(case["inertia"]) * state[1]
    attitude = state[0] if make is heavy_top_cotangent else state[0][0]
    return attitude.T @ up, attitude.T @ state[1][:3]


@pytest.mark.repeats("asymmetric-*", "celledoni-heavy_top")
@ALL
@pytest.mark.parametrize("name", DATA)
def test_every_form_reaches_the_reference(make, name):
    case = DATA[name]
    state = solve(make(**arguments(case)), case["t"], STEPS)
    gamma, momentum = upward_and_momentum(make, state, case)
    expected = floats(case["momentum"])
    np.testing.assert_allclose(gamma, floats(case["up_in_body"]), rtol=0, atol=1e-11)
    np.testing.assert_allclose(momentum, expected, rtol=0, atol=1e-11 * np.linalg.norm(expected))
    if make is not euler_poisson:
        attitude = state[0][0] if make is heavy_top_quadratic else state[0]
        np.testing.assert_allclose(attitude, floats(case["attitude"]), rtol=0, atol=1e-11)


@ALL
@pytest.mark.parametrize("name", DATA)
def test_energy_at_the_start(make, name):
    case = DATA[name]
    problem = make(**arguments(case))
    np.testing.assert_allclose(problem.invariants["energy"](problem.initial, problem.args), case["energy"], rtol=1e-14)


@ALL
def test_a_turned_start_is_the_same_motion_seen_from_a_turned_world(make):
    turn = np.array([[0.36, 0.48, -0.8], [-0.8, 0.6, 0.0], [0.48, 0.64, 0.6]])
    straight, turned = make(), make(attitude=turn, up=turn @ np.array([0.6, 0.0, 0.8]))
    for name in ("energy", "vertical_momentum"):
        values = [p.invariants[name](p.initial, p.args) for p in (straight, turned)]
        np.testing.assert_allclose(values[0], values[1], rtol=1e-15)


def test_euler_poisson_keeps_its_casimirs_at_any_step():
    """A large step ruins the energy, but no method can leave the coadjoint orbit."""
    problem = euler_poisson()
    solution = lgsim.integrate(
        lgsim.MK4, problem.action, problem.field, problem.initial, dt=0.5, steps=40, args=problem.args
    )
    values = {name: along(invariant, solution.ys, problem.args) for name, invariant in problem.invariants.items()}
    drift = {name: np.abs(v - v[0]).max() for name, v in values.items()}
    assert drift["energy"] > 1e-3
    assert drift["up_squared"] < 1e-14
    assert drift["vertical_momentum"] < 1e-13


def test_the_canonical_fields_belong_to_their_hamiltonians():
    g = lgsim.so3.exp(jnp.array([0.4, -0.7, 0.3]))
    check_hamiltonian(heavy_top_cotangent(), (g, jnp.array([1.0, 0.5, -0.8])))
    mu = jnp.array([1.0, 0.5, -0.8, 0.3, -2.0, 0.9])
    check_hamiltonian(heavy_top_quadratic(), ((g, jnp.array([0.2, 0.6, -0.4])), mu))


@pytest.mark.repeats
@ALL
def test_gradients(make):
    check_gradients(make(), make(angular_velocity=(0.0, 0.0, 0.0)))


@pytest.mark.parametrize("name", ["bruls_cardona", "celledoni"])
def test_named_tops_are_those_of_the_reference(name):
    named = {"bruls_cardona": BRULS_CARDONA_TOP, "celledoni": CELLEDONI_TOP}[name]
    for argument, value in arguments(DATA[name]).items():
        np.testing.assert_allclose(named[argument], value, rtol=1e-15, err_msg=argument)


@pytest.mark.usefixtures("without_import_hook")
@ALL
def test_bad_numbers_are_named(make):
    with pytest.raises(ValueError, match=r"up: .*\|up\| = 1 fails by 8\.81.*up / norm\(up\)"):
        make(up=(0.0, 0.0, -9.81))
    with pytest.raises(ValueError, match=r"arm: .*\|arm\| = 1 fails by 1"):
        make(arm=(0.0, 0.0, 0.0))
    with pytest.raises(ValueError, match=r"attitude: .*R\^T R = 1 fails by 0\.2.*project\(attitude\)"):
        make(attitude=1.1 * np.eye(3))
    with pytest.raises(ValueError, match=r"weight_moment: expected shape \(\), got \(2,\)"):
        make(weight_moment=(1.0, 2.0))


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
