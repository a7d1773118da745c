"""Nonlinear least squares in a box by the method of Levenberg and Marquardt, from normal equations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.linalg.box_qp import box_minimum


class NormalEquations(NamedTuple):
    """The normal equations at a point: cost, gradient (p,), Gauss-Newton Hessian (p, p)."""

    cost: Array
    gradient: Array
    hessian: Array


class RESULTS(eqx.Enumeration):
    """How the iterations ended; the text says what to do."""

    successful = ""
    max_iterations = (
        "All iterations were used while the cost still fell. Give more iterations, a better prior or fewer unknowns."
    )
    stalled = (
        "No step lowers the cost though its gradient is not small. The prior may be far off, or the records may not "
        "belong to this machine."
    )
    nonfinite = "The cost is not finite at the prior. Look at the records and at the model's numbers."
    interrupted = (
        "The iterations were interrupted: this is the best point that they had. With a checkpoint, fit again to go on."
    )


class Solution(NamedTuple):
    """Where the iterations ended.

    Attributes:
        x: Coordinates (p,).
        normal: The normal equations there.
        held: Which coordinates a bound holds (p,).
        costs: Cost at the start of each iteration (max_iterations,), NaN after the last.
        path: The points themselves (max_iterations, p), repeated after the last.
        iterations: How many were done.
        status: ``STATUS.successful`` or what went wrong.
    """

    x: Array
    normal: NormalEquations
    held: Array
    costs: Array
    path: Array
    iterations: Array
    status: RESULTS


class State(NamedTuple):
    """Where the iterations are: all that the next one needs.

    Attributes:
        i: How many were done.
        x: Coordinates (p,).
        normal: The normal equations there.
        first: The cost at the start.
        scale: Largest diagonal of the Hessian so far (p,).
        mu, grow: Damping, and by what it grows after a step that failed.
        done: Whether there is nothing more to do.
        costs, path: See ``Found``.
        status: See ``Found``.
    """

    i: Array
    x: Array
    normal: NormalEquations
    first: Array
    scale: Array
    mu: Array
    grow: Array
    done: Array
    costs: Array
    path: Array
    status: RESULTS

    @property
    def cost(self) -> Array:
        """At the best point so far."""
        return self.normal.cost


class LevenbergMarquardt(NamedTuple):
    """A local minimum of half a sum of squares within bounds; pure functions for ``jit`` and ``vmap``.

    ``(H + mu D) dx = -g`` within the bounds, D the largest diagonal of H so far, mu by Nielsen's rule from the gain
    ratio. It ends where the step almost without damping would lower the cost by less than ``tolerance`` of it: along a
    flat valley damped steps gain little long before the end.

    Attributes:
        normal: The normal equations.
        cost: The cost alone.
        lower, upper: Bounds (p,).
        max_iterations: At most.
        tolerance: Of the cost, beside rounding errors of the first one; by default 2e-7 in float64 and 2e-3 in float32:
            far below what noise allows.

    Source: Nielsen 1999, Damping parameter in Marquardt's method, IMM-REP-1999-05; More 1978, The Levenberg-Marquardt
    algorithm: implementation and theory, for D.
    """

    normal: Callable[[Array], NormalEquations]
    cost: Callable[[Array], Array]
    lower: Array
    upper: Array
    max_iterations: int = 50
    tolerance: Any = None

    def find(self, x0: Array) -> Solution:
        """All iterations from x0, within the bounds."""
        return self.end(jax.lax.while_loop(self.more, self.step, self.begin(x0)))

    def begin(self, x0: Array) -> State:
        """Before the first iteration."""
        first = self.normal(x0)
        finite = jnp.isfinite(first.cost)
        zero, two = jnp.zeros_like(x0), jnp.full((), 2, x0.dtype)
        costs = jnp.full(self.max_iterations, jnp.nan, x0.dtype)
        path = jnp.broadcast_to(x0, (self.max_iterations, x0.size))
        code = RESULTS.where(finite, RESULTS.successful, RESULTS.nonfinite)
        mu = jnp.asarray(1e-4, x0.dtype)
        return State(jnp.array(0), x0, first, first.cost, zero, mu, two, ~finite, costs, path, code)

    def more(self, s: State) -> Array:
        """Whether another iteration is due."""
        return ~s.done & (s.i < self.max_iterations)

    def step(self, s: State) -> State:
        """One iteration."""
        digits = np.finfo(s.x.dtype).precision
        limit = 10.0 ** (-0.45 * digits) if self.tolerance is None else self.tolerance
        # ridge: of the diagonal, keeps a Hessian with directions that nothing shows definite
        ridge, rounding = 10.0 ** (-0.6 * digits), 10.0 ** (-0.9 * digits)
        lower, upper = self.lower, self.upper
        H, g = s.normal.hessian, s.normal.gradient
        diagonal = jnp.maximum(s.scale, jnp.diagonal(H))
        # an unknown that nothing depends on has no scale of its own
        D = jnp.where(diagonal > 0, diagonal, 1)
        dx, _ = box_minimum(H + s.mu * jnp.diag(D), g, lower - s.x, upper - s.x)
        trial = jnp.clip(s.x + dx, lower, upper)
        dx = trial - s.x
        predicted = -(g @ dx + dx @ H @ dx / 2)
        after = self.cost(trial)
        gain = (s.normal.cost - after) / jnp.where(predicted > 0, predicted, 1)
        better = (gain > 0) & jnp.isfinite(after) & (predicted > 0)
        ahead, _ = box_minimum(H + ridge * jnp.diag(D), g, lower - s.x, upper - s.x)
        settled = -(g @ ahead + ahead @ H @ ahead / 2) <= limit * s.normal.cost + rounding * s.first
        lost = ~better & (s.mu > 1e12)
        x = jnp.where(better, trial, s.x)
        found = jax.lax.cond(better, self.normal, lambda _: s.normal, x)
        mu = jnp.where(better, s.mu * jnp.maximum(1 / 3, 1 - (2 * gain - 1) ** 3), s.mu * s.grow)
        code = RESULTS.where(lost & ~settled, RESULTS.stalled, s.status)
        return State(
            s.i + 1, x, found, s.first, diagonal, mu, jnp.where(better, 2, 2 * s.grow), settled | lost,
            s.costs.at[s.i].set(s.normal.cost), s.path.at[s.i].set(s.x), code,
        )  # fmt: skip

    def end(self, s: State) -> Solution:
        """Where it ended."""
        code = RESULTS.where(s.done, s.status, RESULTS.max_iterations)
        g = s.normal.gradient
        held = ((s.x <= self.lower) & (g > 0)) | ((s.x >= self.upper) & (g < 0))
        path = jnp.where(jnp.arange(self.max_iterations)[:, None] < s.i, s.path, s.x)
        return Solution(s.x, s.normal, held, s.costs, path, s.i, code)
