"""Errors of states between the saved ones, and of motions that diverge."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ellipj, ellipk

import lgsim
from lgsim.multibody import joints
from lgsim.simulation import simulate


@pytest.fixture(scope="module")
def pendulum():
    builder = lgsim.ModelBuilder()
    builder.add_body("bob", "world", joints.Revolute(), axis=[0, 1, 0], mass=1.0, center=[0, 0, -0.5],
                     inertia=0.01 * np.eye(3))  # fmt: skip
    return builder.build()


@pytest.mark.parametrize("save_every", [10, 25, 50])
def test_interpolation_between_saved_states(pendulum, save_every):
    """A pendulum is Jacobi's elliptic function: 17 to 3 saved states in a period."""
    motion = simulate(pendulum, jnp.array([1.5]), duration=10.0, dt=0.01, save_every=save_every)
    time = np.linspace(0.0, 10.0, 777)
    between = motion.resample(time)
    rate, k = np.sqrt(9.81 * 0.5 / 0.26), np.sin(0.75)
    exact = 2 * np.arcsin(k * ellipj(ellipk(k**2) - rate * time, k**2)[0])
    true, said = np.abs(between.q[:, 0] - exact).max(), between.step_error
    assert true > 50 * motion.step_error.value[:, 0].max()
    assert true <= 3 * said.value[:, 0].max() <= 15 * true
    assert said.resolved or save_every == 50
    # at the saved states nothing is added
    same = motion.resample(motion.time[3:5])
    np.testing.assert_array_equal(same.step_error.value, motion.step_error.value[3:5])


def test_two_saved_states_do_not_show_it(pendulum):
    motion = simulate(pendulum, jnp.array([1.5]), duration=1.0, dt=0.01, save_every=100)
    between = motion.resample([0.0, 0.5, 1.0])
    assert np.isinf(between.step_error.value[1]).all() and np.isfinite(between.step_error.value[[0, 2]]).all()
    assert motion.step_error.resolved and "save more of them" in str(between.step_error)


def test_a_turning_body():
    """The interpolation on the group, with a spin about the axis of symmetry and a precession."""
    builder = lgsim.ModelBuilder(gravity=np.zeros(3))
    builder.add_body("top", "world", joints.Free(), mass=1.0, inertia=np.diag([0.03, 0.03, 0.05]))
    model, v0 = builder.build(), jnp.array([0.3, 0, 0, 1.0, 0.0, 4.0])
    motion = simulate(model, v0=v0, duration=5.0, dt=0.005, save_every=40)
    fine = simulate(model, v0=v0, duration=5.0, dt=0.005)
    between = motion.resample(fine.time[:-1])
    true = np.abs(np.asarray(model.difference(jnp.asarray(fine.q[:-1]), jnp.asarray(between.q)))).max()
    assert true > 1e-6 and true <= 3 * between.step_error.value[:, :6].max()


def test_a_motion_that_diverges():
    """v' = 1000 v with steps of 0.1 s, which MK4 cannot follow."""
    builder = lgsim.ModelBuilder(gravity=np.zeros(3))
    builder.add_body("weight", "world", joints.Prismatic(), mass=1.0, damping=-1e3)
    motion = simulate(builder.build(), v0=jnp.array([0.1]), duration=10.0, dt=0.1, save_every=2)
    said = motion.step_error
    assert motion.result.startswith("diverged") and len(said.value) == len(motion) and not said.resolved
    first = simulate(builder.build(), v0=jnp.array([1e300]), duration=10.0, dt=0.1)
    assert len(first) == 1 and first.step_error is None
