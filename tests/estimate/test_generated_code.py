"""An online step of a filter as C code."""

import shutil

import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.actions import RightTranslation
from lgsim.estimate import EKF, DiscreteProcess, Gaussian, ImuNavigation, Measurement, step
from lgsim.lie.extended_pose import SE23, ExtendedPoses
from lgsim.symbolic import compile, shared_library

BODY = RightTranslation(SE23)
IMU = ImuNavigation(0.03, 0.01)
PROCESS = DiscreteProcess(
    BODY, lambda y, u, dt: IMU.step((y, jnp.zeros(6)), u, dt)[0],
    np.diag([3e-3] * 3 + [1e-5] * 3 + [1e-3] * 3) + 1e-6 * np.tri(9, k=-1),
)  # fmt: skip
POSE = Measurement(lambda y: (y[0], y[1][3:]), 0.05, group=ExtendedPoses(count=1), name="pose")


def online(R, x, factor, u, dt, R_read, p_read):
    """A step of inertial navigation and the pose that is read after it."""
    after, (nis,) = step(EKF(), PROCESS, Gaussian((R, x), factor, BODY), dt, [(POSE, (R_read, p_read))], u)
    return *after.mean, after.factor, nis


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler, cc")
def test_a_step_of_a_filter_in_c(tmp_path):
    """Five steps in C and in JAX, with a start of which a part is known exactly."""
    shapes = {"R": (3, 3), "x": (6,), "factor": (9, 9), "u": (6,), "dt": (), "R_read": (3, 3), "p_read": (3,)}
    code = compile(online, None, shapes=shapes, results=("R", "x", "factor", "nis"))
    filtered = shared_library(code, tmp_path, ("-std=c99", "-O0")).online
    rng = np.random.default_rng(0)
    own = peer = (np.eye(3), np.zeros(6), np.diag([0.1] * 6 + [0.3, 0, 0.3]))
    for _ in range(5):
        u, turn, place = rng.normal(size=6), lgsim.SO3.exp(0.1 * jnp.asarray(rng.normal(size=3))), rng.normal(size=3)
        *peer, expected = online(*map(jnp.asarray, peer), jnp.asarray(u), 0.1, turn, jnp.asarray(place))
        *own, nis = filtered(*own, u, 0.1, turn, place)
        for x, y in zip((*own, nis), (*peer, expected), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)
    assert 0 < float(nis) and own[2].diagonal().max() < 0.1
