"""Processes: exact steps, discretized noise, and errors that move by themselves."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.linalg import expm

import lgsim
from lgsim.actions import LeftTranslation, Product, RightTranslation, Translation
from lgsim.estimate import (
    EKF,
    DiscreteProcess,
    FieldProcess,
    Gaussian,
    ImuNavigation,
    Inputs,
    LinearProcess,
    Measurement,
    Stream,
    run,
)  # fmt: skip
from lgsim.estimate.processes import ContinuousProcess
from lgsim.lie.extended_pose import SE23

INPUT = jnp.array([2.0, -1, 0.5, 1.2, -0.8, 2])
START = (SE23.identity(), jnp.zeros(6))


def double_integrator(density):
    return FieldProcess(Translation(2), lambda t, y, u: jnp.stack([y[1], jnp.zeros_like(y[0])]), [[0.0], [density]])


@pytest.mark.parametrize(
    "process", [double_integrator(1.0), LinearProcess([[0.0, 1], [0, 0]], [[0.0], [1]])], ids=["field", "linear"]
)
def test_noise_of_a_double_integrator(process):
    dt = 0.1
    noise = process.transition(Translation(2), jnp.zeros(2), None, dt).noise
    np.testing.assert_allclose(noise @ noise.T, [[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]], rtol=1e-14)


def test_one_step_of_an_accelerometer():
    """sigma = 0.01, dt = 0.01: the covariance of position and velocity has full rank."""
    transition = double_integrator(0.01).transition(Translation(2), jnp.zeros(2), None, 0.01)
    Q = transition.noise @ transition.noise.T
    np.testing.assert_allclose(Q, [[1e-10 / 3, 5e-9], [5e-9, 1e-6]], rtol=1e-13)
    assert np.linalg.matrix_rank(np.asarray(Q), tol=1e-13) == 2


def test_noise_and_input_of_a_linear_process_by_quadrature():
    A, B, G, dt = np.array([[0, 1], [-4, -0.3]]), np.array([[0.0], [2]]), np.array([[0.1], [0.5]]), 0.7
    process = LinearProcess(A, G, B)
    Q = np.zeros((2, 2))
    for i, j in np.ndindex(2, 2):
        Q[i, j] = quad(lambda s, i=i, j=j: (expm(A * s) @ G @ G.T @ expm(A * s).T)[i, j], 0, dt)[0]
    noise = process.noise(jnp.zeros(2), jnp.ones(1), dt)
    np.testing.assert_allclose(noise @ noise.T, Q, rtol=1e-12)
    forced = [quad(lambda s, i=i: (expm(A * s) @ B)[i, 0], 0, dt)[0] for i in (0, 1)]
    np.testing.assert_allclose(process.step(jnp.zeros(2), jnp.ones(1), dt), forced, rtol=1e-12)


@pytest.mark.parametrize("steps", [1, 7, 100])
def test_a_held_input_is_exact_at_every_step(steps):
    """Velocity and position after 1 s without gravity, from the integrals of the rotation."""
    process = ImuNavigation(0.01, 0.01, gravity=jnp.zeros(3))
    a, w = np.asarray(INPUT[:3]), np.asarray(INPUT[3:])
    W = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
    whole = expm(np.block([[W, a[:, None], np.zeros((3, 1))], [np.zeros((2, 3)), np.array([[0, 1], [0, 0]])]]))
    y = START
    for _ in range(steps):
        y = process.step(y, INPUT, 1 / steps)
    np.testing.assert_allclose(y[0][1], np.concatenate([whole[:3, 3], whole[:3, 4]]), atol=1e-14)
    np.testing.assert_allclose(y[0][1][:3], [1.59450402, 0.32937594, 1.27504797], atol=1e-8)
    np.testing.assert_allclose(y[0][1][3:], [0.95374840, 0.01004104, 0.48176738], atol=1e-8)


def test_gravity_is_a_fall():
    process = ImuNavigation(0.01, 0.01)
    (_, x), _ = process.step(START, jnp.zeros(6), 2.0)
    np.testing.assert_allclose(x, [0, 0, -2 * 9.81, 0, 0, -2 * 9.81], atol=1e-14)


@pytest.mark.parametrize("side", [LeftTranslation, RightTranslation])
def test_the_process_is_group_affine(side, key):
    """Two estimates with equal invariant error keep equal errors on any trajectory, over 10000 steps."""
    process = ImuNavigation(0.01, 0.01)
    action = side(SE23)
    keys = jax.random.split(key, 3)
    inputs = jax.random.normal(keys[0], (10_000, 6)) @ jnp.diag(jnp.array([3.0, 3, 3, 1, 1, 1]))
    xi = 0.3 * jax.random.normal(keys[1], (9,))
    first, second = SE23.random(keys[2]), SE23.identity()

    def advance(states, u):
        moved = tuple(process.step((y, jnp.zeros(6)), u, 0.01)[0] for y in states)
        return moved, None

    states = (first, action.move(xi, first), second, action.move(xi, second))
    (a, b, c, d), _ = jax.jit(lambda states: jax.lax.scan(advance, states, inputs))(states)
    error, other = action.difference(a, b), action.difference(c, d)
    assert float(jnp.linalg.norm(error - xi)) > 0.1
    # positions of kilometers, in which the difference is rounded
    size = max(float(jnp.abs(a[1]).max()), float(jnp.abs(c[1]).max()), 1.0)
    np.testing.assert_allclose(error, other, atol=2e-12 * size)


def test_noise_in_the_axes_of_the_world(key):
    """The covariance by the error of the other side is that by this one, through Ad."""
    process = ImuNavigation(0.03, 0.01, 1e-3, 1e-4)
    y = (SE23.random(key), 0.1 * jnp.ones(6))
    world = Product(LeftTranslation(SE23), Translation(6))
    transition = eqx.filter_jit(lambda error: process.transition(error, y, INPUT, 0.1))
    first, second = transition(process.space), transition(world)
    Ad = np.eye(15)
    Ad[:9, :9] = SE23.Ad(first.state[0])
    np.testing.assert_allclose(second.noise @ second.noise.T, Ad @ first.noise @ first.noise.T @ Ad.T, atol=1e-14)


def test_density_and_step_of_a_rotation():
    """White noise of a gyroscope of density s turns by deviations ``s sqrt(t)``, however many steps there are."""
    process = FieldProcess(RightTranslation(lgsim.SO3), lambda t, y, u: u, 0.02)
    gaussian = Gaussian.from_deviations(lgsim.SO3.identity(), 0.0, RightTranslation(lgsim.SO3))
    for _ in range(5):
        gaussian = process.propagate(gaussian, jnp.array([0.0, 0.0, 0.3]), 0.2)
    np.testing.assert_allclose(gaussian.deviations, 0.02, rtol=1e-6)
    np.testing.assert_allclose(gaussian.mean, lgsim.SO3.exp(jnp.array([0, 0, 0.3])), atol=1e-12)


@pytest.mark.usefixtures("without_import_hook")
def test_a_discrete_process_of_one_name():
    with pytest.raises(TypeError, match="error: expected an action"):
        DiscreteProcess("SE3", lambda y, u, dt: y, jnp.eye(6))
    with pytest.raises(ValueError, match="noise_density: expected a number"):
        FieldProcess(Translation(2), lambda t, y, u: y, jnp.ones(3))


@pytest.mark.parametrize("side", [RightTranslation, LeftTranslation])
def test_the_closed_form_of_inertial_navigation(side, key):
    """Its transition is that of automatic differentiation, and its noise that of Simpson's rule to fourth order."""
    process, dt = ImuNavigation(0.03, 0.01, 1e-3, 1e-4), 0.02
    error = Product(side(SE23), Translation(6))
    y = (SE23.random(key), 0.1 * jnp.arange(6.0))
    found = process.transition(error, y, INPUT, dt)
    general = eqx.filter_jit(lambda: ContinuousProcess.transition(process, error, y, INPUT, dt))()
    np.testing.assert_allclose(found.slope, general.slope, atol=2e-15)
    np.testing.assert_allclose(found.state[0][1], general.state[0][1], atol=1e-14)
    Q, peer = found.noise @ found.noise.T, general.noise @ general.noise.T
    scale = np.sqrt(np.diagonal(peer))
    gaps = np.abs(Q - peer) / np.outer(scale, scale)
    assert gaps[:3, :3].max() < dt**4 and gaps.max() < 0.1


@pytest.mark.slow
def test_the_slope_of_a_likelihood_and_single_precision_in_inertial_navigation():
    """The slope of its likelihood by a noise, and float32 within its digits."""
    readings, times = jnp.asarray(np.random.default_rng(0).normal(size=(4, 3)) * 0.05), np.arange(1, 5) * 0.1

    def likelihood(x):
        process = ImuNavigation(0.3 * x, 0.1 * x, 0.01 * x, 0.01 * x)
        start = Gaussian.from_deviations(
            jax.tree.map(lambda a: a.astype(x.dtype), START), jnp.full(15, 0.1, x.dtype), process.space
        )
        stream = Stream(Measurement(lambda y: y[0][1][3:], 0.05 * x, name="p"), times, readings.astype(x.dtype))
        inputs = Inputs(np.arange(4) * 0.1, jnp.tile(INPUT.astype(x.dtype), (4, 1)))
        found = run(EKF(), process, start, stream, inputs=inputs, start_time=0.0)
        return found.loglikelihood, found.last.factor

    one = jnp.array(1.0)
    value, factor = likelihood(one)
    h = 1e-4
    central = (likelihood(one + h)[0] - likelihood(one - h)[0]) / (2 * h)
    np.testing.assert_allclose(jax.grad(lambda x: likelihood(x)[0])(one), central, rtol=1e-6)
    single, small = likelihood(jnp.float32(1))
    assert small.dtype == jnp.float32
    np.testing.assert_allclose(single, value, rtol=1e-4)
    np.testing.assert_allclose(small, factor, atol=1e-5)
