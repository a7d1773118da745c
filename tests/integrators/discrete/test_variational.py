"""Variational methods: given trajectories, orders, what they keep, forces, derivatives."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from systems.quaternion_body import free_rigid_body_quaternion

import lgsim
from lgsim.integrators import methods as named
from lgsim.integrators.coordinates import EXPONENTIAL
from lgsim.integrators.discrete.charts import chart
from lgsim.integrators.discrete.galerkin_scheme import LOBATTO3, TRAPEZOID
from lgsim.integrators.discrete.variational import Variational, VariationalStep
from lgsim.integrators.newton import Newton
from tests.integrators import lagrangians
from tests.integrators.derivatives import Derivatives
from tests.integrators.engines import default
from tests.integrators.lagrangians import DATA, FREE_BODY, INERTIA, floats, heavy_top, on, pendulum, pendulum_end
from tests.integrators.methods.test_orders import measured_order
from tests.integrators.methods.test_symplectic import symplectic_gap
from tests.integrators.problems import advance, flat

ALL = lgsim.VARIATIONAL_METHODS
COUNTS = {2: [128, 181, 256, 362], 4: [32, 45, 64, 91, 128], 6: [20, 24, 28, 34, 40, 48]}
WINDOW = 0.1


def last(solution):
    return jax.tree.map(lambda leaf: leaf[-1], solution.ys)


# Given trajectories.


@pytest.mark.parametrize(
    "method", [named.VariationalTrapezoid, lgsim.EnergyMomentum()], ids=["rattle", "energy_momentum"]
)
def test_double_pendulum_of_the_references(method):
    name = "rattle" if method == named.VariationalTrapezoid else "energy_momentum"
    first = pendulum()

    @jax.jit
    def step(y, h, args):
        y1, _, residual = method.monitored_step(first.action, first.field, jnp.zeros(()), y, h, args)
        return y1, residual, method.multipliers(first.field, 0.0, y, h, args)[0]

    for run in DATA["double_spherical_pendulum"]:
        problem = pendulum(run)
        y = problem.initial
        for k in range(1, max(map(int, run[name])) + 1):
            y, residual, multipliers = step(y, float(run["h"]), problem.args)
            assert residual < 1e-12
            if str(k) in run[name]:
                told = run[name][str(k)]
                np.testing.assert_allclose(y[0], floats(told["x"]), rtol=0, atol=1e-13)
                np.testing.assert_allclose(y[1], floats(told["p"]), rtol=0, atol=1e-13)
                # a rounding of positions is a multiplier of its size over h^2
                bound = 1e-15 / float(run["h"]) ** 2
                np.testing.assert_allclose(multipliers, floats(told["lambda_of_the_step"]), rtol=0, atol=bound)
                energy = problem.invariants["energy"](y, problem.args)
                np.testing.assert_allclose(energy, float(told["energy"]), rtol=1e-13)


MAPS = {
    "exp": (named.VariationalMidpoint,),
    "cayley": (named.VariationalMidpointCayley,),
    "quaternion": (lgsim.MoserVeselov(),),
    "moser_veselov": (lgsim.MoserVeselov(),),
}


@pytest.mark.slow
@pytest.mark.parametrize("run", DATA["free_rigid_body"], ids=lambda run: run["map"])
def test_free_body_of_the_references(run):
    inertia, momentum = (jnp.asarray(x) for x in (floats(run["I"]), floats(run["I"]) * floats(run["omega0"])))
    for method in MAPS[run["map"]]:
        found = lgsim.integrate(
            method, on(lgsim.SO3), FREE_BODY, (jnp.eye(3), momentum), dt=float(run["h"]), steps=20, args=inertia
        )
        for k, told in run["states"].items():
            R, mu = (leaf[int(k)] for leaf in found.ys)
            np.testing.assert_allclose(R, floats(told["R"]), rtol=0, atol=1e-13)
            np.testing.assert_allclose(R.T @ mu, floats(told["Pi"]), rtol=0, atol=1e-13)
        np.testing.assert_array_equal(found.ys[1], np.tile(momentum, (21, 1)))  # in space, bit by bit


@pytest.mark.slow
def test_the_thesis_body_in_unit_quaternions_is_moser_and_veselovs():
    """A vector of R^4 with the constraint |q| = 1 beside matrices F that solve h hat(Pi) = F J - J F^T."""
    omega, h, steps = np.array([0.4, 1.5, -0.7]), 0.1, 50
    problem = free_rigid_body_quaternion(angular_velocity=omega)
    found = lgsim.integrate(
        named.VariationalMidpoint, problem.action, problem.field, problem.initial, dt=h, steps=steps, args=problem.args
    )
    start = (jnp.array([1.0, 0.0, 0.0, 0.0]), INERTIA * omega)
    mechanics = lgsim.DiscreteMechanics(lgsim.UnitQuaternion, lagrangians.body)
    other = lgsim.integrate(
        lgsim.MoserVeselov(), on(lgsim.UnitQuaternion), mechanics, start, dt=h, steps=steps, args=INERTIA
    )
    np.testing.assert_allclose(found.ys[0], other.ys[0], rtol=0, atol=1e-13)
    momenta = jax.vmap(lambda y: problem.invariants["angular_momentum"](y, problem.args))(found.ys)
    np.testing.assert_allclose(momenta, other.ys[1], rtol=0, atol=1e-13)
    # the energy of the free body is exact
    bodies = jax.vmap(lgsim.quaternion.Ad_dual_action)(*other.ys)
    energies = np.sum(np.asarray(bodies) ** 2 / np.asarray(INERTIA), axis=1)
    assert np.ptp(energies) < 1e-13 * energies[0]


def test_moser_veselov_solves_its_equation():
    h, Pi = 0.2, jnp.array([0.3, -1.4, 2.2])
    (R, mu), *_ = lgsim.MoserVeselov().monitored_step(
        on(lgsim.SO3), FREE_BODY, jnp.zeros(()), (jnp.eye(3), Pi), jnp.asarray(h), INERTIA
    )
    J = np.diag(3.0 - np.asarray(INERTIA))
    np.testing.assert_allclose(h * np.asarray(lgsim.so3.hat(Pi)), R @ J - J @ R.T, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(mu, Pi)


# RATTLE, SHAKE and Verlet.


@pytest.mark.slow
def test_rattle_shake_and_verlet_have_the_same_positions():
    """SHAKE knows no velocity: x_(k+1) - 2 x_k + x_(k-1) = -h^2 (grad V + G(x_k)^T lambda)/m."""
    h, steps = 0.01, 60
    problem = pendulum()
    found = lgsim.integrate(
        named.VariationalTrapezoid, problem.action, problem.field, problem.initial, dt=h, steps=steps, args=problem.args
    )
    x = np.asarray(found.ys[0], np.longdouble)

    def gaps(x):
        rods = np.diff(x.reshape(2, 3), axis=0, prepend=np.zeros((1, 3)))
        return (np.sum(rods**2, axis=1) - 1) / 2

    def slopes(x):
        a, b = x[:3], x[3:] - x[:3]
        return np.stack([np.concatenate([a, 0 * a]), np.concatenate([-b, b])])

    fall = h**2 * np.tile([0, 0, -9.81], 2).astype(np.longdouble)
    before, now = x[0], x[1]
    for k in range(2, steps + 1):
        free, G, multipliers = 2 * now - before + fall, slopes(now), np.zeros(2, np.longdouble)
        for _ in range(8):
            after = free - multipliers @ G
            matrix = np.asarray(slopes(after) @ G.T, float)
            multipliers = multipliers + np.linalg.solve(matrix, np.asarray(gaps(after), float))
        before, now = now, free - multipliers @ G
        np.testing.assert_allclose(now.astype(float), found.ys[0][k], rtol=0, atol=1e-13)

    free = lgsim.DiscreteMechanics(lgsim.Euclidean(3), lagrangians.spring)
    start = lagrangians.SPRING_START
    verlet = lgsim.integrate(named.VariationalTrapezoid, on(lgsim.Euclidean(3)), free, start, dt=h, steps=steps)
    force = jax.jit(jax.grad(lambda x: -lagrangians.spring(x, jnp.zeros(3), None)))
    x, p = map(np.asarray, start)
    for k in range(1, steps + 1):
        half = p - h / 2 * np.asarray(force(x))
        x = x + h * half
        p = half - h / 2 * np.asarray(force(x))
        np.testing.assert_allclose(verlet.ys[0][k], x, rtol=0, atol=1e-13)
        np.testing.assert_allclose(verlet.ys[1][k], p, rtol=0, atol=1e-13)


# Orders.

CHOSEN = ("VariationalMidpoint", "VariationalLobatto3", "VariationalLobatto4")


@pytest.mark.slow
@pytest.mark.parametrize("name", default(ALL, (*CHOSEN, "VariationalMidpointCayley", "VariationalSuzuki4")))
def test_order_on_rotations(name):
    method = ALL[name]
    assert abs(measured_order(method, heavy_top(), COUNTS[method.order]) - method.order) < WINDOW


def test_order_of_verlet_and_its_composition():
    """On vectors, against closed forms: the period of a harmonic oscillator in three directions."""
    stiffness = np.array([1.0, 2.0, 5.0])
    mechanics = lgsim.DiscreteMechanics(
        lgsim.Euclidean(3), lambda x, v, k: 0.5 * jnp.sum(v * v) - 0.5 * jnp.sum(k * x * x)
    )
    start, rates = (jnp.array([1.0, -0.5, 0.3]), jnp.array([0.2, 0.9, -0.4])), np.sqrt(stiffness)
    exact = np.asarray(start[0]) * np.cos(2 * rates) + np.asarray(start[1]) * np.sin(2 * rates) / rates
    for name, counts in (("VariationalTrapezoid", [64, 128]), ("VariationalTrapezoidSuzuki4", [32, 64])):
        run = advance(
            ALL[name],
            lagrangians.Problem(on(lgsim.Euclidean(3)), mechanics, start, jnp.asarray(stiffness), 0.0, 2.0, exact),
        )
        errors = [np.linalg.norm(np.asarray(run(n, 2.0 / n)[0][0]) - exact) for n in counts]
        assert abs(np.log2(errors[0] / errors[1]) - ALL[name].order) < WINDOW


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("VariationalMidpoint", [200, 400]),
        ("VariationalTrapezoid", [200, 400]),
        ("VariationalLobatto3", [80, 160]),
        ("VariationalTrapezoidSuzuki4", [160, 320]),
        ("VariationalLobatto4", [30, 60]),
    ],
)
def test_order_with_constraints(name, counts):
    """Positions and momenta of the pendulum, against the equations of its angular velocities."""
    problem, time, method = pendulum(), 1.0, ALL[name]
    exact = np.concatenate(pendulum_end(time))
    run = advance(
        method, lagrangians.Problem(problem.action, problem.field, problem.initial, problem.args, 0.0, time, exact)
    )
    errors = [np.linalg.norm(flat(run(n, time / n)[0]) - exact) for n in counts]
    assert abs(np.log2(errors[0] / errors[1]) - method.order) < WINDOW, errors


def broken_step(scheme):
    """A step in coordinates whose differential has the sign of its argument flipped."""
    right = chart(EXPONENTIAL, lgsim.SO3)
    return VariationalStep(
        FREE_BODY, scheme, right._replace(body_differential=lambda u, w: right.body_differential(-u, w)), Newton()
    )


@pytest.mark.slow
@pytest.mark.parametrize("scheme", [TRAPEZOID, LOBATTO3], ids=lambda scheme: scheme.name)
def test_a_flipped_sign_in_the_differential_shows(scheme):
    """The harness proves itself: such a step is not the reference's, nor of the order of its scheme."""
    run = DATA["free_rigid_body"][0]
    start = (jnp.eye(3), jnp.asarray(floats(run["I"]) * floats(run["omega0"])))
    h, told = float(run["h"]), floats(run["states"]["1"]["R"])
    right = VariationalStep(FREE_BODY, scheme, chart(EXPONENTIAL, lgsim.SO3), Newton())
    both = jax.jit(lambda h: [s.advance(0 * h, start, h, INERTIA)[0][0] for s in (right, broken_step(scheme))])
    R, wrong = both(h)
    if scheme == TRAPEZOID:
        np.testing.assert_allclose(R, told, rtol=0, atol=1e-13)
    assert np.abs(np.asarray(R) - told).max() < 2e-4 and np.abs(np.asarray(wrong) - told).max() > 1e-3


# What is kept.


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", default(ALL, ("VariationalLobatto3", "VariationalMidpointCayley", "VariationalSuzuki4"))
)
def test_a_step_back_undoes_a_step(name):
    problem = heavy_top()
    there = lgsim.integrate(
        ALL[name], problem.action, problem.field, problem.initial, dt=0.2, steps=3, args=problem.args
    )
    back = lgsim.integrate(ALL[name], problem.action, problem.field, last(there), dt=-0.2, steps=3, args=problem.args)
    assert np.abs(flat(last(there)) - flat(problem.initial)).max() > 0.5
    np.testing.assert_allclose(flat(last(back)), flat(problem.initial), rtol=0, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["VariationalTrapezoid", "VariationalLobatto3", "VariationalMidpoint"])
def test_a_step_back_undoes_a_step_with_constraints(name):
    problem = pendulum()
    there = lgsim.integrate(
        ALL[name], problem.action, problem.field, problem.initial, dt=0.05, steps=4, args=problem.args
    )
    back = lgsim.integrate(ALL[name], problem.action, problem.field, last(there), dt=-0.05, steps=4, args=problem.args)
    np.testing.assert_allclose(flat(last(back)), flat(problem.initial), rtol=0, atol=1e-13)


def entries(g, v, args):
    """A Lagrangian of all entries of an element, without a symmetry, whose mass changes with the place."""
    numbers = jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(g)])
    weights = jnp.arange(1.0, v.size + 1) + 0.2 * jnp.sin(numbers[0])
    return (
        0.5 * jnp.sum(weights * v * v)
        + 0.1 * v[0] * v[-1]
        - jnp.sum(jnp.sin(numbers * jnp.arange(1.0, numbers.size + 1)))
    )


GROUPS = {
    "SO3": lgsim.SO3,
    "SE3": lgsim.SE3,
    "quaternion x R2": lgsim.Product(lgsim.UnitQuaternion, lgsim.Euclidean(2)),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "group"),
    default(
        [(name, group) for name in ALL for group in GROUPS],
        [("VariationalMidpoint", "SE3"), ("VariationalLobatto3", "quaternion x R2"),
         ("VariationalMidpointCayley", "SO3"), ("VariationalTrapezoid", "SO3")],
    ),
)  # fmt: skip
def test_the_symplectic_form_is_kept(name, group, key):
    group = GROUPS[group]
    mechanics = lgsim.DiscreteMechanics(group, entries)
    start = (group.random(key), jnp.linspace(-0.5, 0.8, group.dim))
    assert symplectic_gap(ALL[name], on(group), mechanics, start, 0.1, None) < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("name", ["VariationalTrapezoid", "VariationalLobatto3"])
def test_the_symplectic_form_is_kept_with_constraints(name):
    """Along the motions that the constraints leave, of two angles for each rod and their rates."""
    problem = pendulum()
    method, mechanics = ALL[name], problem.field

    def positions(angles):
        a, b = angles.reshape(2, 2).T
        return jnp.cumsum(
            jnp.stack([jnp.cos(a) * jnp.cos(b), jnp.sin(a) * jnp.cos(b), jnp.sin(b)], axis=-1), axis=0
        ).ravel()

    def state(z):
        x, v = jax.jvp(positions, (z[:4],), (z[4:],))
        return mechanics.state(x, v, problem.args)

    def step(z):
        return method.step(problem.action, mechanics, jnp.zeros(()), state(z), jnp.asarray(0.05), problem.args)[0]

    z = jnp.array([0.3, -0.4, 1.1, 0.2, 0.7, -0.5, 0.9, 0.4])
    before, after = (jnp.concatenate(J) for J in jax.jit(lambda z: (jax.jacfwd(state)(z), jax.jacfwd(step)(z)))(z))
    one = np.eye(6)
    form = np.block([[0 * one, one], [-one, 0 * one]])
    assert np.abs(before.T @ form @ before).max() > 0.5
    np.testing.assert_allclose(after.T @ form @ after, before.T @ form @ before, rtol=0, atol=1e-10)


@pytest.mark.slow
@pytest.mark.typed
def test_noethers_momentum_is_constant():
    """About gravity of a heavy top, and of the pendulum, over 2000 steps."""
    problem = heavy_top()
    run = lgsim.integrate(
        named.VariationalMidpoint,
        problem.action,
        problem.field,
        problem.initial,
        dt=0.02,
        steps=2000,
        args=problem.args,
    )
    about = lgsim.discrete_momentum_map(lagrangians.TOP, problem.args.up)
    values = np.asarray(jax.vmap(about)(run.ys))
    assert np.ptp(values) < 1e-13 * np.abs(run.ys[1]).max()
    moving = lgsim.discrete_momentum_map(lagrangians.TOP, lambda R, args: jnp.stack([R.T @ args.up, R[0]]))
    both = np.asarray(jax.vmap(lambda y: moving(y, problem.args))(run.ys))
    np.testing.assert_allclose(both[:, 0], values, rtol=0, atol=1e-13)
    assert np.ptp(both[:, 1]) > 0.1

    problem = pendulum()
    turns = lgsim.discrete_momentum_map(problem.field, lgsim.systems.turns_about_vertical)
    run = lgsim.integrate(
        named.VariationalTrapezoid,
        problem.action,
        problem.field,
        problem.initial,
        dt=0.02,
        steps=2000,
        args=problem.args,
    )
    values = np.asarray(jax.vmap(turns)(run.ys))
    assert np.ptp(values) < 2e-13 * np.abs(values).max()
    gaps = jax.vmap(lambda y: problem.invariants["lengths"](y, problem.args))(run.ys)
    assert np.abs(gaps).max() < 1e-14
    energies = np.asarray(jax.vmap(lambda y: problem.invariants["energy"](y, problem.args))(run.ys))
    first, second = np.abs(energies - energies[0])[1:].reshape(2, -1).max(axis=1)
    assert 0 < second < 2 * first and first < 0.5  # of 24 J between the highest and the lowest positions


# Forces, and the equations of motion.


def drag(R, v, inertia):
    """A torque in the body that slows it and one that turns with it."""
    return jnp.array([0.1, -0.2, 0.3]) - 0.4 * v


def slowed_end(time):
    """Euler's equations with these torques, by scipy."""

    def rate(t, y):
        R, w = y[:9].reshape(3, 3), y[9:]
        inertia = np.asarray(INERTIA)
        torque = np.array([0.1, -0.2, 0.3]) - 0.4 * w
        spin = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
        return np.concatenate([(R @ spin).ravel(), (np.cross(inertia * w, w) + torque) / inertia])

    start = np.concatenate([np.eye(3).ravel(), [0.8, -0.4, 1.1]])
    y = solve_ivp(rate, (0, time), start, method="DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    R = y[:9].reshape(3, 3)
    return np.concatenate([y[:9], R @ (np.asarray(INERTIA) * y[9:])])


@pytest.mark.slow
@pytest.mark.parametrize("name", CHOSEN)
def test_order_with_forces(name):
    mechanics = lgsim.DiscreteMechanics(lgsim.SO3, lagrangians.body, force=drag)
    start = mechanics.state(jnp.eye(3), jnp.array([0.8, -0.4, 1.1]), INERTIA)
    case = lagrangians.Problem(on(lgsim.SO3), mechanics, start, INERTIA, 0.0, 2.0, slowed_end(2.0))
    assert abs(measured_order(ALL[name], case, COUNTS[ALL[name].order]) - ALL[name].order) < WINDOW


def test_the_sign_of_a_force_and_of_its_two_halves():
    """A constant force f: p grows by h f and x by h (p + h f/2), exactly, by half of f at each end."""
    h, f, p = 0.1, jnp.array([2.0, -3.0]), jnp.array([0.5, 0.7])
    mechanics = lgsim.DiscreteMechanics(
        lgsim.Euclidean(2), lambda x, v, args: 0.5 * jnp.sum(v * v), force=lambda x, v, args: f
    )
    for name in ("VariationalTrapezoid", "VariationalMidpoint"):
        (x1, p1), _ = ALL[name].step(on(lgsim.Euclidean(2)), mechanics, jnp.zeros(()), (0 * p, p), jnp.asarray(h), None)
        np.testing.assert_allclose(p1, p + h * f, rtol=0, atol=1e-15)
        np.testing.assert_allclose(x1, h * (p + h * f / 2), rtol=0, atol=1e-15)


def test_forces_of_the_time_and_inputs():
    """A force t^2 by Lobatto points is integrated exactly; held inputs come in args as for all methods."""
    mechanics = lgsim.DiscreteMechanics(
        lgsim.Euclidean(1), lambda t, x, v, args: 0.5 * jnp.sum(v * v), force=lambda t, x, v, args: t**2 + args[1],
        depends_on_time=True,
    )  # fmt: skip
    zero = jnp.zeros(1)
    run = lgsim.integrate(
        named.VariationalLobatto3, on(lgsim.Euclidean(1)), mechanics, (zero, zero), dt=0.5, steps=4,
        inputs=jnp.array([[1.0], [0.0], [0.0], [2.0]]),
    )  # fmt: skip
    np.testing.assert_allclose(run.ys[1][-1], [8 / 3 + 1.5], rtol=1e-14)


def test_other_methods_take_the_equations_of_motion():
    """The same object is a field: MK4 of the constrained pendulum against its angular velocities."""
    problem = pendulum()
    found = lgsim.integrate(
        lgsim.MK4, problem.action, problem.field, problem.initial, dt=0.01, steps=50, args=problem.args
    )
    np.testing.assert_allclose(flat(last(found)), np.concatenate(pendulum_end(0.5)), rtol=0, atol=1e-6)


@pytest.mark.slow
def test_other_methods_take_forces_and_rotations():
    mechanics = lgsim.DiscreteMechanics(lgsim.SO3, lagrangians.body, force=drag)
    start = mechanics.state(jnp.eye(3), jnp.array([0.8, -0.4, 1.1]), INERTIA)
    found = lgsim.integrate(lgsim.MK4, on(lgsim.SO3), mechanics, start, dt=0.01, steps=200, args=INERTIA)
    np.testing.assert_allclose(flat(last(found)), slowed_end(2.0), rtol=0, atol=1e-8)
    np.testing.assert_allclose(mechanics.velocity(start, INERTIA), [0.8, -0.4, 1.1], rtol=1e-14)
    top = heavy_top()
    found = lgsim.integrate(
        lgsim.MK4, top.action, lagrangians.TOP, top.initial, dt=top.time / 400, steps=400, args=top.args
    )
    np.testing.assert_allclose(flat(last(found)), top.final, rtol=0, atol=1e-6)


# Derivatives, batches, precision.


def scalar(y):
    return sum(jnp.sum(jnp.cos(jnp.arange(1.0, leaf.size + 1)) * leaf.ravel()) for leaf in jax.tree.leaves(y))


def top_value(method, turn, kick, numbers, dt):
    start = heavy_top().initial
    y = (start[0] @ lgsim.so3.exp(turn), start[1] + kick)
    step = lambda y, _: (method.step(on(lgsim.SO3), lagrangians.TOP, 0 * dt, y, dt, numbers)[0], None)  # noqa: E731
    return scalar(jax.lax.scan(step, y, None, length=3)[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["VariationalMidpoint", "VariationalLobatto3"])
def test_both_modes_and_differences(name):
    inputs = (jnp.zeros(3), jnp.zeros(3), heavy_top().args, jnp.asarray(0.1))
    Derivatives(partial(top_value, ALL[name])).check(inputs)


def pendulum_value(method, kick, masses, dt):
    """Three steps of the pendulum from a momentum that the constraints leave."""
    problem = pendulum()
    args = problem.args._replace(masses=masses)
    y = problem.field.project((problem.initial[0], problem.initial[1] + kick), args)
    step = lambda y, _: (method.step(problem.action, problem.field, 0 * dt, y, dt, args)[0], None)  # noqa: E731
    return scalar(jax.lax.scan(step, y, None, length=3)[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", [named.VariationalTrapezoid, lgsim.EnergyMomentum()], ids=["rattle", "energy_momentum"]
)
def test_both_modes_and_differences_with_constraints(method):
    inputs = (0.1 * jnp.arange(6.0), jnp.array([1.0, 1.3]), jnp.asarray(0.05))
    Derivatives(partial(pendulum_value, method)).check(inputs, exact=1e-11)


@pytest.mark.slow
def test_derivatives_do_not_depend_on_the_iterations_and_the_second_ones_are_right():
    gradients = []
    for iterations in (4, 9):
        method = Variational(TRAPEZOID, newton=Newton(iterations))
        gradients.append(
            jax.jit(jax.grad(partial(pendulum_value, method)))(0.1 * jnp.arange(6.0), jnp.ones(2), jnp.asarray(0.05))
        )
    np.testing.assert_allclose(*gradients, rtol=0, atol=1e-12)

    def value(kick):
        return top_value(named.VariationalMidpoint, jnp.zeros(3), kick, heavy_top().args, jnp.asarray(0.1))

    slope, hessian = jax.jit(jax.grad(value)), jax.jit(jax.hessian(value))(jnp.zeros(3))
    h = 1e-4
    columns = [(slope(h * e) - slope(-h * e)) / (2 * h) for e in jnp.eye(3)]
    np.testing.assert_allclose(hessian, hessian.T, rtol=0, atol=1e-12)
    np.testing.assert_allclose(hessian, np.stack(columns), rtol=0, atol=1e-7)


@pytest.mark.slow
def test_a_batch_is_its_states_one_by_one():
    problem = pendulum()
    kicks = jnp.array([0.0, 1.0])

    def end(kick):
        y = problem.field.project((problem.initial[0], problem.initial[1] + kick), problem.args)
        return last(
            lgsim.integrate(
                named.VariationalTrapezoid, problem.action, problem.field, y, dt=0.02, steps=5, args=problem.args
            )
        )

    together, alone = jax.vmap(end)(kicks), end(kicks[1])
    np.testing.assert_allclose(flat(jax.tree.map(lambda leaf: leaf[1], together)), flat(alone), rtol=0, atol=1e-13)


@pytest.mark.slow
@pytest.mark.float32
def test_dtype_follows_the_state(dtype):
    problem = pendulum(dtype=dtype)
    exact = pendulum_end(0.2)
    for method, bound in (
        (named.VariationalTrapezoid, 2e-4),
        (named.VariationalLobatto3, 1e-4),
        (lgsim.EnergyMomentum(), 2e-4),
    ):
        found = lgsim.integrate(
            method, problem.action, problem.field, problem.initial, dt=0.01, steps=20, args=problem.args
        )
        assert {leaf.dtype for leaf in jax.tree.leaves((found.ys, found.residuals))} == {np.dtype(dtype)}
        np.testing.assert_allclose(flat(last(found)), np.concatenate(exact), rtol=0, atol=10 * bound)
    start = (jnp.eye(3, dtype=dtype), jnp.array([0.3, -1.4, 2.2], dtype))
    spun = lgsim.integrate(
        lgsim.MoserVeselov(), on(lgsim.SO3), FREE_BODY, start, dt=0.1, steps=4, args=INERTIA.astype(dtype)
    )
    assert spun.ys[0].dtype == np.dtype(dtype)


@pytest.mark.slow
def test_new_numbers_compile_nothing_again():
    traces = []

    def lagrangian(x, v, k):
        traces.append(1)
        return 0.5 * jnp.sum(v * v) - 0.5 * k * jnp.sum(x * x)

    mechanics = lgsim.DiscreteMechanics(lgsim.Euclidean(1), lagrangian)
    for k, dt in ((1.0, 0.1), (2.0, 0.2)):
        start = (jnp.array([k]), jnp.array([0.0]))
        with jax.disable_jit(False):
            jax.jit(
                lambda y, dt, k: (
                    lgsim.integrate(
                        named.VariationalMidpoint, on(lgsim.Euclidean(1)), mechanics, y, dt=dt, steps=3, args=k
                    ).ys
                )
            )(start, dt, jnp.asarray(k))
        lgsim.integrate(
            named.VariationalMidpoint, on(lgsim.Euclidean(1)), mechanics, start, dt=dt, steps=3, args=jnp.asarray(k)
        )
        if k == 1.0:
            first = len(traces)
    # the checks of values that are known read the functions again, the compiled loop does not
    assert len(traces) - first < first
