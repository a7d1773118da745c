"""Small formulas as functions of JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy

from lgsim.symbolic import to_jax

x, y = sympy.symbols("x y", real=True)


def test_a_scalar_is_differentiated_and_mapped():
    f = to_jax(sympy.sin(x) * y**2 + sympy.sqrt(x), [x, y])
    np.testing.assert_allclose(f(0.3, 2.0), np.sin(0.3) * 4 + np.sqrt(0.3), rtol=1e-15)
    slope = jax.jit(jax.vmap(jax.grad(f), (0, None)))(jnp.array([0.3, 0.5]), 2.0)
    np.testing.assert_allclose(slope, 4 * np.cos([0.3, 0.5]) + 0.5 / np.sqrt([0.3, 0.5]), rtol=1e-14)


def test_a_matrix():
    f = to_jax(sympy.Matrix([[x, 1], [x * y, sympy.cos(y)]]), [x, y])
    np.testing.assert_allclose(jax.jit(f)(2.0, 0.5), [[2, 1], [1, np.cos(0.5)]], rtol=1e-15)
    by_name = to_jax(sympy.Matrix([[x, 1], [x * y, sympy.cos(y)]]), ["x", "y"])
    np.testing.assert_array_equal(by_name(2.0, 0.5), f(2.0, 0.5))


@pytest.mark.float32
def test_the_dtype_of_the_arguments(dtype):
    f = to_jax(x**2 / 3 + sympy.Rational(1, 7) * y, [x, y])
    assert f(jnp.ones((), dtype), jnp.ones((), dtype)).dtype == np.dtype(dtype)


def test_refused():
    with pytest.raises(ValueError, match="expected all symbols of the expression, y missing"):
        to_jax(x + y, [x])
    with pytest.raises(ValueError, match="expected each once"):
        to_jax(x + y, [x, x, y])
    large = sum(sympy.sin(k * x) * sympy.cos(x + k * y) for k in range(1, 200))
    with pytest.raises(ValueError, match=r"\d+ operations, more than 500.*pass a higher limit"):
        to_jax(large, [x, y])
    np.testing.assert_allclose(to_jax(x, [x], limit=0)(1.5), 1.5)
