"""Methods on SE_2(3): orders from both sides, an inertial unit in closed form, errors that grow linearly."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

import lgsim
from lgsim import actions
from tests.integrators.methods.test_orders import COUNTS, WINDOW, measured_order
from tests.integrators.problems import START_POSE, Problem, extrapolate, flat, hat

START = (START_POSE[:3, :3], np.array([0.7, -0.2, 0.5, *START_POSE[:3, 3]]))
GRAVITY = np.array([0.0, 0.0, -9.81])
SIDES = {"right": actions.RightTranslation(lgsim.SE23), "left": actions.LeftTranslation(lgsim.SE23)}


def velocity(xp, t, R, x):
    """An algebra vector (nu, rho, w) of time and of all parts, bounded so that the motion stays of size one."""
    return xp.stack(
        [
            0.7 + 0.4 * xp.sin(2 * t) - 0.3 * x[4],
            0.5 * xp.cos(t) * R[0, 1] - 0.2 * x[3],
            -0.4 + 0.3 * R[2, 2] * x[0],
            0.3 * x[0] - 0.2 * xp.sin(3 * t),
            0.5 * R[1, 0] - 0.3 * x[1],
            0.4 * xp.cos(2 * t) + 0.2 * x[2],
            0.9 - 0.5 * R[1, 2] + 0.3 * xp.sin(t),
            0.6 * xp.cos(1.5 * t) + 0.2 * x[5],
            0.8 * R[2, 0] - 0.3 * x[1],
        ]
    )


@cache
def moving(side) -> Problem:
    """A field of time and state; the reference integrates R, v and p as they stand in the definition of the group."""
    t0, time = 0.3, 2.0

    def derivative(t, y):
        R, v, p = y[:9].reshape(3, 3), y[9:12], y[12:]
        u = velocity(np, t, R, y[9:])
        nu, rho, w = u[:3], u[3:6], u[6:]
        if side == "right":
            return np.concatenate([(R @ hat(w)).ravel(), R @ nu, R @ rho])
        return np.concatenate([(hat(w) @ R).ravel(), nu + np.cross(w, v), rho + np.cross(w, p)])

    final = extrapolate(derivative, flat(START), t0, t0 + time, 30).astype(float)
    return Problem(
        SIDES[side], lambda t, y, args: velocity(jnp, t, *y), tuple(map(jnp.asarray, START)), None, t0, time, final
    )


def inertial(t, y, reading):
    """What the readings (specific force, angular velocity) of a unit do to (R, (v, p)): a body velocity."""
    R, x = y
    force, w = reading(t) if callable(reading) else reading
    return jnp.concatenate([force + R.T @ jnp.asarray(GRAVITY, w.dtype), R.T @ x[:3], w])


READINGS = np.array([1.2, -0.7, 9.1]), np.array([0.8, -0.5, 1.1])


def navigated(force, w, time):
    """All entries after constant readings: ``R0 G0``, ``v0 + g t + R0 G1``, ``p0 + v0 t + g t^2/2 + R0 G2``.

    G0, G1, G2 are exp(t w) and its integrals on the force, from one exponential. Source: Brossard et al. 2021, where
    they are the preintegration between two epochs.
    """
    R, x = START
    generator = np.zeros((5, 5))
    generator[:3, :3], generator[:3, 3], generator[3, 4] = hat(w), force, 1.0
    G = expm(time * generator)[:3]
    v = x[:3] + time * GRAVITY + R @ G[:, 3]
    p = x[3:] + time * x[:3] + 0.5 * time**2 * GRAVITY + R @ G[:, 4]
    return flat((R @ G[:, :3], np.concatenate([v, p])))


@cache
def constant_readings() -> Problem:
    time, start = 1.5, tuple(map(jnp.asarray, START))
    return Problem(
        SIDES["right"], inertial, start, tuple(map(jnp.asarray, READINGS)), 0.0, time, navigated(*READINGS, time)
    )


@pytest.mark.repeats
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", ["MK4", "MK4TwoCommutators", "CF4"])
def test_order_of_convergence(name, side):
    method = lgsim.METHODS[name]
    assert abs(measured_order(method, moving(side), COUNTS[4]) - 4) < WINDOW


@pytest.mark.repeats
@pytest.mark.parametrize("name", ["CF3", "MK4", "MK6"])
def test_constant_readings(name):
    method = lgsim.METHODS[name]
    assert abs(measured_order(method, constant_readings(), COUNTS[method.order]) - method.order) < WINDOW


def test_the_reference_agrees_with_the_closed_form():
    """The steps in extended precision, on the problem that has a closed form."""
    problem = constant_readings()
    force, w = READINGS

    def derivative(t, y):
        R = y[:9].reshape(3, 3)
        return np.concatenate([(R @ hat(w)).ravel(), GRAVITY + R @ force, y[9:12]])

    end = extrapolate(derivative, flat(START), 0, problem.time, 30).astype(float)
    np.testing.assert_allclose(end, problem.final, rtol=0, atol=4e-14)


@pytest.mark.slow
def test_the_error_of_an_inertial_unit_is_linear_in_its_logarithm():
    """Two motions under the same readings, g and exp(xi) g at the start, far apart: log of the error is exactly
    ``(nu + t c, rho + t nu + t^2 c/2, w)``, c = gravity x w, whatever the motion. Source: Barrau and Bonnabel 2017.
    """

    def reading(t):
        return jnp.stack([1 + jnp.sin(3 * t), -t, 9.0 * jnp.cos(t)]), jnp.stack([jnp.cos(2 * t), 0.6 * t, -jnp.sin(t)])

    xi, time = jnp.array([0.8, -1.3, 0.4, 2.0, 0.5, -0.7, 0.9, -1.2, 0.6]), 1.5
    first = tuple(map(jnp.asarray, START))
    starts = jax.tree.map(lambda *x: jnp.stack(x), first, SIDES["left"].move(xi, first))

    @jax.jit
    @jax.vmap
    def run(y):
        settings = {"dt": time / 200, "steps": 200, "save_every": 200, "args": reading}
        return jax.tree.map(lambda x: x[-1], lgsim.integrate(lgsim.MK6, SIDES["right"], inertial, y, **settings).ys)

    ends = run(starts)
    pair = [jax.tree.map(lambda x, i=i: x[i], ends) for i in range(2)]
    nu, rho, w = xi[:3], xi[3:6], xi[6:]
    c = jnp.cross(jnp.asarray(GRAVITY), w)
    right = jnp.concatenate([nu + time * c, rho + time * nu + 0.5 * time**2 * c, w])
    np.testing.assert_allclose(SIDES["left"].difference(*pair), right, rtol=0, atol=1e-11)


@pytest.mark.slow
def test_derivatives_by_the_readings():
    """In reverse mode, against differences of the closed form."""
    problem, steps = constant_readings(), 50
    weights = np.random.default_rng(3).standard_normal(15)

    @jax.jit
    @jax.grad
    def slope(readings):
        settings = {"dt": problem.time / steps, "steps": steps, "save_every": steps, "args": readings}
        R, x = lgsim.integrate(lgsim.MK4, problem.action, problem.field, problem.initial, **settings).ys
        return weights @ jnp.concatenate([R[-1].ravel(), x[-1]])

    h, numbers = 1e-5, np.stack(READINGS)
    ends = [[navigated(*(numbers + s * e.reshape(2, 3)), problem.time) for s in (h, -h)] for e in np.eye(6)]
    right = [weights @ (plus - minus) / (2 * h) for plus, minus in ends]
    np.testing.assert_allclose(np.concatenate(slope(problem.args)), right, rtol=0, atol=1e-5)


@pytest.mark.float32
def test_float32():
    """It follows the dtype of the state."""
    problem = constant_readings()
    single = jax.tree.map(lambda x: x.astype(jnp.float32), (problem.initial, problem.args))
    ys = lgsim.integrate(
        lgsim.CF4, problem.action, problem.field, single[0], dt=problem.time / 20, steps=20, args=single[1]
    ).ys
    assert {leaf.dtype for leaf in ys} == {np.dtype(np.float32)}
    np.testing.assert_allclose(flat(jax.tree.map(lambda x: x[-1], ys)), problem.final, rtol=0, atol=2e-5)
