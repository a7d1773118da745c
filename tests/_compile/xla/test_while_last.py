"""Loops of unknown length with the batch last against JAX's own loop, and the choice between trees."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim._compile.xla import where_last, while_last


def halvings(loop, scale, limit, M):
    """Shrink a matrix until its trace is small: (steps, matrix, sum of its inverses by entry)."""

    def step(carry):
        i, M, total = carry
        return i + 1, M @ M * scale, {"sum": total["sum"] + 1 / M}

    start = jnp.array(0), M, {"sum": jnp.zeros_like(M)}
    return loop(lambda carry: (jnp.trace(carry[1]) > limit) & (carry[0] < 9), step, start)


M = jnp.array([[0.9, 0.1], [0.2, 0.8]])
WAYS = while_last, jax.lax.while_loop


def same(f, *args):
    found, wanted = (jax.jit(lambda *args, way=way: f(way, *args))(*args) for way in WAYS)
    chex.assert_trees_all_equal_dtypes(found, wanted)
    chex.assert_trees_all_close(found, wanted, rtol=1e-13)


def test_one_loop():
    same(lambda way, M: halvings(way, 0.7, 0.1, M), M)
    assert int(halvings(while_last, 0.7, 0.1, M)[0]) == 3


def test_a_batch():
    """Entries stop at different steps; what is mapped is the carry, a constant of the step or one of the test."""

    def of(way, numbers):
        by_carry = jax.vmap(lambda s: halvings(way, 0.7, 0.1, s * M))(numbers)
        by_step = jax.vmap(lambda s: halvings(way, s, 0.1, M))(numbers)
        by_test = jax.vmap(lambda s: halvings(way, 0.7, s / 10, M))(numbers)
        return by_carry, by_step, by_test

    numbers = jnp.linspace(0.05, 1.0, 20)
    same(of, numbers)
    steps = jax.vmap(lambda s: halvings(while_last, s, 0.1, M))(numbers)[0]
    assert len(set(np.asarray(steps).tolist())) > 3


def test_a_batch_of_batches():
    """The outer and the inner one enter by different arguments, on axes that are not the first."""
    matrices = jnp.stack([M * s for s in np.linspace(0.5, 1, 6)], axis=1)

    def of(way, matrices, scales):
        inner = jax.vmap(lambda M, s: halvings(way, s, 0.1, M), (1, None), (0, 1, 1))
        return jax.vmap(inner, (None, 0), 1)(matrices, scales)

    same(of, matrices, jnp.linspace(0.5, 0.9, 4))


def test_an_entry_that_stopped_keeps_its_carry():
    """Though the step would spoil it: past the end it is not a number."""

    def descent(x):
        return while_last(lambda x: x > 0.5, lambda x: jnp.where(x > 0.5, x - 0.25, jnp.nan), x)

    np.testing.assert_array_equal(jax.vmap(descent)(jnp.array([0.25, 1.0, 9.0])), [0.25, 0.5, 0.5])


def test_forward_mode():
    def of(way, M):
        one = jax.jvp(lambda M: halvings(way, 0.7, 0.1, M)[1:], (M,), (jnp.ones_like(M),))
        batch = jax.vmap(jax.jacfwd(lambda s: halvings(way, s, 0.1, M)[1]))(jnp.linspace(0.5, 0.9, 5))
        return one, batch

    same(of, M)


def test_no_transpose_within_the_loop():
    """The batch is last all the time: what is moved there is moved once, before the loop."""
    loop = jax.vmap(lambda M: while_last(lambda c: jnp.sum(c) > 0.1, lambda c: 0.5 * c, M), out_axes=-1)
    (found,) = [e for e in jax.make_jaxpr(loop)(jnp.ones((5, 2, 2))).eqns if e.primitive.name == "while_last"]
    inside = jax.make_jaxpr(lambda *leaves: found.primitive.impl(*leaves, **found.params))
    text = str(inside(*(jnp.ones(x.aval.shape) for x in found.invars)))
    assert "while" in text and "transpose" not in text


def test_a_step_of_another_structure_is_told():
    with pytest.raises(TypeError, match="expected a carry of the structure"):
        while_last(lambda c: c < 1, lambda c: (c, c), jnp.zeros(()))


def test_the_choice_between_trees():
    """One condition for each entry of a batch, for arrays of any shape and dtype."""
    x = {"a": jnp.arange(6.0).reshape(2, 3), "i": jnp.array(4)}
    y = jax.tree.map(lambda leaf: -leaf, x)
    alone = where_last(jnp.array(True), x, y)
    batch = jax.vmap(where_last, (0, None, None))(jnp.array([True, False]), x, y)
    chex.assert_trees_all_equal(alone, x)
    chex.assert_trees_all_equal(batch, jax.tree.map(lambda a, b: jnp.stack([a, b]), x, y))


def test_a_step_that_gives_numbers_known_beforehand():
    """Literals among what it returns come out as arrays, alone and in a batch."""

    def reset(x):
        return while_last(lambda c: c[0] < 3, lambda c: (c[0] + 1, 0.0, True), (x, 1.5, False))

    for _ in range(5):  # types of lists are checked by random samples
        assert [float(x) for x in reset(jnp.array(1.0))] == [3, 0, 1]
    found = jax.vmap(reset)(jnp.array([1.0, 4.0]))
    assert [np.asarray(x).tolist() for x in found] == [[3, 4], [0, 1.5], [True, False]]
