"""The delay of joint forces behind the motion, for machines whose numbers are far off."""

import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.identify import Plant, Recording, torque_delay
from tests.identify import arms

DT = 0.01


def record(late, noise=0.05):
    """An arm of other masses that rubs; its torques come late."""
    true = arms.planar(damping=0.4, friction=0.3)
    true = Plant(true.replace(inertias=np.asarray(true.inertias) * np.array([[1.5], [0.6]])), offset=0.2)

    def motion(t):
        rates, sizes = np.array([[1.7, 2.9], [4.1, 3.3]]), np.array([[1.0, 0.8], [0.3, 0.4]])
        angle = t[:, None, None] * rates
        parts = np.sin(angle), rates * np.cos(angle), -(rates**2) * np.sin(angle)
        return [np.sum(sizes * x, axis=1) for x in parts]

    time = DT * np.arange(500)
    tau = np.asarray(arms.signals(true, *map(jnp.asarray, motion(time - late))))
    tau = tau + noise * np.random.default_rng(0).normal(size=tau.shape)
    return Recording(arms.planar(), time, motion(time)[0], tau=tau)


@pytest.mark.parametrize("late", [-0.013, 0.0, 0.047])
def test_delays_of_parts_of_a_sample(late):
    delay, left = torque_delay(record(late), Plant(arms.planar()))
    assert abs(delay - late) < 0.002
    assert left < 0.02


def test_torques_of_another_motion_fit_no_delay():
    other = record(0.0)
    noise = Recording(other.model, other.time, other.q, tau=np.random.default_rng(1).normal(size=other.q.shape))
    assert torque_delay(noise, Plant(arms.planar()))[1] > 0.5


def test_faults():
    silent = record(0.0)
    with pytest.raises(ValueError, match="recording: expected tau or current, got neither"):
        torque_delay(Recording(silent.model, silent.time, silent.q), Plant(silent.model))
    with pytest.raises(ValueError, match=r"max_delay: expected at most a quarter of 4.99 s, got 2"):
        torque_delay(silent, Plant(silent.model), max_delay=2.0)
