"""Reverse mode, forward mode and differences of one scalar, compared along a few directions."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

ROWS = 4


def directions(leaves, count=ROWS):
    """Random directions in all arrays; the last one is a step, which moves relative to its size."""
    keys = jax.random.split(jax.random.key(5), len(leaves))
    found = [jax.random.normal(key, (count, *jnp.shape(x))) for key, x in zip(keys, leaves, strict=True)]
    return (*found[:-1], found[-1] * leaves[-1])


class Derivatives:
    """The derivatives of ``value(*inputs, *further)`` by the inputs, trees whose last leaf is the step.

    Two programs for each shape: the gradient; and value and tangent of many rows at once, which gives the forward mode
    and the values of the differences.
    """

    def __init__(self, value: Callable[..., Any]):
        self.gradient = jax.jit(lambda inputs, further: jax.grad(lambda x: value(*x, *further))(inputs))
        push = lambda x, d, further: jax.jvp(lambda x: value(*x, *further), (x,), (d,))  # noqa: E731
        self.push = jax.jit(jax.vmap(push, (0, 0, None)))

    def check(self, inputs, further=(), exact=1e-12, close=1e-7):
        """Assert that all agree at the inputs, relative to the largest slope; differences have one Richardson step."""
        leaves, structure = jax.tree.flatten(inputs)
        along = directions(leaves)
        gradient = jax.tree.leaves(self.gradient(inputs, further))
        reverse = np.array([sum(np.vdot(g, d[k]) for g, d in zip(gradient, along, strict=True)) for k in range(ROWS)])
        h, shifts = 1e-3, np.array([0, 1, -1, 2, -2])
        rows = [jnp.concatenate([x[None] + s * h * d for s in shifts]) for x, d in zip(leaves, along, strict=True)]
        tangents = [jnp.concatenate([d] * len(shifts)) for d in along]
        both = self.push(jax.tree.unflatten(structure, rows), jax.tree.unflatten(structure, tangents), further)
        values, slopes = (np.asarray(x).reshape(len(shifts), ROWS) for x in both)
        forward, (_, up, down, up2, down2) = slopes[0], values
        difference = (8 * (up - down) - (up2 - down2)) / (12 * h)
        scale = np.abs(reverse).max()
        assert np.all(np.isfinite(reverse)) and scale > 0.1
        assert np.abs(reverse - forward).max() < exact * scale
        # truncation h^4 with derivatives of order one, and cancellation eps/h
        assert np.abs(reverse - difference).max() < close * scale
