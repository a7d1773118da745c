"""Reverse mode, forward mode and differences of one scalar, compared along a few directions."""

import jax
import numpy as np

from tests.integrators.test_gradients import directions


def check_derivatives(value, inputs, exact=1e-12, close=1e-7):
    """Assert that they agree at the inputs (a tuple of trees), relative to the largest; the last leaf is the step."""
    leaves, structure = jax.tree.flatten(inputs)
    leaves = tuple(leaves)

    def of_leaves(*leaves):
        return value(*jax.tree.unflatten(structure, leaves))

    along = directions(leaves)
    gradient = jax.jit(jax.grad(of_leaves, tuple(range(len(leaves)))))(*leaves)
    reverse = np.array([sum(np.vdot(g, d[k]) for g, d in zip(gradient, along, strict=True)) for k in range(4)])
    forward = jax.jit(jax.vmap(lambda *d: jax.jvp(of_leaves, leaves, d)[1]))(*along)
    h, plain = 1e-3, jax.jit(jax.vmap(of_leaves))

    def shifted(s):
        return plain(*(x[None] + s * d for x, d in zip(leaves, along, strict=True)))

    difference = (8 * (shifted(h) - shifted(-h)) - (shifted(2 * h) - shifted(-2 * h))) / (12 * h)
    scale = np.abs(reverse).max()
    assert np.all(np.isfinite(reverse)) and scale > 0.1
    assert np.abs(reverse - forward).max() < exact * scale
    assert np.abs(reverse - difference).max() < close * scale
