"""Linear systems with a symmetric positive definite tridiagonal matrix, in linear time."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim._compile.xla import control_flow


def solve(diagonal: Float[Array, " n"], lower: Float[Array, " n"], b: Float[Array, " n"]) -> Float[Array, " n"]:
    """Solve ``A x = b`` for symmetric positive definite tridiagonal A by elimination without pivoting, 9 n flops.

    A derivative takes one more solution with the same matrix, and does not differentiate the elimination.

    Args:
        diagonal: ``A[i, i]``.
        lower: ``A[i, i - 1]``; the first entry is not read.
        b: Right-hand side.

    Source: Golub and Van Loan, Matrix Computations, section 4.3.6.
    """
    zero = jnp.zeros_like(b[:1])
    lower = jnp.concatenate([zero, lower[1:]])
    upper = jnp.concatenate([lower[1:], zero])

    def product(x: Array) -> Array:
        return diagonal * x + lower * jnp.concatenate([zero, x[:-1]]) + upper * jnp.concatenate([x[1:], zero])

    def eliminate(_: object, b: Array) -> Array:
        def down(carry: tuple[Array, Array], row: tuple[Array, Array, Array]) -> tuple[tuple[Array, Array], tuple]:
            (pivot, left), (d, low, right) = carry, row
            ratio = low / pivot
            carry = (d - ratio * low, right - ratio * left)
            return carry, carry

        def up(x: Array, row: tuple[Array, Array, Array]) -> tuple[Array, Array]:
            pivot, left, high = row
            x = (left - high * x) / pivot
            return x, x

        _, (pivots, left) = control_flow.scan(down, (jnp.ones_like(b[0]), zero[0]), (diagonal, lower, b))
        return control_flow.scan(up, zero[0], (pivots, left, upper), reverse=True)[1]

    return jax.lax.custom_linear_solve(product, b, eliminate, symmetric=True)
