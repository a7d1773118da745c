"""The memory of reverse mode through a rollout of a 7-dof arm, by the compiled programs: bounded by what is kept."""

import jax
import jax.numpy as jnp
import pytest

import lgsim

STATE = 14 * 8
"""Bytes of a state."""


@pytest.fixture(scope="module")
def kept():
    """Bytes between operations of the gradient of the last state in the first one."""
    sizes = {}
    model = lgsim.load_urdf(lgsim.data.arm7())
    q, v = model.neutral(), jnp.zeros(7)

    def size(steps, checkpoint):
        def loss(q, v):
            out = lgsim.rollout(model, q, v, dt=1e-3, steps=steps, save_every=steps, checkpoint=checkpoint)
            return jnp.sum(out.q[-1] ** 2)

        found = jax.jit(jax.grad(loss, (0, 1))).lower(q, v).compile().memory_analysis()
        if not found or not found.temp_size_in_bytes:
            pytest.skip("this back end does not tell the memory of a program")
        return found.temp_size_in_bytes

    return lambda *given: sizes[given] if given in sizes else sizes.setdefault(given, size(*given))


@pytest.mark.slow
def test_checkpoints_bound_the_memory(kept):
    """The state of each step; of each 100th step; nearly none, whatever the number of steps."""
    each = (kept(10_000, "step") - kept(1_000, "step")) / 9_000
    assert STATE <= each < 5 * STATE
    assert kept(10_000, 100) < 10_000 / 100 * 8 * STATE
    assert kept(10_000, "recursive") < kept(1_000, "step") / 5
