"""Functions of mathematics that targets compute by arithmetic: beside mpmath, over their whole range."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from lgsim._compile.programs.call import compile_program
from lgsim._compile.programs.compiler import compiler
from lgsim._compile.programs.read import read

pytestmark = pytest.mark.skipif(jax.default_backend() != "cpu" or compiler() is None, reason="needs a CPU and llvmlite")

RANGES = {
    jnp.exp: {np.float32: (-100.0, 88.0), np.float64: (-740.0, 709.0)},
    jnp.tanh: {np.float32: (-12.0, 12.0), np.float64: (-25.0, 25.0)},
}
EXACT = {jnp.exp: mpmath.exp, jnp.tanh: mpmath.tanh}
ULPS = {jnp.exp: 1.1, jnp.tanh: 3.0}


def by_llvm(f, x):
    """f of each entry of x, in vectors and one alone."""
    program = compile_program(read(f, jax.ShapeDtypeStruct((), x.dtype)), (False,))
    alone = compile_program(read(f, jax.ShapeDtypeStruct((), x.dtype)), (True,))
    found = jax.jit(lambda x: program([x], len(x))[0])(x)
    for i in range(0, len(x), 97):
        np.testing.assert_array_equal(jax.jit(lambda x: alone([x], 1)[0])(x[i])[0], found[i])
    return np.asarray(found)


@pytest.mark.parametrize("f", RANGES, ids=lambda f: f.__name__)
def test_within_few_units_in_the_last_place(f, dtype):
    low, high = RANGES[f][dtype]
    x = np.concatenate([np.linspace(low, high, 1000), np.geomspace(1e-30, 1, 300), -np.geomspace(1e-30, 1, 300)])
    x = x.astype(dtype)
    with mpmath.workdps(40):
        right = [EXACT[f](mpmath.mpf(float(each))) for each in x]
        found = by_llvm(f, jnp.asarray(x))
        errors = [abs(mpmath.mpf(float(a)) - b) for a, b in zip(found, right, strict=True)]
    normal = np.array([abs(b) > np.finfo(dtype).tiny for b in right])
    units = np.spacing(np.abs(np.array([float(b) for b in right], dtype)))
    assert np.max(np.array(errors, float)[normal] / units[normal]) <= ULPS[f]


@pytest.mark.parametrize("f", RANGES, ids=lambda f: f.__name__)
def test_ends_of_the_range(f, dtype):
    """Subnormal numbers are zero in XLA's threads."""
    big = np.finfo(dtype).max
    x = np.array([np.nan, np.inf, -np.inf, big, -big, 0.0, 1e-40, 1000.0, -1000.0, -88.5, 22.5, -22.5], dtype)
    with np.errstate(all="ignore"):
        right = {jnp.exp: np.exp, jnp.tanh: np.tanh}[f](x.astype(np.float64)).astype(dtype)
    np.testing.assert_allclose(
        by_llvm(f, jnp.asarray(x)), right, rtol=4 * np.finfo(dtype).eps, atol=np.finfo(dtype).tiny
    )
