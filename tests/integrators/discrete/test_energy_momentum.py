"""The energy-momentum method: what it keeps and what the plain midpoint formula loses, order, rest, bad input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import lgsim
from lgsim.integrators.discrete.discrete_gradient import discrete_gradient
from tests.integrators import lagrangians
from tests.integrators.lagrangians import SPRING, SPRING_START, on, pendulum, pendulum_end
from tests.integrators.problems import advance, flat

INVARIANT = lgsim.EnergyMomentum(lagrangians.spring_energy, lagrangians.distance_squared)
PLAIN = lgsim.EnergyMomentum()
SPACE = on(lgsim.Euclidean(3))


def spun(method, steps=400):
    """Energies and angular momenta of a mass on a spring; the first steps are a twentieth of a swing."""
    run = lgsim.integrate(method, SPACE, SPRING, SPRING_START, dt=0.05, steps=steps)
    x, p = map(np.asarray, run.ys)
    energies = 0.5 * np.sum(p * p, axis=1) + np.asarray(
        jax.vmap(lambda x: -lagrangians.spring(x, 0 * x, None))(run.ys[0])
    )
    return energies, np.cross(x, p)


@pytest.mark.slow
def test_the_invariants_keep_what_the_plain_midpoint_formula_loses():
    energies, momenta = spun(INVARIANT)
    assert np.ptp(energies) < 1e-12 * energies[0]
    assert np.ptp(momenta, axis=0).max() < 1e-12
    energies, momenta = spun(PLAIN)
    assert np.ptp(energies) < 1e-12 * energies[0]
    assert np.ptp(momenta, axis=0).max() > 1e-3
    energies, momenta = spun(lgsim.methods.VariationalMidpoint)
    assert np.ptp(momenta, axis=0).max() < 1e-12 and np.ptp(energies) > 1e-3 * energies[0]


@pytest.mark.slow
def test_energy_and_momentum_with_constraints():
    problem = pendulum()
    run = lgsim.integrate(PLAIN, problem.action, problem.field, problem.initial, dt=0.05, steps=2000, args=problem.args)
    for name, invariant in problem.invariants.items():
        values = np.asarray(jax.vmap(lambda y, invariant=invariant: invariant(y, problem.args))(run.ys))
        assert np.abs(values - values[0]).max() < 1e-12 * max(1.0, np.abs(values).max()), name


@pytest.mark.slow
def test_order():
    def rate(t, y):
        r = np.linalg.norm(y[:3])
        return np.concatenate([y[3:], -(100 * (r - 1) / r + 12 * r**2) * y[:3]])

    exact = solve_ivp(rate, (0, 1), np.concatenate(SPRING_START), method="DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    run = advance(INVARIANT, lagrangians.Problem(SPACE, SPRING, SPRING_START, None, 0.0, 1.0, exact))
    errors = [np.linalg.norm(flat(run(n, 1 / n)[0]) - exact) for n in (200, 400)]
    assert abs(np.log2(errors[0] / errors[1]) - 2) < 0.1
    problem = pendulum()
    exact = np.concatenate(pendulum_end(0.5))
    run = advance(
        PLAIN, lagrangians.Problem(problem.action, problem.field, problem.initial, problem.args, 0.0, 0.5, exact)
    )
    errors = [np.linalg.norm(flat(run(n, 0.5 / n)[0]) - exact) for n in (100, 200)]
    assert abs(np.log2(errors[0] / errors[1]) - 2) < 0.1


@pytest.mark.slow
def test_a_step_back_undoes_a_step():
    there = lgsim.integrate(INVARIANT, SPACE, SPRING, SPRING_START, dt=0.05, steps=5)
    end = jax.tree.map(lambda leaf: leaf[-1], there.ys)
    back = lgsim.integrate(INVARIANT, SPACE, SPRING, end, dt=-0.05, steps=5)
    np.testing.assert_allclose(
        flat(jax.tree.map(lambda leaf: leaf[-1], back.ys)), flat(SPRING_START), rtol=0, atol=1e-13
    )


def test_the_work_of_forces_is_in_the_energy():
    """A drag -c v takes h c |v|^2 in each step, v being the mean velocity."""
    slowed = lgsim.DiscreteMechanics(lgsim.Euclidean(3), lagrangians.spring, force=lambda x, v, args: -0.3 * v)
    (x, p), *_ = INVARIANT.monitored_step(SPACE, slowed, jnp.zeros(()), SPRING_START, jnp.asarray(0.05), None)
    before, after = (float(SPRING.energy(y)) for y in (SPRING_START, (x, p)))
    v = (x - SPRING_START[0]) / 0.05
    np.testing.assert_allclose(after - before, -0.05 * 0.3 * float(v @ v), rtol=1e-10)


@pytest.mark.slow
def test_what_hangs_at_rest_stays():
    """At rest a discrete gradient by differences of values would divide rounding by the length of the step."""
    problem = pendulum(positions=[[0.0, 0.0, -1.0], [0.0, 0.0, -2.0]], velocities=np.zeros((2, 3)))
    for method in (PLAIN, lgsim.methods.VariationalTrapezoid):
        run = lgsim.integrate(
            method, problem.action, problem.field, problem.initial, dt=0.01, steps=200, args=problem.args
        )
        assert np.abs(np.asarray(run.ys[1])).max() < 1e-12
    almost = lgsim.integrate(
        INVARIANT, SPACE, SPRING, (jnp.array([0.8, 0.0, 0.0]), jnp.array([1e-9, 0.0, 0.0])), dt=1e-6, steps=3
    )
    assert bool(almost.result == lgsim.RESULTS.successful)


@pytest.mark.slow
def test_the_discrete_gradient():
    """D f . (w1 - w0) = f(w1) - f(w0), D f is the gradient where the points are equal, and symmetric."""

    def function(w):
        return jnp.stack([jnp.sin(w[0]) * jnp.exp(w[1]), w[0] ** 3 * w[1] - w[1] ** 2])

    w0, w1 = jnp.array([0.3, -0.4]), jnp.array([0.9, 0.2])
    slope = discrete_gradient(function, w0, w1)
    np.testing.assert_allclose(slope @ (w1 - w0), function(w1) - function(w0), rtol=0, atol=1e-15)
    np.testing.assert_allclose(slope, discrete_gradient(function, w1, w0), rtol=0, atol=1e-15)
    np.testing.assert_allclose(discrete_gradient(function, w0, w0), jax.jacobian(function)(w0), rtol=0, atol=1e-15)
    # Gonzalez' own formula, with the difference of the values
    middle = np.asarray(jax.jacobian(function)((w0 + w1) / 2))
    d = np.asarray(w1 - w0)
    told = middle + np.outer(np.asarray(function(w1) - function(w0)) - middle @ d, d) / (d @ d)
    np.testing.assert_allclose(slope, told, rtol=0, atol=1e-14)
    assert np.all(np.isfinite(jax.jacobian(lambda w: discrete_gradient(function, w0, w))(w0)))


def heavy(x, v, args):
    return 0.5 * (1 + x[0] ** 2) * jnp.sum(v * v)


@pytest.mark.usefixtures("without_import_hook")
def test_bad_input_is_named():
    def start(method, mechanics, y0=SPRING_START, action=SPACE):
        lgsim.integrate(method, action, mechanics, y0, dt=0.1, steps=1)

    with pytest.raises(ValueError, match=r"potential, invariants: expected both"):
        lgsim.EnergyMomentum(lagrangians.spring_energy)
    with pytest.raises(ValueError, match=r"constant M"):
        start(PLAIN, lgsim.DiscreteMechanics(lgsim.Euclidean(3), heavy))
    with pytest.raises(ValueError, match=r"invariants: row 0 is more than quadratic"):
        start(lgsim.EnergyMomentum(lambda w, args: w[0], lambda x, args: jnp.sqrt(jnp.sum(x * x))[None]), SPRING)
    with pytest.raises(ValueError, match=r"potential: .* is not the potential energy"):
        start(lgsim.EnergyMomentum(lambda w, args: w[0], lagrangians.distance_squared), SPRING)
    with pytest.raises(TypeError, match=r"Euclidean\(n\)"):
        start(PLAIN, lagrangians.FREE_BODY, (jnp.eye(3), jnp.ones(3)), on(lgsim.SO3))
