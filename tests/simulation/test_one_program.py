"""Motions of any length have one program: another number of steps or of saved states compiles nothing."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import controls
from lgsim.integrators import FirstSteps
from lgsim.support.padded_batches import in_padded_batches

START = jnp.array([0.1, 2.0])


@pytest.fixture(scope="module")
def model():
    return lgsim.load_urdf(lgsim.data.cart_pole())


@pytest.fixture
def compilations(caplog):
    """The number of programs that JAX compiled since, by a function."""
    jax.config.update("jax_log_compiles", True)
    yield lambda: sum(record.message.startswith("Compiling ") for record in caplog.records)
    jax.config.update("jax_log_compiles", False)


def test_other_numbers_of_steps_compile_nothing(model, compilations):
    law = controls.PD(jnp.zeros(2), 5.0, 1.0)

    def run(steps, save_every):
        motion = lgsim.simulate(model, START, control=law, duration=steps * 1e-3, dt=1e-3, save_every=save_every)
        assert (
            len(motion) == steps // save_every + 1 and np.isfinite(motion.energy).all() and motion.step_error.resolved
        )
        return motion

    long = run(700, 1)
    for steps in (3, 40, 600):  # batches of states have three sizes
        run(steps, 1)
    before = compilations()
    assert before  # it does count
    for steps, save_every in ((5, 1), (511, 1), (512, 1), (513, 1), (350, 1), (340, 10), (690, 30)):
        motion = run(steps, save_every)
        np.testing.assert_array_equal(motion.q, long.q[: steps + 1 : save_every])
    assert compilations() == before


@pytest.mark.slow
def test_the_first_steps_of_a_rollout(model):
    """One program for any number of steps up to the most; later rows are zero, forward derivatives are right."""
    zero = jnp.zeros(2)

    @jax.jit
    @chex.assert_max_traces(n=1)
    def first(q, count):
        return lgsim.rollout(model, q, zero, dt=0.01, steps=20, checkpoint=FirstSteps(count)).q

    for count in (0, 1, 13, 20):
        found = first(START, count)
        whole = lgsim.rollout(model, START, zero, dt=0.01, steps=20).q
        np.testing.assert_allclose(found[: count + 1], whole[: count + 1], rtol=1e-14)
        assert not np.any(found[count + 1 :])
    slope = jax.jacfwd(lambda q: first(q, 13)[13])(START)
    expected = jax.jacfwd(lambda q: lgsim.rollout(model, q, zero, dt=0.01, steps=13).q[-1])(START)
    np.testing.assert_allclose(slope, expected, rtol=1e-12)


@pytest.mark.parametrize("count", [1, 8, 9, 512, 1300])
def test_padded_batches_leave_nothing_out(count):
    x, y = np.arange(count, dtype=float), np.arange(2.0 * count).reshape(count, 2)
    sums, doubles = in_padded_batches(lambda x, none, y: (x + y.sum(axis=1), 2 * y), x, None, y)
    np.testing.assert_array_equal(sums, x + y.sum(axis=1))
    np.testing.assert_array_equal(doubles, 2 * y)
