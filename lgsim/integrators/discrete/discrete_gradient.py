"""Gonzalez' discrete gradient between two points: its product with their difference is the change of the function.

    D f(w0, w1) = grad f(m) + n (n . r),    m = (w0 + w1)/2,    n = (w1 - w0)/|w1 - w0|,
    r = mean of grad f over the chord - grad f(m),

so that ``D f . (w1 - w0) = f(w1) - f(w0)``. The mean is a Gauss quadrature of eight points, exact for polynomials up to
degree 16 and to rounding where f is smooth over the chord. The function values themselves are not subtracted: their
rounding, divided by a short chord, would act as an arbitrarily large force at rest.

Source: Gonzalez 1996, Time integration and discrete Hamiltonian systems.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

POINTS = 8


def discrete_gradient(
    function: Callable[[Float[Array, " n"]], Float[Array, " rows"]], w0: Float[Array, " n"], w1: Float[Array, " n"]
) -> Float[Array, "rows n"]:
    """The discrete gradients D f of each value of a function between two points.

    Args:
        function: f, smooth over the chord from w0 to w1.
        w0: one point (n,).
        w1: the other one (n,); exchanging the points does not change D f.

    Returns:
        One row (n,) for each value of the function; where the points are equal its gradient.
    """
    knots, weights = np.polynomial.legendre.leggauss(POINTS)
    middle, half = (w0 + w1) / 2, (w1 - w0) / 2
    slope = jax.jacfwd(function)
    along = jax.vmap(lambda s: slope(middle + s * half))(jnp.asarray(knots, w0.dtype))
    at_middle = slope(middle)
    excess = jnp.einsum("s,srn->rn", jnp.asarray(weights / 2, w0.dtype), along - at_middle[None])
    square = jnp.sum(half * half)
    # on a chord of length zero the excess is zero, whatever its direction
    share = (excess @ half) / jnp.where(square == 0, 1, square)
    return at_middle + jnp.outer(share, half)
