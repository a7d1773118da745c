"""Loops with the batch last against JAX's own loop: values, batches of batches, derivatives in both modes."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim._compile.xla import batch_last, scan_last

XS = (jnp.sin(jnp.arange(10.0)).reshape(5, 2), jnp.arange(5.0))


def prepare(shift, x):
    a, b = x
    return jnp.outer(a, a) + shift, b * a


def step(scale, carry, ready):
    M, b = ready
    after = jnp.tanh(scale * M @ carry + b)
    return after, (after, jnp.sum(after * b))


def by_scan_last(scale, shift, start, xs, reverse):
    return scan_last(lambda c, x: step(scale, c, x), start, xs, prepare=lambda x: prepare(shift, x), reverse=reverse)


def by_jax(scale, shift, start, xs, reverse):
    return jax.lax.scan(lambda c, x: step(scale, c, prepare(shift, x)), start, xs, reverse=reverse)


def same(f, *args, atol=1e-14):
    found, wanted = (jax.jit(lambda *args, way=way: f(way, *args))(*args) for way in WAYS)
    chex.assert_trees_all_close(found, wanted, rtol=0, atol=atol)


WAYS = by_scan_last, by_jax
START = jnp.array([0.3, -0.2])


@pytest.mark.parametrize("reverse", [False, True])
def test_one_loop(reverse):
    same(lambda way, start, xs: way(0.7, 0.1, start, xs, reverse), START, XS)


@pytest.mark.parametrize("size", [3, 40])
@pytest.mark.quick
def test_a_batch(size):
    """Few problems, whose preparation is done before the loop, and many; what is mapped and what is not, mixed."""
    scales = jnp.linspace(0.5, 1.5, size)

    def of(way, scales, start, xs):
        over_constants = jax.vmap(lambda s: way(s, 0.1, start, xs, False))(scales)
        over_shift = jax.vmap(lambda s: way(0.7, s, start, xs, True))(scales)
        over_entries = jax.vmap(lambda s: way(0.7, 0.1, start, (xs[0] * s, xs[1]), False))(scales)
        return over_constants, over_shift, over_entries

    same(of, scales, START, XS)


def test_a_batch_of_batches():
    """The outer and the inner one enter by different arguments, on axes that are not the first."""
    starts = jnp.stack([START * s for s in np.linspace(1, 2, 6)], axis=1)

    def of(way, starts, scales, xs):
        inner = jax.vmap(lambda start, s: way(s, 0.1, start, xs, False), (1, None))
        return jax.vmap(inner, (None, 0), 1)(starts, scales)

    same(of, starts, jnp.linspace(0.5, 1.0, 4), XS)


def test_a_number_that_a_native_function_takes_from_around_the_loop():
    """A scalar constant reaches the batching of a native function as a number of its own kind, not as an array."""
    scaled = batch_last(lambda x, share: x * share)

    def total(start):
        return scan_last(lambda c, x: (scaled(c + x, jnp.asarray(0.5)), c), start, jnp.arange(4.0))[0]

    wanted = [((((s + 0) / 2 + 1) / 2 + 2) / 2 + 3) / 2 for s in (1.0, 5.0)]
    np.testing.assert_allclose(jax.jit(jax.vmap(total))(jnp.array([1.0, 5.0])), wanted, rtol=1e-15)


def test_derivatives_in_a_batch():
    """Forward and reverse mode through the loop, by the carry, constants and entries."""

    def of(way, scales, start, xs):
        def value(scale, start, xs):
            last, (path, sums) = way(scale, scale**2, start, xs, True)
            return jnp.sum(last) + jnp.sum(path**2) + jnp.sum(sums)

        back = jax.vmap(jax.grad(value, (0, 1, 2)), (0, None, None))(scales, start, xs)
        forth = jax.vmap(lambda s: jax.jvp(lambda s: way(s, 0.1, start, xs, False), (s,), (1.0,))[1])(scales)
        return back, forth

    same(of, jnp.linspace(0.5, 1.0, 20), START, XS, atol=1e-13)
