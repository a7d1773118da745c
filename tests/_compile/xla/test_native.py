"""A native formula and its derivatives of any order are those of the formula."""

import subprocess
import sys

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim._compile.xla import hints, native_with_derivatives

pytestmark = pytest.mark.float32


def core(x, y, z):
    """Of (3,), (2,) and () a value (4,); the batch follows, of which an argument may have length 1."""
    parts = (
        jnp.sin(x[0] * y[0]) * z + x[1],
        x[2] * x[2] * y[1] + jnp.exp(z),
        x[0] * x[1] * x[2] / (2 + y[0] * y[0]),
        y[0] * y[1],
    )
    return jnp.stack(jnp.broadcast_arrays(*parts))


fast = native_with_derivatives(core)
WEIGHTS = np.array([0.7, -1.3, 0.4, 2.1])


def arguments(dtype, batch=()):
    rng = np.random.default_rng(2)
    return tuple(jnp.asarray(rng.normal(size=(*batch, *own)), dtype) for own in ((3,), (2,), ()))


def total(f):
    return lambda *args: jnp.dot(f(*args), jnp.asarray(WEIGHTS, args[0].dtype))


def same(found, right, dtype):
    chex.assert_trees_all_equal_shapes_and_dtypes(found, right)
    for path, a in jax.tree_util.tree_leaves_with_path(found):
        b = dict(jax.tree_util.tree_leaves_with_path(right))[path]
        assert a.dtype == dtype, path
        scale = 1 + float(jnp.max(jnp.abs(b)))
        np.testing.assert_allclose(a, b, rtol=0, atol=50 * np.finfo(dtype).eps * scale, err_msg=str(path))


def first_order(f):
    """Value, both products with the derivative and both full ones; of some arguments alone as well."""
    every = (0, 1, 2)

    def found(x, y, z):
        value, back = jax.vjp(f, x, y, z)
        out = {
            "value": f(x, y, z),
            "primal": value,
            "jvp": jax.jvp(f, (x, y, z), (x, 2 * y, z * z)),
            "jvp of one": jax.jvp(lambda y: f(x, y, z), (y,), (y,)),
            "vjp": back(value),
            "jacfwd": jax.jacfwd(f, every)(x, y, z),
            "jacrev": jax.jacrev(f, every)(x, y, z),
        }
        return out | {f"grad {i}": jax.grad(total(f), i)(x, y, z) for i in (0, 1, 2, (0, 2))}

    return found


def higher_order(f):
    modes = {"forward": jax.jacfwd, "reverse": jax.jacrev}
    second = {
        f"{outer} over {inner}": modes[outer](modes[inner](total(f), (0, 1, 2)), (0, 1, 2))
        for outer in modes
        for inner in modes
    }
    second["hessian by one"] = jax.hessian(total(f), 1)
    second["third"] = jax.jacrev(jax.hessian(total(f), 0), 2)
    return lambda *args: {name: derivative(*args) for name, derivative in second.items()}


@pytest.mark.repeats
@pytest.mark.parametrize("derivatives", [first_order, higher_order])
def test_equals_plain_jax(derivatives, dtype):
    args = arguments(dtype)
    same(jax.jit(derivatives(fast))(*args), jax.jit(derivatives(core))(*args), dtype)


def test_eager(dtype):
    args = arguments(dtype)
    same(fast(*args), core(*args), dtype)
    same(jax.grad(total(fast))(*args), jax.grad(total(core))(*args), dtype)


AXES = [
    (0, 0, 0),
    (0, None, None),
    (1, 0, None),
    *(pytest.param(a, marks=pytest.mark.exhaustive) for a in ((None, 0, 0), (None, None, 0))),
]


@pytest.mark.repeats
@pytest.mark.parametrize("axes", AXES, ids=str)
def test_batches(axes, dtype):
    """Shared arguments, other axes, a batch of batches; the gradient by a shared one is a sum."""
    one, many = arguments(dtype), arguments(dtype, (5,))
    args = tuple(a if axis is None else jnp.moveaxis(b, 0, axis) for a, b, axis in zip(one, many, axes, strict=True))

    def found(f):
        rows = jax.vmap(f, axes)
        weigh = jnp.asarray(np.random.default_rng(3).normal(size=(5, 4)), dtype)

        def summed(*args):
            return jnp.sum(rows(*args) * weigh)

        return lambda *args: {
            "values": rows(*args),
            "gradients": jax.vmap(jax.grad(total(f), (0, 1, 2)), axes)(*args),
            "of one": jax.vmap(jax.grad(total(f), 1), axes)(*args),
            "jacobians": jax.vmap(jax.jacfwd(f, 0), axes)(*args),
            "hessians": jax.vmap(jax.hessian(total(f), (0, 2)), axes)(*args),
            "gradient of the sum": jax.grad(summed, (0, 1, 2))(*args),
            "jvp": jax.jvp(rows, args, args)[1],
            "twice": jax.vmap(rows, (None, None, 0))(*args[:2], jnp.stack([args[2], 2 * args[2]])),
        }

    same(jax.jit(found(fast))(*args), jax.jit(found(core))(*args), dtype)


@pytest.mark.skipif(jax.default_backend() != "cpu" or not hints._HINTS, reason="the hints are for CPU alone")
def test_value_and_both_products_are_native_functions(dtype):
    args = arguments(dtype)
    value, tangent, gradient = (
        jax.jit(f).lower(*args).as_text().count("xla_cpu_small_call")
        for f in (fast, lambda *a: jax.jvp(fast, a, a)[1], jax.grad(total(fast), (0, 1, 2)))
    )
    assert min(value, tangent, gradient) > 0
    assert "xla_cpu_small_call" not in jax.jit(core).lower(*args).as_text()


CONSTANTS = """
import jax, jax.numpy as jnp
from lgsim._compile.xla.hints import native_call

times = native_call(lambda A, x: jax.lax.fori_loop(0, 1, lambda j, total: total + A[:, j] * x[j], jnp.zeros(2)))

A = jnp.array([[1.0], [0.0]])

def f(c):
    z = jnp.zeros(1)
    def step(state):
        y, i, total = state
        return jnp.where(i > 5, y + i, y * 0), i + 1, total + times(A, jnp.zeros(1))
    last = jax.lax.while_loop(lambda state: state[1] < c, step, (z, 0.0, jnp.zeros(2)))
    return last, jax.lax.cond(c > 2, lambda z: z + 1, lambda z: z, z)

print(jax.jit(f)(3.0)[0][2])
"""


def test_constants_end_no_process():
    """XLA knows the operand that is zero and keeps the other one: the call then had an operand that nothing used."""
    done = subprocess.run([sys.executable, "-c", CONSTANTS], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.split() == ["[0.", "0.]"], done.stderr[-2000:]
