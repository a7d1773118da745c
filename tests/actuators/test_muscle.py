"""Muscles against the functions of MuJoCo, and their derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.actuators import Muscle
from lgsim.actuators.stage import Shaft

mujoco = pytest.importorskip("mujoco")

# (range of the actuator's length, normalized lengths there, F, lmin, lmax, vmax, fpmax, fvmax, T_up, T_down, smoothing)
MUSCLES = {
    "default": ((0.2, 0.5), (0.75, 1.05), 200.0, 0.5, 1.6, 1.5, 1.3, 1.2, 0.01, 0.04, 0.0),
    "slow and stiff": ((-0.1, 0.05), (0.6, 1.4), 35.0, 0.3, 1.9, 4.0, 2.5, 1.8, 0.05, 0.06, 0.2),
    "short": ((1.0, 1.01), (0.9, 1.1), 1500.0, 0.8, 1.15, 10.0, 0.4, 1.05, 0.02, 0.2, 1.5),
}
LENGTHS, SPEEDS = np.linspace(0.2, 2.2, 81), np.linspace(-1.3, 1.3, 27)


def muscle(numbers, **more):
    (start, end), (low, high), force, *curves = numbers
    length = (end - start) / (high - low)
    return Muscle(force, length, start - low * length, *curves, **more), length, start - low * length


@pytest.mark.parametrize("name", MUSCLES)
def test_forces_and_rates_are_those_of_mujoco(name):
    """Over the fiber's length, speed and activation, at and beyond the ends of every curve."""
    numbers = MUSCLES[name]
    own, l0, slack = muscle(numbers)
    span, prm = np.array(numbers[0]), np.array([*numbers[1], numbers[2], 1.0, *numbers[3:8]])
    for a in (0.0, 0.3, 1.0):
        for w in SPEEDS:
            x, v = slack + l0 * LENGTHS, np.full(len(LENGTHS), w * l0 * numbers[5])
            force, _ = own.respond(jnp.zeros(len(x)), Shaft(jnp.asarray(x), jnp.asarray(v)), jnp.full((1, len(x)), a))
            gain = np.array([mujoco.mju_muscleGain(y, s, span, 1.0, prm) for y, s in zip(x, v, strict=True)])
            bias = np.array([mujoco.mju_muscleBias(y, span, 1.0, prm) for y in x])
            np.testing.assert_allclose(force, gain * a + bias, rtol=1e-9, atol=1e-9 * numbers[2])
    u, a = (x.ravel() for x in np.meshgrid(np.linspace(-0.2, 1.2, 15), np.linspace(-0.1, 1.1, 13)))
    at = Shaft(jnp.full(len(u), slack + l0), jnp.zeros(len(u)))
    _, rate = own.respond(jnp.asarray(u), at, jnp.asarray(a)[None])
    theirs = [mujoco.mju_muscleDynamics(c, z, np.array(numbers[8:])) for c, z in zip(u, a, strict=True)]
    np.testing.assert_allclose(rate[0], theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", MUSCLES)
def test_derivatives(name):
    """By every number, length and speed against differences; finite at every joint of the curves."""
    own, l0, slack = muscle(MUSCLES[name])

    @jax.jit
    def force(muscle, length, speed):
        shaft = Shaft(slack + l0 * length[None], muscle.optimal_length * speed[None])
        out, rate = muscle.respond(jnp.array([0.7]), shaft, jnp.array([[0.4]]))
        return out[0] + rate[0, 0]

    gradient = jax.jit(jax.grad(force, argnums=(0, 1, 2)))
    for length, speed in ((0.87, -0.3), (1.07, 0.02), (1.4, 2.0)):
        point = (own, jnp.asarray(length), jnp.asarray(speed))
        slopes = gradient(*point)
        leaves, tree = jax.tree.flatten(point)
        for i, (leaf, slope) in enumerate(zip(leaves, jax.tree.leaves(slopes), strict=True)):
            h = 1e-6 * max(abs(float(leaf)), 0.1)
            ends = (tree.unflatten([x + s * h if k == i else x for k, x in enumerate(leaves)]) for s in (1, -1))
            up, down = (float(force(*end)) for end in ends)
            np.testing.assert_allclose(slope, (up - down) / (2 * h), rtol=1e-6, atol=1e-6 * abs(up))
    corners = [0.1, float(own.shortest), (1 + float(own.shortest)) / 2, 1.0, (1 + float(own.longest)) / 2, 3.0]
    for length in corners:
        for speed in (-float(own.fastest), 0.0, float(own.fastest * (own.eccentric - 1))):
            found = gradient(own, jnp.asarray(length), jnp.asarray(speed))
            assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(found))


def test_others_pass():
    own = muscle(MUSCLES["default"], muscles=(True, False))[0]
    force, rate = own.respond(jnp.array([0.5, -7.0]), Shaft(jnp.ones(2), jnp.ones(2)), jnp.zeros((1, 2)))
    assert force[1] == -7.0 and rate[0, 1] == 0 and rate[0, 0] > 0
