"""Nonlinear least squares within bounds by the Levenberg-Marquardt method, from normal equations.

One loop serves all sizes and structures; the linear solver (``LinearStep``) is an argument.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Bool, Float, Int, PyTree

from lgsim._compile.linalg.box_qp import box_minimum
from lgsim._compile.xla import control_flow

_DAMPING, _LARGEST = 1e-4, 1e12
"""The first mu, and the value above which the search stops."""


@runtime_checkable
class HasCost(Protocol):
    """Normal equations of any structure, at a point with known cost."""

    @property
    def cost(self) -> Float[Array, ""]:
        """Half the sum of squares at the point."""
        ...


class NormalEquations(NamedTuple):
    """The normal equations of ``1/2 |r(x)|^2`` at a point, dense.

    Attributes:
        cost: Half the sum of squares, one number.
        gradient: ``J^T r`` (p,).
        hessian: ``J^T J`` (p, p).
    """

    cost: Float[Array, ""]
    gradient: Float[Array, " p"]
    hessian: Float[Array, "p p"]


class RESULTS(eqx.Enumeration):
    """Result codes of the iterations; each text names the remedy."""

    successful = ""
    max_iterations = "All iterations were used while the cost still fell. Give more iterations or a better start."
    stalled = (
        "No step lowers the cost though its gradient is not small. The start may be far off, the derivatives wrong, or "
        "the tolerance below what rounding allows."
    )
    nonfinite = "The cost is not finite at the start. Give another start."


class Proposal(NamedTuple):
    """A step from a linear system.

    Attributes:
        x: The bounded coordinates after the step (p,), within their bounds.
        tangent: Tangent vectors of the step of the other unknowns; None if there are none.
        predicted: Decrease of the quadratic model of the cost along the step.
        promised: Decrease for the full step of the model, if the proposed one is shorter; else None.
    """

    x: Float[Array, " p"]
    tangent: PyTree
    predicted: Float[Array, ""]
    promised: Float[Array, ""] | None = None


class LinearStep(eqx.Module):
    """Computation of steps from normal equations: their structure, and the bounds of the coordinates."""

    @abstractmethod
    def gradient(self, normal: Any) -> Float[Array, " p"]:
        """The gradient of the cost with respect to the bounded coordinates."""

    @abstractmethod
    def diagonals(self, normal: Any) -> PyTree[Float[Array, " ..."]]:
        """The diagonal of the Hessian, for all unknowns."""

    @abstractmethod
    def propose(
        self,
        normal: Any,
        D: PyTree[Float[Array, " ..."]],
        mu: Float[Array, ""] | float,
        x: Float[Array, " p"],
        lower: Float[Array, " p"],
        upper: Float[Array, " p"],
    ) -> Proposal:
        """The minimum of the quadratic model within the bounds, with ``mu D`` added to its Hessian.

        Args:
            normal: The normal equations at the point.
            D: Positive diagonal with the structure of ``diagonals(normal)``.
            mu: Damping.
            x: The bounded coordinates at the point.
            lower: Lower bounds of x.
            upper: Upper bounds of x.
        """


class BoxStep(LinearStep):
    """The step of dense normal equations, by a projected Newton method in the box."""

    def gradient(self, normal: NormalEquations) -> Float[Array, " p"]:
        return normal.gradient

    def diagonals(self, normal: NormalEquations) -> Float[Array, " p"]:
        return jnp.diagonal(normal.hessian)

    def propose(
        self,
        normal: NormalEquations,
        D: Float[Array, " p"],
        mu: Float[Array, ""] | float,
        x: Float[Array, " p"],
        lower: Float[Array, " p"],
        upper: Float[Array, " p"],
    ) -> Proposal:
        H, g = normal.hessian, normal.gradient
        dx, _ = box_minimum(H + mu * jnp.diag(D), g, lower - x, upper - x)
        trial = jnp.clip(x + dx, lower, upper)
        dx = trial - x
        return Proposal(trial, None, -(g @ dx + dx @ H @ dx / 2))


class Solution(NamedTuple):
    """Result of ``LevenbergMarquardt``.

    Attributes:
        x: Bounded coordinates (p,) at the end.
        rest: The other unknowns at the end; None if there are none.
        normal: The normal equations at the end.
        held: True for coordinates (p,) where a bound prevents a decrease of the cost.
        costs: The cost at the start of each iteration (max_iterations,), NaN after the last one. If trials are
            linearized at once, the cost after each iteration; the first one evaluates the start.
        path: x at the same points (max_iterations, p); the last one is repeated.
        iterations: Number of iterations.
        result: ``RESULTS.successful``, or the code of a failure.
    """

    x: Float[Array, " p"]
    rest: PyTree
    normal: Any
    held: Bool[Array, " p"]
    costs: Float[Array, " max_iterations"]
    path: Float[Array, "max_iterations p"]
    iterations: Int[Array, ""]
    result: Any


class State(NamedTuple):
    """State of the iterations.

    Attributes:
        i: Number of iterations; -1 if the start is still to be evaluated, which is not an iteration.
        x: Bounded coordinates (p,) of the best point so far.
        rest: The other unknowns there; None if there are none.
        trial: (x, rest) to evaluate next.
        predicted: Decrease of the model at the trial.
        normal: The normal equations at the best point.
        first: The cost at the start.
        scales: The largest diagonals of the Hessian so far.
        growth: The factor by which mu grows next.
        settled: True if the predicted decrease from the best point is below the tolerance.
        done: True if the search has ended.
        costs: See ``Solution``.
        path: See ``Solution``.
        result: See ``Solution``.
    """

    i: Int[Array, ""]
    x: Float[Array, " p"]
    rest: PyTree
    trial: tuple[Float[Array, " p"], PyTree]
    predicted: Float[Array, ""]
    normal: Any
    first: Float[Array, ""]
    scales: PyTree[Float[Array, " ..."]]
    mu: Float[Array, ""]
    growth: Float[Array, ""]
    settled: Bool[Array, ""]
    done: Bool[Array, ""]
    costs: Float[Array, " max_iterations"]
    path: Float[Array, "max_iterations p"]
    result: Any

    @property
    def cost(self) -> Float[Array, ""]:
        """The cost at the best point so far."""
        return self.normal.cost

    @property
    def unfinished(self) -> Bool[Array, ""]:
        """True if another iteration is needed."""
        return ~self.done & (self.i < self.costs.size)


class LevenbergMarquardt(NamedTuple):
    """Local minimization of half a sum of squares within bounds; pure functions for ``jit`` and ``vmap``.

    Each step solves ``(H + mu D) dx = -g`` within the bounds, D being the largest diagonal of H so far. A step that
    decreases the cost is accepted. The gain is the actual decrease divided by the predicted one. The damping is updated
    by ``mu <- mu max(1/3, 1 - (2 gain - 1)^3)`` on success, else by ``mu <- growth mu, growth <- 2 growth``. The
    iterations end when a nearly undamped step would decrease the cost by less than ``tolerance`` of it: damped steps
    along a flat valley have small gains long before the minimum.

    The unknowns are x (p,), which has bounds, and optional others, ``rest``, a pytree that ``move`` displaces along
    tangent vectors. If the cost is much cheaper than the normal equations, these are computed only at accepted points,
    and a last step below the tolerance is still tried. Without ``cost``, each trial is linearized at once,
    since most are accepted, and the iterations end before a step below the tolerance.

    Attributes:
        normal: ``normal(x, rest)``, the normal equations at a point.
        cost: ``cost(x, rest)`` only, or None.
        lower: Lower bounds of x (p,).
        upper: Upper bounds of x (p,).
        max_iterations: Maximum number of iterations; without ``cost`` the evaluation of the start is the first one.
        tolerance: Relative decrease of the cost that ends the iterations, in addition to rounding errors of the first
            cost; by default 2e-7 in float64 and 2e-3 in float32, far below the noise of measurements.
        negligible: Predicted decrease of the cost that does not matter: a search that finds no lower cost is successful
            if no more is predicted. A billionth of it (4e-4 in float32) ends the iterations. By default zero.
        move: ``move(tangent, rest)``, the other unknowns after a step.
        linear_step: Computation of steps from normal equations.
        results: The enumeration of ``Solution.result``, with the names of ``RESULTS`` and texts for the user.

    Source: More 1978, The Levenberg-Marquardt algorithm: implementation and theory, for D; Nielsen 1999, Damping
    parameter in Marquardt's method, IMM-REP-1999-05, for mu.
    """

    normal: Callable[[Array, Any], HasCost]
    cost: Callable[[Array, Any], Array] | None
    lower: Float[Array, " p"]
    upper: Float[Array, " p"]
    max_iterations: int = 50
    tolerance: ArrayLike | None = None
    move: Callable[[Any, Any], Any] | None = None
    linear_step: LinearStep = BoxStep()
    results: Any = RESULTS
    negligible: ArrayLike = 0.0

    def find(self, x0: Float[Array, " p"], rest: PyTree = None) -> Solution:
        """The solution after all iterations from a point within the bounds."""
        return self.end(control_flow.while_loop(lambda s: s.unfinished, self.step, self.begin(x0, rest)))

    def begin(self, x0: Float[Array, " p"], rest: PyTree = None) -> State:
        """The state before the first iteration from a point within the bounds."""
        costs = jnp.full(self.max_iterations, jnp.nan, x0.dtype)
        path = jnp.broadcast_to(x0, (self.max_iterations, x0.size))
        # the first iteration evaluates the start, so that the normal equations are compiled once
        blank = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), jax.eval_shape(self.normal, x0, rest))
        zero, no = jnp.zeros((), x0.dtype), jnp.array(False)
        scales = jax.tree.map(jnp.zeros_like, self.linear_step.diagonals(blank))
        mu, growth = jnp.asarray(_DAMPING, x0.dtype), jnp.full((), 2, x0.dtype)
        result = self.results.where(no, *2 * [self.results.successful])
        i = jnp.array(0 if self.cost is None else -1)
        return State(
            i, x0, rest, (x0, rest), zero, blank, zero, scales, mu, growth, no, no, costs, path, result
        )  # fmt: skip

    def step(self, s: State) -> State:
        """The state after one more iteration: evaluate the trial, accept or reject it, and propose the next one.

        The first call evaluates the start.
        """
        at_once, (trial, there) = self.cost is None, s.trial
        initial = s.i == (0 if at_once else -1)
        normal = self.normal(trial, there) if self.cost is None else s.normal
        after = normal.cost if self.cost is None else self.cost(trial, there)
        # gain ratio, and Nielsen's update of mu
        gain = (s.cost - after) / jnp.where(s.predicted > 0, s.predicted, 1)
        better = (gain > 0) & jnp.isfinite(after) & (s.predicted > 0)
        mu = jnp.where(initial, s.mu, s.mu * jnp.where(better, jnp.maximum(1 / 3, 1 - (2 * gain - 1) ** 3), s.growth))
        growth = jnp.where(initial, s.growth, jnp.where(better, 2, 2 * s.growth))
        better = better | initial
        # the best point so far, and its normal equations
        x, rest = jax.tree.map(lambda new, old: jnp.where(better, new, old), s.trial, (s.x, s.rest))
        if at_once:
            normal = jax.tree.map(lambda new, old: jnp.where(better, new, old), normal, s.normal)
        else:
            normal = control_flow.cond(better, self.normal, lambda *_: s.normal, x, rest)
        # D: the largest diagonal of H so far (More 1978)
        first = jnp.where(initial, normal.cost, s.first)
        scales = jax.tree.map(jnp.maximum, s.scales, self.linear_step.diagonals(normal))
        promised = self._promised(x, normal, scales)
        settled = promised <= self._tolerated(normal.cost, first)
        lost, broken = ~better & (s.mu > _LARGEST), ~jnp.isfinite(first)
        # a cheap trial below the tolerance is still evaluated
        ended = settled if at_once else s.settled
        proposal = self._proposal(x, normal, scales, mu)
        moved = rest if self.move is None else self.move(proposal.tangent, rest)
        result = self.results.where(lost & ~ended & ~(promised <= self.negligible), self.results.stalled, s.result)
        row, cost, place = (s.i, normal.cost, x) if at_once else (
            jnp.where(initial, self.max_iterations, s.i), s.cost, s.x
        )  # fmt: skip
        return State(
            s.i + 1, x, rest, (proposal.x, moved), proposal.predicted, normal, first, scales, mu, growth, settled,
            ended | lost | broken, s.costs.at[row].set(cost, mode="drop"), s.path.at[row].set(place, mode="drop"),
            self.results.where(broken, self.results.nonfinite, result),
        )  # fmt: skip

    def end(self, s: State) -> Solution:
        """The solution, or the best point so far."""
        result = self.results.where(s.done, s.result, self.results.max_iterations)
        g = self.linear_step.gradient(s.normal)
        held = ((s.x <= self.lower) & (g > 0)) | ((s.x >= self.upper) & (g < 0))
        path = jnp.where(jnp.arange(self.max_iterations)[:, None] < s.i, s.path, s.x)
        return Solution(s.x, s.rest, s.normal, held, s.costs, path, jnp.maximum(s.i, 0), result)

    def _proposal(
        self, x: Float[Array, " p"], normal: HasCost, scales: PyTree, mu: Float[Array, ""] | float
    ) -> Proposal:
        """The damped step."""
        # an unknown without influence on the cost has no scale of its own
        D = jax.tree.map(lambda d: jnp.where(d > 0, d, 1), scales)
        return self.linear_step.propose(normal, D, mu, x, self.lower, self.upper)

    def _promised(self, x: Float[Array, " p"], normal: HasCost, scales: PyTree) -> Float[Array, ""]:
        """The decrease of the model by a nearly undamped step."""
        # ridge, relative to the diagonal: keeps a Hessian with unobservable directions definite
        step = self._proposal(x, normal, scales, 10.0 ** (-0.6 * np.finfo(x.dtype).precision))
        return step.predicted if step.promised is None else step.promised

    def _tolerated(self, cost: Float[Array, ""], first: Float[Array, ""]) -> Float[Array, ""]:
        """The predicted decrease that ends the iterations: the tolerance and rounding errors."""
        digits = np.finfo(cost.dtype).precision
        limit = 10.0 ** (-0.45 * digits) if self.tolerance is None else self.tolerance
        return limit * cost + 10.0 ** (-0.9 * digits) * first + 10.0 ** (-0.6 * digits) * self.negligible
