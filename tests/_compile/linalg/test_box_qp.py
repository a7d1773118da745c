"""The minimum in a box, in a batch."""

import jax
import jax.numpy as jnp
import numpy as np

from lgsim._compile.linalg.box_qp import box_step
from lgsim._compile.xla import batch_last


def test_a_batch_of_boxes_ends_and_meets_the_conditions():
    """Where a decrease is zero but for rounding, every loop ends; the slope is zero at free entries, else outwards."""
    rng = np.random.default_rng(0)
    M, G, g = (rng.normal(size=(64, 7, n)) / 4 for n in (7, 14, 1))
    H, g = M @ M.transpose(0, 2, 1) + np.eye(7), g[..., 0]
    lower, upper = np.full(7, -0.1), np.full(7, 0.1)
    step = jax.jit(jax.vmap(batch_last(box_step), (0, 0, 0, None, None)))
    K, k, definite = (np.asarray(x) for x in step(*map(jnp.asarray, (H, G, g, lower, upper))))
    assert definite.all()
    slope = np.einsum("bij,bj->bi", H, k) + g
    np.testing.assert_allclose(k, np.clip(k - slope, lower, upper), atol=1e-12)
    free = (k > lower) & (k < upper)
    assert free.any() and not free.all()
    for i in range(64):
        expected = np.zeros((7, 14))
        expected[free[i]] = -np.linalg.solve(H[i][np.ix_(free[i], free[i])], G[i][free[i]])
        np.testing.assert_allclose(K[i], expected, atol=1e-12)
