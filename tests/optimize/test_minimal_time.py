"""Minimal times against IPOPT, whose models are written by hand: a cart-pole, and a quadrotor through gates."""

import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.optimize import (
    AugmentedLagrangian,
    EndConstraint,
    FreeTime,
    InteriorPoint,
    MultibodyDynamics,
    NodeConstraint,
    Phase,
    Phases,
    Problem,
    StateBounds,
    solve,
)

ca = pytest.importorskip("casadi")
ARM, DRAG, INERTIA, THRUST = 0.2, 0.02, np.array([0.01, 0.01, 0.018]), 6.0
DRIVES = np.array([np.ones(4), [0, ARM, 0, -ARM], [-ARM, 0, ARM, 0], [DRAG, -DRAG, DRAG, -DRAG]])
GATES = np.array([[0, 0, 0], [1.2, 1.0, 0.5], [2.8, -1.0, 0.3], [4.0, 0, 0]])


def fourth_order(field, states, controls):
    """A Runge-Kutta step of fourth order of a field (x, u), as a function of CasADi."""
    x, u, h = ca.SX.sym("x", states), ca.SX.sym("u", controls), ca.SX.sym("h")
    a = field(x, u)
    b = field(x + h / 2 * a, u)
    c = field(x + h / 2 * b, u)
    d = field(x + h * c, u)
    return ca.Function("step", [x, u, h], [x + h / 6 * (a + 2 * b + 2 * c + d)])


def shortest_time(step, states, us, steps, longest, conditions):
    """The smallest sum of the times of phases by IPOPT, from a guess of states (nodes, n) and controls (nodes - 1, m).

    Args:
        steps: Number of steps of each phase.
        longest: The guess of each phase's time.
        conditions: Function of (states, controls) as expressions that returns a list of constraints.
    """
    nlp, phases = ca.Opti(), len(us) // steps
    x, u, times = nlp.variable(states.shape[1], len(states)), nlp.variable(us.shape[1], len(us)), nlp.variable(phases)
    for k in range(len(us)):
        nlp.subject_to(x[:, k + 1] == step(x[:, k], u[:, k], times[k // steps] / steps))
    for condition in (x[:, 0] == states[0], nlp.bounded(0.1, times, 5), *conditions(nlp, x, u)):
        nlp.subject_to(condition)
    nlp.minimize(ca.sum1(times))
    for variable, guess in ((x, states.T), (u, us.T), (times, longest)):
        nlp.set_initial(variable, guess)
    nlp.solver("ipopt", {"expand": True, "print_time": False}, {"print_level": 0, "sb": "yes", "tol": 1e-9})
    return nlp.solve().value(ca.sum1(times))


def cart_pole(x, u):
    """A cart of 1 kg and a pole of 0.3 kg, its center of mass 0.4 m below the hinge at angle zero."""
    s, c = ca.sin(x[1]), ca.cos(x[1])
    mass = ca.vertcat(ca.horzcat(1.3, -0.12 * c), ca.horzcat(-0.12 * c, 0.3 * 0.4**2 + 0.005))
    return ca.vertcat(x[2:4], ca.solve(mass, ca.vertcat(u - 0.12 * s * x[3] ** 2, -0.12 * 9.81 * s)))


@pytest.mark.slow
@pytest.mark.parametrize("solver, straight", [(InteriorPoint(), False), (AugmentedLagrangian(), True)])
def test_a_cart_pole_swings_up(solver, straight):
    """The one of lgsim.data, within 20 N, 2 m of rail and 10 m/s, from zero controls or a straight line of states.

    Seven controls of the optimum are between their bounds, which only second derivatives determine.
    """
    steps, limits = 50, np.array([2.0, np.inf, 10.0, np.inf])
    model = lgsim.load_urdf(lgsim.data.cart_pole(), dtype=jnp.float64)
    dynamics = MultibodyDynamics(model, 1.5 / steps, selection=jnp.array([[1.0], [0.0]]))
    top = np.array([0.0, np.pi, 0.0, 0.0])
    problem = Problem(
        dynamics, dynamics.state(), horizon=steps, lower=-20.0, upper=20.0,
        constraints=[EndConstraint(lambda t, y, args: y - jnp.asarray(top)), StateBounds(-limits, limits)],
        free=[FreeTime(0.2, 5.0, weight=1.0)],
    )  # fmt: skip
    line = np.linspace(0, 1, steps + 1)[:, None] * top
    found = solve(problem, None, line if straight else None, solver=solver)
    assert found.message == "" and float(found.violation) < 1e-6

    def conditions(nlp, x, u):
        within = [nlp.bounded(-b, x[i, :], b) for i, b in enumerate(limits) if np.isfinite(b)]
        return [x[:, -1] == top, nlp.bounded(-20, u, 20), *within]

    best = shortest_time(fourth_order(cart_pole, 4, 1), line, np.zeros((steps, 1)), steps, 1.5, conditions)
    np.testing.assert_allclose(found.ts[-1], best, rtol=1e-6)
    assert best < 0.9929


def quadrotor(x, u):
    """A rigid body under four thrusts: position, quaternion (w, x, y, z), velocity in the world, rates in the body."""
    w, i, j, k = (x[n] for n in range(3, 7))
    a, b, c = (x[n] for n in range(10, 13))
    wrench = ca.mtimes(DRIVES, u)
    up = ca.vertcat(2 * (i * k + w * j), 2 * (j * k - w * i), 1 - 2 * (i * i + j * j))
    turn = ca.vertcat(-i * a - j * b - k * c, w * a + j * c - k * b, w * b - i * c + k * a, w * c + i * b - j * a) / 2
    spin = (wrench[1:4] - ca.cross(x[10:13], INERTIA * x[10:13])) / INERTIA
    return ca.vertcat(x[7:10], turn, up * wrench[0] - np.array([0, 0, 9.81]), spin)


@pytest.mark.slow
def test_a_quadrotor_through_two_gates():
    """Three phases, each with its own time, from hovering to hovering; the guess is a line from gate to gate."""
    steps = 15
    body = {"mass": 1.0, "inertia": np.diag(INERTIA)}
    model = lgsim.ModelBuilder().add_body("body", "world", lgsim.joints.Free(), **body).build()
    dynamics = MultibodyDynamics(model, 0.6 / steps, selection=jnp.vstack([np.zeros((2, 4)), DRIVES]))
    rest = np.eye(13)[3]
    goal = jnp.asarray(rest + np.pad(GATES[-1], (0, 10)))
    phase = Phase(dynamics, steps, time=FreeTime(0.1, 5.0, weight=1.0))
    at_gates = [
        NodeConstraint(lambda t, y, u, args, i=i: y[:3] - jnp.asarray(GATES[i]), nodes=[i * steps]) for i in (1, 2)
    ]
    problem = Problem(
        Phases([phase] * 3), jnp.asarray(rest), horizon=3 * steps, lower=0.0, upper=THRUST,
        constraints=[*at_gates, EndConstraint(lambda t, y, args: dynamics.action.difference(goal, y))],
    )  # fmt: skip
    states = np.tile(rest, (3 * steps + 1, 1))
    nodes = np.arange(3 * steps + 1) / steps
    states[:, :3] = np.stack([np.interp(nodes, range(4), column) for column in GATES.T], axis=1)
    hover = np.full((3 * steps, 4), 9.81 / 4)
    found = solve(problem, hover, states, solver=InteriorPoint())
    assert found.message == "" and float(found.violation) < 1e-6
    for i in (1, 2, 3):
        np.testing.assert_allclose(found.ys[i * steps, :3], GATES[i], atol=1e-7)

    def conditions(nlp, x, u):
        gates = [x[:3, i * steps] == GATES[i] for i in (1, 2, 3)]
        return [*gates, x[4:, -1] == np.zeros(9), nlp.bounded(0, u, THRUST)]

    best = shortest_time(fourth_order(quadrotor, 13, 4), states, hover, steps, np.full(3, 0.6), conditions)
    np.testing.assert_allclose(found.ts[-1], best, rtol=1e-5)
