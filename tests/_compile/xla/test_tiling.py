"""Batches in tiles are batches."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim._compile.xla import tiled_vmap, tiling


def f(scale, x, tree):
    """Of mixed shapes and types: numbers, a matrix, whole numbers."""
    a, (n,) = tree["a"], tree["n"]
    return {"sum": jnp.sum(x) * scale, "outer": x[:, None] * a[None], "count": n + 1}, x


def states(length, seed=0):
    rng = np.random.default_rng(seed)
    x, a, n = rng.normal(size=(length, 3)), rng.normal(size=(length, 2)), rng.integers(0, 9, length)
    return jnp.asarray(2.5), jnp.asarray(x), {"a": jnp.asarray(a), "n": (jnp.asarray(n),)}


def equal(found, right):
    chex.assert_trees_all_equal_shapes_and_dtypes(found, right)
    chex.assert_trees_all_close(found, right, rtol=1e-15)


@pytest.mark.repeats
@pytest.mark.parametrize("length", [1, 3, 4, 5, 8, 11])
def test_equals_vmap(length):
    """Below a tile, one tile, one more, whole tiles, and a rest."""
    args = states(length)
    equal(tiled_vmap(f, tile=4, in_axes=(None, 0, 0))(*args), jax.vmap(f, in_axes=(None, 0, 0))(*args))


def test_every_argument_by_default():
    _, x, _ = states(7)
    equal(tiled_vmap(jnp.dot, tile=2)(x, x), jax.vmap(jnp.dot)(x, x))
    equal(tiled_vmap(jnp.sum, tile=3, in_axes=[0])(x), jax.vmap(jnp.sum)(x))


def test_shared_arguments_may_be_anything():
    """Also trees and functions: only what is mapped has to be arrays."""
    _, x, _ = states(6)
    found = tiled_vmap(lambda g, x, c: g(x) + c["b"], tile=4, in_axes=(None, 0, None))(jnp.sum, x, {"b": 1.0})
    np.testing.assert_allclose(found, np.asarray(x).sum(1) + 1, rtol=1e-15)


def test_arrays_of_numpy_are_taken():
    x = np.arange(10.0).reshape(5, 2)
    np.testing.assert_array_equal(tiled_vmap(lambda x: x[0] - x[1], tile=2)(x), np.full(5, -1.0))


@pytest.mark.parametrize("tile", [None, 1, 4])
def test_compiles_differentiates_and_nests(tile):
    scale, x, _ = states(6)

    def loss(scale, x):
        return jnp.sum(jnp.sin(tiled_vmap(lambda x: scale * x @ x, tile=tile)(x)))

    def plain(scale, x):
        return jnp.sum(jnp.sin(jax.vmap(lambda x: scale * x @ x)(x)))

    equal(jax.jit(jax.grad(loss, (0, 1)))(scale, x), jax.grad(plain, (0, 1))(scale, x))
    many = jnp.stack([x, 2 * x])
    equal(jax.vmap(loss, (None, 0))(scale, many), jax.vmap(plain, (None, 0))(scale, many))


def test_no_state_is_computed_for_nothing_but_the_rest():
    """One call for each tile: the function is traced once, whatever the length."""
    traces = []

    def counted(x):
        traces.append(x.shape)
        return x

    tiled_vmap(counted, tile=4)(jnp.zeros((9, 2)))
    assert set(traces) == {(2,)}


@pytest.mark.parametrize(("entries", "results", "tile"), [(1, 1, 128), (1000, 24, 128), (1000, 25, 64), (10, 5000, 64)])
def test_the_tile_follows_what_enters_and_leaves(entries, results, tile, monkeypatch):
    def f(x):
        return jnp.zeros(results) + x[0]

    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    assert tiling._tile(f, [np.zeros((1000, entries))], 1000) == tile
    assert tiling._tile(f, [np.zeros((20, entries))], 20) == 20
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert tiling._tile(f, [np.zeros((1000, entries))], 1000) == 1000


def test_the_default_tile_gives_the_same():
    _, x, _ = states(300)
    equal(tiled_vmap(jnp.sum)(x), jax.vmap(jnp.sum)(x))


AXES = "in_axes: expected 0 or None for each of 2 arguments, not all None, got "
LENGTHS = "mapped arguments: expected one length of the first axis, at least 1, got "
WRONG = {
    "another axis": (1, (np.zeros((2, 2)),) * 2, AXES + r"\(1, 1\)"),
    "too few": ((0,), (np.zeros(2),) * 2, AXES + r"\(0,\)"),
    "too many": ((0, 0, None), (np.zeros(2),) * 2, AXES + r"\(0, 0, None\)"),
    "nothing mapped": (None, (np.zeros(2),) * 2, AXES + r"\(None, None\)"),
    "lengths that differ": (0, (np.zeros(2), np.zeros(3)), LENGTHS + r"\{2, 3\}"),
    "a number": ((0, None), (1.0, np.zeros(2)), LENGTHS),
    "no states": (0, (np.zeros((0, 2)),) * 2, LENGTHS + r"\{0\}"),
    "no arrays": ((0, None), ((), 1.0), LENGTHS + r"set\(\)"),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors(case):
    axes, args, message = WRONG[case]
    with pytest.raises(ValueError, match=message):
        tiled_vmap(lambda x, y: x, tile=2, in_axes=axes)(*args)


def test_it_keeps_the_name_of_the_function():
    assert tiled_vmap(f).__name__ == "f"
