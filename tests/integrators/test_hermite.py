"""The cubic between two points of a manifold: its ends, its velocities there, and its order."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import actions
from lgsim.integrators.hermite import chain_hermite, hermite, quartic_bump
from tests.integrators.problems import START_POSE, extrapolate, hat, twist

SIDES = {
    "right": (actions.RightTranslation(lgsim.SE3), lambda pose, matrix: pose @ matrix),
    "left": (actions.LeftTranslation(lgsim.SE3), lambda pose, matrix: matrix @ pose),
}


@pytest.mark.slow
@pytest.mark.parametrize("side", SIDES)
def test_error_falls_with_the_fourth_power_and_the_fifth(side):
    """A pose whose twist depends on time and state; exact points by extrapolation in extended precision."""
    action, product = SIDES[side]

    def derivative(t, y):
        pose = y.reshape(4, 4)
        return product(pose, hat(twist(np, t, pose))).ravel()

    def pose_at(t):
        return jnp.asarray(extrapolate(derivative, START_POSE.ravel(), 0.0, t, 4).astype(float).reshape(4, 4))

    interpolate = jax.jit(lambda *a: hermite(action, *a))

    @jax.jit
    def raised(start, sigma, slope0, slope1, h, s):
        way = (action, start, sigma[None], slope0, slope1)
        return chain_hermite(*way, s, quartic_bump(*way, lambda s, pose: h * twist(jnp, s * h, pose)))

    start, errors = jnp.asarray(START_POSE), []
    for h in (0.4, 0.2, 0.1):
        end = pose_at(h)
        slopes = [h * twist(jnp, jnp.asarray(t), pose) for t, pose in ((0.0, start), (h, end))]
        np.testing.assert_allclose(interpolate(start, end, *slopes, 0.0), start, rtol=0, atol=1e-15)
        np.testing.assert_allclose(interpolate(start, end, *slopes, 1.0), end, rtol=0, atol=1e-14)
        sigma = action.difference(start, end)
        gaps = [
            [
                np.abs(pose - pose_at(s * h)).max()
                for s in (0.3, 0.7)
                for pose in (interpolate(start, end, *slopes, s), raised(start, sigma, *slopes, h, s))
            ]
        ]
        errors.append(np.reshape(gaps, (2, 2)).max(axis=0))
    assert np.all(np.log2(np.divide(errors[:-1], errors[1:])) > [3.7, 4.7])


@pytest.mark.slow
def test_velocities_at_the_ends():
    """Also of a way made of several exponentials, up to brackets of brackets, which vanish for nearly parallel ones."""
    action = actions.RightTranslation(lgsim.SE3)
    one, two = 0.3 * jax.random.normal(jax.random.key(3), (2, 6))
    first, last = 0.5 * jax.random.normal(jax.random.key(4), (2, 6))
    start = jnp.asarray(START_POSE)
    for exponentials in (one[None], jnp.stack([one, 0.7 * one]), jnp.stack([one, one + 1e-3 * two])):
        way = jax.jit(lambda s, e=exponentials: chain_hermite(action, start, e, first, last, s))
        for s, slope in ((0.0, first), (1.0, last)):
            pose, rate = jax.jvp(way, (jnp.asarray(s),), (jnp.ones(()),))
            twist_there = lgsim.se3.vee(lgsim.se3.inverse(pose) @ rate)
            np.testing.assert_allclose(twist_there, slope, rtol=0, atol=1e-6)


def test_difference():
    """Of translations and of products; what has none says what to do."""
    action = actions.Product(SIDES["left"][0], actions.Translation(2), SIDES["right"][0])
    start = (jnp.asarray(START_POSE), jnp.ones(2), jnp.asarray(START_POSE))
    sigma = 0.3 * jax.random.normal(jax.random.key(5), (14,))
    np.testing.assert_allclose(action.difference(start, action.move(sigma, start)), sigma, rtol=0, atol=1e-14)
    with pytest.raises(TypeError, match="sigma: expected an algebra vector, because Coadjoint has no difference"):
        hermite(actions.Coadjoint(lgsim.SE2), *[jnp.ones(3)] * 4, 0.5)
