"""Functions whose operations are recorded once: no second run of their Python, all transformations, no program."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim._compile.xla import traced_once


@pytest.fixture
def counted():
    """A function and the shapes with which its Python was run."""
    runs = []

    @traced_once
    def f(x):
        runs.append(x.shape)
        return jnp.sin(x) * x, x + 1

    return f, runs


def test_the_python_is_run_once_for_each_shape(counted):
    f, runs = counted
    for _ in range(3):
        jax.make_jaxpr(lambda x: f(2 * x)[0])(jnp.ones(3))
        jax.make_jaxpr(jax.jacfwd(lambda x: f(x)[0]))(jnp.ones(3))
    assert runs == [(3,)]
    jax.make_jaxpr(f)(jnp.ones((2, 3)))
    assert runs == [(3,), (2, 3)]


def test_values_and_derivatives(counted):
    f, _ = counted
    x = jnp.array([0.3, -2.0, 5.0])
    np.testing.assert_array_equal(f(x)[0], jnp.sin(x) * x)
    np.testing.assert_allclose(jax.vmap(jax.grad(lambda x: f(x)[0]))(x), np.cos(x) * x + np.sin(x), rtol=1e-15)
    second = jax.jit(jax.vmap(jax.grad(jax.grad(lambda x: f(x)[0]))))(x)
    np.testing.assert_allclose(second, 2 * np.cos(x) - x * np.sin(x), rtol=1e-14)


def test_outside_of_a_trace_it_runs_operation_by_operation(counted):
    f, runs = counted
    for _ in range(2):
        f(jnp.ones(3))
    assert runs == [(3,), (3,)]
