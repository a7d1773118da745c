"""Rounding that grows where a motion is unstable, although the steps themselves stay there exactly."""

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

import lgsim
from lgsim.multibody import joints
from lgsim.simulation import simulate, simulate_adaptive

RATE = np.sqrt(9.81 * 0.5 / 0.26)


@pytest.fixture(scope="module")
def pendulum():
    builder = lgsim.ModelBuilder()
    builder.add_body("bob", "world", joints.Revolute(), axis=[0, 1, 0], mass=1.0, center=[0, 0, -0.5],
                     inertia=0.01 * np.eye(3))  # fmt: skip
    return builder.build()


def upright_error(time):
    """The exact motion from the floating-point number next to pi, less pi: ``(float(pi) - pi) cosh(rate t)``."""
    with mpmath.workdps(40):
        return abs(float((mpmath.mpf(np.pi) - mpmath.pi) * mpmath.cosh(RATE * mpmath.mpf(time))))


@pytest.mark.parametrize("dt", [0.01, 0.001, None])
def test_a_pendulum_upright(pendulum, dt):
    """It stands for 14 s in floating point and falls after 8 s in truth."""

    def motion(duration):
        if dt is None:
            pytest.importorskip("diffrax")
            return simulate_adaptive(pendulum, jnp.array([np.pi]), duration=duration, dt_out=0.05)
        return simulate(pendulum, jnp.array([np.pi]), duration=duration, dt=dt)

    short, long = motion(5.0), motion(14.0)
    true, told = upright_error(5.0), short.step_error.value[-1, 0]
    assert short.step_error.resolved and true <= 3 * told and told < 50 * true
    said = long.step_error
    assert not said.resolved
    assert upright_error(said.until) < 0.05 * np.pi and 3 < said.until < 8.5
    known = long.time <= said.until
    away = np.array([upright_error(t) for t in long.time[known]])  # to the side of smaller angles
    true = np.abs(long.q[known, 0] - np.pi + away)
    assert (true <= 3 * np.maximum(said.value[known, 0], 1e-15)).all()


def test_a_pendulum_that_hangs(pendulum):
    """At the stable equilibrium rounding does not grow."""
    for motion in (simulate(pendulum, duration=14.0, dt=0.01), simulate(pendulum, duration=60.0, dt=0.01)):
        assert motion.step_error.resolved and motion.step_error.value[:, 0].max() < 1e-12


def test_an_equilibrium_to_the_last_digit():
    """Upright at zero, where no force acts at all: the exact motion stands still as well."""
    builder = lgsim.ModelBuilder()
    builder.add_body("bob", "world", joints.Revolute(), axis=[0, 1, 0], mass=1.0, center=[0, 0, 0.5],
                     inertia=0.01 * np.eye(3))  # fmt: skip
    motion = simulate(builder.build(), duration=14.0, dt=0.01)
    assert motion.step_error.resolved and not np.any(np.asarray(motion.q))
