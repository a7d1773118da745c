"""Configurations with leading axes: a batch of states, and no program that holds all of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim._compile.programs import call


def machine(name):
    """A free body with a ball joint, of a topology of its own: no other test has compiled for it."""
    builder = lgsim.ModelBuilder().add_body(
        name, "world", lgsim.joints.Free(), mass=1.0, inertia=np.diag([0.1, 0.2, 0.3])
    )
    return builder.add_body("arm", name, lgsim.joints.Spherical(), mass=1.0, inertia=0.01 * np.eye(3)).build()


def states(model, batch):
    keys = jax.random.split(jax.random.key(0), 2)
    first, second = (0.3 * jax.random.normal(key, (*batch, model.nv)) for key in keys)
    q = model.retract(jnp.broadcast_to(model.neutral(), (*batch, model.nq)), first)
    return q, model.retract(q, second), second


@pytest.mark.slow
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)], ids=str)
def test_a_batch_is_its_states(batch):
    model = machine("body")
    q0, q1, dv = states(model, batch)
    np.testing.assert_allclose(model.difference(q0, q1), dv, atol=1e-12)
    halfway = model.interpolate(q0, q1, 0.5)
    each = zip(*(np.reshape(x, (-1, x.shape[-1])) for x in (q0, q1, halfway)), strict=True)
    for a, b, middle in each:
        np.testing.assert_allclose(model.interpolate(jnp.asarray(a), jnp.asarray(b), 0.5), middle, atol=1e-14)


@pytest.mark.slow
def test_derivatives_of_a_batch_are_those_of_its_states():
    model = machine("body")
    q0, q1, _ = states(model, (3,))
    one = jax.vmap(jax.jacfwd(model.difference, 1))(q0, q1)
    whole = jax.jacrev(lambda q: model.difference(q0, q).sum(axis=0))(q1)
    np.testing.assert_allclose(jnp.moveaxis(whole, 1, 0), one, atol=1e-12)


def test_a_batch_is_not_unrolled_into_its_program(monkeypatch):
    """Regression: two hundred poses of a free body were one program of 63 000 operations, and minutes of LLVM."""
    pytest.importorskip("llvmlite")
    sizes = []
    compiled = call.compile_program
    monkeypatch.setattr(
        call, "compile_program", lambda p, shared: (sizes.append(len(p.statements)), compiled(p, shared))[1]
    )
    model = machine("body of a batch")
    q0, q1, _ = states(model, (200,))
    model.difference(q0, q1)
    model.interpolate(q0, q1, 0.5)
    assert sizes and max(sizes) < 1000, sizes
