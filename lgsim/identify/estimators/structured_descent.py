"""Gauss-Newton steps of a plant and a chain of first states, in time that grows with the number of windows only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import solve_triangular

from lgsim.identify.estimators.multiple_shooting import ShootingNormalEquations
from lgsim.linalg.box_qp import box_minimum
from lgsim.linalg.levenberg_marquardt import RESULTS


class Solution(NamedTuple):
    """Where the iterations ended; see ``gauss_newton.Found``.

    Attributes:
        x: Coordinates (p,).
        starts: First states of the windows (windows, ...).
        linear: The normal equations there.
        held: Which coordinates a bound holds (p,).
        costs: Cost after each iteration (max_iterations,), NaN after the last; the first one is that of the start.
        path: The coordinates there (max_iterations, p), repeated after the last.
        iterations: How many were done: each one simulates all records once, with derivatives.
        status: ``STATUS.successful`` or what went wrong.
    """

    x: Array
    starts: Array
    linear: ShootingNormalEquations
    held: Array
    costs: Array
    path: Array
    iterations: Array
    status: RESULTS


class Elimination(NamedTuple):
    """The block-tridiagonal matrix of the states as L L^T, applied to what stands beside it.

    Attributes:
        diagonal: Cholesky factors (windows, n, n).
        below: Blocks of L under them (windows, n, n), the first one unused.
        forward: ``L^-1 [sx, g]`` (windows, n, p + 1).
    """

    diagonal: Array
    below: Array
    forward: Array


def eliminate(linear: ShootingNormalEquations, damping: Array) -> tuple[Array, Array, Elimination]:
    """(Schur complement (p, p), gradient (p,), factors) of the coordinates, the states being eliminated.

    Args:
        linear: The normal equations.
        damping: Added to the diagonal of the states (windows, n).
    """
    windows, n = linear.gs.shape
    if not n:
        none = jnp.zeros((windows, 0, 0), linear.xx.dtype)
        return linear.xx, linear.gx, Elimination(none, none, none)
    right = jnp.concatenate([linear.xs, linear.gs[:, None]], axis=1).swapaxes(1, 2)
    before = jnp.concatenate([jnp.zeros_like(linear.near[:1]), linear.near[:-1]])
    D = linear.ss + damping[:, :, None] * jnp.eye(n, dtype=damping.dtype)[None]

    def step(carry: tuple[Array, Array], block: tuple[Array, Array, Array]) -> tuple[Any, Any]:
        C, y = carry
        D, N, b = block
        below = solve_triangular(C, N, lower=True).T
        C = jnp.linalg.cholesky(D - below @ below.T)
        y = solve_triangular(C, b - below @ y, lower=True)
        return (C, y), (C, below, y)

    start = jnp.eye(n, dtype=D.dtype), jnp.zeros_like(right[0])
    _, (C, below, y) = jax.lax.scan(step, start, (D, before, right))
    Y, z = y[..., :-1], y[..., -1]
    schur = linear.xx - jnp.einsum("wnp,wnq->pq", Y, Y)
    return schur, linear.gx - jnp.einsum("wnp,wn->p", Y, z), Elimination(C, below, y)


def substitute(factors: Elimination, dx: Array) -> Array:
    """The tangents (windows, n) of the states that go with a change of the coordinates."""
    if not factors.diagonal.shape[1]:
        return factors.forward[..., 0]
    return _back(factors, factors.forward[..., :-1] @ dx[:, None] + factors.forward[..., -1:])[..., 0]


def state_sensitivities(factors: Elimination) -> Array:
    """Derivatives (windows, n, p) of the best states by the coordinates."""
    return _back(factors, factors.forward[..., :-1])


def _back(factors: Elimination, right: Array) -> Array:
    """``-L^-T right``, right (windows, n, columns)."""
    after = jnp.concatenate([factors.below[1:], jnp.zeros_like(factors.below[:1])])

    def step(following: Array, block: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        C, below, b = block
        d = solve_triangular(C, -b - below.T @ following, lower=True, trans=1)
        return d, d

    return jax.lax.scan(step, jnp.zeros_like(right[0]), (factors.diagonal, after, right), reverse=True)[1]


def predicted(linear: ShootingNormalEquations, dx: Array, ds: Array) -> Array:
    """By how much the quadratic model falls."""
    slope = linear.gx @ dx + jnp.sum(linear.gs * ds)
    bend = dx @ linear.xx @ dx + 2 * jnp.einsum("p,wpn,wn->", dx, linear.xs, ds)
    bend = bend + jnp.einsum("wn,wnm,wm->", ds, linear.ss, ds)
    bend = bend + 2 * jnp.einsum("wn,wnm,wm->", ds, linear.near, jnp.roll(ds, -1, axis=0))
    return -(slope + bend / 2)


class State(NamedTuple):
    """Where the iterations are: all that the next one needs.

    Attributes:
        i: How many were done.
        x, starts: The best point so far.
        trial: The point to look at next.
        fall: By how much the model says that the cost falls there.
        linear: The normal equations at the best point.
        first: The cost at the start.
        scales: Largest diagonals of the Hessian so far, of x and of the states.
        mu, grow: Damping, and by what it grows after a step that failed.
        done: Whether there is nothing more to do.
        costs, path, status: See ``Reached``.
    """

    i: Array
    x: Array
    starts: Array
    trial: tuple[Array, Array]
    fall: Array
    linear: ShootingNormalEquations
    first: Array
    scales: tuple[Array, Array]
    mu: Array
    grow: Array
    done: Array
    costs: Array
    path: Array
    status: RESULTS

    @property
    def cost(self) -> Array:
        """At the best point so far."""
        return self.linear.cost


class StructuredDescent(NamedTuple):
    """A local minimum by the method of Levenberg and Marquardt, as ``gauss_newton.Descent`` for the chain of states.

    Each trial is linearised at once: most are accepted, and then nothing is computed twice.

    Attributes:
        linearise: The normal equations at (x, starts).
        move: ``move(tangent, start)`` of one window.
        lower, upper: Bounds of x.
        max_iterations, tolerance: See ``gauss_newton.Descent``.
    """

    linearise: Callable[[Array, Array], ShootingNormalEquations]
    move: Callable[[Array, Array], Array]
    lower: Array
    upper: Array
    max_iterations: int
    tolerance: Any = None

    def find(self, x0: Array, starts: Array) -> Solution:
        """All iterations."""
        return self.end(jax.lax.while_loop(self.more, self.step, self.begin(x0, starts)))

    def begin(self, x0: Array, starts: Array) -> State:
        """Before the first iteration."""
        zero = jnp.zeros((), x0.dtype)
        nothing = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), jax.eval_shape(self.linearise, x0, starts))
        costs = jnp.full(self.max_iterations, jnp.nan, x0.dtype)
        path = jnp.broadcast_to(x0, (self.max_iterations, x0.size))
        return State(
            jnp.array(0), x0, starts, (x0, starts), zero, nothing, zero, (nothing.gx, nothing.gs),
            jnp.asarray(1e-4, x0.dtype), jnp.full((), 2, x0.dtype), jnp.array(False), costs, path, RESULTS.successful,
        )  # fmt: skip

    def more(self, s: State) -> Array:
        """Whether another iteration is due."""
        return ~s.done & (s.i < self.max_iterations)

    def step(self, s: State) -> State:
        """One iteration."""
        digits = np.finfo(s.x.dtype).precision
        limit = 10.0 ** (-0.45 * digits) if self.tolerance is None else self.tolerance
        ridge, rounding = 10.0 ** (-0.6 * digits), 10.0 ** (-0.9 * digits)
        trial, there = s.trial
        after = self.linearise(trial, there)
        initial = s.i == 0
        gain = (s.linear.cost - after.cost) / jnp.where(s.fall > 0, s.fall, 1)
        better = (gain > 0) & jnp.isfinite(after.cost) & (s.fall > 0) | initial
        x, starts, linear = jax.tree.map(
            lambda new, old: jnp.where(better, new, old), (trial, there, after), (s.x, s.starts, s.linear)
        )
        first = jnp.where(initial, after.cost, s.first)
        scales = _widened(s.scales, linear)
        shorter = jnp.where(initial, 1, jnp.maximum(1 / 3, 1 - (2 * gain - 1) ** 3))
        mu = s.mu * jnp.where(better, shorter, s.grow)
        lost = ~better & (mu > 1e12)
        status = RESULTS.where(lost, RESULTS.stalled, s.status)
        status = RESULTS.where(jnp.isfinite(first), status, RESULTS.nonfinite)
        settled = self._ahead(linear, scales, ridge, x)[2] <= limit * linear.cost + rounding * first
        dx, ds, fall = self._ahead(linear, scales, mu, x)
        return State(
            s.i + 1, x, starts, (x + dx, jax.vmap(self.move)(ds, starts) if ds.shape[1] else starts), fall, linear,
            first, scales, mu, jnp.where(better, 2, 2 * s.grow), settled | lost | ~jnp.isfinite(first),
            s.costs.at[s.i].set(linear.cost), s.path.at[s.i].set(x), status,
        )  # fmt: skip

    def end(self, s: State) -> Solution:
        """Where it ended."""
        status = RESULTS.where(s.done, s.status, RESULTS.max_iterations)
        g = s.linear.gx
        held = ((s.x <= self.lower) & (g > 0)) | ((s.x >= self.upper) & (g < 0))
        path = jnp.where(jnp.arange(self.max_iterations)[:, None] < s.i, s.path, s.x)
        return Solution(s.x, s.starts, s.linear, held, s.costs, path, s.i, status)

    def _ahead(
        self, linear: ShootingNormalEquations, scales: tuple[Array, Array], mu: Any, x: Array
    ) -> tuple[Array, Array, Array]:
        """(step of x, tangents of the states, by how much the model falls) with damping."""
        # an unknown that nothing depends on has no scale of its own
        Dx, Ds = (jnp.where(d > 0, d, 1) for d in scales)
        schur, g, factors = eliminate(linear, mu * Ds)
        dx, _ = box_minimum(schur + mu * jnp.diag(Dx), g, self.lower - x, self.upper - x)
        dx = jnp.clip(x + dx, self.lower, self.upper) - x
        ds = substitute(factors, dx)
        return dx, ds, predicted(linear, dx, ds)


def _widened(scales: tuple[Array, Array], linear: ShootingNormalEquations) -> tuple[Array, Array]:
    own = jnp.diagonal(linear.xx), jnp.diagonal(linear.ss, axis1=1, axis2=2)
    return jnp.maximum(scales[0], own[0]), jnp.maximum(scales[1], own[1])
