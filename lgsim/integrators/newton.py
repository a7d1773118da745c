"""Newton's method with a fixed number of iterations for implicit methods, with implicit derivatives.

With a fixed number of iterations the program compiles once, maps over batches and supports reverse mode. The residual,
which every step reports, shows whether the iterations sufficed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Float

from lgsim._compile.xla import control_flow
from lgsim.lie.action import Point
from lgsim.support.check import is_traced


class Newton(eqx.Module):
    """The solver for the equations of an implicit method.

    Attributes:
        iterations: the number of iterations, at least 2; each evaluates the residual with its Jacobian and solves.
        tolerance: the largest relative residual, before the last iteration, that counts as solved; None for half of the
            dtype's bits, because that iteration doubles them.

    Raises:
        ValueError: less than 2 iterations, or a tolerance that is not positive.
    """

    iterations: int = eqx.field(static=True, default=6)
    tolerance: Any = None

    def __check_init__(self) -> None:
        if self.iterations < 2:
            raise ValueError(f"iterations: expected at least 2, got {self.iterations}")
        if self.tolerance is not None and not is_traced(self.tolerance) and not self.tolerance > 0:
            raise ValueError(f"tolerance: expected a positive number or None, got {self.tolerance}")

    def largest_residual(self, dtype: DTypeLike) -> float | Float[Array, ""]:
        """The dimensionless relative residual up to which the equations of a step in ``dtype`` count as solved."""
        return 2.0 ** (-jnp.finfo(dtype).nmant // 2) if self.tolerance is None else self.tolerance

    def solve(
        self,
        residual: Callable[[Float[Array, " n"]], Float[Array, " n"]],
        guess: Float[Array, " n"],
        y: Point,
        monitored: int | None = None,
    ) -> tuple[Float[Array, " n"], Float[Array, ""]]:
        """Find a root of ``residual``, with exact derivatives of any order with respect to its closure.

        Args:
            residual: a map of R^n to itself with a regular Jacobian at its root.
            guess: the start of the iteration, shape (n,); the root and its derivatives do not depend on it.
            y: the state at the start of the step; with the root it sets the scale of the residual.
            monitored: the number of leading unknowns that have the unit of y, if the residual has another one. Their
                last change then replaces the residual.

        Returns:
            The root (n,), and the largest entry () of ``residual`` before the last iteration, or of the last change of
            the monitored unknowns, relative to the largest entry of the (monitored) root and of y together.
        """

        def iterate(function: Callable[[Array], Array], start: Float[Array, " n"]) -> tuple[Array, Array]:
            basis = jnp.eye(start.size, dtype=start.dtype)

            def step(x: Array, _: None) -> tuple[Array, Array]:
                # value and Jacobian in one forward pass; the change is J^-1 value
                push = jax.vmap(lambda e: jax.jvp(function, (x,), (e,)), out_axes=(None, -1))
                value, jacobian = push(basis)
                change = jnp.linalg.solve(jacobian, value)
                return x - change, jnp.max(jnp.abs(value if monitored is None else change[:monitored]))

            x, gaps = control_flow.scan(step, start, None, length=self.iterations)
            return x, gaps[-1]

        def tangent_solve(linear: Callable[[Array], Array], right: Array) -> Array:
            return jnp.linalg.solve(jax.vmap(linear, out_axes=-1)(jnp.eye(right.size, dtype=right.dtype)), right)

        # derivatives are those of the implicit function: one linear solve at the root
        root, gap = jax.lax.custom_root(residual, jax.lax.stop_gradient(guess), iterate, tangent_solve, has_aux=True)
        size = jnp.max(jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in (root[:monitored], *jax.tree.leaves(y))]))
        return root, jax.lax.stop_gradient(gap / jnp.where(size == 0, 1, size))
