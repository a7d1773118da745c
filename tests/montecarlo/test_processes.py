"""Noise in time and wind against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import montecarlo as mc
from tests.montecarlo import studies


def test_ornstein_uhlenbeck_has_its_covariance():
    """Paths are linear in the normal numbers, so the covariance of all nodes is exact: ``std^2 exp(-|t-s|/T)``."""
    std, T, dt = np.array([2.0, 0.5]), np.array([0.3, 1.5]), 0.1
    process = mc.OrnsteinUhlenbeck(std, T, dt, 12)
    assert process.is_process and process.dim == 24
    J = np.asarray(jax.jit(jax.jacobian(process))(jnp.zeros(24)))
    t = dt * np.arange(12)
    for k in range(2):
        wanted = std[k] ** 2 * np.exp(-np.abs(t[:, None] - t) / T[k])
        np.testing.assert_allclose(J[:, k] @ J[:, k].T, wanted, rtol=1e-12)
    np.testing.assert_allclose(J[:, 0] @ J[:, 1].T, 0, atol=1e-15)


def test_gusts_are_straight_lines():
    gusts = np.random.default_rng(0).normal(size=(6, 3))
    wind = mc.Wind("arm", jnp.array([1.0, 2.0, 3.0]), gusts, dt=0.2, t0=0.5)
    for t in (0.5, 0.6, 1.23, 1.5, 9.0, -1.0):
        wanted = [np.interp(t, 0.5 + 0.2 * np.arange(6), gusts[:, k]) for k in range(3)]
        np.testing.assert_allclose(wind.air_velocity(jnp.asarray(t)), np.array([1.0, 2.0, 3.0]) + wanted, rtol=1e-12)


@pytest.mark.slow
def test_wind_on_a_frame_is_the_drag_of_the_air_that_passes():
    """The power of the wrenches is that of the force ``c |u| u + d u`` on the frame's origin."""
    model = studies.tumbling().add_frame("tip", "arm", lgsim.se3.exp(jnp.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])))
    q, v = jax.jit(model.random)(jax.random.key(0)), jnp.asarray(np.random.default_rng(1).normal(size=9))
    wind = mc.Wind("tip", jnp.array([1.0, -2.0, 0.5]), jnp.zeros((1, 3)), dt=1.0, quadratic=0.3, linear=0.2)

    @jax.jit
    def motion(q, v):
        """Poses of the frames, their rates, and the wrenches."""
        kinematics = lambda q: lgsim.forward_kinematics(model, q)  # noqa: E731
        return *jax.jvp(kinematics, (q,), (model.rate(q, v),)), wind(jnp.asarray(0.0), q, v, model)

    here, moving, wrenches = map(np.asarray, motion(q, v))
    tip = model.frame_names.index("tip")
    speed = moving[tip, :3, 3]
    u = np.asarray(wind.mean) - speed
    force = (0.3 * np.linalg.norm(u) + 0.2) * u
    W = np.linalg.inv(here[:2]) @ moving[:2]
    twists = np.stack([*W[:, :3, 3].T, W[:, 2, 1], W[:, 0, 2], W[:, 1, 0]], axis=1)
    np.testing.assert_allclose(np.sum(wrenches * twists), force @ speed, rtol=1e-12)


@pytest.mark.slow
def test_a_body_drifts_into_the_wind():
    """Linear drag on a free point: ``v = w (1 - exp(-d t/m))``, through a study's rollout."""
    builder = lgsim.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("dust", "world", lgsim.joints.Translational(), mass=2.0, inertia=np.eye(3))
    model = builder.build()
    wind = mc.Wind("dust", jnp.zeros(3), jnp.broadcast_to(jnp.array([3.0, 0.0, 0.0]), (2, 3)), dt=1.0, linear=0.8)
    run = mc.Rollout(model, dt=0.02, steps=50, wrenches=wind)
    np.testing.assert_allclose(run({}).v[-1], [3 * (1 - np.exp(-0.4)), 0, 0], rtol=1e-7)
    other = run({"wrenches.mean": jnp.array([0.0, 1.0, 0.0])})
    np.testing.assert_allclose(other.v[-1], (1 - np.exp(-0.4)) * np.array([3.0, 1.0, 0.0]), rtol=1e-7)
