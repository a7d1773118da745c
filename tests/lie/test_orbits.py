"""Differences on the sphere's tangent bundle and on coadjoint orbits: they move one point to the other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import optimize
from lgsim.actions import Coadjoint, Power, TangentSphere


def points(seed, count=30):
    """States (q, omega) of the tangent bundle."""
    rng = np.random.default_rng(seed)
    q = rng.normal(size=(count, 3))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    return jnp.asarray(np.concatenate([q, np.cross(q, rng.normal(size=(count, 3)))], axis=1))


def on_one_orbit(group, seed):
    """Pairs of points of one coadjoint orbit each."""
    rng = np.random.default_rng(seed)
    y0 = jnp.asarray(rng.normal(size=(30, group.dim)))
    return y0, Coadjoint(group).move(jnp.asarray(rng.normal(size=(30, group.dim))), y0)


CASES = {
    "tangent sphere": (TangentSphere(), lambda: (points(0), points(1))),
    "orbits of SO3": (Coadjoint(lgsim.SO3), lambda: on_one_orbit(lgsim.SO3, 0)),
    "orbits of SE3": (Coadjoint(lgsim.SE3), lambda: on_one_orbit(lgsim.SE3, 0)),
    "orbits of quaternions": (Coadjoint(lgsim.UnitQuaternion), lambda: on_one_orbit(lgsim.UnitQuaternion, 3)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_difference_leads_there(name):
    action, draw = CASES[name]
    y0, y1 = draw()
    there = action.difference(y0, y1)
    np.testing.assert_allclose(action.move(there, y0), y1, atol=1e-13)
    assert not np.any(action.difference(y0, y0))
    # no other turn that leads there is smaller: that between the two directions
    turned = [x[..., :3] / np.linalg.norm(x[..., :3], axis=-1, keepdims=True) for x in (y0, y1)]
    angle = np.arctan2(np.linalg.norm(np.cross(*turned), axis=-1), np.sum(turned[0] * turned[1], axis=-1))
    np.testing.assert_allclose(np.linalg.norm(there[..., -3:], axis=-1), angle, atol=1e-13)


@pytest.mark.slow
def test_derivatives_at_equality():
    """Of the difference from a point to its neighbors: the identity on what moves the point."""
    action, y = TangentSphere(), points(2, 1)[0]
    for mode in (jax.jacfwd, jax.jacrev):
        J = mode(lambda x: action.difference(y, action.move(x, y)))(jnp.zeros(6))
        move = jax.jacfwd(lambda x: action.move(x, y))(jnp.zeros(6))
        np.testing.assert_allclose(move @ J, move, atol=1e-14)


def test_groups_without_differences():
    action = Coadjoint(lgsim.SE2)
    assert not action.provides("difference") and Coadjoint(lgsim.SE3).provides("difference")
    with pytest.raises(NotImplementedError, match="the orbits of se2"):
        action.difference(jnp.ones(3), jnp.ones(3))
    assert Power(TangentSphere(), 2).provides("difference")


@pytest.mark.slow
def test_a_pendulum_on_its_manifold_is_led_to_a_point():
    """A bob on a sphere, pushed by a torque, comes to rest at a direction: iLQR on the tangent bundle."""
    action = TangentSphere()
    up = jnp.array([0.0, 0.0, 1.0])

    def field(t, y, u, args):
        q, omega = y[:3], y[3:]
        fall = jnp.cross(q, -9.81 * up) + u
        slope = fall - q * (q @ fall)
        # omega' = w x omega + v x q with w = omega: v x q = slope, v across q
        return jnp.concatenate([jnp.cross(q, slope), omega])

    start = jnp.array([0.0, 0.6, -0.8, 0.0, 0.0, 0.0])
    goal = jnp.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    problem = optimize.Problem(
        optimize.FieldDynamics(action, field, 3, 0.05, lgsim.CF4),
        start,
        horizon=30,
        running=optimize.ControlEffort(1e-3),
        terminal=optimize.StateDistance(action, goal, 1e3),
    )
    found = optimize.solve(problem)
    np.testing.assert_allclose(found.ys[-1], goal, atol=2e-2)
    np.testing.assert_allclose(np.linalg.norm(found.ys[:, :3], axis=1), 1, atol=1e-13)
