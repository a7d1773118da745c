"""Two quadrotors with a load against extended-precision states, and their controllers against what they promise."""

import json
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from systems.quadrotor_control import (
    GivenForces,
    GivenThrusts,
    command,
    desired_attitudes,
    desired_path,
    given_forces,
    given_thrusts,
    track,
    track_by_forces,
    tracking_gains,
    two_quadrotors_tracking,
)

import lgsim
from lgsim.systems.quadrotors import QuadrotorParameters, linear_momentum, state_rates, two_quadrotors
from tests.systems.checks import check_gradients, floats, solve

DATA = json.loads((Path(__file__).parents[1] / "data" / "quadrotors.json").read_text())
MADE = {
    "none": {},
    "forces": {
        "control": given_forces,
        "parameters": GivenForces(**{k: jnp.array(v) for k, v in DATA["inputs"].items()}),
    },
}


def start():
    load, links = floats(DATA["initial"]["load"]), floats(DATA["initial"]["links"])
    return {
        "vehicles": QuadrotorParameters(**DATA["parameters"]),
        "position": load[:3],
        "velocity": load[3:],
        "attitudes": floats(DATA["initial"]["attitudes"]),
        "angular_velocities": floats(DATA["initial"]["angular_velocities"]),
        "directions": links[:, :3],
        "link_velocities": links[:, 3:],
    }


def resting(**arguments):
    return two_quadrotors(
        **{**start(), "velocity": np.zeros(3), "angular_velocities": None, "link_velocities": None, **arguments}
    )


def run(problem, time, steps, method=lgsim.MK4):
    return lgsim.integrate(
        method, problem.action, problem.field, problem.initial, dt=time / steps, steps=steps, args=problem.args
    )


@pytest.mark.slow
@pytest.mark.typed
@pytest.mark.parametrize("name", DATA["cases"])
def test_states_reach_the_reference(name):
    state = solve(two_quadrotors(**start(), **MADE[name]), DATA["t"], 200)
    for part, found in zip(("load", "attitudes", "angular_velocities", "links"), state, strict=True):
        expected = floats(DATA["cases"][name]["state"][part])
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * max(1, np.abs(expected).max()), err_msg=part)


@pytest.mark.parametrize("name", DATA["cases"])
def test_accelerations_at_the_start(name):
    problem = two_quadrotors(**start(), **MADE[name])
    inputs = (MADE[name]["parameters"].forces, MADE[name]["parameters"].moments) if MADE[name] else None
    load, spin, spin_dot, omega_dot = state_rates(problem.initial, problem.args[0], inputs)
    expected = {key: floats(value) for key, value in DATA["cases"][name]["rates"].items()}
    np.testing.assert_allclose(load[3:], expected["load"], rtol=0, atol=1e-14)
    np.testing.assert_allclose(spin_dot, expected["spin"], rtol=0, atol=1e-15)
    np.testing.assert_allclose(omega_dot, expected["links"], rtol=0, atol=1e-14)
    np.testing.assert_array_equal(spin, problem.initial[2])


def test_energy_at_the_start():
    problem = two_quadrotors(**start())
    energy = problem.invariants["energy"](problem.initial, problem.args)
    np.testing.assert_allclose(energy, DATA["cases"]["none"]["energy_0"], rtol=1e-15)


def test_momentum_of_a_formation_that_does_not_turn():
    """That of all masses at the load's velocity."""
    problem = resting(velocity=np.array([0.3, -0.2, 0.5]))
    vehicles = problem.args[0]
    mass = float(vehicles.load_mass + np.sum(vehicles.masses))
    np.testing.assert_allclose(
        linear_momentum(problem.initial, vehicles), mass * np.array([0.3, -0.2, 0.5]), rtol=1e-14
    )


def test_thrusts_push_along_the_third_axes():
    problem = two_quadrotors(**start())
    given = GivenThrusts(jnp.array([16.5, 17.25]), jnp.zeros((2, 3)))
    forces, _ = given_thrusts(0.0, problem.initial, problem.args[0], given)
    R = floats(DATA["initial"]["attitudes"])
    np.testing.assert_allclose(forces, -np.array([[16.5], [17.25]]) * R[:, :, 2], rtol=1e-15)


def test_the_path_is_its_polynomial():
    goal = tracking_gains(path=[[1.0, 2.0, 3.0], [0.5, 0.0, -1.0], [0.2, -0.3, 0.1], [0.0, 0.4, 0.6]])
    coefficients = np.asarray(goal.path)[::-1]
    expected = [[np.polyval(np.polyder(c, k), 1.3) for c in coefficients.T] for k in range(5)]
    np.testing.assert_allclose(desired_path(jnp.array(1.3), goal), expected, rtol=1e-14, atol=1e-15)


def on_the_formation(offset, drift):
    """A start at which the links have their commanded directions and velocities; the load is off its path."""
    goal = tracking_gains()
    path = desired_path(jnp.array(0.0), goal)
    load = jnp.concatenate([path[0] + offset, path[1] + drift])
    links = two_quadrotors().initial[3]
    for _ in range(60):  # the commanded velocities depend on the directions, and these on nothing of the links
        asked = command(0.0, load, links, two_quadrotors().args[0], goal)
        omega = (
            asked.velocities - jnp.sum(asked.velocities * asked.directions, axis=-1, keepdims=True) * asked.directions
        )
        links = jnp.concatenate([asked.directions, omega], axis=-1)
    return two_quadrotors_tracking(
        control=track_by_forces,
        position=load[:3],
        velocity=load[3:],
        directions=links[:, :3],
        link_velocities=links[:, 3:],
    )


@pytest.mark.slow
def test_on_the_formation_the_load_is_a_damped_oscillator():
    """The links stay where they are asked to be, so e'' = -k_v e' - k_x e, exactly: all feed-forward terms count."""
    offset, drift = np.array([0.3, -0.4, 0.2]), np.array([0.1, 0.5, -0.2])
    problem = on_the_formation(offset, drift)
    run_ = run(problem, 2.0, 200, lgsim.CF4)
    goal = problem.args[1]
    path = jax.vmap(lambda t: desired_path(t, goal)[0])(run_.ts)
    t = np.asarray(run_.ts)[:, None]
    exact = (offset + (drift + 2 * offset) * t) * np.exp(-2 * t)  # k_x = 4, k_v = 4: critical damping
    np.testing.assert_allclose(run_.ys[0][:, :3] - path, exact, rtol=0, atol=1e-7)
    asked = jax.vmap(lambda t, load, links: command(t, load, links, *problem.args))(run_.ts, run_.ys[0], run_.ys[3])
    np.testing.assert_allclose(run_.ys[3][:, :, :3], asked.directions, rtol=0, atol=1e-7)


@pytest.fixture(scope="module")
def tracked():
    """Five seconds along the parabola with thrusts and moments."""
    problem = two_quadrotors_tracking()
    return problem, run(problem, 5.0, 500, lgsim.CF4)


@pytest.mark.slow
def test_the_load_follows_the_parabola(tracked):
    problem, solution = tracked
    goal = problem.args[1]
    off = np.linalg.norm(solution.ys[0][:, :3] - jax.vmap(lambda t: desired_path(t, goal)[0])(solution.ts), axis=-1)
    assert off[0] > 0.5
    assert off[-1] < 2e-3
    asked = jax.vmap(lambda t, load, links: command(t, load, links, *problem.args))(
        solution.ts, solution.ys[0], solution.ys[3]
    )
    astray = np.linalg.norm(asked.directions - solution.ys[3][:, :, :3], axis=-1)
    assert astray[0].max() > 0.3
    assert astray[-1].max() < 1e-6
    q = np.asarray(solution.ys[3])
    assert np.abs(np.sum(q[..., :3] ** 2, axis=-1) - 1).max() < 1e-13
    assert np.abs(np.sum(q[..., :3] * q[..., 3:], axis=-1)).max() < 1e-13


@pytest.mark.slow
@pytest.mark.typed
def test_attitudes_follow_their_own_law(tracked):
    """R_e = R_d^T R obeys J e_O' = -k_R e_R - k_O e_O, R_e' = R_e hat(e_O), whatever the load does: with scipy."""
    problem, solution = tracked
    vehicles, goal = problem.args

    def relative(t, load, R, links):
        R_d = desired_attitudes(command(t, load, links, vehicles, goal).forces, goal.heading)
        return jnp.swapaxes(R_d, -1, -2) @ R

    R_e = np.asarray(jax.vmap(relative)(solution.ts, solution.ys[0], solution.ys[1], solution.ys[3]))
    n, dt = 40, 0.01
    # R_e' at the start by differences of fourth order, whose error is what the tolerance is for
    slope = np.einsum("k,knij->nij", np.array([-25, 48, -36, 16, -3]) / (12 * dt), R_e[:5])
    moments = np.asarray(vehicles.inertia)

    def vee(m):
        return 0.5 * np.array([m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]])

    def law(t, z, J):
        R, e = z[:9].reshape(3, 3), z[9:]
        return np.concatenate([(R @ np.cross(np.eye(3), e)).ravel(), (-8.0 * vee(R) - 2.0 * e) / J])

    for i in range(2):
        z0 = np.concatenate([R_e[0, i].ravel(), vee(R_e[0, i].T @ slope[i])])
        exact = solve_ivp(partial(law, J=moments[i]), (0, n * dt), z0, t_eval=[n * dt], rtol=1e-10, atol=1e-12).y[
            :9, -1
        ]
        assert np.abs(R_e[0, i] - R_e[n, i]).max() > 0.1
        np.testing.assert_allclose(R_e[n, i].ravel(), exact, rtol=0, atol=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", DATA["cases"])
def test_gradients(name):
    check_gradients(two_quadrotors(**start(), **MADE[name]), resting(**MADE[name]))


@pytest.mark.slow
@pytest.mark.typed
@pytest.mark.parametrize("control", [track_by_forces, pytest.param(track, marks=pytest.mark.exhaustive)])
def test_gradients_of_controlled_flight(control):
    """By gains, path and formation as well."""
    moving = two_quadrotors_tracking(control=control, **{k: v for k, v in start().items() if k != "position"})
    check_gradients(moving, two_quadrotors_tracking(control=control), steps=2)


@pytest.mark.usefixtures("without_import_hook")
def test_bad_starts_are_named():
    with pytest.raises(ValueError, match=r"attitudes: .*R\^T R = 1 fails by 0\.2"):
        two_quadrotors(attitudes=1.1 * np.tile(np.eye(3), (2, 1, 1)))
    with pytest.raises(ValueError, match=r"\(directions, link_velocities\): .*\|q\| = 1 fails by 1"):
        two_quadrotors(directions=np.zeros((2, 3)))
    vehicles = two_quadrotors().args[0]
    with pytest.raises(ValueError, match="load_mass: expected numbers above zero"):
        two_quadrotors(vehicles=vehicles._replace(load_mass=0.0))
    with pytest.raises(ValueError, match=r"inertia: expected shape \(2, 3\)"):
        two_quadrotors(vehicles=vehicles._replace(inertia=np.ones(3)))
    with pytest.raises(ValueError, match="masses: expected a list of one number or more"):
        two_quadrotors(vehicles=vehicles._replace(masses=1.0))
    with pytest.raises(ValueError, match=r"goal\.spread: expected shape \(2, 3\), got \(3, 3\)"):
        two_quadrotors_tracking(goal=tracking_gains(spread=np.zeros((3, 3)), heading=np.eye(3)))


@pytest.mark.slow
@pytest.mark.float32
@pytest.mark.parametrize("control", [None, track])
def test_problems_follow_the_dtype(control):
    problem = two_quadrotors(jnp.float32) if control is None else two_quadrotors_tracking(jnp.float32, control=control)
    rates = problem.field(jnp.float32(0.1), problem.initial, problem.args)
    leaves = jax.tree.leaves((problem.initial, problem.args, rates))
    assert {leaf.dtype for leaf in leaves} == {jnp.dtype("float32")}
    assert np.all(np.isfinite(rates))
